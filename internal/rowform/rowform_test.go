package rowform

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

func opt(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

var (
	prim = iceberg.PrimitiveTypes

	everything = iceberg.NewSchema(0,
		opt(1, "b", prim.Bool), opt(2, "i", prim.Int32), opt(3, "l", prim.Int64), opt(4, "f", prim.Float32), opt(5, "d", prim.Float64),
		opt(6, "dec", iceberg.DecimalTypeOf(38, 2)), opt(7, "day", prim.Date), opt(8, "clock", prim.Time), opt(9, "ts", prim.Timestamp),
		opt(10, "tz", prim.TimestampTz), opt(11, "ns", prim.TimestampNs), opt(12, "s", prim.String), opt(13, "bin", prim.Binary),
		opt(14, "u", prim.UUID), opt(15, "fx", iceberg.FixedTypeOf(3)),
		opt(16, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(17, "x", prim.Int32), opt(18, "y", prim.String)}}),
		opt(19, "li", &iceberg.ListType{ElementID: 20, Element: prim.String}),
		opt(21, "m", &iceberg.MapType{KeyID: 22, KeyType: prim.String, ValueID: 23, ValueType: prim.Int32}),
	)
	rows = []string{
		`{"b":true,"i":-1,"l":9223372036854775807,"f":1.5,"d":-2.25,"dec":"-999999999999999999999999999999999999.99","day":"1969-12-31","clock":"23:59:59.999999",
		  "ts":"1969-12-31T23:59:59.999999","tz":"2024-02-29T01:02:03.000004Z","ns":"2024-02-29T01:02:03.000004005","s":"größer","bin":"AAEC","u":"f47ac10b-58cc-4372-a567-0e02b2c3d479",
		  "fx":"////","st":{"x":1,"y":null},"li":["a",null,""],"m":[{"key":"b","value":2},{"key":"a","value":null}]}`,
		`{"b":null,"i":null,"l":null,"f":null,"d":null,"dec":null,"day":null,"clock":null,"ts":null,"tz":null,"ns":null,"s":null,"bin":null,"u":null,"fx":null,"st":null,"li":null,"m":null}`,
		`{"b":false,"i":0,"l":0,"f":0,"d":0,"dec":"0.00","day":"1970-01-01","clock":"00:00:00","ts":"1970-01-01T00:00:00","tz":"1970-01-01T00:00:00Z","ns":"1970-01-01T00:00:00","s":"","bin":"",
		  "u":"00000000-0000-0000-0000-000000000000","fx":"AAAA","st":{"x":null,"y":""},"li":[],"m":[]}`,
	}
	texts = []string{
		`true|-1|9223372036854775807|1.5|-2.25|"-999999999999999999999999999999999999.99"|"1969-12-31"|"23:59:59.999999"|"1969-12-31T23:59:59.999999"|"2024-02-29T01:02:03.000004Z"|"2024-02-29T01:02:03.000004005"|"größer"|"000102"|"f47ac10b-58cc-4372-a567-0e02b2c3d479"|"ffffff"|{"x":1,"y":null}|["a",null,""]|[["a",null],["b",2]]`,
		strings.Repeat("null|", 17) + "null",
		`false|0|0|0|0|"0.00"|"1970-01-01"|"00:00:00.000000"|"1970-01-01T00:00:00.000000"|"1970-01-01T00:00:00.000000Z"|"1970-01-01T00:00:00.000000000"|""|""|"00000000-0000-0000-0000-000000000000"|"000000"|{"x":null,"y":""}|[]|[]`,
	}
)

// TestRoundTrip: the form of a row is taken apart into its values, which are printed and built again as they
// were.
func TestRoundTrip(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	schema, err := table.SchemaToArrowSchema(everything, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	rb, _, err := array.RecordFromJSON(mem, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	defer rb.Release()
	f, err := New(everything.Fields())
	if err != nil {
		t.Fatal(err)
	}
	bound, err := f.Bind(rb)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for i := range rows {
		row := bound.Append(nil, i)
		cells, err := f.Cells(row)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for c, cell := range cells {
			text, err := JSON(cell, f.Fields[c].Type)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
			if err := Build(b.Field(c), cell, f.Fields[c].Type); err != nil {
				t.Fatalf("column %q: %v", f.Fields[c].Name, err)
			}
			if !bytes.Equal(cell, bound.AppendColumn(nil, c, i)) {
				t.Errorf("column %q: its cell is not its form", f.Fields[c].Name)
			}
		}
		if s := strings.Join(got, "|"); s != texts[i] {
			t.Errorf("row %d: got\n%s\nwant\n%s", i, s, texts[i])
		}
		for n := range row {
			if _, err := f.Cells(row[:n]); err == nil {
				t.Fatalf("row %d cut at %d of %d bytes is taken for whole", i, n, len(row))
			}
		}
		if _, err := f.Cells(append(slices.Clone(row), 0)); err == nil {
			t.Error("a row with a byte too many is taken for whole")
		}
	}
	back := b.NewRecordBatch()
	defer back.Release()
	again, err := f.Bind(back)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if !bytes.Equal(again.Append(nil, i), bound.Append(nil, i)) {
			t.Errorf("row %d has another form when it is built again", i)
		}
	}
}

// TestForms are the bytes of single values, as the package says.
func TestForms(t *testing.T) {
	mem := memory.DefaultAllocator
	doubles := array.NewFloat64Builder(mem)
	doubles.AppendValues([]float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xfff8000000000001), math.Inf(-1)}, nil)
	floats := array.NewFloat32Builder(mem)
	floats.AppendValues([]float32{0.1, float32(math.NaN())}, nil)
	a, err := bind(doubles.NewArray(), prim.Float64)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bind(floats.NewArray(), prim.Float32)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		of   appender
		i    int
		want string
	}{
		{a, 0, "010000000000000000"}, {a, 1, "018000000000000000"}, {a, 2, "017ff8000000000000"}, {a, 3, "017ff8000000000000"}, {a, 4, "01fff0000000000000"},
		{b, 0, "013fb99999a0000000"}, {b, 1, "017ff8000000000000"},
	} {
		if got := hex.EncodeToString(tt.of(nil, tt.i)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	if _, err := New([]iceberg.NestedField{opt(1, "v", &iceberg.ListType{ElementID: 2, Element: iceberg.VariantType{}})}); err == nil || !strings.Contains(err.Error(), `column "v"`) {
		t.Errorf("a type without a form: %v", err)
	}
}
