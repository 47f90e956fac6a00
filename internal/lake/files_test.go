package lake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

// TestLyingManifest: a file whose footer says another count of rows than the manifest is refused before
// anything is read, in a scan and in a count.
func TestLyingManifest(t *testing.T) {
	for _, lie := range []int64{1, 4, 6} {
		tbl := newTable(t, idAndText(), unpartitioned())
		path := parquetFile(t, tbl, arrowOf(t, idAndText(), true), nil, ids(1, 5))
		delta(t, tbl, []iceberg.DataFile{fileAt(t, tbl, iceberg.EntryContentData, path, lie).Build()})
		_, err := tbl.PlanScan(t.Context(), ScanOptions{})
		fails(t, "scan", err, fmt.Sprintf("holds 5 rows, but the table's manifest says %d", lie))
		_, err = tbl.Count(t.Context(), Pin{}, nil, nil)
		fails(t, "count", err, "holds 5 rows")
		if open := openFiles(t); len(open) > 0 {
			t.Errorf("open files: %s", open)
		}
	}
}

// TestShortFile: a file with bytes missing in the middle, cut, or gone, is an error and never an end.
func TestShortFile(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	plain := parquet.NewWriterProperties(parquet.WithDictionaryDefault(false), parquet.WithDataPageSize(64))
	path := parquetFile(t, tbl, arrowOf(t, idAndText(), true), plain, ids(1, 1000))
	delta(t, tbl, []iceberg.DataFile{fileAt(t, tbl, iceberg.EntryContentData, path, 1000).Build()})
	whole, err := os.ReadFile(local(t, path))
	if err != nil {
		t.Fatal(err)
	}
	footer := bytes.LastIndex(whole, []byte("PAR1"))
	for name, content := range map[string][]byte{
		"pages of zeros": slices.Concat(whole[:100], make([]byte, 8000), whole[8100:]),
		"cut":            whole[:footer-10],
		"empty":          {},
	} {
		if err := os.WriteFile(local(t, path), content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := tbl.PlanScan(t.Context(), ScanOptions{BatchRows: 100})
		if err == nil {
			_, _, err = all(t.Context(), s)
		}
		fails(t, name, err, "00000.parquet")
	}
	if err := os.Remove(local(t, path)); err != nil {
		t.Fatal(err)
	}
	_, err = tbl.PlanScan(t.Context(), ScanOptions{})
	fails(t, "gone", err, "no such file")
}

// TestFilesWithoutIDs: case 59. Columns of files without field IDs are found by the name mapping, by old
// names too; without one the file is refused.
func TestFilesWithoutIDs(t *testing.T) {
	schema := schemaOf(opt(1, "id", prim.Int64), opt(2, "renamed", prim.String),
		opt(3, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(4, "a", prim.Int32), opt(5, "b", prim.Int32)}}),
		opt(6, "l", &iceberg.ListType{ElementID: 7, Element: prim.Int32}),
		opt(8, "m", &iceberg.MapType{KeyID: 9, KeyType: prim.String, ValueID: 10, ValueType: prim.Int32}))
	inFile := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "old", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "unmapped", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "unmapped", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	const text = `[{"id":1,"old":"a","s":{"a":1,"unmapped":2},"l":[1,null],"m":[{"key":"k","value":1}],"unmapped":3}]`
	one, two, three, four, six, seven, eight, nine, ten := 1, 2, 3, 4, 6, 7, 8, 9, 10
	mapping := iceberg.NameMapping{
		{FieldID: &one, Names: []string{"id"}}, {FieldID: &two, Names: []string{"old", "renamed"}},
		{FieldID: &three, Names: []string{"s"}, Fields: []iceberg.MappedField{{FieldID: &four, Names: []string{"a"}}}},
		{FieldID: &six, Names: []string{"l"}, Fields: []iceberg.MappedField{{FieldID: &seven, Names: []string{"element"}}}},
		{FieldID: &eight, Names: []string{"m"}, Fields: []iceberg.MappedField{{FieldID: &nine, Names: []string{"key"}}, {FieldID: &ten, Names: []string{"value"}}}},
	}
	encoded, err := json.Marshal(mapping)
	if err != nil {
		t.Fatal(err)
	}
	tbl := newTable(t, schema, unpartitioned(), table.DefaultNameMappingKey+"="+string(encoded))
	path := parquetFile(t, tbl, inFile, nil, text)
	delta(t, tbl, []iceberg.DataFile{fileAt(t, tbl, iceberg.EntryContentData, path, 1).Build()})
	equal(t, "with a mapping", scanned(t, tbl, ScanOptions{}), []string{`{"id":1,"l":[1,null],"m":[{"key":"k","value":1}],"renamed":"a","s":{"a":1,"b":null}}`})

	bare := newTable(t, schema, unpartitioned())
	path = parquetFile(t, bare, inFile, nil, text)
	delta(t, bare, []iceberg.DataFile{fileAt(t, bare, iceberg.EntryContentData, path, 1).Build()})
	_, err = bare.PlanScan(t.Context(), ScanOptions{})
	fails(t, "without", err, "set the table property schema.name-mapping.default")
}

