package filter

import (
	"math/big"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// Pruning is a weaker form of the condition for iceberg-go's planning: whatever row is selected, it is
// true for. It asks about the columns alone for which usable gives the name under which the library
// finds them, and leaves out what the library, or those who wrote the bounds that it goes by, do wrong:
//
//   - texts and bytes: the partition value ” has no lower bound in manifest lists of several writers,
//     and the library then takes the manifest for one without values (case 61);
//   - floats: bounds leave NaN out, which is greater than all of them;
//   - UUIDs: Java orders them by signed halves;
//   - times before 1970 with an upper end: old writers put them one year, month, day or hour too late;
//   - times beyond the year 9999, whose hours do not fit the 32 bits of a partition value;
//   - != and NOT IN, by which nothing is pruned anyway.
//
// What it misses, Possible finds file by file.
func (b *Bound) Pruning(usable func(id int) (name string, ok bool)) iceberg.BooleanExpression {
	return pruning(b.root, usable)
}

// year9999 is its end in microseconds since 1970; nanoseconds do not go that far.
var year9999 = big.NewInt(253402300800 * 1_000_000)

func pruning(c condition, usable func(int) (string, bool)) iceberg.BooleanExpression {
	switch c := c.(type) {
	case all:
		return iceberg.AlwaysTrue{}
	case none:
		return iceberg.AlwaysFalse{}
	case group:
		out := pruning(c.kids[0], usable)
		for _, kid := range c.kids[1:] {
			if next := pruning(kid, usable); c.or {
				out = iceberg.NewOr(out, next)
			} else {
				out = iceberg.NewAnd(out, next)
			}
		}
		return out
	}
	return pruningLeaf(c.(*leaf), usable)
}

func pruningLeaf(l *leaf, usable func(int) (string, bool)) iceberg.BooleanExpression {
	unknown := iceberg.AlwaysTrue{}
	if _, ok := kindOfBound(l.field).(steps); !ok {
		return unknown
	}
	name, ok := usable(l.field.id())
	if !ok {
		return unknown
	}
	ref := iceberg.Reference(name)
	_, _, timestamp := timestampOf(l.field.typ)
	_, date := l.field.typ.(iceberg.DateType)
	early := func(v value) bool { return (timestamp || date) && v.whole.Sign() <= 0 }
	for _, v := range append(l.set[:len(l.set):len(l.set)], l.value) {
		if timestamp && v.whole != nil && new(big.Int).Abs(v.whole).Cmp(year9999) > 0 {
			return unknown
		}
	}
	switch l.op {
	case opIsNull:
		return iceberg.IsNull(ref)
	case opGreaterEq:
		return iceberg.LiteralPredicate(iceberg.OpGTEQ, ref, libraryLiteral(l.field.typ, l.value.whole))
	case opLess, opEqual:
		if early(l.value) {
			return unknown
		}
		o := iceberg.OpLT
		if l.op == opEqual {
			o = iceberg.OpEQ
		}
		return iceberg.LiteralPredicate(o, ref, libraryLiteral(l.field.typ, l.value.whole))
	case opIn:
		literals := make([]iceberg.Literal, len(l.set))
		for i, v := range l.set {
			if early(v) {
				return unknown
			}
			literals[i] = libraryLiteral(l.field.typ, v.whole)
		}
		return iceberg.SetPredicate(iceberg.OpIn, ref, literals)
	}
	return unknown
}

func libraryLiteral(t iceberg.Type, v *big.Int) iceberg.Literal {
	switch t := t.(type) {
	case iceberg.BooleanType:
		return iceberg.BoolLiteral(v.Sign() != 0)
	case iceberg.Int32Type:
		return iceberg.Int32Literal(int32(v.Int64()))
	case iceberg.DateType:
		return iceberg.DateLiteral(int32(v.Int64()))
	case iceberg.TimeType:
		return iceberg.TimeLiteral(v.Int64())
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.TimestampLiteral(v.Int64())
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.TimestampNsLiteral(v.Int64())
	case iceberg.DecimalType:
		return iceberg.DecimalLiteral{Val: decimal128.FromBigInt(v), Scale: t.Scale()}
	}
	return iceberg.Int64Literal(v.Int64())
}
