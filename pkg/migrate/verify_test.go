package migrate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/migrate"
)

// mixed are the columns in which differences are planted.
func mixed() *iceberg.Schema {
	s, err := iceberg.AssignFreshSchemaIDs(iceberg.NewSchema(0,
		field(1, "id", prim.Int64), field(2, "p", prim.String), field(3, "a", prim.String), field(4, "b", prim.String),
		field(5, "d", prim.Float64), field(6, "dec", iceberg.DecimalTypeOf(20, 4)), field(7, "ts", prim.TimestampTz),
		field(8, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{field(0, "bits", prim.Binary), field(0, "li", &iceberg.ListType{Element: prim.Float32})}}),
	), nil)
	if err != nil {
		panic(err)
	}
	return s
}

func mixedRows() []string {
	var out []string
	for i := range 12 {
		out = append(out, fmt.Sprintf(`{"id":%d,"p":"p%d","a":"x%d","b":"","d":0.0,"dec":"1234567890123456.%04d","ts":"2024-02-29T12:00:00.%06dZ","st":{"bits":"AAEC","li":[1.5,null]}}`, i, i%3, i%4, i, i))
	}
	return out
}

// A plant makes one difference; want is what a diff by id says of it.
type plant struct {
	name       string
	make       func(rows []string) []string
	want       []string
	count      bool     // row_count sees it too
	partitions []string // that differ, where p partitions
}

func change(row int, from, to string) func([]string) []string {
	return func(rows []string) []string {
		if !strings.Contains(rows[row], from) {
			panic(rows[row])
		}
		rows[row] = strings.Replace(rows[row], from, to, 1)
		return rows
	}
}

func plants() []plant {
	return []plant{
		{"a bit in a nested field", change(4, `"AAEC"`, `"AAED"`), []string{"changed 4 st"}, false, []string{"p=p1"}},
		{"a float in a list in a struct", change(4, `1.5`, `1.5000001`), []string{"changed 4 st"}, false, []string{"p=p1"}},
		{"one row doubled, another dropped", func(r []string) []string { r[3] = r[0]; return r }, []string{"extra 0", "missing 3"}, false, []string{"p=p0"}},
		{"values swapped between rows", func(r []string) []string { return change(2, `"x2"`, `"x1"`)(change(5, `"x1"`, `"x2"`)(r)) }, []string{"changed 2 a", "changed 5 a"}, false, []string{"p=p2"}},
		{"values swapped between columns", change(7, `"a":"x3","b":""`, `"a":"","b":"x3"`), []string{"changed 7 a b"}, false, []string{"p=p1"}},
		{"null for empty", change(6, `"b":""`, `"b":null`), []string{"changed 6 b"}, false, []string{"p=p0"}},
		{"minus zero for zero", change(6, `"d":0.0`, `"d":-0.0`), []string{"changed 6 d"}, false, []string{"p=p0"}},
		{"NaN for null", change(6, `"d":0.0`, `"d":"NaN"`), []string{"changed 6 d"}, false, []string{"p=p0"}},
		{"the last digit of a decimal", change(9, `.0009"`, `.0008"`), []string{"changed 9 dec"}, false, []string{"p=p0"}},
		{"a microsecond", change(11, `.000011Z`, `.000012Z`), []string{"changed 11 ts"}, false, []string{"p=p2"}},
		{"another partition", change(1, `"p1"`, `"p2"`), []string{"changed 1 p"}, false, []string{"p=p1", "p=p2"}},
		{"a row missing", func(r []string) []string { return r[:11] }, []string{"missing 11"}, true, []string{"p=p2"}},
		{"a row too many", func(r []string) []string { return append(r, strings.Replace(r[0], `"id":0`, `"id":99`, 1)) }, []string{"extra 99"}, true, []string{"p=p0"}},
	}
}

func partitionedBy(t *testing.T, s *iceberg.Schema, column string, transform iceberg.Transform) catalog.CreateTableOpt {
	t.Helper()
	f, ok := s.FindFieldByName(column)
	if !ok {
		t.Fatal(column)
	}
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{f.ID}, FieldID: 1000, Name: column, Transform: transform})
	return catalog.WithPartitionSpec(&spec)
}

