package datafile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// everything is a schema of every type that can be written, and every nesting.
func everything() *iceberg.Schema {
	return iceberg.NewSchema(3,
		req(1, "id", prim.Int64),
		opt(2, "b", prim.Bool),
		opt(3, "i", prim.Int32),
		opt(4, "f", prim.Float32),
		opt(5, "d", prim.Float64),
		opt(6, "d9", iceberg.DecimalTypeOf(9, 2)),
		opt(7, "d18", iceberg.DecimalTypeOf(18, 4)),
		opt(8, "d38", iceberg.DecimalTypeOf(38, 10)),
		opt(9, "day", prim.Date),
		opt(10, "clock", prim.Time),
		opt(11, "ts", prim.Timestamp),
		opt(12, "tz", prim.TimestampTz),
		opt(13, "s", prim.String),
		opt(14, "bin", prim.Binary),
		opt(15, "u", prim.UUID),
		opt(16, "fx", iceberg.FixedTypeOf(3)),
		opt(17, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{
			req(18, "x", prim.Int32),
			opt(19, "y", prim.String),
			opt(20, "in", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(21, "z", prim.Float64)}}),
		}}),
		opt(22, "l", &iceberg.ListType{ElementID: 23, Element: prim.String}),
		req(24, "rl", &iceberg.ListType{ElementID: 25, Element: prim.Int64, ElementRequired: true}),
		opt(26, "m", &iceberg.MapType{KeyID: 27, KeyType: prim.String, ValueID: 28, ValueType: prim.Int32}),
		opt(29, "ls", &iceberg.ListType{ElementID: 30, Element: &iceberg.StructType{FieldList: []iceberg.NestedField{
			opt(31, "p", prim.Int32),
			opt(32, "q", &iceberg.ListType{ElementID: 33, Element: iceberg.DecimalTypeOf(20, 3)}),
			opt(34, "r", &iceberg.MapType{KeyID: 35, KeyType: prim.Int32, ValueID: 36, ValueType: &iceberg.ListType{ElementID: 37, Element: prim.Bool}}),
		}}}),
	)
}

// everythingRows is n rows with nulls and empties at every level.
func everythingRows(n int) string {
	var b strings.Builder
	pickOne := func(i int, of ...string) string { return of[i%len(of)] }
	for i := range n {
		fields := []string{
			fmt.Sprintf(`"id":%d`, i),
			`"b":` + pickOne(i, "true", "null", "false"),
			`"i":` + pickOne(i, "-2147483648", "0", "null", "2147483647"),
			`"f":` + pickOne(i, "1.5", "null", "-0.25"),
			`"d":` + pickOne(i, "null", "1e300", "-2.5", "0"),
			`"d9":` + pickOne(i, `"-9999999.99"`, "null", `"0.01"`, `"9999999.99"`),
			`"d18":` + pickOne(i, `"99999999999999.9999"`, `"-99999999999999.9999"`, "null"),
			`"d38":` + pickOne(i, "null", `"9999999999999999999999999999.9999999999"`, `"-9999999999999999999999999999.9999999999"`, `"-0.0000000001"`),
			`"day":` + pickOne(i, `"1969-12-31"`, `"2024-02-29"`, "null"),
			`"clock":` + pickOne(i, `"23:59:59.999999"`, "null"),
			`"ts":` + pickOne(i, `"1969-12-31T23:59:59.999999"`, "null", `"2024-05-06T07:08:09.000001"`),
			`"tz":` + pickOne(i, `"2024-05-06T07:08:09.123456Z"`, `"1900-01-01T00:00:00Z"`, "null"),
			`"s":` + pickOne(i, `""`, "null", `"null"`, `"größer als sechzehn Zeichen"`, fmt.Sprintf(`"row %d"`, i)),
			`"bin":` + pickOne(i, `"AAEC"`, `""`, "null"),
			`"u":` + pickOne(i, `"f47ac10b-58cc-4372-a567-0e02b2c3d479"`, "null"),
			`"fx":` + pickOne(i, `"AAEC"`, `"////"`, "null"),
			`"st":` + pickOne(i, "null", `{"x":1,"y":"a","in":null}`, `{"x":2,"y":null,"in":{"z":null}}`, fmt.Sprintf(`{"x":%d,"y":"","in":{"z":1.25}}`, i)),
			`"l":` + pickOne(i, "null", "[]", "[null]", `["a",null,"","b"]`, fmt.Sprintf(`["%d"]`, i)),
			`"rl":` + pickOne(i, "[]", "[1]", fmt.Sprintf("[%d,2,3]", i)),
			`"m":` + pickOne(i, "null", "[]", `[{"key":"k","value":null}]`, `[{"key":"a","value":1},{"key":"b","value":2},{"key":"","value":3}]`),
			`"ls":` + pickOne(i, "null", "[]", "[null]", `[{"p":1,"q":null,"r":null},null,{"p":null,"q":[],"r":[]}]`,
				`[{"p":7,"q":["12345678901234567.891",null],"r":[{"key":1,"value":null},{"key":2,"value":[]},{"key":3,"value":[true,null]}]}]`),
		}
		b.WriteString("{" + strings.Join(fields, ",") + "}\n")
	}
	return "[" + strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", ",") + "]"
}

