package plan

import (
	"bytes"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// The forms in which values become text; what is read back is the same value.

// appendFloat writes the shortest digits that read back as the same number, as Java does: 1.0, 1.0E10,
// NaN, -Infinity.
func appendFloat(b []byte, v float64, size int) []byte {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 0):
		if v < 0 {
			b = append(b, '-')
		}
		return append(b, "Infinity"...)
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		start := len(b)
		b = strconv.AppendFloat(b, v, 'f', -1, size)
		if bytes.IndexByte(b[start:], '.') < 0 {
			b = append(b, ".0"...)
		}
		return b
	}
	var scratch [32]byte
	text := strconv.AppendFloat(scratch[:0], v, 'e', -1, size)
	e := bytes.IndexByte(text, 'e')
	b = append(b, text[:e]...)
	if bytes.IndexByte(text[:e], '.') < 0 {
		b = append(b, ".0"...)
	}
	b = append(b, 'E')
	if text[e+1] == '-' {
		b = append(b, '-')
	}
	power := bytes.TrimLeft(text[e+2:], "0")
	return append(b, power...)
}

// appendDecimal writes all digits of a decimal, with as many after the point as its scale.
func appendDecimal(b []byte, n decimal128.Num, scale int) []byte {
	w, negative := wideOf(n)
	if negative {
		b = append(b, '-')
	}
	var scratch [40]byte
	at := len(scratch)
	for left := scale + 1; left > 0 || w != (wide{}); left-- {
		var digit uint64
		w, digit = w.over(10)
		at--
		scratch[at] = byte('0' + digit)
	}
	text := scratch[at:]
	b = append(b, text[:len(text)-scale]...)
	if scale > 0 {
		b = append(append(b, '.'), text[len(text)-scale:]...)
	}
	return b
}

// appendDate writes a date as ISO 8601 has it; years beyond 9999 and before 0 get a sign.
func appendDate(b []byte, days int64) []byte {
	year, month, day := civil(days)
	switch {
	case year < 0:
		b, year = append(b, '-'), -year
	case year > 9999:
		b = append(b, '+')
	}
	for unit := int64(1000); unit > 1 && year < unit; unit /= 10 {
		b = append(b, '0')
	}
	b = strconv.AppendInt(b, year, 10)
	return appendTwo(append(appendTwo(append(b, '-'), month), '-'), day)
}

func appendTwo(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// appendClock writes a time of day, with the digits of the second that are not zero.
func appendClock(b []byte, seconds, nanos int64) []byte {
	b = appendTwo(b, int(seconds/3600))
	b = appendTwo(append(b, ':'), int(seconds/60%60))
	b = appendTwo(append(b, ':'), int(seconds%60))
	if nanos == 0 {
		return b
	}
	b = append(b, '.')
	for unit := int64(1e8); nanos > 0; unit /= 10 {
		b = append(b, byte('0'+nanos/unit))
		nanos %= unit
	}
	return b
}

// appendMoment writes a timestamp of which a second has perSecond units; zone is "" or +00:00.
func appendMoment(b []byte, v, perSecond int64, zone string) []byte {
	seconds := floorDiv(v, perSecond)
	rest := (v - seconds*perSecond) * (1e9 / perSecond)
	days := floorDiv(seconds, secondsPerDay)
	b = append(appendDate(b, days), ' ')
	return append(appendClock(b, seconds-days*secondsPerDay, rest), zone...)
}