// named is what a diff names, by the id.
func named(v migrate.Verification) []string {
	out := []string{}
	for _, d := range v.Differences.Rows {
		row := d.Source
		if !row.Is() {
			row = d.Dest
		}
		cells, err := row.Cells()
		if err != nil {
			panic(err)
		}
		out = append(out, strings.TrimSpace(d.Kind+" "+cells[0]+" "+strings.Join(d.Columns, " ")))
	}
	slices.Sort(out)
	return out
}

func verify(t *testing.T, src, dst *migrate.Table, o migrate.VerifyOptions) migrate.Verification {
	t.Helper()
	v, err := migrate.Verify(t.Context(), src, dst, o)
	must(t, err)
	return v
}

// TestPlantedDifferences: one difference of any kind is found by partition_hash, which names its partitions, by
// diff, which names the row and its columns, and by a sample of all rows. (Interoperability tests plant them in
// files of other engines.)
func TestPlantedDifferences(t *testing.T) {
	s := newStore(t)
	s.create(t, "src", mixed())
	s.put(t, "src", mixedRows(), 2)
	for i, p := range plants() {
		if testing.Short() && i%3 > 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			for _, partitioned := range []bool{false, true} {
				name := fmt.Sprintf("dst%d_%v", i, partitioned)
				var more []catalog.CreateTableOpt
				if partitioned {
					more = append(more, partitionedBy(t, mixed(), "p", iceberg.IdentityTransform{}))
				}
				s.create(t, name, mixed(), more...)
				s.put(t, name, p.make(slices.Clone(mixedRows())), 3)
				src, dst := s.open(t, "src"), s.open(t, name)
				equal(t, "row_count agrees", verify(t, src, dst, migrate.VerifyOptions{}).Matches, !p.count)
				v := verify(t, src, dst, migrate.VerifyOptions{Method: migrate.MethodPartitionHash})
				equal(t, "partition_hash agrees", v.Matches, false)
				want := []string{""}
				if partitioned {
					want = p.partitions
				}
				equal(t, "mismatched partitions", v.MismatchedPartitions, want)
				equal(t, "auto agrees", verify(t, src, dst, migrate.VerifyOptions{Method: migrate.MethodAuto}).Matches, false)
				v = verify(t, src, dst, migrate.VerifyOptions{Method: migrate.MethodDiff, Keys: []string{"id"}})
				equal(t, "diff agrees", v.Matches, false)
				equal(t, "differences", named(v), p.want)
				v = verify(t, src, dst, migrate.VerifyOptions{Method: migrate.MethodDiff})
				equal(t, "diff of whole rows agrees", v.Matches, false)
				equal(t, "changed rows without a key", v.Differences.Changed, 0)
				v = verify(t, src, dst, migrate.VerifyOptions{Method: migrate.MethodSample})
				equal(t, "sample agrees", v.Matches, false)
			}
		})
	}
}

// TestDuplicates: how often equal rows are there counts.
func TestDuplicates(t *testing.T) {
	s := newStore(t)
	two := []string{`{"id":1,"name":"a"}`, `{"id":1,"name":"a"}`, `{"id":2,"name":"b"}`}
	s.create(t, "src", people())
	s.insert(t, "src", two...)
	for i, more := range []int{1, 2, 3, 5} {
		name := fmt.Sprintf("dst%d", i)
		s.create(t, name, people())
		var rows []string
		for range more {
			rows = append(rows, two[0])
		}
		s.insert(t, name, append(rows, two[2])...)
		for _, method := range []string{migrate.MethodPartitionHash, migrate.MethodDiff, migrate.MethodSample} {
			v := verify(t, s.open(t, "src"), s.open(t, name), migrate.VerifyOptions{Method: method})
			equal(t, fmt.Sprintf("%d of 2, %s agrees", more, method), v.Matches, more == 2)
		}
		v := verify(t, s.open(t, "src"), s.open(t, name), migrate.VerifyOptions{Method: migrate.MethodDiff})
		equal(t, "missing and extra", []int64{v.Differences.Missing, v.Differences.Extra}, []int64{int64(max(0, 2-more)), int64(max(0, more-2))})
	}
}