// TestNestedColumnsAcrossFiles: a struct none of whose fields is in the file is null where it was null, and
// not elsewhere; fields come and go inside structs, lists and maps; columns are found by ID, not by name or place.
func TestNestedColumnsAcrossFiles(t *testing.T) {
	structOf := func(fields ...iceberg.NestedField) *iceberg.StructType {
		return &iceberg.StructType{FieldList: fields}
	}
	before := schemaOf(opt(1, "id", prim.Int32), opt(2, "s", structOf(opt(3, "a", prim.Int64), opt(4, "b", prim.String))),
		opt(5, "l", &iceberg.ListType{ElementID: 6, Element: structOf(opt(7, "x", prim.Int32), opt(8, "y", prim.Int32))}),
		opt(9, "m", &iceberg.MapType{KeyID: 10, KeyType: prim.String, ValueID: 11, ValueType: structOf(opt(12, "v", prim.Float32))}))
	after := schemaOf(opt(2, "renamed", structOf(opt(20, "a", prim.String), opt(21, "c", prim.Int32))),
		opt(5, "l", &iceberg.ListType{ElementID: 6, Element: structOf(opt(8, "x", prim.Int32), opt(7, "y", prim.Int64))}),
		opt(9, "m", &iceberg.MapType{KeyID: 10, KeyType: prim.String, ValueID: 11, ValueType: structOf(opt(22, "w", prim.Int32), opt(12, "v", prim.Float64))}),
		opt(1, "id", prim.Int64))
	const text = `[{"id":1,"s":{"a":1,"b":"x"},"l":[{"x":1,"y":2},null],"m":[{"key":"k","value":{"v":1.5}},{"key":"n","value":null}]},
		{"id":2,"s":null,"l":null,"m":null},{"id":3,"s":{"a":null,"b":null},"l":[],"m":[]}]`
	tbl := newTable(t, after, unpartitioned())
	// The catalog gives fields new IDs, so the file is written with those of its names.
	fresh := map[int]int{}
	pair := func(was, is iceberg.NestedField) { fresh[was.ID] = is.ID }
	walk(after.Fields(), tbl.Schema().Fields(), pair)
	for i, id := range []int{3, 4} {
		fresh[id] = 100 + i
	}
	inFile := arrowOf(t, iceberg.NewSchema(0, renumber(before.Fields(), fresh)...), true)
	path := parquetFile(t, tbl, inFile, nil, text)
	delta(t, tbl, []iceberg.DataFile{fileAt(t, tbl, iceberg.EntryContentData, path, 3).Build()})
	metamorphic(t, tbl, []string{
		`{"id":1,"l":[{"x":2,"y":1},null],"m":[{"key":"k","value":{"v":1.5,"w":null}},{"key":"n","value":null}],"renamed":{"a":null,"c":null}}`,
		`{"id":2,"l":null,"m":null,"renamed":null}`,
		`{"id":3,"l":[],"m":[],"renamed":{"a":null,"c":null}}`,
	})
	for _, name := range []string{"renamed", "l", "m", "id"} {
		if got := scanned(t, tbl, ScanOptions{Select: []string{name}}); len(got) != 3 {
			t.Errorf("only %s: %s", name, got)
		}
	}
}

// walk pairs the fields of two equal schemas.
func walk(a, b []iceberg.NestedField, f func(a, b iceberg.NestedField)) {
	for i := range a {
		f(a[i], b[i])
		if x, ok := a[i].Type.(iceberg.NestedType); ok {
			walk(x.Fields(), b[i].Type.(iceberg.NestedType).Fields(), f)
		}
	}
}

// renumber gives the fields the IDs in to.
func renumber(fields []iceberg.NestedField, to map[int]int) []iceberg.NestedField {
	out := slices.Clone(fields)
	for i := range out {
		out[i].ID = to[out[i].ID]
		switch x := out[i].Type.(type) {
		case *iceberg.StructType:
			out[i].Type = &iceberg.StructType{FieldList: renumber(x.FieldList, to)}
		case *iceberg.ListType:
			e := renumber([]iceberg.NestedField{x.ElementField()}, to)[0]
			out[i].Type = &iceberg.ListType{ElementID: e.ID, Element: e.Type, ElementRequired: x.ElementRequired}
		case *iceberg.MapType:
			f := renumber([]iceberg.NestedField{x.KeyField(), x.ValueField()}, to)
			out[i].Type = &iceberg.MapType{KeyID: f[0].ID, KeyType: f[0].Type, ValueID: f[1].ID, ValueType: f[1].Type, ValueRequired: x.ValueRequired}
		}
	}
	return out
}

