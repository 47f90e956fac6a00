package datafile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// Case 28: a null is found in every required primitive, and nothing is written.
func TestNullInEveryRequiredType(t *testing.T) {
	for _, typ := range []iceberg.Type{
		prim.Bool, prim.Int32, prim.Int64, prim.Float32, prim.Float64, prim.Date, prim.Time, prim.Timestamp, prim.TimestampTz,
		prim.TimestampNs, prim.TimestampTzNs, prim.String, prim.Binary, prim.UUID, iceberg.FixedTypeOf(4),
		iceberg.DecimalTypeOf(4, 2), iceberg.DecimalTypeOf(18, 2), iceberg.DecimalTypeOf(38, 2),
	} {
		s := iceberg.NewSchema(0, opt(1, "id", prim.Int64), req(2, "v", typ))
		rb := batchOf(t, memory.DefaultAllocator, s, `[{"id":1,"v":null}]`)
		cfg := config(t, s, nil)
		w := newWriter(t, cfg)
		err := w.Write(context.Background(), rb)
		var ve *ValueError
		if !errors.As(err, &ve) || ve.Column != "v" || ve.Row != 0 {
			t.Errorf("%s: %v", typ, err)
		}
		if files, err := w.Finish(context.Background()); err != nil || len(files) != 0 {
			t.Errorf("%s: %v, %v", typ, files, err)
		}
	}
}

