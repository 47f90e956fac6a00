package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// slots are the entries that a field has in a column chunk so far, on the way down to its leaves:
// repetition and definition level of each, and the place of its value in the field's array, or -1
// where there is none: a null or an empty list above.
type slots struct {
	rep, def []int16
	idx      []int32
}

func rootSlots(v span) slots {
	s := slots{rep: make([]int16, v.n), def: make([]int16, v.n), idx: make([]int32, v.n)}
	for i := range s.idx {
		s.idx[i] = int32(v.at(i))
	}
	return s
}

// shred brings the slots of a field's array to its leaves (Dremel's record shredding, a level at a
// time). visit gets each leaf's array and slots.
func shred(n *node, arr arrow.Array, s slots, visit func(n *node, arr arrow.Array, s slots) error) error {
	if !n.stored {
		return nil
	}
	s = s.present(n, arr)
	switch n.kind {
	case structNode:
		st, ok := arr.(*array.Struct)
		if !ok {
			return mismatch(n, arr)
		}
		for _, k := range n.kids {
			if err := shred(k, st.Field(k.index), s, visit); err != nil {
				return err
			}
		}
		return nil
	case listNode:
		l, ok := arr.(*array.List)
		if !ok {
			return mismatch(n, arr)
		}
		return shred(n.kids[0], l.ListValues(), s.elements(n, l), visit)
	case mapNode:
		m, ok := arr.(*array.Map)
		if !ok {
			return mismatch(n, arr)
		}
		s = s.elements(n, m.List)
		if err := shred(n.kids[0], m.Keys(), s, visit); err != nil {
			return err
		}
		return shred(n.kids[1], m.Items(), s, visit)
	}
	return visit(n, arr, s)
}

func mismatch(n *node, arr arrow.Array) error {
	return fmt.Errorf("column %q: an Arrow %s stands where a %s is due", n.path, arr.DataType(), n.field.Type)
}

// present gives the slots of a field by those of its parent: a null ends here.
func (s slots) present(n *node, arr arrow.Array) slots {
	if n.field.Required {
		return s
	}
	out := slots{rep: s.rep, def: append([]int16(nil), s.def...), idx: s.idx}
	if arr.NullN() == 0 {
		for i, p := range s.idx {
			if p >= 0 {
				out.def[i] = n.def
			}
		}
		return out
	}
	out.idx = append([]int32(nil), s.idx...)
	for i, p := range s.idx {
		switch {
		case p < 0:
		case arr.IsNull(int(p)):
			out.idx[i] = -1
		default:
			out.def[i] = n.def
		}
	}
	return out
}

// elements gives the slots of a list's elements by those of the list: an empty list ends here.
func (s slots) elements(n *node, l *array.List) slots {
	size := len(s.idx)
	for _, p := range s.idx {
		if p >= 0 {
			a, b := l.ValueOffsets(int(p))
			size += max(0, int(b-a)-1)
		}
	}
	out := slots{rep: make([]int16, 0, size), def: make([]int16, 0, size), idx: make([]int32, 0, size)}
	add := func(rep, def int16, p int32) {
		out.rep, out.def, out.idx = append(out.rep, rep), append(out.def, def), append(out.idx, p)
	}
	for i, p := range s.idx {
		if p < 0 {
			add(s.rep[i], s.def[i], -1)
			continue
		}
		a, b := l.ValueOffsets(int(p))
		if a == b {
			add(s.rep[i], n.def, -1)
			continue
		}
		add(s.rep[i], n.def+1, int32(a))
		for e := a + 1; e < b; e++ {
			add(n.rep, n.def+1, int32(e))
		}
	}
	return out
}
