package lake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// except are the numbers 1 to n without some.
func except(n int, gone ...int) []int {
	return slices.DeleteFunc(upTo(n), func(i int) bool { return slices.Contains(gone, i) })
}

// counts holds Count against a number of rows (case 27).
func counts(t *testing.T, tbl *Table, want int) {
	t.Helper()
	c, err := tbl.Count(t.Context(), Pin{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Rows != int64(want) {
		t.Errorf("Count says %d rows, want %d", c.Rows, want)
	}
	if open := openFiles(t); len(open) > 0 {
		t.Errorf("open files: %s", open)
	}
}

// TestPositionDeletes: case 23, deletes at the edges of row groups, in files of deletes that several data
// files share, the same position twice, positions of files that are not in the table.
func TestPositionDeletes(t *testing.T) {
	tbl, paths := threeFiles(t)
	shared := positionsOf(t, tbl, map[string][]int64{
		paths[0]: {0, 4, 5, 9}, paths[1]: {0}, paths[2]: {6, 7}, "elsewhere": {0, 1},
	}, "elsewhere", paths[0], paths[1], paths[2])
	again := positionsOf(t, tbl, map[string][]int64{paths[0]: {1, 4}, paths[2]: {8}}, paths[0], paths[2])
	delta(t, tbl, nil, shared, again)
	live := except(20, 1, 5, 6, 10, 11, 18, 19, 2, 20)
	metamorphic(t, tbl, lines(live...))
	counts(t, tbl, len(live))
}

// TestPositionDeletesOfAll: a row group, and a file, of which nothing is left.
func TestPositionDeletesOfAll(t *testing.T) {
	tbl, paths := threeFiles(t)
	delta(t, tbl, nil, positionsOf(t, tbl, map[string][]int64{paths[0]: {5, 6, 7}, paths[2]: {0, 1, 2, 3, 4, 5, 6, 7, 8}}, paths[0], paths[2]))
	live := except(20, 6, 7, 8, 12, 13, 14, 15, 16, 17, 18, 19, 20)
	metamorphic(t, tbl, lines(live...))
	counts(t, tbl, len(live))
}

// TestSameCommitDeletes: case 25. Position deletes apply to files of their own commit, equality deletes do
// not; neither applies to later ones.
func TestSameCommitDeletes(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	first := data(t, tbl, ids(1, 4))
	byID := schemaOf(opt(1, "id", prim.Int64))
	delta(t, tbl, []iceberg.DataFile{first},
		positionsOf(t, tbl, map[string][]int64{first.FilePath(): {0}}, first.FilePath()),
		keysOf(t, tbl, arrowOf(t, byID, true), []int{1}, `[{"id":2},{"id":5}]`))
	delta(t, tbl, []iceberg.DataFile{data(t, tbl, ids(5, 6))})
	metamorphic(t, tbl, lines(2, 3, 4, 5, 6))
	counts(t, tbl, 5)
}

// TestDeletionVectors: v3, beside position deletes from before, which they stand in place of.
func TestDeletionVectors(t *testing.T) {
	tbl, paths := threeFiles(t)
	delta(t, tbl, nil, positionsOf(t, tbl, map[string][]int64{paths[0]: {0}, paths[1]: {0}}, paths[0], paths[1]))
	tx := tbl.NewTransaction()
	if err := tx.UpgradeFormatVersion(3); err != nil {
		t.Fatal(err)
	}
	loaded, err := tx.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tbl.Table = loaded
	delta(t, tbl, nil, vectorsOf(t, tbl, map[string][]int64{paths[0]: {0, 4, 5, 9}, paths[2]: {0}})...)
	live := except(20, 1, 5, 6, 10, 11, 12)
	metamorphic(t, tbl, lines(live...))
	counts(t, tbl, len(live))
}

// TestEqualityDeletes: case 21, null keys; two keys; several files by one key; a key that is a field of a
// struct; one by a column that came later.
func TestEqualityDeletes(t *testing.T) {
	schema := schemaOf(opt(1, "id", prim.Int64), opt(2, "p", prim.String),
		opt(3, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(4, "k", prim.Int32), opt(5, "v", prim.String)}}))
	fieldOf := func(name string, id string, kind arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: kind, Nullable: true, Metadata: arrow.MetadataFrom(map[string]string{fieldIDKey: id})}
	}
	id, p := fieldOf("id", "1", arrow.PrimitiveTypes.Int64), fieldOf("p", "2", arrow.BinaryTypes.String)
	rows := []string{
		`{"id":1,"p":"a","s":{"k":1,"v":"x"}}`, `{"id":2,"p":null,"s":null}`, `{"id":null,"p":"c","s":{"k":null,"v":"x"}}`,
		`{"id":4,"p":"","s":{"k":4,"v":null}}`, `{"id":5,"p":"e","s":{"k":5,"v":"y"}}`, `{"id":null,"p":null,"s":{"k":6,"v":"z"}}`,
	}
	group := func(from, to int) string {
		s := "["
		for i := from; i < to; i++ {
			if i > from {
				s += ","
			}
			s += rows[i]
		}
		return s + "]"
	}
	for _, c := range []struct {
		name    string
		deletes func(tbl *Table) []iceberg.DataFile
		gone    []int
	}{
		{"null", func(tbl *Table) []iceberg.DataFile {
			return []iceberg.DataFile{keysOf(t, tbl, arrow.NewSchema([]arrow.Field{id}, nil), []int{1}, `[{"id":null}]`)}
		}, []int{2, 5}},
		{"empty is not null", func(tbl *Table) []iceberg.DataFile {
			return []iceberg.DataFile{keysOf(t, tbl, arrow.NewSchema([]arrow.Field{p}, nil), []int{2}, `[{"p":""}]`)}
		}, []int{3}},
		{"two keys", func(tbl *Table) []iceberg.DataFile {
			return []iceberg.DataFile{keysOf(t, tbl, arrow.NewSchema([]arrow.Field{id, p}, nil), []int{1, 2}, `[{"id":2,"p":null},{"id":null,"p":null},{"id":1,"p":"b"}]`)}
		}, []int{1, 5}},
		{"columns beside the key", func(tbl *Table) []iceberg.DataFile {
			return []iceberg.DataFile{keysOf(t, tbl, arrow.NewSchema([]arrow.Field{id, p}, nil), []int{1}, `[{"id":1,"p":"other"}]`)}
		}, []int{0}},
		{"three files", func(tbl *Table) []iceberg.DataFile {
			one := arrow.NewSchema([]arrow.Field{id}, nil)
			return []iceberg.DataFile{keysOf(t, tbl, one, []int{1}, `[{"id":1},{"id":99}]`), keysOf(t, tbl, one, []int{1}, `[{"id":5}]`),
				keysOf(t, tbl, arrow.NewSchema([]arrow.Field{p}, nil), []int{2}, `[{"p":"c"}]`)}
		}, []int{0, 2, 4}},
		{"field of a struct", func(tbl *Table) []iceberg.DataFile {
			k := fieldOf("s", "3", arrow.StructOf(fieldOf("k", "4", arrow.PrimitiveTypes.Int32)))
			return []iceberg.DataFile{keysOf(t, tbl, arrow.NewSchema([]arrow.Field{k}, nil), []int{4}, `[{"s":{"k":5}},{"s":null}]`)}
		}, []int{1, 2, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tbl := newTable(t, schema, unpartitioned())
			delta(t, tbl, []iceberg.DataFile{data(t, tbl, group(0, 2), group(2, 3)), data(t, tbl, group(3, 6))})
			delta(t, tbl, nil, c.deletes(tbl)...)
			var want []string
			for i, r := range rows {
				if !slices.Contains(c.gone, i) {
					want = append(want, r)
				}
			}
			metamorphic(t, tbl, want)
			counts(t, tbl, len(want))
			if got := scanned(t, tbl, ScanOptions{Select: []string{"s"}}); len(got) != len(want) || strings.Contains(got[0], "id") {
				t.Errorf("without the key: %s", got)
			}
		})
	}
}

