package filter

import (
	"reflect"
	"testing"
)

// FuzzParse holds of every text: it is taken or refused with a place inside it; what is taken is
// printed so that it is read back as the same expression; and bound, its canonical form is its own.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"l > 5 AND NOT (s LIKE 'ab%' OR st.in.y IS NULL)", `"a.b" IN (1, 2.5, NULL)`, "d NOT BETWEEN -1e3 AND 'NaN'",
		"TRUE = b", "u = uuid 'f79c3e09-677c-4bbd-a479-3f349cb785e7'", "bin >= X'00' or fx < x'ffff00'", "tz < '2024-01-01T00:00:00+01:30'",
		"day = '+10000-01-01'", "big <> 0.00000000001", "NULL or not false", "tod in ('00:00','23:59:59.999999')", "s > 'it''s'", `{"type":"eq","term":"l","value":5}`,
	} {
		f.Add(seed)
	}
	schema := everyType()
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := ParseJSON([]byte(text)); err == nil {
			checkExpr(t, e, schemaBinder(e.Bind(schema)))
		}
		e, err := Parse(text)
		if err != nil {
			wrong, ok := err.(*Error)
			if !ok || wrong.Reason == "" || wrong.At < 0 || wrong.At > len(wrong.Text) || wrong.To < wrong.At || wrong.To > len(wrong.Text) {
				t.Fatalf("%q: error %#v", text, err)
			}
			wrong.Caret()
			return
		}
		again, err := Parse(e.String())
		if err != nil {
			t.Fatalf("%q prints as %q: %v", text, e, err)
		}
		if !reflect.DeepEqual(placeless(e.root), placeless(again.root)) {
			t.Fatalf("%q prints as %q, which is another expression", text, e)
		}
		checkExpr(t, e, schemaBinder(e.Bind(schema)))
	})
}

type binding struct {
	bound *Bound
	err   error
}

func schemaBinder(b *Bound, err error) binding { return binding{b, err} }

func checkExpr(t *testing.T, e *Expr, got binding) {
	if got.err != nil {
		wrong := got.err.(*Error)
		if wrong.At < 0 || wrong.To < wrong.At || wrong.To > len(wrong.Text) {
			t.Fatalf("%q: error %#v", e, wrong)
		}
		wrong.Caret()
		return
	}
	canonical, err := Parse(got.bound.String())
	if err != nil {
		t.Fatalf("%q has the canonical form %q: %v", e, got.bound, err)
	}
	again, err := canonical.Bind(everyType())
	if err != nil {
		t.Fatalf("%q has the canonical form %q: %v", e, got.bound, err)
	}
	if again.String() != got.bound.String() || !reflect.DeepEqual(got.bound.root, again.root) {
		t.Fatalf("%q has the canonical form %q, whose own is %q", e, got.bound, again)
	}
}

// placeless is the node without places in the text.
func placeless(n node) node {
	switch n := n.(type) {
	case not:
		return not{placeless(n.kid)}
	case logic:
		kids := make([]node, len(n.kids))
		for i, kid := range n.kids {
			kids[i] = placeless(kid)
		}
		return logic{n.or, kids}
	case predicate:
		n.at, n.column.at = span{}, span{}
		literals := make([]literal, len(n.literals))
		for i, l := range n.literals {
			l.at = span{}
			literals[i] = l
		}
		n.literals = literals
		return n
	}
	return n
}
