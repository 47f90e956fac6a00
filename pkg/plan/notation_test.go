package plan

import (
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

// schema makes a schema of a short notation: fields "name type", a '!' after the name for required,
// with struct<…>, list<…> and map<…,…>. IDs are given in order from first.
func schema(t testing.TB, first int, text string) *iceberg.Schema {
	t.Helper()
	p := &notation{t: t, text: "struct<" + text + ">", next: first}
	st := p.typ().(*iceberg.StructType)
	if p.text != "" {
		t.Fatalf("%q is left of the schema", p.text)
	}
	return iceberg.NewSchema(1, st.FieldList...)
}

type notation struct {
	t    testing.TB
	text string
	next int
}

func (p *notation) id() int {
	p.next++
	return p.next - 1
}

func (p *notation) take(prefix string) bool {
	p.text = strings.TrimLeft(p.text, " ")
	rest, ok := strings.CutPrefix(p.text, prefix)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *notation) until(stops string) string {
	i := strings.IndexAny(p.text, stops)
	if i < 0 {
		i = len(p.text)
	}
	s := strings.TrimSpace(p.text[:i])
	p.text = p.text[i:]
	return s
}

func (p *notation) typ() iceberg.Type {
	switch {
	case p.take("struct<"):
		st := &iceberg.StructType{}
		for !p.take(">") {
			name := p.until(" !>")
			f := iceberg.NestedField{Name: name, ID: p.id(), Required: p.take("!")}
			f.Type = p.typ()
			st.FieldList = append(st.FieldList, f)
			p.take(",")
		}
		return st
	case p.take("list<"):
		l := &iceberg.ListType{ElementID: p.id(), ElementRequired: p.take("!")}
		l.Element = p.typ()
		p.take(">")
		return l
	case p.take("map<"):
		m := &iceberg.MapType{KeyID: p.id(), ValueID: p.id()}
		m.KeyType = p.typ()
		p.take(",")
		m.ValueRequired = p.take("!")
		m.ValueType = p.typ()
		p.take(">")
		return m
	}
	name := p.until(",>")
	if strings.HasPrefix(name, "decimal(") {
		name += p.until(")") + ")"
		p.take(")")
	}
	typ, err := parseType(name)
	if err != nil {
		p.t.Fatal(err)
	}
	return typ
}
