package filter

import (
	"slices"

	"github.com/apache/iceberg-go"
)

// A Bound is a condition tied to a schema: what it asks of each column is asked in the column's type.
// It holds no state and may be used by several goroutines.
type Bound struct {
	root condition
	text string
}

// Bind ties the condition to a schema: columns are found by their names, literals are brought to the
// columns' types. A literal that no value of the type equals, such as 3.5 for a long, is no error:
// comparisons with it are decided at once. What it returns as an error is an *Error.
func (e *Expr) Bind(schema *iceberg.Schema) (*Bound, error) {
	b := &binder{text: e.text, schema: schema}
	root, err := b.bind(e.root, false)
	if err != nil {
		return nil, err
	}
	return &Bound{root, printCondition(root)}, nil
}

// String is the canonical form: filters that differ in spelling alone, in the order of what is joined
// by AND or by OR, or in how a comparison is put (x > 3 and NOT (x <= 3) and x >= 4 for a long) have
// the same one. Read by Parse and bound to the same schema it gives the same Bound.
func (b *Bound) String() string { return b.text }

// All reports whether every row is selected whatever it holds.
func (b *Bound) All() bool { _, ok := b.root.(all); return ok }

// None reports whether no row is selected whatever it holds.
func (b *Bound) None() bool { _, ok := b.root.(none); return ok }

// Columns are the field IDs of the top-level columns that must be read to tell which rows are
// selected, in ascending order.
func (b *Bound) Columns() []int {
	var ids []int
	for _, l := range leaves(b.root) {
		ids = append(ids, l.field.ids[0])
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// A condition is what is left of an expression once it is bound: all, none, group or *leaf. There
// are no NOTs in it, so that it is enough to know of each leaf whether it is true.
type condition interface{}

type (
	all   struct{}
	none  struct{}
	group struct {
		or   bool
		kids []condition // two or more, sorted by their texts, none of them all, none or a group with the same or
	}
)

// leaf is a question about one field.
//
// Fields of types with a least step (all but texts, bytes and floats) are asked by <, >=, =, != IN and
// NOT IN alone.
type leaf struct {
	field *field
	op    op
	value value   // of the operators with one
	set   []value // of IN and NOT IN: sorted, two or more
}

func leaves(c condition) []*leaf {
	switch c := c.(type) {
	case *leaf:
		return []*leaf{c}
	case group:
		var out []*leaf
		for _, kid := range c.kids {
			out = append(out, leaves(kid)...)
		}
		return out
	}
	return nil
}

type binder struct {
	text   string
	schema *iceberg.Schema
}

// bind returns what selects the rows for which the node is true or, negated, false.
func (b *binder) bind(n node, negated bool) (condition, error) {
	switch n := n.(type) {
	case not:
		return b.bind(n.kid, !negated)
	case constant:
		if n.truth == isTrue && !negated || n.truth == isFalse && negated {
			return all{}, nil
		}
		return none{}, nil
	case logic:
		kids := make([]condition, len(n.kids))
		for i, kid := range n.kids {
			var err error
			if kids[i], err = b.bind(kid, negated); err != nil {
				return nil, err
			}
		}
		return joined(n.or != negated, kids...), nil
	}
	return b.predicate(n.(predicate), negated)
}

func (b *binder) predicate(p predicate, negated bool) (condition, error) {
	f, err := resolve(b.schema, p.column)
	if err != nil {
		return nil, errorAt(b.text, p.column.at, "%v", err)
	}
	o := p.op
	if negated {
		o = o.opposite()
	}
	t, err := typed(f)
	if err != nil {
		if o == opIsNull || o == opNotNull {
			return nullness(f, o), nil
		}
		return nil, errorAt(b.text, p.column.at, "%v", err)
	}
	switch o {
	case opIsNull, opNotNull:
		return nullness(f, o), nil
	case opIsNaN, opNotNaN:
		if _, ok := t.(floats); !ok {
			if _, ok := t.(nothing); !ok {
				return nil, errorAt(b.text, p.at, "column %s has type %s; only float and double have NaN", quotePath(f.path), typeText(f.typ))
			}
			return none{}, nil
		}
		return &leaf{field: f, op: o}, nil
	case opStarts, opNotStarts:
		return b.starts(f, t, o, p)
	}
	points := make([]point, len(p.literals))
	for i, l := range p.literals {
		if l.kind == nullLiteral {
			continue
		}
		if points[i], err = t.convert(l); err != nil {
			return nil, errorAt(b.text, l.at, "column %s has type %s: %v", quotePath(f.path), typeText(f.typ), err)
		}
	}
	// A comparison with NULL is unknown, and so is its opposite.
	compare := func(o op, i int) condition {
		if p.literals[i].kind == nullLiteral {
			return none{}
		}
		return t.compare(f, o, points[i])
	}
	switch o {
	case opBetween:
		return joined(false, compare(opGreaterEq, 0), compare(opLessEq, 1)), nil
	case opNotBetween:
		return joined(true, compare(opLess, 0), compare(opGreater, 1)), nil
	case opIn, opNotIn:
		kids := make([]condition, len(points))
		for i := range points {
			if o == opIn {
				kids[i] = compare(opEqual, i)
			} else {
				kids[i] = compare(opNotEqual, i)
			}
		}
		return joined(o == opIn, kids...), nil
	}
	return compare(o, 0), nil
}

func (b *binder) starts(f *field, t kindOf, o op, p predicate) (condition, error) {
	l := p.literals[0]
	if _, ok := t.(nothing); ok || l.kind == nullLiteral {
		return none{}, nil
	}
	if _, ok := f.typ.(iceberg.StringType); !ok {
		return nil, errorAt(b.text, p.at, "column %s has type %s; only a string begins with a text", quotePath(f.path), typeText(f.typ))
	}
	if l.kind != textLiteral || l.as != "" {
		return nil, errorAt(b.text, l.at, "column %s is a string, and begins with a text, not with %s", quotePath(f.path), l.show())
	}
	if l.text == "" {
		return sure(f, o == opStarts), nil
	}
	return &leaf{field: f, op: o, value: value{text: l.text}}, nil
}

// nullness is f IS NULL or f IS NOT NULL.
func nullness(f *field, o op) condition {
	if _, ok := f.typ.(iceberg.UnknownType); ok {
		if o == opIsNull {
			return all{}
		}
		return none{}
	}
	return &leaf{field: f, op: o}
}

// sure is a comparison that is the same for every value: unknown for a null all the same.
func sure(f *field, truth bool) condition {
	if truth {
		return &leaf{field: f, op: opNotNull}
	}
	return none{}
}