// TestTolerance: floats that differ by no more agree, in the columns that are named alone.
func TestTolerance(t *testing.T) {
	s := newStore(t)
	floats := func() *iceberg.Schema {
		return iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "x", prim.Float64), field(3, "y", prim.Float32))
	}
	s.create(t, "src", floats())
	s.insert(t, "src", `{"id":1,"x":0.1,"y":1}`, `{"id":2,"x":"NaN","y":1}`, `{"id":3,"x":null,"y":1}`)
	s.create(t, "near", floats())
	s.insert(t, "near", `{"id":3,"x":null,"y":1}`, `{"id":2,"x":"NaN","y":1}`, `{"id":1,"x":0.10000000001,"y":1}`)
	s.create(t, "far", floats())
	s.insert(t, "far", `{"id":1,"x":0.1,"y":1.25}`, `{"id":2,"x":0,"y":1}`, `{"id":3,"x":0,"y":1}`)
	o := migrate.VerifyOptions{Method: migrate.MethodDiff, Keys: []string{"id"}, Tolerance: map[string]float64{"x": 1e-9}}
	equal(t, "near agrees", verify(t, s.open(t, "src"), s.open(t, "near"), o).Matches, true)
	equal(t, "far", named(verify(t, s.open(t, "src"), s.open(t, "far"), o)), []string{"changed 1 y", "changed 2 x", "changed 3 x"})
	for name, texts := range map[string][]string{"id": {`column "id" is long`, "for floats"}, "z": {`no column "z"`}} {
		o.Tolerance = map[string]float64{name: 1}
		_, err := migrate.Verify(t.Context(), s.open(t, "src"), s.open(t, "near"), o)
		wantError(t, err, texts...)
	}
	o.Tolerance, o.Keys = map[string]float64{"x": 1}, nil
	_, err := migrate.Verify(t.Context(), s.open(t, "src"), s.open(t, "near"), o)
	wantError(t, err, "a tolerance needs keys")
}

// TestSampleSizes: samples smaller than the tables, of rows that both sides choose alike, never differ where
// the tables agree, and by a size of all rows find what is there.
func TestSampleSizes(t *testing.T) {
	s := newStore(t)
	s.create(t, "src", people())
	s.put(t, "src", ids(0, 40), 3)
	other := ids(0, 40)
	slices.Reverse(other)
	s.create(t, "dst", people())
	s.put(t, "dst", other, 7)
	s.create(t, "bad", people())
	s.put(t, "bad", append(other[:39:39], `{"id":0,"name":"N"}`), 2)
	found := 0
	for n := range int64(45) {
		o := migrate.VerifyOptions{Method: migrate.MethodSample, SampleSize: n + 1}
		v := verify(t, s.open(t, "src"), s.open(t, "dst"), o)
		equal(t, "agrees", v.Matches, true)
		equal(t, "size", *v.SampleSize, min(n+1, 40))
		o.Keys = []string{"id"}
		if !verify(t, s.open(t, "src"), s.open(t, "bad"), o).Matches {
			found++
		} else if n+1 >= 40 {
			t.Error("a sample of all rows finds no difference")
		}
	}
	if found < 6 || found == 45 {
		t.Errorf("%d of 45 sizes found a row that differs", found)
	}
	s.create(t, "less", people())
	s.put(t, "less", ids(0, 39), 7)
	for n := range int64(5) { // a row fewer is seen, though it may not be of the sample
		v := verify(t, s.open(t, "src"), s.open(t, "less"), migrate.VerifyOptions{Method: migrate.MethodSample, SampleSize: n + 1})
		equal(t, "agrees", v.Matches, false)
		if !slices.Contains(v.Details, "the source has 40 rows, the destination 39 rows") {
			t.Errorf("details %q", v.Details)
		}
	}
	_, err := migrate.Verify(t.Context(), s.open(t, "src"), s.open(t, "dst"), migrate.VerifyOptions{Method: migrate.MethodSample, SampleSize: -1})
	wantError(t, err, "want at least 1")
	_, err = migrate.Verify(t.Context(), s.open(t, "src"), s.open(t, "dst"), migrate.VerifyOptions{Method: "guess"})
	wantError(t, err, `method "guess" is not known`)
}

