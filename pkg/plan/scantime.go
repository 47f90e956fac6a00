package plan

import (
	"math"
)

// scanDate reads a date: YYYY-MM-DD, the year with a sign if it has more digits or is before year 0.
func scanDate(text []byte) (days int64, rest []byte, ok bool) {
	negative, body := signed(text)
	hasSign := len(body) < len(text)
	n := digits(body)
	if n < 4 || n > 7 || (n > 4 && !hasSign) || len(body) < n+6 || body[n] != '-' || body[n+3] != '-' {
		return 0, text, false
	}
	year := int64(number(body[:n]))
	if negative {
		year = -year
	}
	month, okMonth := two(body[n+1:])
	day, okDay := two(body[n+4:])
	if !okMonth || !okDay || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, text, false
	}
	return daysOf(year, month, day), body[n+6:], true
}

func number(digits []byte) int {
	v := 0
	for _, c := range digits {
		v = v*10 + int(c-'0')
	}
	return v
}

// two reads two digits.
func two(text []byte) (int, bool) {
	if len(text) < 2 || digits(text[:2]) != 2 {
		return 0, false
	}
	return number(text[:2]), true
}

// scanClock reads a time of day: HH:MM, HH:MM:SS, or that with a fraction of nine digits that count.
func scanClock(text []byte) (nanos int64, rest []byte, ok bool) {
	hour, okHour := two(text)
	if !okHour || hour > 23 || len(text) < 5 || text[2] != ':' {
		return 0, text, false
	}
	minute, okMinute := two(text[3:])
	if !okMinute || minute > 59 {
		return 0, text, false
	}
	nanos, rest = (int64(hour)*60+int64(minute))*60*1e9, text[5:]
	if len(rest) == 0 || rest[0] != ':' {
		return nanos, rest, true
	}
	second, okSecond := two(rest[1:])
	if !okSecond || second > 59 {
		return 0, text, false
	}
	nanos, rest = nanos+int64(second)*1e9, rest[3:]
	if len(rest) == 0 || rest[0] != '.' {
		return nanos, rest, true
	}
	n := digits(rest[1:])
	fraction, unit := int64(0), int64(1e8)
	for _, c := range rest[1 : 1+n] {
		if unit == 0 && c != '0' { // finer than nanoseconds
			return 0, text, false
		}
		fraction += int64(c-'0') * unit
		unit /= 10
	}
	return nanos + fraction, rest[1+n:], n > 0
}

// scanOffset reads the offset of a zone from UTC: +HH:MM, +HHMM or +HH.
func scanOffset(text []byte) (seconds int64, rest []byte, ok bool) {
	negative, body := signed(text)
	hours, okHours := two(body)
	if !okHours || len(body) == len(text) || hours > 18 {
		return 0, text, false
	}
	minutes, rest := 0, body[2:]
	if len(rest) > 0 && rest[0] == ':' {
		rest = rest[1:]
		if _, ok := two(rest); !ok {
			return 0, text, false
		}
	}
	if m, ok := two(rest); ok {
		minutes, rest = m, rest[2:]
	}
	if minutes > 59 || hours == 18 && minutes > 0 {
		return 0, text, false
	}
	seconds = int64(hours)*3600 + int64(minutes)*60
	if negative {
		seconds = -seconds
	}
	return seconds, rest, true
}

// scanZone reads Z, UTC or an offset, with a blank before it or not. There may be none.
func scanZone(text []byte) (seconds int64, has, ok bool) {
	if len(text) == 0 {
		return 0, false, true
	}
	if text[0] == ' ' {
		text = text[1:]
	}
	if s := string(text); s == "Z" || s == "z" || s == "UTC" {
		return 0, true, true
	}
	seconds, rest, ok := scanOffset(text)
	return seconds, true, ok && len(rest) == 0
}

// A moment is a timestamp in text.
type moment struct {
	seconds int64 // from 1970, as the text has them
	nanos   int64 // of the second
	offset  int64
	zoned   bool // there is an offset
}

// scanMoment reads a date alone, or with a time of day behind T or a blank and a zone behind it.
func scanMoment(text []byte) (m moment, ok bool) {
	days, rest, ok := scanDate(trimmed(text))
	if !ok {
		return m, false
	}
	clock := int64(0)
	if len(rest) > 0 {
		if rest[0]|0x20 != 't' && rest[0] != ' ' {
			return m, false
		}
		if clock, rest, ok = scanClock(rest[1:]); !ok {
			return m, false
		}
	}
	m.seconds, m.nanos = days*secondsPerDay+clock/1e9, clock%1e9
	m.offset, m.zoned, ok = scanZone(rest)
	return m, ok
}

// count returns seconds and nanoseconds in units of which a second has perSecond.
func count(seconds, nanos, perSecond int64) (v int64, rule string) {
	unit := int64(1e9) / perSecond
	if nanos%unit != 0 {
		return 0, "is finer than microseconds"
	}
	if seconds < math.MinInt64/perSecond-1 || seconds > math.MaxInt64/perSecond {
		return 0, beyond(perSecond)
	}
	nanos /= unit
	if seconds < 0 && nanos > 0 { // so that the first second of the range does not overflow on the way
		seconds, nanos = seconds+1, nanos-perSecond
	}
	whole, ok := multiply(seconds, perSecond)
	v = whole + nanos
	if !ok || (nanos > 0 && v < whole) || (nanos < 0 && v > whole) {
		return 0, beyond(perSecond)
	}
	return v, ""
}

func beyond(perSecond int64) string {
	if perSecond == 1e9 {
		return "is beyond the range of a timestamp in nanoseconds (1677-09-21 to 2262-04-11)"
	}
	return "is beyond the range of a timestamp"
}
