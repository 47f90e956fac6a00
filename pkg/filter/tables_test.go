package filter

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// everyType has a column of each type that can be compared, one in a struct, and one with a dot.
func everyType() *iceberg.Schema {
	p := iceberg.PrimitiveTypes
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "b", Type: p.Bool},
		iceberg.NestedField{ID: 2, Name: "i", Type: p.Int32},
		iceberg.NestedField{ID: 3, Name: "l", Type: p.Int64},
		iceberg.NestedField{ID: 4, Name: "f", Type: p.Float32},
		iceberg.NestedField{ID: 5, Name: "d", Type: p.Float64},
		iceberg.NestedField{ID: 6, Name: "dec", Type: iceberg.DecimalTypeOf(9, 2)},
		iceberg.NestedField{ID: 7, Name: "day", Type: p.Date},
		iceberg.NestedField{ID: 8, Name: "tod", Type: p.Time},
		iceberg.NestedField{ID: 9, Name: "ts", Type: p.Timestamp},
		iceberg.NestedField{ID: 10, Name: "tz", Type: p.TimestampTz},
		iceberg.NestedField{ID: 11, Name: "ns", Type: p.TimestampNs},
		iceberg.NestedField{ID: 12, Name: "s", Type: p.String},
		iceberg.NestedField{ID: 13, Name: "u", Type: p.UUID},
		iceberg.NestedField{ID: 14, Name: "fx", Type: iceberg.FixedTypeOf(2)},
		iceberg.NestedField{ID: 15, Name: "bin", Type: p.Binary},
		iceberg.NestedField{ID: 16, Name: "st", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 17, Name: "x", Type: p.Int32},
			{ID: 18, Name: "in", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 19, Name: "y", Type: p.String}}}},
		}}},
		iceberg.NestedField{ID: 20, Name: "a.b", Type: p.Int64},
		iceberg.NestedField{ID: 21, Name: "big", Type: iceberg.DecimalTypeOf(38, 10)},
		iceberg.NestedField{ID: 22, Name: "un", Type: iceberg.UnknownType{}},
		iceberg.NestedField{ID: 23, Name: "li", Type: &iceberg.ListType{ElementID: 24, Element: p.Int32}},
	)
}

// A cell is a value of a row as the tests see it: nil, bool, *big.Rat (numbers, decimals, dates and times
// in their units), float64, string (texts and bytes), or map[string]cell of a struct.
type cell any

// pools are the values that random cells and literals are drawn from: few, so that they meet.
var pools = map[string][]cell{
	"b":   {true, false},
	"i":   {rat(0), rat(1), rat(-1), rat(7), rat(8), rat(math.MaxInt32), rat(math.MinInt32), rat(math.MinInt32 + 1)},
	"l":   {rat(0), rat(1), rat(-1), rat(5), rat(1 << 53), rat(math.MaxInt64), rat(math.MinInt64), rat(math.MaxInt64 - 1)},
	"f":   {0.0, math.Copysign(0, -1), 1.5, -1.5, float64(float32(0.1)), math.NaN(), math.Inf(1), math.Inf(-1), float64(math.MaxFloat32)},
	"d":   {0.0, math.Copysign(0, -1), 1.5, -2.25, 0.1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64},
	"dec": {rat(0), rat(1), rat(-1), rat(314), rat(999999999), rat(-999999999)},
	"day": {rat(0), rat(-1), rat(19000), rat(math.MaxInt32), rat(math.MinInt32)},
	"tod": {rat(0), rat(1), rat(43200000000), rat(86399999999)},
	"ts":  {rat(0), rat(-1), rat(1700000000000001), rat(math.MaxInt64), rat(math.MinInt64)},
	"tz":  {rat(0), rat(-1), rat(1700000000000001), rat(math.MaxInt64), rat(math.MinInt64)},
	"ns":  {rat(0), rat(-1), rat(1700000000000000001), rat(math.MaxInt64), rat(math.MinInt64)},
	"s":   {"", "a", "ab", "abc", "ab\U0010ffff", "b", "a'b", "%", "a_\\", "ä", "\x00"},
	"u":   {strings.Repeat("\x00", 16), strings.Repeat("\xff", 16), "\x80" + strings.Repeat("\x01", 15)},
	"fx":  {"\x00\x00", "\xff\xff", "ab"},
	"bin": {"", "\x00", "ab", "\xff\xff\xff", "abc"},
	"x":   {rat(0), rat(1), rat(-3)},
	"y":   {"", "q", "qq"},
	"a.b": {rat(3), rat(4), rat(-9)},
	"big": {rat(0), rat(12345678901), bigRat("99999999999999999999999999999999999999"), bigRat("-99999999999999999999999999999999999999")},
}

