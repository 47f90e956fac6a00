package plan

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A Projector applies a plan to record batches of one Arrow schema. It may be used by several
// goroutines at once.
type Projector struct {
	source, target *arrow.Schema
	columns        []slot
	onError        string // a policy for values that do not fit
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
	var zone *time.Location
	if z := p.Settings.AssumeTimezone; z != "" {
		var err error
		if zone, err = parseZone(z); err != nil {
			return nil, err
		}
	}
	slots, err := compiler{zone}.fields(p.Columns, src.Fields(), target)
	if err != nil {
		return nil, err
	}
	return &Projector{source: src, target: arrow.NewSchema(target, nil), columns: slots, mem: mem,
		onError: p.CastPolicy()}, nil
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
// Made or Empty where of none. A required one may have the nulls of its source, which Project would refuse.
func (p *Projector) Origins() []int {
	out := make([]int, len(p.columns))
	for i, s := range p.columns {
		step := s.step
		if r, ok := step.(requiredStep); ok {
			step = r.then // whoever takes the values looks for nulls
		}
		switch step.(type) {
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
// not fit is a *ValueError, but with PolicyNull, which writes null in its place where the column may
// hold it.
func (p *Projector) Project(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	out, o, err := p.ProjectRows(rec)
	if err != nil {
		return nil, err
	}
	if len(o.Rejects) > 0 {
		out.Release()
		return nil, o.Rejects[0]
	}
	return out, nil
}

// An Outcome is what became of values that did not fit.
type Outcome struct {
	Rejects []*ValueError // with PolicyReject: the rows left out, in order, each with its first reason
	Nulled  int64         // with PolicyNull: values that null took the place of
}

// ProjectRows is Project that with PolicyReject leaves out the rows that do not fit, and names them.
func (p *Projector) ProjectRows(rec arrow.RecordBatch) (arrow.RecordBatch, Outcome, error) {
	if rec.Schema() != p.source && !rec.Schema().Equal(p.source) {
		return nil, Outcome{}, fmt.Errorf("project a record batch: its schema is not the stream's")
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
			return nil, Outcome{}, err
		}
		columns = append(columns, c)
		r.failed = firstOfRows(r.failed)
	}
	o := Outcome{Rejects: r.failed, Nulled: r.nulled}
	whole := array.NewRecordBatch(p.target, columns, rec.NumRows())
	if len(o.Rejects) == 0 {
		return whole, o, nil
	}
	defer whole.Release()
	left, err := without(whole, o.Rejects, p.mem)
	return left, o, err
}

// firstOfRows keeps the first of each row's failures, in the order of rows.
func firstOfRows(failed []*ValueError) []*ValueError {
	if len(failed) < 2 {
		return failed
	}
	slices.SortStableFunc(failed, func(a, b *ValueError) int { return cmp.Compare(a.Row, b.Row) })
	return slices.CompactFunc(failed, func(a, b *ValueError) bool { return a.Row == b.Row })
}

// without returns a record batch less some rows.
func without(rec arrow.RecordBatch, rejects []*ValueError, mem memory.Allocator) (arrow.RecordBatch, error) {
	var runs [][2]int64
	at := int64(0)
	for _, e := range rejects {
		if e.Row > at {
			runs = append(runs, [2]int64{at, e.Row})
		}
		at = e.Row + 1
	}
	if at < rec.NumRows() || len(runs) == 0 {
		runs = append(runs, [2]int64{at, rec.NumRows()})
	}
	if len(runs) == 1 {
		return rec.NewSlice(runs[0][0], runs[0][1]), nil
	}
	rows := rec.NumRows() - int64(len(rejects))
	columns := make([]arrow.Array, 0, rec.NumCols())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i := range int(rec.NumCols()) {
		c, err := joined(rec.Column(i), runs, mem)
		if err != nil {
			return nil, fmt.Errorf("leave out rows that do not fit: column %q: %w", rec.ColumnName(i), err)
		}
		columns = append(columns, c)
	}
	return array.NewRecordBatch(rec.Schema(), columns, rows), nil
}

// joined puts runs of an array one behind the other.
func joined(a arrow.Array, runs [][2]int64, mem memory.Allocator) (arrow.Array, error) {
	parts := make([]arrow.Array, len(runs))
	for i, r := range runs {
		parts[i] = array.NewSlice(a, r[0], r[1])
		defer parts[i].Release()
	}
	return array.Concatenate(parts, mem)
}

// A run is one projection of one record batch.
type run struct {
	p      *Projector
	failed []*ValueError // with PolicyReject
	nulled int64
}

// fail is told of a value that does not fit, and says whether that ends the projection.
func (r *run) fail(at site, i int, value func() string, rule string) error {
	if r.p.onError == PolicyNull && at.nullable {
		r.nulled++
		return nil
	}
	e := &ValueError{Column: at.path, Path: at.plain, Row: int64(i), Value: value(), Rule: rule}
	if r.p.onError != PolicyReject {
		return e
	}
	r.failed = append(r.failed, e)
	return nil
}

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

// A ValueError is a value that the destination's column cannot hold.
type ValueError struct {
	Column string // its path in the destination, in quotes
	Path   string // the same in the grammar of paths
	Row    int64  // in the record batch, from 0
	Value  string
	Rule   string // what it breaks
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("row %d of the record batch: %s", e.Row, e.Reason())
}

// Reason says what is wrong, wherever the row is.
func (e *ValueError) Reason() string {
	return fmt.Sprintf("column %s: %s %s", e.Column, e.Value, e.Rule)
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
