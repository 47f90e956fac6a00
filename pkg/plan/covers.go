package plan

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// Covers refuses a source that has columns, or fields of structs, of which the plan does not say what becomes
// of them: a plan that was made before they were there, or for another table. Nothing is left out that nobody
// left out on purpose, unless the plan's policy is to ignore what the destination lacks.
func (p *Plan) Covers(src *arrow.Schema) error {
	if p.Settings.MissingInDest == PolicyIgnore {
		return nil
	}
	known := map[string]bool{} // by path: whether it is left out with all that is in it
	for _, l := range p.LeftOut {
		known[key(l.Path)] = true
	}
	var note func([]Column)
	note = func(columns []Column) {
		for _, c := range columns {
			if len(c.Source) > 0 {
				known[key(c.Source)] = known[key(c.Source)] && len(c.Fields) == 0
			}
			note(c.Fields)
		}
	}
	note(p.Columns)
	return covered(src.Fields(), nil, known)
}

func covered(fields []arrow.Field, outer []string, known map[string]bool) error {
	for _, f := range fields {
		path := join(outer, f.Name)
		left, ok := known[key(path)]
		if !ok {
			return fmt.Errorf("source column %s: the plan does not say what becomes of it; make the plan anew, or leave the column out with --select", quote(path))
		}
		if left {
			continue
		}
		if err := covered(inner(f.Type), path, known); err != nil {
			return err
		}
	}
	return nil
}

// inner are the fields in a nested type, named as paths name them.
func inner(t arrow.DataType) []arrow.Field {
	named := func(name string, f arrow.Field) arrow.Field {
		f.Name = name
		return f
	}
	switch t := t.(type) {
	case *arrow.StructType:
		return t.Fields()
	case *arrow.MapType:
		return []arrow.Field{named("key", t.KeyField()), named("value", t.ItemField())}
	case arrow.ListLikeType:
		return []arrow.Field{named("element", t.ElemField())}
	}
	return nil
}