// units are the steps of a type in one.
var units = map[string]int64{"dec": 100, "big": 10_000_000_000}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func bigRat(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// randomRow draws a cell for each column, one in five of them null.
func randomRow(r *rand.Rand) map[string]cell {
	row := map[string]cell{}
	for name, pool := range pools {
		if r.IntN(5) > 0 {
			row[name] = pick(r, pool)
		}
	}
	row["st"], row["st.in"] = r.IntN(5) > 0, r.IntN(5) > 0
	if row["st"] == false {
		row["st.in"] = false
	}
	return row
}

// of is the cell of a path, as SQL sees it: null inside a null.
func of(row map[string]cell, path string) cell {
	switch path {
	case "st", "st.in":
		if row[path] == false {
			return nil
		}
		return row[path]
	case "st.x":
		if row["st"] == false {
			return nil
		}
		return row["x"]
	case "st.in.y":
		if row["st.in"] == false {
			return nil
		}
		return row["y"]
	case `"a.b"`:
		return row["a.b"]
	case "un", "li":
		return nil
	}
	return row[path]
}

// batchOf makes the record batch of rows, as a scan of the schema gives it; a variant has narrower types,
// dictionaries and views where a file may have them.
func batchOf(t testing.TB, mem memory.Allocator, schema *iceberg.Schema, rows []map[string]cell, variant bool) arrow.RecordBatch {
	t.Helper()
	plain, err := table.SchemaToArrowSchema(schema, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	fields := plain.Fields()
	if variant {
		for i := range fields {
			switch fields[i].Name {
			case "s":
				fields[i].Type = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
			case "i":
				fields[i].Type = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.PrimitiveTypes.Int32}
			case "a.b":
				fields[i].Type, fields[i].Metadata = arrow.PrimitiveTypes.Int32, arrow.Metadata{}
			case "bin":
				fields[i].Type = arrow.BinaryTypes.BinaryView
			case "dec":
				fields[i].Type = &arrow.Decimal64Type{Precision: 9, Scale: 2}
			}
		}
	}
	b := array.NewRecordBuilder(mem, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, row := range rows {
		for i, f := range fields {
			appendCell(t, b.Field(i), f.Name, row)
		}
	}
	return b.NewRecordBatch()
}

func appendCell(t testing.TB, b array.Builder, name string, row map[string]cell) {
	t.Helper()
	if s, ok := b.(*array.StructBuilder); ok {
		key, children := name, []string{"x", "in"}
		if name == "in" {
			key, children = "st.in", []string{"y"}
		}
		s.AppendValues([]bool{row[key] == true})
		for i, child := range children {
			appendCell(t, s.FieldBuilder(i), child, row) // also below a null, where values mean nothing
		}
		return
	}
	v := row[name]
	if v == nil {
		b.AppendNull()
		return
	}
	long := func() int64 { return v.(*big.Rat).Num().Int64() }
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int32Builder:
		b.Append(int32(long()))
	case *array.Int64Builder:
		b.Append(long())
	case *array.Int32DictionaryBuilder:
		if err := b.Append(int32(long())); err != nil {
			t.Fatal(err)
		}
	case *array.Float32Builder:
		b.Append(float32(v.(float64)))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(v.(*big.Rat).Num()))
	case *array.Decimal64Builder:
		b.Append(decimal.Decimal64(long()))
	case *array.Date32Builder:
		b.Append(arrow.Date32(long()))
	case *array.Time64Builder:
		b.Append(arrow.Time64(long()))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(long()))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(v.(string)); err != nil {
			t.Fatal(err)
		}
	case *array.BinaryBuilder:
		b.Append([]byte(v.(string)))
	case *array.BinaryViewBuilder:
		b.Append([]byte(v.(string)))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(v.(string)))
	case *array.ExtensionBuilder:
		b.StorageBuilder().(*array.FixedSizeBinaryBuilder).Append([]byte(v.(string)))
	default:
		if e, ok := b.(interface{ StorageBuilder() array.Builder }); ok {
			e.StorageBuilder().(*array.FixedSizeBinaryBuilder).Append([]byte(v.(string)))
			return
		}
		t.Fatalf("no builder for %T", b)
	}
}

