package filter

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/apache/iceberg-go"
)

var one = big.NewInt(1)

// steps is the kind of values with a least step between them: whole numbers, decimals, dates, times,
// and truth values, where FALSE comes before TRUE. scale says how many steps make one, as a power of ten.
type steps struct {
	typ    iceberg.Type
	scale  int
	lo, hi *big.Int // the least and greatest value
}

// convert returns a number that need not be one of the values.
func (k steps) convert(l literal) (point, error) {
	n, err := k.number(l)
	return point{number: n}, err
}

func (k steps) number(l literal) (number, error) {
	asText := func(words ...string) bool {
		if l.kind != textLiteral {
			return false
		}
		for _, w := range words {
			if l.as == w {
				return true
			}
		}
		return l.as == ""
	}
	switch k.typ.(type) {
	case iceberg.BooleanType:
		switch {
		case l.kind == boolLiteral && l.bool, asText() && strings.EqualFold(l.text, "true"):
			return wholeNumber(1), nil
		case l.kind == boolLiteral, asText() && strings.EqualFold(l.text, "false"):
			return wholeNumber(0), nil
		}
		return number{}, fmt.Errorf("%s is neither TRUE nor FALSE", l.show())
	case iceberg.DateType:
		if !asText("DATE") {
			return number{}, k.notATime(l)
		}
		days, err := parseDate(strings.TrimSpace(l.text))
		if err != nil {
			return number{}, fmt.Errorf("%s is no date: %w", l.show(), err)
		}
		return wholeNumber(days), nil
	case iceberg.TimeType:
		if !asText("TIME") {
			return number{}, k.notATime(l)
		}
		n, err := parseTime(strings.TrimSpace(l.text))
		if err != nil {
			return number{}, fmt.Errorf("%s is no time: %w", l.show(), err)
		}
		return number{n.units, n.exp + 6}.short(), nil
	}
	digits, zoned, ok := timestampOf(k.typ)
	if !ok {
		return numberOf(l)
	}
	if !asText("TIMESTAMP", "DATE") {
		return number{}, k.notATime(l)
	}
	n, err := parseTimestamp(strings.TrimSpace(l.text), zoned)
	if err != nil {
		return number{}, fmt.Errorf("%s is no timestamp: %w", l.show(), err)
	}
	return number{n.units, n.exp + digits}.short(), nil
}

// timestampOf are the digits of a timestamp's fraction of a second, and whether it has a zone.
func timestampOf(t iceberg.Type) (digits int, zoned, ok bool) {
	switch t.(type) {
	case iceberg.TimestampType:
		return 6, false, true
	case iceberg.TimestampTzType:
		return 6, true, true
	case iceberg.TimestampNsType:
		return 9, false, true
	case iceberg.TimestampTzNsType:
		return 9, true, true
	}
	return 0, false, false
}

// notATime refuses a literal for a date or time. A number of days or microseconds is refused with what
// it would mean, since a number of seconds looks the same.
func (k steps) notATime(l literal) error {
	if l.kind == numberLiteral {
		if n, exact := l.number.floor(0); exact && n.Cmp(k.lo) >= 0 && n.Cmp(k.hi) <= 0 {
			return fmt.Errorf("%s is a number; the value that Iceberg stores as it is written %s", l.show(), k.print(value{whole: n}))
		}
	}
	return fmt.Errorf("%s is not of that type; want a text such as %s", l.show(), k.print(value{whole: new(big.Int)}))
}

func (k steps) compare(f *field, o op, p point) condition {
	floor, exact := p.number.floor(k.scale)
	// next is the least value that is not below the number, above the least that is above it.
	next, above := floor, new(big.Int).Add(floor, one)
	if !exact {
		next = above
	}
	possible := exact && floor.Cmp(k.lo) >= 0 && floor.Cmp(k.hi) <= 0
	switch {
	case o == opEqual && possible:
		return &leaf{field: f, op: opEqual, value: value{whole: floor}}
	case o == opEqual || o == opNotEqual && !possible:
		return sure(f, o == opNotEqual)
	case o == opNotEqual && floor.Cmp(k.lo) == 0:
		return k.from(f, above)
	case o == opNotEqual && floor.Cmp(k.hi) == 0:
		return k.below(f, floor)
	case o == opNotEqual:
		return &leaf{field: f, op: opNotEqual, value: value{whole: floor}}
	case o == opLess:
		return k.below(f, next)
	case o == opLessEq:
		return k.below(f, above)
	case o == opGreater:
		return k.from(f, above)
	}
	return k.from(f, next)
}

// below is f < v.
func (k steps) below(f *field, v *big.Int) condition {
	switch {
	case v.Cmp(k.lo) <= 0:
		return sure(f, false)
	case v.Cmp(k.hi) > 0:
		return sure(f, true)
	case new(big.Int).Sub(v, one).Cmp(k.lo) == 0:
		return &leaf{field: f, op: opEqual, value: value{whole: k.lo}}
	}
	return &leaf{field: f, op: opLess, value: value{whole: v}}
}

// from is f >= v.
func (k steps) from(f *field, v *big.Int) condition {
	switch {
	case v.Cmp(k.lo) <= 0:
		return sure(f, true)
	case v.Cmp(k.hi) > 0:
		return sure(f, false)
	case v.Cmp(k.hi) == 0:
		return &leaf{field: f, op: opEqual, value: value{whole: k.hi}}
	}
	return &leaf{field: f, op: opGreaterEq, value: value{whole: v}}
}

func (steps) order(a, b value) int { return a.whole.Cmp(b.whole) }

func (k steps) print(v value) string {
	switch k.typ.(type) {
	case iceberg.BooleanType:
		if v.whole.Sign() != 0 {
			return "TRUE"
		}
		return "FALSE"
	case iceberg.DateType:
		return quoteText(formatDate(v.whole.Int64()))
	case iceberg.TimeType:
		return quoteText(formatClock(v.whole.Int64(), 6))
	}
	if digits, zoned, ok := timestampOf(k.typ); ok {
		return quoteText(formatTimestamp(v.whole.Int64(), digits, zoned))
	}
	return number{v.whole, -k.scale}.short().String()
}
