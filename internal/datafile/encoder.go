package datafile

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// An Encoder makes the chunks of one top-level column of a Shape out of arrays: what comes by push,
// from record batches. One goroutine at a time uses it; those of different columns do not meet.
type Encoder struct {
	node   *node
	leaves []*leafEncoder
	first  int   // of leaves, in Shape.Leaves
	rows   int64 // in the open chunks
	taken  int64 // of them, those that came from the pages of a file

	ones, def []int16
	idx       []int32
}

// NewEncoder returns an encoder of the i-th column that the shape stores.
func NewEncoder(s *Shape, i int) *Encoder {
	e := &Encoder{node: s.columns[i], first: -1}
	e.collect(s, e.node)
	return e
}

func (e *Encoder) collect(s *Shape, n *node) {
	if !n.stored {
		return
	}
	if n.kind == leafNode {
		if e.first < 0 {
			e.first = n.leaf
		}
		e.leaves = append(e.leaves, &leafEncoder{leaf: &s.Leaves[n.leaf], index: n.leaf})
		return
	}
	for _, k := range n.kids {
		e.collect(s, k)
	}
}

// lend gives the buffer in which pages are compressed, until it is taken back by nil; without one each chunk has its
// own. A page is written or copied before the next one is compressed.
func (e *Encoder) lend(packed *bytes.Buffer) {
	for _, l := range e.leaves {
		l.packed = packed
	}
}

// Append encodes rows of an array into the open chunks, which it opens if there are none. It keeps
// nothing of the array. The array's values were checked (CheckValues).
func (e *Encoder) append(arr arrow.Array, v span) error {
	for _, l := range e.leaves {
		if l.w == nil {
			l.hint = noHint
			if err := l.open(); err != nil {
				return err
			}
		}
	}
	e.rows += int64(v.n)
	if e.node.kind == leafNode {
		return e.flat(storage(arr), v)
	}
	return shred(e.node, arr, rootSlots(v), func(n *node, arr arrow.Array, s slots) error {
		l := e.leaves[n.leaf-e.first]
		e.idx = e.idx[:0]
		for _, p := range s.idx {
			if p >= 0 {
				e.idx = append(e.idx, p)
			}
		}
		def, rep := s.def, s.rep
		if l.leaf.Col.MaxDefinitionLevel() == 0 {
			def = nil
		}
		if l.leaf.Col.MaxRepetitionLevel() == 0 {
			rep = nil
		}
		return l.put(storage(arr), rowsAt(e.idx), def, rep)
	})
}

// Append is append for consecutive rows.
func (e *Encoder) Append(arr arrow.Array, from, n int) error { return e.append(arr, rowsOf(from, n)) }

// flat is the way of columns without nesting, which most are.
func (e *Encoder) flat(arr arrow.Array, v span) error {
	l := e.leaves[0]
	switch {
	case e.node.field.Required:
		return l.put(arr, v, nil, nil)
	case arr.NullN() == 0:
		for len(e.ones) < v.n {
			e.ones = append(e.ones, 1)
		}
		return l.put(arr, v, e.ones[:v.n], nil)
	}
	def, idx := grow(&e.def, v.n), grow(&e.idx, v.n)
	k := 0
	for i := range def {
		p := v.at(i)
		def[i] = 0
		if arr.IsValid(p) {
			def[i] = 1
			idx[k] = int32(p)
			k++
		}
	}
	return l.put(arr, rowsAt(idx[:k]), def, nil)
}

// storage is the array behind an extension type, such as uuid.
func storage(arr arrow.Array) arrow.Array {
	if x, ok := arr.(array.ExtensionArray); ok {
		return x.Storage()
	}
	return arr
}

// Finish ends the open chunks; each is the caller's to release. Append then opens new ones.
func (e *Encoder) Finish() ([]Chunk, error) {
	out := make([]Chunk, 0, len(e.leaves))
	for _, l := range e.leaves {
		c, err := l.finish(e.rows)
		if err != nil {
			for _, c := range out {
				c.Release()
			}
			e.Discard()
			return nil, err
		}
		c.taken = e.taken
		out = append(out, c)
	}
	e.rows, e.taken = 0, 0
	return out, nil
}

// Discard gives open chunks up.
func (e *Encoder) Discard() {
	for _, l := range e.leaves {
		l.discard()
	}
	e.rows, e.taken = 0, 0
}
