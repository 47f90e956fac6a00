package filter

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
)

// Stats is what is known of a column's values in a file or row group.
type Stats struct {
	Lower, Upper []byte // not above and not below any value but null and NaN, in Iceberg's binary single-value form; nil: not known
	Rows         int64  // values, nulls among them; -1: not known
	Nulls        int64  // -1: not known
	NaNs         int64  // -1: not known
}

// NoStats are of a column of which nothing is known.
var NoStats = Stats{Rows: -1, Nulls: -1, NaNs: -1}

// Possible reports whether a row may be selected from rows whose columns are known by stats, which is
// asked for field IDs. It is true where that cannot be told.
//
// Upper ends of texts and bytes are taken for a beginning of the greatest value as well, since there are
// writers that cut them without counting up. UUIDs are never told by bounds: Java orders them by signed
// halves.
func (b *Bound) Possible(stats func(id int) Stats) bool {
	return decide(b.root, func(l *leaf) bool { return newKnown(l.field, stats(l.field.id())).possible(l) })
}

// Certain reports whether every row is selected of rows whose columns are known by stats. It is false
// where that cannot be told.
func (b *Bound) Certain(stats func(id int) Stats) bool {
	return decide(b.root, func(l *leaf) bool { return newKnown(l.field, stats(l.field.id())).certain(l) })
}

// decide is a condition's answer by those of its leaves.
func decide(c condition, of func(*leaf) bool) bool {
	switch c := c.(type) {
	case all:
		return true
	case none:
		return false
	case group:
		for _, kid := range c.kids {
			if decide(kid, of) == c.or {
				return c.or
			}
		}
		return !c.or
	}
	return of(c.(*leaf))
}

// known is what Stats say of one field, in its type.
type known struct {
	Stats
	kind         kindOf
	lower, upper *value // nil: not known
}

func newKnown(f *field, s Stats) known {
	if len(f.ids) > 1 && s.Nulls == 0 {
		s.Nulls = -1 // a writer may not have counted those of null structs
	}
	k := known{Stats: s, kind: kindOfBound(f)}
	if _, ok := f.typ.(iceberg.UUIDType); ok {
		return k
	}
	k.lower, k.upper = decodeBound(f.typ, s.Lower), decodeBound(f.typ, s.Upper)
	return k
}

// decodeBound reads a bound, also one that was written before the column was promoted. It returns nil for
// one that cannot be read, and for NaN, which says that a writer did not know better.
func decodeBound(t iceberg.Type, b []byte) *value {
	if b == nil {
		return nil
	}
	switch t.(type) {
	case iceberg.StringType, iceberg.BinaryType, iceberg.FixedType:
		return &value{text: string(b)}
	case iceberg.Float32Type, iceberg.Float64Type:
		var v float64
		switch len(b) {
		case 4:
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case 8:
			v = math.Float64frombits(binary.LittleEndian.Uint64(b))
		default:
			return nil
		}
		if math.IsNaN(v) {
			return nil
		}
		return &value{float: v}
	case iceberg.DecimalType:
		if len(b) == 0 || len(b) > 16 {
			return nil
		}
		return &value{whole: signed(b)}
	case iceberg.BooleanType:
		if len(b) != 1 {
			return nil
		}
	case iceberg.Int32Type, iceberg.DateType:
		if len(b) != 4 {
			return nil
		}
	case iceberg.Int64Type:
		if len(b) != 4 && len(b) != 8 {
			return nil
		}
	default:
		if len(b) != 8 { // a timestamp that was a date has a bound of 4 bytes, in days
			return nil
		}
	}
	reversed := slices.Clone(b)
	slices.Reverse(reversed)
	return &value{whole: signed(reversed)}
}

// signed reads a number in two's complement, the high byte first.
func signed(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 1 && b[0] >= 0x80 || len(b) == 1 && b[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(one, uint(len(b))*8))
	}
	return n
}

// noValues reports whether there is nothing but nulls.
func (k known) noValues() bool { return k.Nulls >= 0 && k.Nulls == k.Rows }

// above reports whether all numbers, and certainly all texts, are above v, or at it too.
func (k known) above(v value, at bool) bool {
	if k.lower == nil {
		return false
	}
	c := k.kind.order(*k.lower, v)
	return c > 0 || at && c == 0
}

// below reports whether all numbers or texts are below v, or at it too.
func (k known) below(v value, at bool) bool {
	if k.upper == nil {
		return false
	}
	c := k.kind.order(*k.upper, v)
	if _, ok := k.kind.(octets); ok {
		// What the upper bound is a beginning of is below v only if v does not begin with it.
		return c < 0 && !strings.HasPrefix(v.text, k.upper.text)
	}
	return c < 0 || at && c == 0
}

// mayHaveNaN reports whether NaN, greater than all, may be among the values.
func (k known) mayHaveNaN() bool {
	_, ok := k.kind.(floats)
	return ok && k.NaNs != 0
}

func (k known) possible(l *leaf) bool {
	switch l.op {
	case opIsNull:
		return k.Nulls != 0
	case opIsNaN:
		return k.NaNs != 0 && !k.noValues()
	}
	if k.noValues() {
		return false
	}
	onlyNaN := k.mayHaveNaN() && k.NaNs > 0 && k.Nulls >= 0 && k.NaNs+k.Nulls == k.Rows
	switch l.op {
	case opNotNaN:
		return !onlyNaN
	case opLess:
		return !onlyNaN && !k.above(l.value, true)
	case opLessEq:
		return !onlyNaN && !k.above(l.value, false)
	case opGreater:
		return k.mayHaveNaN() || !k.below(l.value, true)
	case opGreaterEq:
		return k.mayHaveNaN() || !k.below(l.value, false)
	case opEqual:
		return k.mayEqual(l.value)
	case opIn:
		return slices.ContainsFunc(l.set, k.mayEqual)
	case opStarts:
		// Below the prefix, or above all that begins with it.
		return !k.below(l.value, false) && (k.lower == nil || k.lower.text <= l.value.text || strings.HasPrefix(k.lower.text, l.value.text))
	}
	return true
}

func (k known) mayEqual(v value) bool {
	if f, ok := k.kind.(floats); ok && f.order(v, value{float: math.NaN()}) == 0 {
		return k.NaNs != 0
	}
	return !k.above(v, false) && !k.below(v, false)
}

func (k known) certain(l *leaf) bool {
	switch {
	case l.op == opIsNull:
		return k.noValues()
	case k.Nulls != 0:
		return false
	case l.op == opNotNull:
		return true
	case l.op == opIsNaN:
		return k.NaNs > 0 && k.NaNs == k.Rows
	case l.op == opNotNaN:
		return k.NaNs == 0
	}
	number := !k.mayHaveNaN()
	switch l.op {
	case opLess:
		return number && k.below(l.value, false)
	case opLessEq:
		return number && k.below(l.value, true)
	case opGreater:
		return k.above(l.value, false)
	case opGreaterEq:
		return k.above(l.value, true)
	case opEqual:
		_, exact := k.kind.(octets)
		return number && !exact && k.above(l.value, true) && k.below(l.value, true)
	case opNotEqual:
		return k.above(l.value, false) || number && k.below(l.value, false)
	}
	return false
}
