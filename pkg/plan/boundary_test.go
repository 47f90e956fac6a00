package plan

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// castTypes are the types whose pairs the golden file has: one of each, and decimals that differ in
// precision and scale.
var castTypes = []string{
	"boolean", "int", "long", "float", "double", "decimal(9,2)", "decimal(18,2)", "decimal(9,4)", "decimal(38,0)", "decimal(4,2)", "decimal(38,10)",
	"date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed[3]", "fixed[16]", "binary",
}

// boundaries are the values of a type at which casts go one way or the other.
func boundaries(t testing.TB, mem memory.Allocator, typ iceberg.Type) arrow.Array {
	t.Helper()
	b := array.NewBuilder(mem, arrowType(typ))
	defer b.Release()
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.AppendValues([]bool{true, false}, nil)
	case *array.Int32Builder:
		for _, v := range integerBounds() {
			if int64(int32(v)) == v {
				b.Append(int32(v))
			}
		}
	case *array.Int64Builder:
		b.AppendValues(integerBounds(), nil)
	case *array.Float32Builder:
		for _, v := range floatBounds() {
			b.Append(float32(v))
		}
	case *array.Float64Builder:
		b.AppendValues(floatBounds(), nil)
	case *array.Decimal128Builder:
		d := typ.(iceberg.DecimalType)
		for _, text := range []string{"0", "1", "-1", "2", "0.5", "-0.5", "1.5", "0.01", "-0.01", "0.05", "1.23", "12.345", "12345.67", "99.99", "-99.99", "99.994", "99.995",
			"9999999.99", "-9999999.99", "99999.9999", "2147483647", "2147483648", "-2147483648", "-2147483649", "16777217", "9007199254740993", "9223372036854775807",
			"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "9999999999999999.99", "99999999999999999999999999999999999999",
			"-99999999999999999999999999999999999999", "9999999999999999999999999999.9999999999", "0.0000000001"} {
			n, _ := scanNumeral([]byte(text))
			if v, why := n.decimal(d.Precision(), d.Scale()); why == decimalFits {
				b.Append(v)
			}
		}
	case *array.Date32Builder:
		for _, d := range dateBounds() {
			b.Append(arrow.Date32(d))
		}
		b.Append(math.MaxInt32)
		b.Append(math.MinInt32)
	case *array.Time64Builder:
		b.AppendValues([]arrow.Time64{0, 1, 999_999, 1_000_000, 43_200_000_000, 86_399_999_999}, nil)
	case *array.TimestampBuilder:
		for _, v := range stampBounds(typ) {
			b.Append(arrow.Timestamp(v))
		}
	case *array.StringBuilder:
		b.AppendValues(textBounds(), nil)
	case *extensions.UUIDBuilder:
		b.AppendBytes([16]byte{})
		b.AppendBytes([16]byte{0xf7, 0x9c, 0x3e, 0x09, 0x67, 0x7c, 0x4b, 0xbd, 0xa4, 0x79, 0x3f, 0x34, 0x9c, 0xb7, 0x85, 0xe7})
	case *array.FixedSizeBinaryBuilder:
		width := widthOf(typ)
		for _, text := range []string{"abc", "\x00\x00\x00", "\xff\xfe\xfd", "0123456789abcdef", "\xff123456789abcdef"} {
			if len(text) == width {
				b.Append([]byte(text))
			}
		}
	case *array.BinaryBuilder:
		for _, text := range []string{"", "abc", "\xff\xfe\xfd", "0123456789abcdef", "\xff123456789abcdef", "ü", "\xc3", "\x00"} {
			b.Append([]byte(text))
		}
	default:
		t.Fatalf("no boundaries of %T", b)
	}
	b.AppendNull()
	return b.NewArray()
}

