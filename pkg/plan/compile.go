package plan

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// A compiler makes the steps of a plan.
type compiler struct{ zone *time.Location } // what --assume-timezone says; nil if nothing

// fields finds each column's field by name and compiles its step.
func (z compiler) fields(columns []Column, source, target []arrow.Field) ([]slot, error) {
	byName := make(map[string]int, len(source))
	for i, f := range source {
		if _, ok := byName[f.Name]; ok {
			byName[f.Name] = -1
			continue
		}
		byName[f.Name] = i
	}
	slots := make([]slot, len(columns))
	for i := range columns {
		c := &columns[i]
		if c.Action.fills() {
			f, err := compileFill(c, target[i].Type)
			if err != nil {
				return nil, err
			}
			slots[i] = slot{from: -1, fill: f}
			continue
		}
		from, ok := byName[c.Source[len(c.Source)-1]]
		switch {
		case !ok:
			return nil, fmt.Errorf("column %s: the stream has no column %s", quote(c.Path), quote(c.Source))
		case from < 0:
			return nil, fmt.Errorf("column %s: the stream has the column %s twice", quote(c.Path), quote(c.Source))
		}
		st, err := z.compile(c, source[from], target[i].Type)
		if err != nil {
			return nil, err
		}
		slots[i] = slot{from: from, step: st}
	}
	return slots, nil
}

// compile returns the step from an Arrow field to a column; nil takes it as it is.
func (z compiler) compile(c *Column, f arrow.Field, target arrow.DataType) (step, error) {
	st, err := z.value(c, f, target)
	if err == nil && c.Target.Required && !c.SourceRequired {
		st = requiredStep{then: st, at: siteOf(c)}
	}
	return st, err
}

// value returns the step to a column's target type, whether null is allowed or not.
func (z compiler) value(c *Column, f arrow.Field, target arrow.DataType) (step, error) {
	switch encoded := f.Type.(type) {
	case *arrow.DictionaryType:
		return z.decoded(c, f, encoded.ValueType, target)
	case *arrow.RunEndEncodedType:
		return z.decoded(c, f, encoded.Encoded(), target)
	case *arrow.NullType:
		return nullStep(c, target)
	}
	if c.SourceType != nil {
		return compileLeaf(c, f, target, z.zone)
	}
	switch to := target.(type) {
	case *arrow.StructType:
		from, ok := f.Type.(*arrow.StructType)
		if !ok {
			return nil, refuseArrow(c, f)
		}
		slots, err := z.fields(c.Fields, from.Fields(), to.Fields())
		if err != nil {
			return nil, err
		}
		return structOf(to, from, slots), nil
	case *arrow.MapType:
		from, ok := f.Type.(*arrow.MapType)
		if !ok {
			return nil, refuseArrow(c, f)
		}
		return z.mapOf(c, from, to)
	case *arrow.ListType:
		from, ok := f.Type.(arrow.ListLikeType)
		if _, isMap := f.Type.(*arrow.MapType); !ok || isMap {
			return nil, refuseArrow(c, f)
		}
		return z.list(c, f, from, to)
	}
	return nil, refuseArrow(c, f)
}

func (z compiler) list(c *Column, f arrow.Field, from arrow.ListLikeType, to *arrow.ListType) (step, error) {
	l := &listStep{to: to, path: quote(c.Path)}
	switch from := from.(type) {
	case *arrow.ListType:
	case *arrow.LargeListType:
		l.wide = true
	case *arrow.FixedSizeListType:
		l.width = int(from.Len())
		l.fixed = true
	default:
		return nil, refuseArrow(c, f)
	}
	var err error
	if l.element, err = z.compile(&c.Fields[0], from.ElemField(), to.Elem()); err != nil {
		return nil, err
	}
	if isSame(l.element) && !l.wide && !l.fixed {
		return sameLayout(f.Type, to), nil
	}
	return l, nil
}

// mapOf matches keys and values of maps by their place, since names differ between producers.
func (z compiler) mapOf(c *Column, from, to *arrow.MapType) (step, error) {
	key, err := z.compile(&c.Fields[0], from.KeyField(), to.KeyType())
	if err != nil {
		return nil, err
	}
	value, err := z.compile(&c.Fields[1], from.ItemField(), to.ItemType())
	if err != nil {
		return nil, err
	}
	if isSame(key) && isSame(value) {
		return sameLayout(from, to), nil
	}
	entries := structOf(to.Elem().(*arrow.StructType), from.Elem().(*arrow.StructType),
		[]slot{{from: 0, step: key}, {from: 1, step: value}})
	return &listStep{to: to, path: quote(c.Path), element: entries, entries: true}, nil
}

// structOf returns the step that makes a struct of slots.
func structOf(to, from *arrow.StructType, slots []slot) step {
	same := to.NumFields() == from.NumFields()
	s := &structStep{to: to, slots: slots}
	for i, f := range slots {
		same = same && f.from == i && isSame(f.step)
		s.check = s.check || (f.step != nil && f.step.checks())
	}
	if same {
		return sameLayout(from, to)
	}
	return s
}

// isSame tells whether a step leaves the data alone.
func isSame(s step) bool {
	_, ok := s.(relabel)
	return s == nil || ok
}

// sameLayout returns the step between types that differ in names and metadata at most.
func sameLayout(from, to arrow.DataType) step {
	if from == to || arrow.TypeEqual(from, to, arrow.CheckMetadata()) {
		return nil
	}
	return relabel{to}
}

func refuseArrow(c *Column, f arrow.Field) error {
	want := c.Target.Type
	if c.SourceType != nil {
		want = c.SourceType
	}
	return fmt.Errorf("column %s: the stream's column %s has the Arrow type %s, which is not read as %s; cast it upstream",
		quote(c.Path), quote(c.Source), f.Type, kind(want))
}