func TestNullsAtDepth(t *testing.T) {
	st := func(f ...iceberg.NestedField) iceberg.Type { return &iceberg.StructType{FieldList: f} }
	nested := iceberg.NewSchema(0,
		opt(1, "st", st(req(2, "x", prim.Int32), opt(3, "in", st(req(4, "y", prim.String))))),
		opt(5, "l", &iceberg.ListType{ElementID: 6, Element: st(req(7, "z", prim.Int32)), ElementRequired: true}),
		opt(8, "m", &iceberg.MapType{KeyID: 9, KeyType: prim.String, ValueID: 10, ValueType: iceberg.DecimalTypeOf(3, 1), ValueRequired: true}),
	)
	// The builders refuse such values themselves: the arrays are made by a schema that allows more.
	loose := iceberg.NewSchema(0, nested.Fields()[0], nested.Fields()[1], opt(8, "m", &iceberg.MapType{KeyID: 9, KeyType: prim.String, ValueID: 10, ValueType: iceberg.DecimalTypeOf(9, 1)}))
	row := func(st, l, m string) string { return fmt.Sprintf(`{"st":%s,"l":%s,"m":%s}`, st, l, m) }
	good := row(`{"x":1,"in":{"y":""}}`, `[{"z":1}]`, `[{"key":"k","value":"1.0"}]`)
	for _, tc := range []struct{ name, row, want string }{
		{"all there", good, ""},
		{"all parents null", row("null", "null", "null"), ""},
		{"inner parents null or empty", row(`{"x":1,"in":null}`, "[]", "[]"), ""},
		{"struct field", row(`{"x":null,"in":null}`, "null", "null"), `column "st.x", row 3: null`},
		{"field of a struct in a struct", row(`{"x":1,"in":{"y":null}}`, "null", "null"), `column "st.in.y", row 3: null`},
		{"list element", row("null", `[{"z":1},null]`, "null"), `column "l.element", row 3: null`},
		{"field of an element", row("null", `[{"z":1},{"z":null}]`, "null"), `column "l.element.z", row 3: null`},
		{"map value", row("null", "null", `[{"key":"a","value":"1.0"},{"key":"b","value":null}]`), `column "m.value", row 3: null`},
		{"decimal in a map", row("null", "null", `[{"key":"a","value":"100.0"}]`), `column "m.value", row 3: 100.0 does not fit decimal(3, 1)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			whole := batchOf(t, mem, loose, "["+strings.Join([]string{good, good, row("null", `[{"z":5},{"z":6}]`, "null"), good, good, tc.row, good}, ",")+"]")
			defer whole.Release()
			rb := whole.NewSlice(2, 7) // offsets must count
			defer rb.Release()
			err := newChecker(nested).check(rb)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// Case 29: the edges of precisions.
func TestDecimalsThatDoNotFit(t *testing.T) {
	for _, precision := range []int{1, 4, 9, 10, 18, 19, 20, 37, 38} {
		edge := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
		most := new(big.Int).Sub(edge, big.NewInt(1))
		for _, tc := range []struct {
			v   decimal128.Num
			fit bool
		}{
			{decimal128.Num{}, true}, {decimal128.FromBigInt(most), true}, {decimal128.FromBigInt(most).Negate(), true},
			{decimal128.FromBigInt(edge), false}, {decimal128.FromBigInt(edge).Negate(), false},
			{decimal128.New(math.MinInt64, 0), false}, {decimal128.New(math.MaxInt64, math.MaxUint64), false},
		} {
			s := iceberg.NewSchema(0, opt(1, "d", iceberg.DecimalTypeOf(precision, 1)))
			sc, err := table.SchemaToArrowSchema(s, nil, true, false)
			if err != nil {
				t.Fatal(err)
			}
			b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
			b.Field(0).AppendNull()
			b.Field(0).(*array.Decimal128Builder).Append(tc.v)
			err = CheckValues(s, b.NewRecordBatch())
			var ve *ValueError
			if tc.fit != (err == nil) || !tc.fit && (!errors.As(err, &ve) || ve.Row != 1 || ve.Column != "d") {
				t.Errorf("precision %d, %v: %v", precision, tc.v, err)
			}
		}
	}
}

// What lies in the buffers under a null does not count.
func TestGarbageUnderNulls(t *testing.T) {
	s := iceberg.NewSchema(0, opt(1, "d", iceberg.DecimalTypeOf(4, 1)))
	sc, err := table.SchemaToArrowSchema(s, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewDecimal128Builder(memory.DefaultAllocator, sc.Field(0).Type.(*arrow.Decimal128Type))
	b.AppendValues([]decimal128.Num{decimal128.FromI64(1), decimal128.FromI64(99999999)}, []bool{true, false})
	rb := array.NewRecordBatch(sc, []arrow.Array{b.NewArray()}, 2)
	if err := CheckValues(s, rb); err != nil {
		t.Error(err)
	}
	files := write(t, config(t, s, nil), rb)
	if got := texts(t, files[0], "d"); got != `"0.1" null` {
		t.Errorf("read back %s", got)
	}
}

func TestOtherColumnsAreRefused(t *testing.T) {
	s := iceberg.NewSchema(0, opt(1, "a", prim.String), opt(2, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(3, "x", prim.Timestamp)}}))
	stamp := func(tz string, unit arrow.TimeUnit) arrow.DataType {
		return &arrow.TimestampType{Unit: unit, TimeZone: tz}
	}
	st := func(name string, x arrow.DataType) arrow.Field {
		return arrow.Field{Name: "st", Nullable: true, Type: arrow.StructOf(arrow.Field{Name: name, Type: x, Nullable: true})}
	}
	a := arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true}
	for _, tc := range []struct {
		fields []arrow.Field
		want   string
	}{
		{[]arrow.Field{a, st("x", stamp("", arrow.Microsecond))}, ""},
		{[]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.LargeString}, st("x", stamp("", arrow.Microsecond))}, ""},
		{[]arrow.Field{a}, "has 1 columns, the table has 2"},
		{[]arrow.Field{{Name: "b", Type: arrow.BinaryTypes.String}, st("x", stamp("", arrow.Microsecond))}, `column "b" where the table has "a"`},
		{[]arrow.Field{a, st("y", stamp("", arrow.Microsecond))}, `column "y" where the table has "st.x"`},
		{[]arrow.Field{a, st("x", stamp("UTC", arrow.Microsecond))}, `column "st.x": record batch has Arrow type timestamp`},
		{[]arrow.Field{a, st("x", stamp("", arrow.Nanosecond))}, `column "st.x": record batch has Arrow type timestamp`},
		{[]arrow.Field{{Name: "a", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}}, st("x", stamp("", arrow.Microsecond))}, `column "a": record batch has Arrow type dictionary`},
		{[]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.StringView}, st("x", stamp("", arrow.Microsecond))}, `column "a": record batch has Arrow type string_view`},
	} {
		sc := arrow.NewSchema(tc.fields, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		err := CheckValues(s, b.NewRecordBatch())
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v: got %v, want %s", tc.fields, err, tc.want)
		}
	}
}

func TestLargeTextIsWritten(t *testing.T) {
	for _, dict := range []string{"true", "false"} {
		s := iceberg.NewSchema(0, opt(1, "a", prim.String), opt(2, "b", prim.Binary))
		sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.LargeString, Nullable: true}, {Name: "b", Type: arrow.BinaryTypes.LargeBinary, Nullable: true}}, nil)
		rb, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(`[{"a":"x","b":"AA=="},{"a":null,"b":"AQ=="},{"a":"","b":"Ag=="}]`))
		if err != nil {
			t.Fatal(err)
		}
		files := write(t, config(t, s, iceberg.Properties{propDict: dict}), rb.NewSlice(0, 1), rb.NewSlice(1, 3))
		if got := texts(t, files[0], "a") + " " + texts(t, files[0], "b"); got != `"x" null "" "AA==" "AQ==" "Ag=="` {
			t.Errorf("read back %s", got)
		}
	}
}