// around returns values and their neighbours, each once.
func around(values ...int64) []int64 {
	var out []int64
	for _, v := range values {
		if v > math.MinInt64 {
			out = append(out, v-1)
		}
		out = append(out, v)
		if v < math.MaxInt64 {
			out = append(out, v+1)
		}
	}
	return once(out)
}

func once[T comparable](values []T) []T {
	seen := map[T]bool{}
	return slices.DeleteFunc(values, func(v T) bool {
		had := seen[v]
		seen[v] = true
		return had
	})
}

func integerBounds() []int64 {
	return around(0, 99, 100, math.MaxInt8, math.MinInt8, 9999, 99_999, 1<<24, -1<<24, 9_999_999, math.MaxInt32, math.MinInt32, 1<<53, -1<<53,
		999_999_999_999_999_999, math.MaxInt64, math.MinInt64)
}

func floatBounds() []float64 {
	out := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, 0.1, 0.01, 1.005, 0.001, 0.0009999, 12345.67, 99.99, 99.995, 99999.9999, 1e6, 9999999, 1e7, 12345678.9,
		math.NaN(), math.Inf(1), math.Inf(-1), 1e10, 1e22, 1e23, 1e37, 1e38, 1e39, -1e39, math.MaxFloat32, 3.4028235677973366e38, math.SmallestNonzeroFloat32, 1e-46, math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64}
	for _, v := range []float64{1 << 24, 1 << 31, -1 << 31, 1 << 53, 1 << 63, -1 << 63} {
		out = append(out, v, math.Nextafter(v, math.Inf(1)), math.Nextafter(v, math.Inf(-1)), v-1, v+1)
	}
	return slices.CompactFunc(out, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
}

// dateBounds are days: the epoch, leap days, years 0001 and 9999, the ends of nanoseconds.
func dateBounds() []int64 {
	out := []int64{0, 1, -1}
	for _, d := range [][3]int{{2024, 2, 29}, {2023, 2, 28}, {1900, 2, 28}, {1900, 3, 1}, {2000, 2, 29}, {1, 1, 1}, {0, 12, 31}, {9999, 12, 31}, {10000, 1, 1}, {1582, 10, 4},
		{1582, 10, 15}, {1677, 9, 21}, {1677, 9, 22}, {2262, 4, 11}, {2262, 4, 12}, {1969, 12, 31}} {
		out = append(out, daysOf(int64(d[0]), d[1], d[2]))
	}
	return once(out)
}

func stampBounds(typ iceberg.Type) []int64 {
	perSecond := unitsOf(kindOfType(typ))
	out := around(0, secondsPerDay*perSecond, -secondsPerDay*perSecond, math.MaxInt64, math.MinInt64)
	for _, d := range dateBounds() {
		if v, ok := multiply(d, secondsPerDay*perSecond); ok {
			out = append(out, v)
			if d%2 == 0 {
				out = append(out, v-1)
			}
		}
	}
	out = append(out, 1711846800*perSecond, 1698541200*perSecond, 123_456_789, 1_500_000) // clocks of Berlin change
	for _, v := range []int64{math.MaxInt64 / 1000, math.MinInt64 / 1000} {
		out = append(out, around(v)...)
	}
	return once(out)
}

