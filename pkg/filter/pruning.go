package filter

import (
	"math/big"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// Pruning is a weaker form of the condition for iceberg-go's planning: whatever row is selected, it is
// true for. It asks about partition values alone, by terms that are transforms: for these the library
// leaves out partitions and manifests, and does not look at the bounds of files, which Possible takes
// with more care. partitions gives the name under which the library finds a column and the transforms
// that the table is partitioned by it; no transforms where it is not to be asked about.
//
// Left out is what the library, or those who wrote the values that it goes by, do wrong:
//
//   - texts and bytes: the partition value ” has no lower bound in manifest lists of several writers,
//     and the library then takes the manifest for one without values (case 61);
//   - floats: bounds leave NaN out, which is greater than all of them (case 65);
//   - UUIDs: Java orders them by signed halves;
//   - truncate, which wraps around at the least values of a type;
//   - times before 1970 with an upper end: old writers put them one year, month, day or hour too late;
//   - times beyond the year 9999, whose hours do not fit the 32 bits of a partition value;
//   - != and NOT IN, by which nothing is pruned anyway.
func (b *Bound) Pruning(partitions func(id int) (name string, transforms []iceberg.Transform)) iceberg.BooleanExpression {
	return pruning(b.root, partitions)
}

func pruning(c condition, partitions func(int) (string, []iceberg.Transform)) iceberg.BooleanExpression {
	switch c := c.(type) {
	case all:
		return iceberg.AlwaysTrue{}
	case none:
		return iceberg.AlwaysFalse{}
	case group:
		out := pruning(c.kids[0], partitions)
		for _, kid := range c.kids[1:] {
			if next := pruning(kid, partitions); c.or {
				out = iceberg.NewOr(out, next)
			} else {
				out = iceberg.NewAnd(out, next)
			}
		}
		return out
	}
	l := c.(*leaf)
	var out iceberg.BooleanExpression = iceberg.AlwaysTrue{}
	if _, ok := kindOfBound(l.field).(steps); !ok {
		return out
	}
	name, transforms := partitions(l.field.id())
	for _, t := range transforms {
		p := partitioned{l, iceberg.NewUnboundTransform(t, iceberg.Reference(name)), t}
		out = iceberg.NewAnd(out, p.pruning())
	}
	return out
}

// partitioned is a leaf asked of the partition values that a transform makes of its field.
type partitioned struct {
	*leaf
	term      iceberg.UnboundTerm
	transform iceberg.Transform
}

func (p partitioned) pruning() iceberg.BooleanExpression {
	_, same := p.transform.(iceberg.IdentityTransform)
	_, hashed := p.transform.(iceberg.BucketTransform)
	unknown := iceberg.AlwaysTrue{}
	switch {
	case p.op == opIsNull:
		return iceberg.IsNull(p.term)
	case p.op == opGreaterEq && !hashed:
		return p.ask(iceberg.OpGTEQ, p.value.whole)
	case p.op == opLess && same:
		return p.ask(iceberg.OpLT, p.value.whole)
	case p.op == opLess && !hashed:
		return p.ask(iceberg.OpLTEQ, new(big.Int).Sub(p.value.whole, one))
	case p.op == opEqual:
		return p.ask(iceberg.OpEQ, p.value.whole)
	case p.op == opIn && len(p.set) <= 100:
		var out iceberg.BooleanExpression = iceberg.AlwaysFalse{}
		for _, v := range p.set {
			out = iceberg.NewOr(out, p.ask(iceberg.OpEQ, v.whole))
		}
		return out
	}
	return unknown
}

// year9999 is its end in microseconds since 1970; nanoseconds do not go that far.
var year9999 = big.NewInt(253402300800 * 1_000_000)

// ask compares the partition value with that of v.
func (p partitioned) ask(o iceberg.Operation, v *big.Int) iceberg.BooleanExpression {
	switch p.transform.(type) {
	case iceberg.YearTransform, iceberg.MonthTransform, iceberg.DayTransform, iceberg.HourTransform:
		if v.CmpAbs(year9999) > 0 || v.Sign() < 0 && o != iceberg.OpGTEQ {
			return iceberg.AlwaysTrue{}
		}
	}
	literal := iceberg.Optional[iceberg.Literal]{Val: libraryLiteral(p.field.typ, v), Valid: true}
	as := p.transform.Apply(literal)
	if !as.Valid {
		return iceberg.AlwaysTrue{}
	}
	return iceberg.LiteralPredicate(o, p.term, as.Val)
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
