package filter

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// compareArray marks the values for which a leaf, but not IS NULL, is true. What it says of nulls means
// nothing.
func compareArray(l *leaf, arr arrow.Array, out []bool) error {
	switch a := arr.(type) {
	case array.ExtensionArray:
		return compareArray(l, a.Storage(), out)
	case *array.Dictionary:
		return compareDictionary(l, a, out)
	case *array.Null:
		clear(out)
		return nil
	}
	if l.op == opNotNull {
		for i := range out {
			out[i] = true
		}
		return nil
	}
	misread := fmt.Errorf("it is %s in the record batch, which is not read as %s", arr.DataType(), typeText(l.field.typ))
	ok := false
	switch t := l.field.typ.(type) {
	case iceberg.BooleanType:
		ok = compareBooleans(l, arr, out)
	case iceberg.DecimalType:
		ok = compareDecimals(l, arr, t.Scale(), out)
	case iceberg.Float32Type, iceberg.Float64Type:
		ok = compareFloatArray(l, arr, out)
	case iceberg.StringType, iceberg.BinaryType, iceberg.FixedType, iceberg.UUIDType:
		ok = compareOctets(l, arr, out)
	default:
		ok = compareWholes(l, arr, out)
	}
	if !ok {
		return misread
	}
	return nil
}

// compareDictionary compares each value of the dictionary once.
func compareDictionary(l *leaf, arr *array.Dictionary, out []bool) error {
	values := arr.Dictionary()
	selected := make([]bool, values.Len())
	if err := compareArray(l, values, selected); err != nil {
		return err
	}
	dropNulls(values, selected)
	for i := range out {
		out[i] = arr.IsValid(i) && selected[arr.GetValueIndex(i)]
	}
	return nil
}

// compareWholes compares whole numbers, dates and times.
func compareWholes(l *leaf, arr arrow.Array, out []bool) bool {
	typ := l.field.typ
	_, long := typ.(iceberg.Int64Type)
	_, short := typ.(iceberg.Int32Type)
	switch a := arr.(type) {
	case *array.Int64:
		return long && compareInts(l, a.Int64Values(), out)
	case *array.Int32:
		return (long || short) && compareInts(l, a.Int32Values(), out)
	case *array.Int16:
		return (long || short) && compareInts(l, a.Int16Values(), out)
	case *array.Int8:
		return (long || short) && compareInts(l, a.Int8Values(), out)
	case *array.Uint32:
		return long && compareInts(l, a.Uint32Values(), out)
	case *array.Uint16:
		return (long || short) && compareInts(l, a.Uint16Values(), out)
	case *array.Uint8:
		return (long || short) && compareInts(l, a.Uint8Values(), out)
	case *array.Date32:
		_, ok := typ.(iceberg.DateType)
		return ok && compareInts(l, a.Date32Values(), out)
	case *array.Time64:
		_, ok := typ.(iceberg.TimeType)
		return ok && a.DataType().(*arrow.Time64Type).Unit == arrow.Microsecond && compareInts(l, a.Time64Values(), out)
	case *array.Timestamp:
		unit := arrow.Microsecond
		digits, _, ok := timestampOf(typ)
		if digits == 9 {
			unit = arrow.Nanosecond
		}
		return ok && a.DataType().(*arrow.TimestampType).Unit == unit && compareInts(l, a.TimestampValues(), out)
	}
	return false
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32
}

func compareInts[T integer](l *leaf, values []T, out []bool) bool {
	if l.op == opIn || l.op == opNotIn {
		set := make(map[int64]struct{}, len(l.set))
		for _, v := range l.set {
			set[v.whole.Int64()] = struct{}{}
		}
		in := l.op == opIn
		for i, v := range values {
			_, ok := set[int64(v)]
			out[i] = ok == in
		}
		return true
	}
	w := l.value.whole.Int64()
	switch l.op {
	case opLess:
		for i, v := range values {
			out[i] = int64(v) < w
		}
	case opGreaterEq:
		for i, v := range values {
			out[i] = int64(v) >= w
		}
	case opEqual:
		for i, v := range values {
			out[i] = int64(v) == w
		}
	case opNotEqual:
		for i, v := range values {
			out[i] = int64(v) != w
		}
	default:
		return false
	}
	return true
}