func textBounds() []string {
	return []string{
		"", " ", "x", "0", "-0", "+0", "1", "-1", "007", "+5", " 12 ", "\t12\n", "1 2", "1_000", "1,000", "0x10", "٣", "--1", "+", "-", ".", "1.", ".5", "1.5", "-.5e1", "1e3", "1E-3", "1e", "e1", "1e+", "1e999999999", "1e-999999999",
		"2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "99999999999999999999",
		"16777217", "9007199254740993", "3.4028235e38", "3.5e38", "1e39", "1.7976931348623157e308", "1e309", "1e-46", "5e-324", "1e-400", "0.1", "0.10", "0.100000", "0.12345", "99.99", "99.994", "99.995", "-99.99", "100", "1.0f", "1.0d",
		"12345.67", "0.00000000001", "99999999999999999999999999999999999999", "100000000000000000000000000000000000000", "000000000000000000000000000000000000000000001.10",
		"NaN", "nan", "-NaN", "inf", "-Inf", "Infinity", "+infinity", "infinit",
		"true", "TRUE", "t", "yes", "Y", "false", "F", "no", "n", "on", "off", "tru", " true ",
		"2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0001-01-01", "0000-12-31", "-0001-01-01", "9999-12-31", "10000-01-01", "+10000-01-01", "2024-1-1", "2024-01", "2024", "20240101", "2024-13-01", "2024-00-10", "2024-01-32", "2024-01-00",
		" 2024-01-01 ", "2024-01-01x", "01/02/2024", "2024-01-01T00:00:00", "2024-01-01 00:00:00", "2024-01-01t12:34", "2024-01-01 12", "2024-01-01 24:00:00", "2024-01-01 23:59:60", "2024-01-01 23:59:59.999999", "2024-01-01 23:59:59.9999999",
		"2024-01-01 23:59:59.999999999", "2024-01-01 23:59:59.9999990", "2024-01-01 00:00:00.1234567890", "2024-01-01 00:00:00.", "1969-12-31 23:59:59.999999", "2024-01-01 00:00:00Z", "2024-01-01T00:00:00+02:00", "2024-01-01 00:00:00-0530", "2024-01-01 00:00:00 UTC", "2024-01-01 00:00:00+02",
		"2024-01-01 00:00:00+19:00", "2024-01-01 00:00:00 Europe/Berlin", "2024-03-31 02:30:00", "2023-10-29 02:30:00", "1677-09-21 00:12:43.145224192", "1677-09-21 00:12:43.145224191", "2262-04-11 23:47:16.854775807", "2262-04-11 23:47:16.854775808", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999",
		"12:34:56", "12:34", "00:00", "23:59:59.999999", "24:00:00", "12:60:00", "12:34:56.1234567", "1:02:03",
		"f79c3e09-677c-4bbd-a479-3f349cb785e7", "F79C3E09677C4BBDA4793F349CB785E7", "{f79c3e09-677c-4bbd-a479-3f349cb785e7}", "f79c3e09-677c-4bbd-a479-3f349cb785e", "g79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e-09677c-4bbd-a479-3f349cb785e7",
		"abc", "0123456789abcdef", "ü",
	}
}

// shownValue is a value of an array as the golden file has it: what there is to know of it.
func shownValue(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i))
	case *array.Int32:
		return strconv.Itoa(int(a.Value(i)))
	case *array.Int64:
		return strconv.FormatInt(a.Value(i), 10)
	case *array.Float32:
		return strconv.FormatFloat(float64(a.Value(i)), 'g', -1, 32)
	case *array.Float64:
		return strconv.FormatFloat(a.Value(i), 'g', -1, 64)
	case *array.Decimal128:
		return decimalText(a.Value(i), int(a.DataType().(arrow.DecimalType).GetScale()))
	case *array.Date32:
		return strconv.Itoa(int(a.Value(i)))
	case *array.Time64:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Timestamp:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.String:
		return strconv.Quote(a.Value(i))
	case *array.Binary:
		return "0x" + hex.EncodeToString(a.Value(i))
	case *array.FixedSizeBinary:
		return "0x" + hex.EncodeToString(a.Value(i))
	case *extensions.UUIDArray:
		id := a.Value(i)
		return "0x" + hex.EncodeToString(id[:])
	}
	return fmt.Sprintf("%T", a)
}

// decimalText is exact by other means than the package's own.
func decimalText(n decimal128.Num, scale int) string {
	v, sign := n.BigInt(), ""
	if v.Sign() < 0 {
		v, sign = v.Neg(v), "-"
	}
	digits := fmt.Sprintf("%0*s", scale+1, v.String())
	if scale == 0 {
		return sign + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}