// TestOddNames: differing rows are JSON whatever their columns are called.
func TestOddNames(t *testing.T) {
	s := newStore(t)
	odd := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a\x7f\"\U000e0001", Type: iceberg.PrimitiveTypes.Int64})
	name, err := json.Marshal(odd.Field(0).Name)
	must(t, err)
	for i, table := range []string{"src", "dst"} {
		s.create(t, table, odd)
		s.insert(t, table, fmt.Sprintf("{%s:%d}", name, i))
	}
	v := verify(t, s.open(t, "src"), s.open(t, "dst"), migrate.VerifyOptions{Method: migrate.MethodDiff})
	text, err := json.Marshal(v.Differences.Rows[0].Source)
	must(t, err)
	var row map[string]int
	must(t, json.Unmarshal(text, &row))
	if _, ok := row[odd.Field(0).Name]; !ok {
		t.Errorf("row %s", text)
	}
}

// TestWrongPartition: a row that is right in every value, in a file that says that it is of another partition,
// is a difference, since a query that prunes by it does not find the row.
func TestWrongPartition(t *testing.T) {
	s := newStore(t)
	s.create(t, "src", people())
	s.insert(t, "src", ids(0, 4)...)
	s.create(t, "good", people(), partitionedBy(t, people(), "name", iceberg.IdentityTransform{}))
	j := newJob(s, s, 100)
	j.dst = "good"
	_, err := j.one(t.Context(), t)
	must(t, err)
	good := s.load(t, "good")
	s.create(t, "bad", people(), partitionedBy(t, people(), "name", iceberg.IdentityTransform{}))
	var files []iceberg.DataFile
	fs, err := good.FS(t.Context())
	must(t, err)
	manifests, err := good.CurrentSnapshot().Manifests(fs)
	must(t, err)
	for e, err := range manifests[0].Entries(fs, true) {
		must(t, err)
		f, partition := e.DataFile(), e.DataFile().Partition()
		if partition[1000] == "n3" {
			partition = map[int]any{1000: "n2"}
		}
		b, err := iceberg.NewDataFileBuilder(good.Spec(), iceberg.EntryContentData, f.FilePath(), iceberg.ParquetFile, partition, nil, nil, f.Count(), f.FileSizeBytes())
		must(t, err)
		files = append(files, b.Build())
	}
	tx := s.load(t, "bad").NewTransaction()
	must(t, tx.AddDataFiles(t.Context(), files, nil, table.WithoutDuplicateCheck()))
	_, err = tx.Commit(t.Context())
	must(t, err)
	for name, right := range map[string]bool{"good": true, "bad": false} {
		for _, method := range []string{migrate.MethodPartitionHash, migrate.MethodDiff} {
			v := verify(t, s.open(t, "src"), s.open(t, name), migrate.VerifyOptions{Method: method})
			equal(t, name+" "+method+" agrees", v.Matches, right)
			if text := strings.Join(v.Details, "\n"); !right && !strings.Contains(text, "1 row is of another partition than the file is of") {
				t.Errorf("details %s", text)
			}
			equal(t, "mismatched partitions", v.MismatchedPartitions, []string{})
		}
	}
}

// TestVerifyNothing: tables without a snapshot and without rows agree.
func TestVerifyNothing(t *testing.T) {
	s := newStore(t)
	s.create(t, "none", people())
	s.create(t, "empty", people(), catalog.WithProperties(iceberg.Properties{"format-version": "2", "write.delete.mode": "merge-on-read"}))
	s.insert(t, "empty", ids(0, 2)...)
	_, err := s.load(t, "empty").Delete(t.Context(), iceberg.AlwaysTrue{}, nil)
	must(t, err)
	for _, method := range methods {
		for _, way := range [][2]string{{"none", "empty"}, {"empty", "none"}} {
			v := verify(t, s.open(t, way[0]), s.open(t, way[1]), migrate.VerifyOptions{Method: method})
			equal(t, fmt.Sprintf("%s of %v agrees", method, way), v.Matches, true)
		}
	}
}
