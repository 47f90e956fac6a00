package plan

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// A wide is an unsigned number of 128 bits: the digits of a decimal without its sign.
type wide struct{ hi, lo uint64 }

// wideOf takes the sign off a decimal.
func wideOf(n decimal128.Num) (w wide, negative bool) {
	if n.Sign() < 0 {
		n, negative = n.Negate(), true
	}
	return wide{uint64(n.HighBits()), n.LowBits()}, negative
}

// num puts the sign on again.
func (w wide) num(negative bool) decimal128.Num {
	n := decimal128.New(int64(w.hi), w.lo)
	if negative {
		return n.Negate()
	}
	return n
}

// wideOfInt takes the sign off an integer.
func wideOfInt(v int64) (w wide, negative bool) {
	if v < 0 {
		return wide{0, -uint64(v)}, true
	}
	return wide{0, uint64(v)}, false
}

// wideOfFloat returns a whole number of at least 0 exactly, and whether it has at most 127 bits.
func wideOfFloat(f float64) (wide, bool) {
	if !(f < 1<<127) {
		return wide{}, false
	}
	fraction, exponent := math.Frexp(f) // f is fraction times 2 to the power of exponent
	m, shift := uint64(fraction*(1<<53)), exponent-53
	switch {
	case shift <= 0:
		return wide{0, m >> -shift}, true
	case shift < 64:
		return wide{m >> (64 - shift), m << shift}, true
	}
	return wide{m << (shift - 64), 0}, true
}

// times returns w*by, and whether that did not overflow.
func (w wide) times(by uint64) (wide, bool) {
	hi, lo := bits.Mul64(w.lo, by)
	over, mid := bits.Mul64(w.hi, by)
	sum, carry := bits.Add64(hi, mid, 0)
	return wide{sum, lo}, over == 0 && carry == 0
}

func (w wide) plus(v uint64) wide {
	lo, carry := bits.Add64(w.lo, v, 0)
	return wide{w.hi + carry, lo}
}

// over returns the quotient and the rest.
func (w wide) over(by uint64) (wide, uint64) {
	hi, rest := w.hi/by, w.hi%by
	lo, rest := bits.Div64(rest, w.lo, by)
	return wide{hi, lo}, rest
}

func (w wide) less(v wide) bool { return w.hi < v.hi || w.hi == v.hi && w.lo < v.lo }

// tens are the powers of ten that 64 bits hold.
var tens = [20]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// shifted returns w times ten to the power of by, at least 0, and whether that did not overflow.
func (w wide) shifted(by int) (wide, bool) {
	ok := true
	for by > 0 && ok {
		k := min(by, len(tens)-1)
		w, ok = w.times(tens[k])
		by -= k
	}
	return w, ok
}

// cut is the inverse of shifted; exact says that only zeros were cut off.
func (w wide) cut(by int) (out wide, exact bool) {
	exact = true
	for by > 0 {
		k := min(by, len(tens)-1)
		var rest uint64
		w, rest = w.over(tens[k])
		exact = exact && rest == 0
		by -= k
	}
	return w, exact
}

// tenTo returns ten to the power of a precision, at most 38.
func tenTo(precision int) wide {
	w, _ := wide{0, 1}.shifted(precision)
	return w
}