func TestRoundTrip(t *testing.T) {
	for name, props := range map[string]iceberg.Properties{
		"defaults":     nil,
		"tiny pages":   {propPageSize: "40"},
		"page rows":    {propPageRows: "7"},
		"row groups":   {propRowGroupSize: "3000"},
		"no dict":      {propDict: "false"},
		"tiny dict":    {propDictSize: "30", propPageSize: "100"},
		"gzip":         {propCodec: "gzip", propLevel: "9"},
		"snappy":       {propCodec: "snappy"},
		"brotli":       {propCodec: "brotli"},
		"lz4":          {propCodec: "lz4"},
		"uncompressed": {propCodec: "none"},
		"zstd 19":      {propCodec: "zstd", propLevel: "19"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			s := everything()
			n := int64(1000)
			if testing.Short() {
				n = 340
			}
			whole := batchOf(t, mem, s, everythingRows(int(n)))
			defer whole.Release()
			cfg := config(t, s, props)
			// Slices with offsets, of uneven size.
			a, b, c, d := whole.NewSlice(0, 333), whole.NewSlice(333, 334), whole.NewSlice(334, 334), whole.NewSlice(334, n)
			files := write(t, cfg, a, b, c, d)
			if len(files) != 1 || files[0].Count() != n {
				t.Fatalf("files: %v", files)
			}
			got := readColumns(t, files[0])
			for i, f := range s.Fields() {
				sameColumn(t, f.Name, got[f.Name], jsonValues(t, whole.Column(i)))
			}
			if name == "row groups" && openParquet(t, files[0]).NumRowGroups() < 3 {
				t.Errorf("%d row groups", openParquet(t, files[0]).NumRowGroups())
			}
			checkFooter(t, s, files[0])
		})
	}
}

// checkFooter looks at what the footer and the data file say: field IDs, offsets, counts.
func checkFooter(t *testing.T, s *iceberg.Schema, f iceberg.DataFile) {
	t.Helper()
	m := openParquet(t, f).MetaData()
	if len(m.ColumnOrders) != m.Schema.NumColumns() {
		t.Errorf("%d column orders for %d columns", len(m.ColumnOrders), m.Schema.NumColumns())
	}
	for i := range m.Schema.NumColumns() {
		c := m.Schema.Column(i)
		id := int(c.SchemaNode().FieldID())
		if _, ok := s.FindFieldByID(id); !ok {
			t.Errorf("leaf %s has field ID %d", c.Path(), id)
		}
		values, nulls := int64(0), int64(0)
		for g := range m.RowGroups {
			md := m.RowGroups[g].Columns[i].MetaData
			values += md.NumValues
			nulls += *md.Statistics.NullCount
		}
		if f.ValueCounts()[id] != values || f.NullValueCounts()[id] != nulls {
			t.Errorf("leaf %s: data file says %d values, %d nulls; footer %d, %d", c.Path(), f.ValueCounts()[id], f.NullValueCounts()[id], values, nulls)
		}
	}
	end := int64(4)
	for i, g := range m.RowGroups {
		if *g.FileOffset != end || int(*g.Ordinal) != i {
			t.Errorf("row group %d: offset %d, ordinal %d; want %d", i, *g.FileOffset, *g.Ordinal, end)
		}
		end += *g.TotalCompressedSize
		if f.SplitOffsets()[i] != *g.FileOffset {
			t.Errorf("split offset %d: %d, want %d", i, f.SplitOffsets()[i], *g.FileOffset)
		}
	}
}

func TestDecimalsAreStoredAsTheSpecSays(t *testing.T) {
	for precision, want := range map[int]string{
		1: "INT32 -1", 9: "INT32 -1", 10: "INT64 -1", 18: "INT64 -1", 19: "FIXED_LEN_BYTE_ARRAY 9", 38: "FIXED_LEN_BYTE_ARRAY 16",
	} {
		sh, err := NewShape(iceberg.NewSchema(0, opt(1, "d", iceberg.DecimalTypeOf(precision, 1))), nil)
		if err != nil {
			t.Fatal(err)
		}
		c := sh.Parquet.Column(0)
		if got := fmt.Sprint(c.PhysicalType(), " ", c.TypeLength()); got != want {
			t.Errorf("precision %d: %s, want %s", precision, got, want)
		}
	}
}

func TestPagesHaveAtMostTheRowsAsked(t *testing.T) {
	s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "l", &iceberg.ListType{ElementID: 3, Element: prim.String}))
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, ",{\"id\":%d,\"l\":[\"a\",\"b\"]}", i)
	}
	rb := batchOf(t, memory.DefaultAllocator, s, "["+b.String()[1:]+"]")
	files := write(t, config(t, s, iceberg.Properties{propPageRows: "30"}), rb)
	r := openParquet(t, files[0])
	for col, perRow := range []int32{1, 2} {
		pages, err := r.RowGroup(0).GetColumnPageReader(col)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int32
		for pages.Next() {
			if p := pages.Page(); p.Encoding() != 0 || p.Type() == 0 {
				sizes = append(sizes, p.NumValues()/perRow)
			}
		}
		if got := fmt.Sprint(sizes); !strings.Contains(got, "30 30 30 10") {
			t.Errorf("column %d: pages of %s rows", col, got)
		}
	}
}
