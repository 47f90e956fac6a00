package filter

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
)

// joined joins conditions by OR or AND and brings the result to the canonical form.
func joined(or bool, conditions ...condition) condition {
	var kids []condition
	for _, c := range conditions {
		switch c := c.(type) {
		case all:
			if or {
				return all{}
			}
		case none:
			if !or {
				return none{}
			}
		case group:
			if c.or == or {
				kids = append(kids, c.kids...)
			} else {
				kids = append(kids, c)
			}
		default:
			kids = append(kids, c)
		}
	}
	kids = mergeSets(or, kids)
	for _, kid := range kids {
		if _, ok := kid.(none); ok {
			return none{} // of AND: the sets leave nothing
		}
	}
	kids = mergeBounds(or, kids)
	kids, decided := mergeNulls(or, kids)
	if decided {
		if or {
			return all{}
		}
		return none{}
	}
	kids = sorted(kids)
	switch len(kids) {
	case 0:
		if or {
			return none{}
		}
		return all{}
	case 1:
		return kids[0]
	}
	return group{or, kids}
}

// sorted sorts conditions by the fields they ask about, the lower end of a range before the upper one,
// and drops those that come twice.
func sorted(kids []condition) []condition {
	type keyed struct {
		condition
		field, text string
		upper       int
	}
	list := make([]keyed, len(kids))
	for i, kid := range kids {
		first := leaves(kid)[0]
		list[i] = keyed{condition: kid, field: first.field.text, text: printCondition(kid)}
		if first.op == opLess || first.op == opLessEq {
			list[i].upper = 1
		}
	}
	slices.SortFunc(list, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.field, b.field), cmp.Compare(a.upper, b.upper), cmp.Compare(a.text, b.text))
	})
	list = slices.CompactFunc(list, func(a, b keyed) bool { return a.text == b.text })
	out := make([]condition, len(list))
	for i, k := range list {
		out[i] = k.condition
	}
	return out
}

// mergeSets makes one set of the values that a field is to equal, and one of those that it is not to.
func mergeSets(or bool, kids []condition) []condition {
	kids = mergeSet(kids, opEqual, opIn, opIsNaN, or)
	return mergeSet(kids, opNotEqual, opNotIn, opNotNaN, !or)
}

// mergeSet merges the sets of each field by union or intersection.
func mergeSet(kids []condition, single, several, nan op, union bool) []condition {
	sets := map[string][]*leaf{}
	var out []condition
	var order []string
	for _, kid := range kids {
		l, ok := kid.(*leaf)
		if !ok || l.op != single && l.op != several && l.op != nan {
			out = append(out, kid)
			continue
		}
		if sets[l.field.text] == nil {
			order = append(order, l.field.text)
		}
		sets[l.field.text] = append(sets[l.field.text], l)
	}
	for _, key := range order {
		merged := sets[key]
		f := merged[0].field
		kind := kindOfBound(f)
		values := setOf(merged[0], nan)
		for _, l := range merged[1:] {
			if union {
				values = append(values, setOf(l, nan)...)
				continue
			}
			other := setOf(l, nan)
			values = slices.DeleteFunc(values, func(v value) bool {
				_, both := slices.BinarySearchFunc(other, v, kind.order)
				return !both
			})
		}
		slices.SortFunc(values, kind.order)
		values = slices.CompactFunc(values, func(a, b value) bool { return kind.order(a, b) == 0 })
		out = append(out, setLeaf(f, kind, values, single, several))
	}
	return out
}

// setOf are the values that a leaf asks for or excludes, sorted.
func setOf(l *leaf, nan op) []value {
	switch l.op {
	case nan:
		return []value{{float: math.NaN()}}
	case opIn, opNotIn:
		return slices.Clone(l.set)
	}
	return []value{l.value}
}

// setLeaf is the shortest question for a set.
func setLeaf(f *field, kind kindOf, values []value, single, several op) condition {
	_, truths := f.typ.(iceberg.BooleanType)
	switch {
	case len(values) == 0:
		return sure(f, single == opNotEqual)
	case truths && len(values) == 2:
		return sure(f, single == opEqual)
	case len(values) == 1:
		p := point{value: values[0]}
		if k, ok := kind.(steps); ok {
			p.number = number{values[0].whole, -k.scale}.short()
		}
		return kind.compare(f, single, p)
	}
	return &leaf{field: f, op: several, set: values}
}

// mergeBounds keeps, of comparisons of one field by the same operator, the one that decides.
func mergeBounds(or bool, kids []condition) []condition {
	type key struct {
		field string
		op    op
	}
	kept := map[key]int{}
	var out []condition
	for _, kid := range kids {
		l, ok := kid.(*leaf)
		if !ok || l.op > opGreaterEq {
			out = append(out, kid)
			continue
		}
		k := key{l.field.text, l.op}
		at, seen := kept[k]
		if !seen {
			kept[k] = len(out)
			out = append(out, kid)
			continue
		}
		// AND keeps the least upper end and the greatest lower one, OR the others.
		order := kindOfBound(l.field).order(l.value, out[at].(*leaf).value)
		upper := l.op == opLess || l.op == opLessEq
		if upper != or && order < 0 || upper == or && order > 0 {
			out[at] = kid
		}
	}
	return out
}

// mergeNulls drops what IS NOT NULL says already, and IS NOT NULL where another comparison says it. It
// reports whether IS NULL and IS NOT NULL of one field decide.
func mergeNulls(or bool, kids []condition) (out []condition, decided bool) {
	null, some, asked := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, kid := range kids {
		if l, ok := kid.(*leaf); ok {
			switch l.op {
			case opIsNull:
				null[l.field.text] = true
			case opNotNull:
				some[l.field.text] = true
			default:
				asked[l.field.text] = true
			}
		}
	}
	for _, kid := range kids {
		l, ok := kid.(*leaf)
		if !ok {
			out = append(out, kid)
			continue
		}
		field := l.field.text
		if null[field] && (some[field] || asked[field] && !or) {
			return nil, true
		}
		drops := l.op == opNotNull
		if or {
			drops = l.op != opNotNull && l.op != opIsNull
		}
		if some[field] && asked[field] && drops {
			continue
		}
		out = append(out, kid)
	}
	return out, false
}

func printCondition(c condition) string {
	switch c := c.(type) {
	case all:
		return "TRUE"
	case none:
		return "FALSE"
	case group:
		between := " AND "
		if c.or {
			between = " OR "
		}
		texts := make([]string, len(c.kids))
		for i, kid := range c.kids {
			texts[i] = printCondition(kid)
			if _, ok := kid.(group); ok {
				texts[i] = "(" + texts[i] + ")"
			}
		}
		return strings.Join(texts, between)
	}
	return printLeaf(c.(*leaf))
}

func printLeaf(l *leaf) string {
	kind := kindOfBound(l.field)
	switch l.op {
	case opIsNull, opNotNull, opIsNaN, opNotNaN:
		return l.field.text + " " + l.op.String()
	case opStarts:
		return l.field.text + " LIKE " + quoteText(likePattern(l.value.text))
	case opNotStarts:
		return l.field.text + " NOT LIKE " + quoteText(likePattern(l.value.text))
	case opIn, opNotIn:
		texts := make([]string, len(l.set))
		for i, v := range l.set {
			texts[i] = kind.print(v)
		}
		return l.field.text + " " + l.op.String() + " (" + strings.Join(texts, ", ") + ")"
	}
	return l.field.text + " " + l.op.String() + " " + kind.print(l.value)
}