func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "'nan'"
	case math.IsInf(f, 0):
		return "'" + strconv.FormatFloat(f, 'g', -1, 64) + "'"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// A drawnLiteral is a literal in the tests' own terms, and how it is written.
type drawnLiteral struct {
	value cell // nil for NULL
	text  string
}

// draw draws a literal for a column: one of its values, a little beside it, a limit or NULL.
func draw(r *rand.Rand, name string) drawnLiteral {
	if r.IntN(12) == 0 {
		return drawnLiteral{nil, "NULL"}
	}
	switch v := pick(r, pools[name]).(type) {
	case bool:
		return drawnLiteral{v, strings.ToUpper(strconv.FormatBool(v))}
	case float64:
		return drawnLiteral{v, floatText(v)}
	case string:
		return drawnText(r, name, v)
	case *big.Rat:
		return drawnNumber(r, name, v)
	}
	panic("a pool of another kind")
}

func drawnText(r *rand.Rand, name, v string) drawnLiteral {
	switch name {
	case "s", "y":
		return drawnLiteral{v, "'" + strings.ReplaceAll(v, "'", "''") + "'"}
	case "u":
		return drawnLiteral{v, fmt.Sprintf("'%X-%x-%x-%x-%x'", v[:4], v[4:6], v[6:8], v[8:10], v[10:])}
	}
	if r.IntN(4) == 0 {
		v += "\x01"
	}
	return drawnLiteral{v, fmt.Sprintf("X'%x'", v)}
}

func drawnNumber(r *rand.Rand, name string, v *big.Rat) drawnLiteral {
	v = new(big.Rat).Add(v, rat(int64(r.IntN(3)-1)))
	switch name {
	case "day":
		return drawnLiteral{v, "'" + formatDate(v.Num().Int64()) + "'"}
	case "tod":
		v.SetInt64(max(0, min(v.Num().Int64(), 86399999999)))
		return drawnLiteral{v, "'" + formatClock(v.Num().Int64(), 6) + "'"}
	case "ts", "tz", "ns":
		if !v.Num().IsInt64() {
			v.SetInt64(math.MaxInt64)
		}
		digits := 6
		if name == "ns" {
			digits = 9
		}
		text := formatTimestamp(v.Num().Int64(), digits, name == "tz")
		return drawnLiteral{v, "'" + text + "'"}
	}
	if u := units[name]; u != 0 {
		v.Quo(v, rat(u))
	}
	if r.IntN(6) == 0 {
		v.Add(v, big.NewRat(int64(1+r.IntN(9)), 10_000_000_000_000))
	}
	text := v.FloatString(13)
	if v.IsInt() {
		text = v.Num().String()
	}
	if u := units[name]; u != 0 {
		return drawnLiteral{new(big.Rat).Mul(v, rat(u)), text}
	}
	return drawnLiteral{v, text}
}
