package plan

import (
	"bytes"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// The forms of text that read as values. Blanks, tabs and line ends around a value do not count; for
// the rest every byte does. docs/CASTS.md has them for people.

func trimmed(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }

// digits reads decimal digits from the start of text.
func digits(text []byte) (n int) {
	for n < len(text) && text[n]-'0' <= 9 {
		n++
	}
	return n
}

func signed(text []byte) (negative bool, rest []byte) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		return text[0] == '-', text[1:]
	}
	return false, text
}

// scanInteger reads an integer: digits with a sign or none. far says that it is one, beyond 64 bits.
func scanInteger(text []byte) (v int64, far, ok bool) {
	negative, rest := signed(trimmed(text))
	if len(rest) == 0 || digits(rest) != len(rest) {
		return 0, false, false
	}
	var n uint64
	for _, c := range rest {
		if n > (math.MaxUint64-9)/10 {
			return 0, true, true
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case negative && n <= 1<<63:
		return -int64(n), false, true
	case !negative && n < 1<<63:
		return int64(n), false, true
	}
	return 0, true, true
}

// scanBoolean reads a boolean as Spark does, in any case of letters.
func scanBoolean(text []byte) (v int64, ok bool) {
	switch string(bytes.ToLower(trimmed(text))) {
	case "true", "t", "yes", "y", "1":
		return 1, true
	case "false", "f", "no", "n", "0":
		return 0, true
	}
	return 0, false
}

// A numeral is the parts of a decimal number in text.
type numeral struct {
	negative    bool
	whole, frac []byte
	exponent    int // of ten; within a million
}

// scanNumeral reads digits with a point, a sign and an exponent, or some of them.
func scanNumeral(text []byte) (n numeral, ok bool) {
	n.negative, text = signed(text)
	k := digits(text)
	n.whole, text = text[:k], text[k:]
	if len(text) > 0 && text[0] == '.' {
		k = digits(text[1:])
		n.frac, text = text[1:1+k], text[1+k:]
	}
	if len(n.whole)+len(n.frac) == 0 {
		return n, false
	}
	if len(text) > 0 && text[0]|0x20 == 'e' {
		minus, rest := signed(text[1:])
		if len(rest) == 0 || digits(rest) != len(rest) {
			return n, false
		}
		for _, c := range rest {
			n.exponent = min(n.exponent*10+int(c-'0'), 1_000_000)
		}
		if minus {
			n.exponent = -n.exponent
		}
		text = nil
	}
	return n, len(text) == 0
}

// scanFloat reads a number, or nan, inf or infinity in any case of letters. far says that it is beyond
// the range of its size.
func scanFloat(text []byte, size int) (v float64, far, ok bool) {
	text = trimmed(text)
	if _, ok := scanNumeral(text); !ok {
		negative, rest := signed(text)
		switch string(bytes.ToLower(rest)) {
		case "nan":
			return math.NaN(), false, len(rest) == len(text)
		case "inf", "infinity":
			return math.Inf(map[bool]int{true: -1, false: 1}[negative]), false, true
		}
		return 0, false, false
	}
	v, err := strconv.ParseFloat(string(text), size)
	return v, err != nil, true // the grammar is right, so that the range is not
}

// Why a decimal number does not become a decimal.
const (
	decimalFits = iota
	decimalFine // digits behind the scale
	decimalFar  // digits before the precision
)

// decimalOfNumeral returns a number as a decimal of a precision and scale, exactly.
func (n numeral) decimal(precision, scale int) (decimal128.Num, int) {
	digit := func(i int) byte {
		if i < len(n.whole) {
			return n.whole[i]
		}
		return n.frac[i-len(n.whole)]
	}
	from, to := 0, len(n.whole)+len(n.frac)
	for to > from && digit(to-1) == '0' {
		to--
	}
	for from < to && digit(from) == '0' {
		from++
	}
	if from == to {
		return decimal128.Num{}, decimalFits
	}
	shift := scale + n.exponent + len(n.whole) - to // zeros behind the last digit
	if shift < 0 {
		return decimal128.Num{}, decimalFine
	}
	if to-from+shift > precision {
		return decimal128.Num{}, decimalFar
	}
	var v wide
	low := min(to, from+len(tens)-1) // so many digits fit one word
	for i := from; i < low; i++ {
		v.lo = v.lo*10 + uint64(digit(i)-'0')
	}
	for i := low; i < to; i++ {
		v, _ = v.times(10)
		v = v.plus(uint64(digit(i) - '0'))
	}
	v, _ = v.shifted(shift)
	return v.num(n.negative), decimalFits
}