// TestEqualityKeysRefused: case 22.
func TestEqualityKeysRefused(t *testing.T) {
	tbl := newTable(t, schemaOf(opt(1, "id", prim.Int64), opt(2, "f", prim.Float64)), unpartitioned())
	delta(t, tbl, []iceberg.DataFile{data(t, tbl, `[{"id":1,"f":0.0}]`)})
	deletes := keysOf(t, tbl, arrowOf(t, schemaOf(opt(2, "f", prim.Float64)), true), []int{2}, `[{"f":0.0}]`)
	x := newEqualityIndex(tbl.Metadata(), nil, nil)
	_, err := x.newKeySet(deletes)
	fails(t, "float key", err, `column "f" of type double`)
	for _, ids := range [][]int{{}, {77}} {
		f := fileAt(t, tbl, iceberg.EntryContentEqDeletes, "x", 1).EqualityFieldIDs(ids).Build()
		_, err := x.newKeySet(f)
		fails(t, fmt.Sprint("key ", ids), err, "key")
	}
}

// TestEqualityKeyTypes: each type that can be a key, through the library's own writer where it takes it.
func TestEqualityKeyTypes(t *testing.T) {
	for _, c := range []struct {
		kind       iceberg.Type
		keep, gone string
	}{
		{prim.Bool, `true`, `false`}, {prim.Int32, `1`, `2`}, {prim.Int64, `1`, `2`}, {prim.Date, `"2020-01-01"`, `"1969-12-31"`},
		{prim.Time, `"00:00:00.000001"`, `"00:00:00.000002"`}, {prim.Timestamp, `"2020-01-01 00:00:00.000001"`, `"2020-01-01 00:00:00.000002"`},
		{prim.TimestampTz, `"2020-01-01 00:00:00.000001Z"`, `"2020-01-01 00:00:00.000002Z"`}, {prim.String, `"a"`, `"ab"`},
		{prim.Binary, `"eA=="`, `"eHg="`}, {iceberg.FixedTypeOf(2), `"eHg="`, `"eHk="`},
		{iceberg.DecimalTypeOf(9, 2), `"1.23"`, `"1.24"`}, {iceberg.DecimalTypeOf(38, 2), `"-1.23"`, `"-1.24"`},
		{prim.UUID, `"00000000-0000-0000-0000-000000000001"`, `"00000000-0000-0000-0000-000000000002"`},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			schema := schemaOf(opt(1, "k", c.kind))
			tbl := newTable(t, schema, unpartitioned())
			delta(t, tbl, []iceberg.DataFile{data(t, tbl, fmt.Sprintf(`[{"k":%s},{"k":%s},{"k":null},{"k":%s}]`, c.keep, c.gone, c.gone))})
			delta(t, tbl, nil, keysOf(t, tbl, arrowOf(t, schema, true), []int{1}, fmt.Sprintf(`[{"k":%s}]`, c.gone)))
			if got := scanned(t, tbl, ScanOptions{}); len(got) != 2 || got[1] != `{"k":null}` {
				t.Errorf("rows %s", got)
			}
			counts(t, tbl, 2)
		})
	}
}

// TestTwiceInTheManifests: a file that is listed twice is read twice, as other readers do, with its deletes.
func TestTwiceInTheManifests(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	f := data(t, tbl, ids(1, 3), ids(4, 5))
	delta(t, tbl, []iceberg.DataFile{f, f})
	delta(t, tbl, nil, positionsOf(t, tbl, map[string][]int64{f.FilePath(): {1}}, f.FilePath()))
	metamorphic(t, tbl, append(lines(1, 3, 4, 5), lines(1, 3, 4, 5)...))
	counts(t, tbl, 8)
}