// TestInitialDefaults: a column that the file does not have reads as its initial default, of each type.
func TestInitialDefaults(t *testing.T) {
	for _, c := range []struct {
		kind     iceberg.Type
		initial  any
		expected string
	}{
		{prim.Bool, true, `true`}, {prim.Int32, int32(7), `7`}, {prim.Int64, int64(7), `7`}, {prim.Float32, float32(1.5), `1.5`}, {prim.Float64, 1.5, `1.5`},
		{prim.Date, "2020-02-29", `"2020-02-29"`}, {prim.Time, "01:02:03.000004", `"01:02:03.000004"`},
		{prim.Timestamp, "2020-02-29T01:02:03.000004", `"2020-02-29T01:02:03.000004"`}, {prim.TimestampTz, "2020-02-29T01:02:03.000004+00:00", `"2020-02-29T01:02:03.000004Z"`},
		{prim.TimestampNs, "2020-02-29T01:02:03.000000004", `"2020-02-29T01:02:03.000000004"`},
		{prim.String, "x", `"x"`}, {prim.String, "", `""`}, {iceberg.DecimalTypeOf(9, 2), "1.23", `"1.23"`},
		{prim.UUID, "00000000-0000-0000-0000-000000000001", `"00000000-0000-0000-0000-000000000001"`},
		{prim.Binary, "616263", `"YWJj"`}, {iceberg.FixedTypeOf(3), "616263", `"YWJj"`},
	} {
		t.Run(fmt.Sprint(c.kind, " ", c.initial), func(t *testing.T) {
			column := opt(2, "d", c.kind)
			text := fmt.Sprintf(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"},{"id":2,"name":"d","required":false,"type":%q,"initial-default":%s,"write-default":null}]}`, c.kind, quoted(t, c.initial))
			schema := new(iceberg.Schema)
			if err := json.Unmarshal([]byte(text), schema); err != nil {
				t.Fatal(err)
			}
			tbl := newTable(t, schema, unpartitioned(), "version=3")
			path := parquetFile(t, tbl, arrowOf(t, schemaOf(opt(1, "id", prim.Int64)), true), nil, `[{"id":1}]`)
			own := parquetFile(t, tbl, arrowOf(t, schemaOf(opt(1, "id", prim.Int64), column), true), nil, `[{"id":2,"d":null}]`)
			delta(t, tbl, []iceberg.DataFile{fileAt(t, tbl, iceberg.EntryContentData, path, 1).Build(), fileAt(t, tbl, iceberg.EntryContentData, own, 1).Build()})
			equal(t, "rows", scanned(t, tbl, ScanOptions{}), []string{fmt.Sprintf(`{"d":%s,"id":1}`, c.expected), `{"d":null,"id":2}`})
		})
	}
}

func quoted(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInt96: cases 39 and 40, the old timestamps of Impala and Spark, beside other columns and alone, into
// both kinds of timestamps.
func TestInt96(t *testing.T) {
	for _, kind := range []iceberg.Type{prim.TimestampTz, prim.Timestamp} {
		t.Run(kind.String(), func(t *testing.T) {
			schema := schemaOf(opt(1, "id", prim.Int64), opt(2, "at", kind), opt(3, "p", prim.String))
			tbl := newTable(t, schema, unpartitioned())
			path := int96File(t, tbl, []string{"1969-12-31T23:59:59.999999Z", "3332-12-14T11:33:10.965Z", "", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"})
			delta(t, tbl, []iceberg.DataFile{fileAt(t, tbl, iceberg.EntryContentData, path, 5).Build()})
			z := map[bool]string{true: "Z"}[kind.Equals(prim.TimestampTz)]
			want := func(form string) []string {
				var out []string
				for i, at := range []string{`"1969-12-31T23:59:59.999999` + z + `"`, `"3332-12-14T11:33:10.965` + z + `"`, `null`, `"0001-01-01T00:00:00` + z + `"`, `"9999-12-31T23:59:59.999999` + z + `"`} {
					out = append(out, strings.NewReplacer("AT", at, "ID", fmt.Sprint(i)).Replace(form))
				}
				return out
			}
			metamorphic(t, tbl, want(`{"at":AT,"id":ID,"p":"x"}`))
			equal(t, "alone", scanned(t, tbl, ScanOptions{Select: []string{"at"}}), want(`{"at":AT}`))
		})
	}
}

// TestWideRows: case 97. Record batches of wide rows hold few of them; one value larger than what arrow-go
// takes a page to be is read.
func TestWideRows(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	wide := func(n, width int) string {
		var lines []string
		for i := range n {
			lines = append(lines, fmt.Sprintf(`{"id":%d,"p":"%s"}`, i, strings.Repeat("x", width)))
		}
		return "[" + strings.Join(lines, ",") + "]"
	}
	plain := parquet.NewWriterProperties(parquet.WithDictionaryDefault(false))
	path := parquetFile(t, tbl, arrowOf(t, idAndText(), true), plain, wide(20, 1<<20), wide(1, 65<<20))
	delta(t, tbl, []iceberg.DataFile{fileAt(t, tbl, iceberg.EntryContentData, path, 21).Build()})
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	s, err := tbl.PlanScan(t.Context(), ScanOptions{BatchRows: 100, Memory: mem})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for span, err := range rows.Opened(t.Context(), s.Stream(t.Context())).Spans {
		if err != nil {
			t.Fatal(err)
		}
		if span.Rows > 16 {
			t.Errorf("a record batch of %d rows of 1 MiB", span.Rows)
		}
		n += span.Rows
		span.Release()
	}
	if n != 21 {
		t.Errorf("%d rows", n)
	}
}