func compareBooleans(l *leaf, arr arrow.Array, out []bool) bool {
	a, ok := arr.(*array.Boolean)
	if !ok || l.op != opEqual {
		return false
	}
	want := l.value.whole.Sign() != 0
	for i := range out {
		out[i] = a.Value(i) == want
	}
	return true
}

// compareDecimals compares decimals of one scale as the whole numbers that they are stored as.
func compareDecimals(l *leaf, arr arrow.Array, scale int, out []bool) bool {
	t, ok := arr.DataType().(arrow.DecimalType)
	if !ok || int(t.GetScale()) != scale {
		return false
	}
	switch a := arr.(type) {
	case *array.Decimal128:
		compareEach(l, len(out), a.Value, wideOf, decimal128.Num.Cmp, out)
	case *array.Decimal64:
		compareEach(l, len(out), func(i int) decimal128.Num { return decimal128.FromI64(int64(a.Value(i))) }, wideOf, decimal128.Num.Cmp, out)
	case *array.Decimal32:
		compareEach(l, len(out), func(i int) decimal128.Num { return decimal128.FromI64(int64(a.Value(i))) }, wideOf, decimal128.Num.Cmp, out)
	default:
		return false
	}
	return true
}

// wideOf is a value of a decimal, which has 38 digits at most.
func wideOf(v value) decimal128.Num { return decimal128.FromBigInt(v.whole) }

// compareEach compares values that have no loop of their own.
func compareEach[T any](l *leaf, n int, at func(i int) T, of func(value) T, order func(a, b T) int, out []bool) {
	if l.op == opIn || l.op == opNotIn {
		set := make([]T, len(l.set)) // sorted as l.set is
		for i, v := range l.set {
			set[i] = of(v)
		}
		in := l.op == opIn
		for i := range n {
			_, ok := slices.BinarySearchFunc(set, at(i), order)
			out[i] = ok == in
		}
		return
	}
	w := of(l.value)
	for i := range n {
		c := order(at(i), w)
		switch l.op {
		case opLess:
			out[i] = c < 0
		case opLessEq:
			out[i] = c <= 0
		case opGreater:
			out[i] = c > 0
		case opGreaterEq:
			out[i] = c >= 0
		case opEqual:
			out[i] = c == 0
		default:
			out[i] = c != 0
		}
	}
}

func compareFloatArray(l *leaf, arr arrow.Array, out []bool) bool {
	_, double := l.field.typ.(iceberg.Float64Type)
	switch a := arr.(type) {
	case *array.Float64:
		if !double {
			return false
		}
		compareFloats(l, a.Float64Values(), out)
	case *array.Float32:
		if double {
			compareFloats(l, widened(a.Float32Values()), out)
		} else {
			compareFloats(l, a.Float32Values(), out)
		}
	default:
		return false
	}
	return true
}

func widened(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// compareFloats compares by the order of floats: NaN is the greatest value, and no literal of a
// comparison is NaN (kinds.go).
func compareFloats[T float32 | float64](l *leaf, values []T, out []bool) {
	w := T(l.value.float)
	switch l.op {
	case opIsNaN:
		for i, v := range values {
			out[i] = v != v
		}
	case opNotNaN:
		for i, v := range values {
			out[i] = v == v
		}
	case opIn, opNotIn:
		set := make(map[T]struct{}, len(l.set)) // a map never finds NaN, and takes -0 for 0
		nan := false
		for _, v := range l.set {
			set[T(v.float)] = struct{}{}
			nan = nan || math.IsNaN(v.float)
		}
		in := l.op == opIn
		for i, v := range values {
			_, ok := set[v]
			out[i] = (ok || nan && v != v) == in
		}
	case opLess:
		for i, v := range values {
			out[i] = v < w
		}
	case opLessEq:
		for i, v := range values {
			out[i] = v <= w
		}
	case opGreater:
		for i, v := range values {
			out[i] = !(v <= w)
		}
	case opGreaterEq:
		for i, v := range values {
			out[i] = !(v < w)
		}
	case opEqual:
		for i, v := range values {
			out[i] = v == w
		}
	default:
		for i, v := range values {
			out[i] = v != w
		}
	}
}
