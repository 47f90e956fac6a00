package plan

import (
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A Projector applies a plan to record batches of one Arrow schema. It may be used by several
// goroutines at once.
type Projector struct {
	source, target *arrow.Schema
	columns        []slot
	mem            memory.Allocator
	zeros          atomic.Pointer[[]byte]
}

// A slot says where a field of a struct or of a record batch comes from: child from through step, or, if
// from is -1, fill.
type slot struct {
	from int
	step step
	fill fill
}

// Projector makes a projector for record batches of schema src, whose columns are matched with the
// plan's source columns by name. Foreign streams say the same things in other Arrow types; those
// that hold the same values are brought to the plan's types: large strings, binaries and lists,
// views, dictionaries, smaller and unsigned integers, half floats, other units of times and
// timestamps, other time zones (the instant is kept, case 33), small decimals. What does not fit is
// an error of Project; a type that never does is an error here.
func (p *Plan) Projector(src *arrow.Schema, mem memory.Allocator) (*Projector, error) {
	target := make([]arrow.Field, len(p.Columns))
	for i, c := range p.Columns {
		target[i] = arrowField(c.Target)
	}
	slots, err := compileFields(p.Columns, src.Fields(), target)
	if err != nil {
		return nil, err
	}
	return &Projector{source: src, target: arrow.NewSchema(target, nil), columns: slots, mem: mem}, nil
}

// Schema returns the Arrow schema of projected record batches: the one that iceberg-go gives the
// plan's target, with field IDs where they are known.
func (p *Projector) Schema() *arrow.Schema { return p.target }

// Where a target column's values come from, when from no source column as they are.
const (
	Made  = -1 // they are made: a cast, a default, a struct of other fields
	Empty = -2 // every value is null
)

// Origins says for each target column of which source column it has the values, be it promoted or not;
// Made or Empty where of none.
func (p *Projector) Origins() []int {
	out := make([]int, len(p.columns))
	for i, s := range p.columns {
		switch s.step.(type) {
		case nil, relabel, *widenStep[int32, int64], *widenStep[float32, float64]:
			out[i] = s.from
		default:
			out[i] = Made
		}
		if s.from < 0 {
			out[i] = Made
			if s.fill.null {
				out[i] = Empty
			}
		}
	}
	return out
}

// Project returns rec as the destination wants it. It borrows rec; the caller owns the result and
// releases it. Memory of columns that are taken as they are is shared with rec. A value that does
// not fit is a *ValueError.
func (p *Projector) Project(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	if rec.Schema() != p.source && !rec.Schema().Equal(p.source) {
		return nil, fmt.Errorf("project a record batch: its schema is not the stream's")
	}
	r := &run{p: p}
	columns := make([]arrow.Array, 0, len(p.columns))
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for _, s := range p.columns {
		c, err := r.column(s, rec)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return array.NewRecordBatch(p.target, columns, rec.NumRows()), nil
}

// A run is one projection of one record batch.
type run struct{ p *Projector }

func (r *run) column(s slot, rec arrow.RecordBatch) (arrow.Array, error) {
	if s.from < 0 {
		data, err := s.fill.make(r, int(rec.NumRows()))
		return toArray(data, err)
	}
	in := rec.Column(s.from)
	if s.step == nil {
		in.Retain()
		return in, nil
	}
	data, err := s.step.do(r, in.Data(), nil)
	return toArray(data, err)
}

// toArray gives data away to an array.
func toArray(data arrow.ArrayData, err error) (arrow.Array, error) {
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

// buffer returns a new buffer of n bytes, which are not cleared.
func (r *run) buffer(n int) *memory.Buffer {
	b := memory.NewResizableBuffer(r.p.mem)
	b.Resize(n)
	return b
}

// zeros returns a buffer of n zero bytes that all columns and record batches share.
func (r *run) zeros(n int) *memory.Buffer {
	z := r.p.zeros.Load()
	if z == nil || len(*z) < n {
		fresh := make([]byte, max(n, 1<<12))
		z = &fresh
		r.p.zeros.Store(z)
	}
	return memory.NewBufferBytes((*z)[:n:n])
}

// A ValueError is a value that the destination's type cannot hold.
type ValueError struct {
	Column string // its path in the destination
	Row    int64  // in the record batch, from 0
	Value  string
	Rule   string // what it breaks
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("row %d of the record batch: column %s: %s %s", e.Row, e.Column, e.Value, e.Rule)
}

// A step makes the data of a target field from that of its source field, of the same length. The
// caller owns what it returns, and releases in itself. Slots whose bit in dead is set are inside
// something that is null: their values do not count; nil means none. The row of a ValueError counts
// the slots of in.
type step interface {
	do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error)
	// checks tells whether do can find a value that does not fit.
	checks() bool
}

// A bitmap is a set of slots, from bit 0 on.
type bitmap []byte

// chain does one step after another.
type chain struct{ first, then step }

func (c chain) checks() bool { return c.first.checks() || c.then.checks() }

func (c chain) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	mid, err := c.first.do(r, in, dead)
	if err != nil {
		return nil, err
	}
	defer mid.Release()
	return c.then.do(r, mid, dead)
}

func chained(first, then step) step {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return chain{first, then}
}
