package plan

import (
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// number makes the step between two types of numbers, booleans aside.
func (c caster) number() step {
	switch c.f {
	case kInt:
		return integerCast[int32](c)
	case kLong:
		return integerCast[int64](c)
	case kFloat:
		if c.t == kDouble {
			return widen[float32, float64](c.target, c.at.path)
		}
		return floatCast[float32](c, 32)
	case kDouble:
		return floatCast[float64](c, 64)
	}
	return c.decimal()
}

func integerCast[S int32 | int64](c caster) step {
	switch to := c.to.(type) {
	case iceberg.Int32Type:
		beyond := c.beyond()
		return &fixedStep[S, int32]{to: c.target, at: c.at, convert: func(v S) (int32, string) {
			if int64(v) != int64(int32(v)) {
				return 0, beyond
			}
			return int32(v), ""
		}}
	case iceberg.Int64Type:
		return widen[int32, int64](c.target, c.at.path)
	case iceberg.Float32Type:
		return exactly[S, float32](c)
	case iceberg.Float64Type:
		return exactly[S, float64](c)
	case iceberg.DecimalType:
		limit, beyond := tenTo(to.Precision()), c.beyond()
		scale := to.Scale()
		return &fixedStep[S, decimal128.Num]{to: c.target, at: c.at, convert: func(v S) (decimal128.Num, string) {
			w, negative := wideOfInt(int64(v))
			w, ok := w.shifted(scale)
			if !ok || !w.less(limit) {
				return decimal128.Num{}, beyond
			}
			return w.num(negative), ""
		}}
	}
	return nil
}

// exactly turns integers into floats that are the same number. 2 to the power of 63 is a float, and the
// nearest to some integers, but no long.
func exactly[S int32 | int64, D float32 | float64](c caster) step {
	rule := "is not held exactly by " + c.to.String()
	return &fixedStep[S, D]{to: c.target, at: c.at, convert: func(v S) (D, string) {
		d := D(v)
		if d >= 1<<63 || int64(d) != int64(v) {
			return 0, rule
		}
		return d, ""
	}}
}

// floatCast brings floats of a size in bits to another type of numbers.
func floatCast[S float32 | float64](c caster, size int) step {
	show := func(v S) string { return strconv.FormatFloat(float64(v), 'g', -1, size) }
	beyond, whole, none := c.beyond(), c.whole(), "has no counterpart in "+c.to.String()
	integer := func(v S, low, high float64) (int64, string) {
		switch f := float64(v); {
		case f != f:
			return 0, none
		case !(f >= low && f < high): // so are the infinities
			return 0, beyond
		case f != math.Trunc(f):
			return 0, whole
		default:
			return int64(f), ""
		}
	}
	switch to := c.to.(type) {
	case iceberg.Int32Type:
		return &fixedStep[S, int32]{to: c.target, at: c.at, show: show, convert: func(v S) (int32, string) {
			n, rule := integer(v, -1<<31, 1<<31)
			return int32(n), rule
		}}
	case iceberg.Int64Type:
		return &fixedStep[S, int64]{to: c.target, at: c.at, show: show, convert: func(v S) (int64, string) {
			return integer(v, -1<<63, 1<<63)
		}}
	case iceberg.Float32Type:
		return &fixedStep[S, float32]{to: c.target, at: c.at, show: show, convert: func(v S) (float32, string) {
			d := float32(v)
			if d-d != 0 && v-v == 0 { // finite before, and no longer
				return 0, beyond
			}
			return d, ""
		}}
	case iceberg.DecimalType:
		return floatDecimal[S](c, to, size, show)
	}
	return nil
}

// floatDecimal takes a whole number for what it is, and one with a fraction for the shortest decimal number
// that reads back as it: 0.1 is 0.1.
func floatDecimal[S float32 | float64](c caster, to iceberg.DecimalType, size int, show func(S) string) step {
	precision, scale := to.Precision(), to.Scale()
	limit, beyond, none := tenTo(precision), c.beyond(), "has no counterpart in "+c.to.String()
	fine := tooFine(scale)
	return &fixedStep[S, decimal128.Num]{to: c.target, at: c.at, show: show, convert: func(v S) (decimal128.Num, string) {
		f := float64(v)
		switch {
		case f != f:
			return decimal128.Num{}, none
		case f == math.Trunc(f): // so are the infinities
			w, ok := wideOfFloat(math.Abs(f))
			if ok {
				w, ok = w.shifted(scale)
			}
			if !ok || !w.less(limit) {
				return decimal128.Num{}, beyond
			}
			return w.num(f < 0), ""
		}
		var scratch [32]byte
		n, _ := scanNumeral(strconv.AppendFloat(scratch[:0], f, 'e', -1, size))
		d, why := n.decimal(precision, scale)
		return d, decimalRule(why, fine, beyond)
	}}
}

func tooFine(scale int) string { return fmt.Sprintf("has more than %d digits after the point", scale) }

func decimalRule(why int, fine, beyond string) string {
	switch why {
	case decimalFine:
		return fine
	case decimalFar:
		return beyond
	}
	return ""
}

// decimal makes the step from a decimal to another type of numbers.
func (c caster) decimal() step {
	scale := c.from.(iceberg.DecimalType).Scale()
	show := func(n decimal128.Num) string { return string(appendDecimal(nil, n, scale)) }
	beyond, whole := c.beyond(), c.whole()
	integer := func(n decimal128.Num) (int64, string) {
		w, negative := wideOf(n)
		w, exact := w.cut(scale)
		switch {
		case !exact:
			return 0, whole
		case w.hi != 0 || w.lo > 1<<63 || w.lo == 1<<63 && !negative:
			return 0, beyond
		case negative:
			return -int64(w.lo), ""
		}
		return int64(w.lo), ""
	}
	switch to := c.to.(type) {
	case iceberg.Int32Type:
		return &fixedStep[decimal128.Num, int32]{to: c.target, at: c.at, show: show, convert: func(n decimal128.Num) (int32, string) {
			v, rule := integer(n)
			if rule == "" && v != int64(int32(v)) {
				rule = beyond
			}
			return int32(v), rule
		}}
	case iceberg.Int64Type:
		return &fixedStep[decimal128.Num, int64]{to: c.target, at: c.at, show: show, convert: integer}
	case iceberg.Float32Type:
		return &fixedStep[decimal128.Num, float32]{to: c.target, at: c.at, plain: func(n decimal128.Num) float32 {
			return float32(nearest(n, scale, 32))
		}}
	case iceberg.Float64Type:
		return &fixedStep[decimal128.Num, float64]{to: c.target, at: c.at, plain: func(n decimal128.Num) float64 {
			return nearest(n, scale, 64)
		}}
	case iceberg.DecimalType:
		return c.rescaled(to, scale, show)
	}
	return nil
}

// nearest returns the float of a size in bits that is nearest to a decimal: by one division of numbers
// that are exact where it can, else by its digits.
func nearest(n decimal128.Num, scale, size int) float64 {
	if v := int64(n.LowBits()); int64(v)>>63 == n.HighBits() {
		if size == 64 && v < 1<<53 && v > -1<<53 && scale < len(tens) {
			return float64(v) / float64(tens[scale]) // powers of ten up to 22 are exact
		}
	}
	var scratch [48]byte
	v, _ := strconv.ParseFloat(string(appendDecimal(scratch[:0], n, scale)), size)
	return v
}

// rescaled gives a decimal another precision and scale, where it stays the same number (cases 29, 30).
func (c caster) rescaled(to iceberg.DecimalType, scale int, show func(decimal128.Num) string) step {
	limit, beyond, fine := tenTo(to.Precision()), c.beyond(), tooFine(to.Scale())
	from := c.from.(iceberg.DecimalType)
	more := to.Scale() - scale
	if more == 0 && to.Precision() >= from.Precision() {
		return relabel{c.target} // the same digits with room for more
	}
	return &fixedStep[decimal128.Num, decimal128.Num]{to: c.target, at: c.at, show: show, convert: func(n decimal128.Num) (decimal128.Num, string) {
		w, negative := wideOf(n)
		ok := true
		if more >= 0 {
			w, ok = w.shifted(more)
		} else {
			var exact bool
			if w, exact = w.cut(-more); !exact {
				return n, fine
			}
		}
		if !ok || !w.less(limit) {
			return n, beyond
		}
		return w.num(negative), ""
	}}
}

// booleanToLong makes 0 and 1 of booleans.
func (c caster) booleanToLong() step { return booleans{to: arrow.PrimitiveTypes.Int64, at: c.at} }

type booleans struct {
	to arrow.DataType
	at site
}

func (booleans) checks() bool { return false }

func (s booleans) do(r *run, in arrow.ArrayData, _ bitmap) (arrow.ArrayData, error) {
	raw := in.Buffers()[1]
	if in.Len() > 0 && (raw == nil || raw.Len() < int(bitutil.BytesForBits(int64(in.Offset()+in.Len())))) {
		return nil, fmt.Errorf("column %s: its buffer is too short for %d values", s.at.path, in.Offset()+in.Len())
	}
	b := r.buffer(in.Len() * 8)
	defer b.Release()
	out := arrow.Int64Traits.CastFromBytes(b.Bytes())
	for i := range in.Len() {
		out[i] = 0
		if bitutil.BitIsSet(raw.Bytes(), in.Offset()+i) {
			out[i] = 1
		}
	}
	valid := validity(r, in)
	defer release(valid)
	return array.NewData(s.to, in.Len(), []*memory.Buffer{valid, b}, nil, nullCount(in, valid), 0), nil
}

const noBoolean = "is neither 0 nor 1"

// toBoolean takes 0 for false and 1 for true, and nothing else.
func (c caster) toBoolean() step {
	then := longsToBooleans{to: c.target, at: c.at}
	long := arrow.PrimitiveTypes.Int64
	switch c.f {
	case kLong:
		return then
	case kInt:
		return chain{widen[int32, int64](long, c.at.path), then}
	case kFloat:
		return chain{zeroOrOne(long, c.at, func(v float32) (int64, string) { return int64(v), unless(v == 0 || v == 1, noBoolean) }, nil), then}
	case kDouble:
		return chain{zeroOrOne(long, c.at, func(v float64) (int64, string) { return int64(v), unless(v == 0 || v == 1, noBoolean) }, nil), then}
	}
	scale := c.from.(iceberg.DecimalType).Scale()
	one := tenTo(scale).num(false)
	return chain{zeroOrOne(long, c.at, func(n decimal128.Num) (int64, string) {
		if n == one {
			return 1, ""
		}
		return 0, unless(n == decimal128.Num{}, noBoolean)
	}, func(n decimal128.Num) string { return string(appendDecimal(nil, n, scale)) }), then}
}

func zeroOrOne[S arrow.FixedWidthType](to arrow.DataType, at site, convert func(S) (int64, string), show func(S) string) step {
	return &fixedStep[S, int64]{to: to, at: at, convert: convert, show: show}
}

type longsToBooleans struct {
	to arrow.DataType
	at site
}

func (longsToBooleans) checks() bool { return true }

func (s longsToBooleans) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	values, err := valuesOf[int64](in, s.at.path)
	if err != nil {
		return nil, err
	}
	b := r.buffer(int(bitutil.BytesForBits(int64(len(values)))))
	memory.Set(b.Bytes(), 0)
	slots := r.slots(in, dead, s.at)
	for i, v := range values {
		if v == 1 {
			bitutil.SetBit(b.Bytes(), i)
		} else if v != 0 && slots.counts(i) {
			if err := slots.fail(i, func() string { return strconv.FormatInt(v, 10) }, noBoolean); err != nil {
				slots.leave()
				b.Release()
				return nil, err
			}
		}
	}
	return slots.end(s.to, b), nil
}
