package datafile

import (
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// gathered is rows of one or more record batches, a column at a time. Columns of more than one are
// joined when they are first asked for, by whoever asks. It is counted: hold and drop.
type gathered struct {
	rows, bytes int64
	mem         memory.Allocator
	columns     []joint
	refs        atomic.Int64
}

type joint struct {
	once   sync.Once
	parts  []arrow.Array
	joined arrow.Array
	err    error
}

// gather retains the batches' columns. Its caller holds it once.
func gather(mem memory.Allocator, batches []arrow.RecordBatch) *gathered {
	g := &gathered{mem: mem, columns: make([]joint, batches[0].NumCols())}
	g.refs.Store(1)
	for _, b := range batches {
		g.rows += b.NumRows()
		g.bytes += sizeOf(b)
		for i, c := range b.Columns() {
			c.Retain()
			c.NullN() // counted and kept now, while the array has one user
			g.columns[i].parts = append(g.columns[i].parts, c)
		}
	}
	return g
}

// column gives a column of all rows, which g keeps.
func (g *gathered) column(i int) (arrow.Array, error) {
	j := &g.columns[i]
	j.once.Do(func() {
		if len(j.parts) == 1 {
			j.joined = j.parts[0]
			j.joined.Retain()
		} else {
			j.joined, j.err = array.Concatenate(j.parts, g.mem)
		}
		releaseAll(j.parts)
		j.parts = nil
	})
	return j.joined, j.err
}

func (g *gathered) hold() { g.refs.Add(1) }

func (g *gathered) drop() {
	if g.refs.Add(-1) > 0 {
		return
	}
	for i := range g.columns {
		releaseAll(g.columns[i].parts)
		if a := g.columns[i].joined; a != nil {
			a.Release()
		}
	}
}

func releaseAll(arrs []arrow.Array) {
	for _, a := range arrs {
		a.Release()
	}
}

// sizeOf is about how many bytes the rows of a record batch take, whatever larger buffers they are a
// slice of.
func sizeOf(b arrow.RecordBatch) int64 {
	n := int64(0)
	for _, c := range b.Columns() {
		n += arraySize(c, 0, c.Len())
	}
	return n
}

// arraySize is about how many bytes the values from and to of an array take.
func arraySize(arr arrow.Array, from, to int) int64 {
	if to <= from {
		return 0
	}
	n := int64(to - from)
	switch a := storage(arr).(type) {
	case *array.String:
		o := a.ValueOffsets()
		return 4*n + int64(o[to]-o[from])
	case *array.Binary:
		o := a.ValueOffsets()
		return 4*n + int64(o[to]-o[from])
	case *array.LargeString:
		o := a.ValueOffsets()
		return 8*n + o[to] - o[from]
	case *array.LargeBinary:
		o := a.ValueOffsets()
		return 8*n + o[to] - o[from]
	case *array.Struct:
		sum := n / 8
		for i := range a.NumField() {
			sum += arraySize(a.Field(i), from, to)
		}
		return sum
	case *array.Map:
		lo, hi := listRange(a.List, from, to)
		return 4*n + arraySize(a.Keys(), lo, hi) + arraySize(a.Items(), lo, hi)
	case *array.List:
		lo, hi := listRange(a, from, to)
		return 4*n + arraySize(a.ListValues(), lo, hi)
	}
	if t, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
		return n*int64(t.BitWidth())/8 + 1
	}
	return n / 8
}

func listRange(l *array.List, from, to int) (int, int) {
	lo, _ := l.ValueOffsets(from)
	_, hi := l.ValueOffsets(to - 1)
	return int(lo), int(hi)
}
