package datafile

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/rows"
)

// Takes reports whether Take can write the rows of a part, whose columns are those of the table's schema; and
// why it cannot copy them as they are, where that is required. It may be called while other methods are.
func (w *Writer) Takes(p *rows.Part) (ok bool, refused error) {
	if _, err := w.plan.copying(p); err == nil {
		return true, nil
	} else if w.plan.cfg.Copy.Mode == CopyRequire {
		return false, err
	}
	source, ok := p.File.(*Source)
	if !ok || !w.streams() || len(p.Leaves) != len(w.plan.shape.fields) {
		return false, nil
	}
	group := source.Reader.MetaData().RowGroup(p.Ordinal)
	for i, n := range w.plan.shape.fields {
		if !n.takes(p.Leaves[i], source.Reader.MetaData(), group) {
			return false, nil
		}
	}
	return true, nil
}

// takes reports whether a field's values can be taken from a leaf of a row group.
func (n *node) takes(leaf int, meta *metadata.FileMetaData, group *metadata.RowGroupMetaData) bool {
	if leaf == rows.Nulls {
		return !n.field.Required
	}
	if leaf < 0 || n.kind != leafNode || !n.stored {
		return false
	}
	col := meta.Schema.Column(leaf)
	if _, ok := convertible(col, n.field.Type.(iceberg.PrimitiveType)); !ok {
		return false
	}
	if !n.field.Required || col.MaxDefinitionLevel() == 0 {
		return true
	}
	// Nulls are refused with their place, which the ordinary way knows.
	chunk, err := group.ColumnChunk(leaf)
	if err != nil {
		return false
	}
	stats, err := chunk.Statistics()
	return err == nil && stats != nil && stats.HasNullCount() && stats.NullCount() == 0
}

// Take adds the rows of a part that the Writer takes (Takes): their values go from the file's pages into new
// ones, a column at a time, without record batches in between; or, where it can be and is asked for
// (Config.Copy), the pages are copied as they are. Parts of one row group are taken in order. It borrows the part, and
// holds its file as long as it needs it. A value that the table cannot hold, and a file that is damaged, show later, as
// the failure of a disk does.
func (w *Writer) Take(ctx context.Context, p *rows.Part) error {
	if w.failed != nil {
		return w.failed
	}
	if err := w.take(ctx, p); err != nil {
		w.failed = err
		return err
	}
	return nil
}

func (w *Writer) take(ctx context.Context, p *rows.Part) error {
	if w.batch != nil {
		if err := w.batch.pool.failure(); err != nil {
			return err
		}
	}
	if c, err := w.plan.copying(p); err == nil {
		w.leave()
		w.start()
		w.batch.copy(c, p)
		return ctx.Err()
	}
	if !w.streams() {
		return fmt.Errorf("file %q, row group %d: its rows are to be clustered, and cannot be taken", p.Path, p.Ordinal)
	}
	t := w.taking
	if t == nil || t.source != p.File || t.group != p.Ordinal || t.next != p.From {
		w.leave()
		t = newTaking(w.plan, p)
		w.taking = t
	}
	w.start()
	for t.next < p.To {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.batch.take(t, p.To-t.next)
	}
	if t.left == 0 {
		w.leave()
	}
	return nil
}

// leave ends the taking of a row group: it is over when all that was queued of it is done.
func (w *Writer) leave() {
	if w.taking != nil {
		w.taking.drop()
		w.taking = nil
	}
}

// A taking is a row group whose leaves are read by those who encode them. It is counted: hold and drop.
type taking struct {
	source  *Source
	group   int
	mask    rows.Mask // of the row group: what is taken of it
	next    int64     // row that is taken next
	queued  int64     // row behind the last task's
	left    int64     // rows to take from next on
	perRow  int64     // bytes of a row as Parquet counts them uncompressed
	columns []*leafReader
	refs    atomic.Int64
}

// newTaking returns the taking of a part's row group, from the part on, that its caller holds once.
func newTaking(p *plan, part *rows.Part) *taking {
	t := &taking{source: part.File.(*Source), group: part.Ordinal, mask: part.Mask, next: part.From, queued: part.From}
	t.left = t.mask.Count(part.From, part.GroupRows)
	t.refs.Store(1)
	t.source.Retain()
	meta := t.source.Reader.MetaData()
	group := meta.RowGroup(part.Ordinal)
	size := int64(0)
	for _, n := range p.shape.columns {
		leaf := part.Leaves[n.index]
		if leaf < 0 { // nulls
			t.columns = append(t.columns, nil)
			continue
		}
		typ := n.field.Type.(iceberg.PrimitiveType)
		to, _ := convertible(meta.Schema.Column(leaf), typ)
		var most decimalBound
		if d, ok := typ.(iceberg.DecimalType); ok {
			most = boundOf(d.Precision(), d.Scale())
		}
		r := newLeafReader(part, leaf, to, most)
		if chunk, err := group.ColumnChunk(leaf); err == nil {
			size += chunk.TotalUncompressedSize()
			r.hint = hintOf(chunk)
		}
		t.columns = append(t.columns, r)
	}
	t.perRow = max(1, size/max(1, part.GroupRows))
	return t
}

func (t *taking) hold() { t.refs.Add(1) }

func (t *taking) drop() {
	if t.refs.Add(-1) > 0 {
		return
	}
	for _, r := range t.columns {
		if r != nil {
			r.close()
		}
	}
	t.source.Release()
}

// fail tells those who wait for a column that they wait in vain.
func (t *taking) fail(column int, err error) {
	if r := t.columns[column]; r != nil {
		r.fail(err)
	}
}

// A hint is what a chunk of the source teaches about its values.
type hint int8

const (
	noHint       hint = iota
	noDictionary      // its writer gave a dictionary up
)

func hintOf(chunk *metadata.ColumnChunkMetaData) hint {
	if !chunk.HasDictionaryPage() {
		return noHint
	}
	data := func(s metadata.PageEncodingStats) bool {
		return s.PageType.String() != "DICTIONARY_PAGE" && s.Encoding == parquet.Encodings.Plain
	}
	if slices.ContainsFunc(chunk.EncodingStats(), data) {
		return noDictionary
	}
	return noHint
}

// take queues what is taken of the next rows of t, n at most, for the open row group.
func (b *batch) take(t *taking, n int64) {
	if b.open == nil {
		b.open, b.openBytes = &rowGroup{part: b.plan.part.whole()}, 0
	}
	n = min(n, pieceRows, max(1, (b.limit-b.openBytes)/t.perRow))
	k := b.taken(t, b.all, n)
	b.open.rows += k
	if b.openBytes += k * t.perRow; b.openBytes >= b.limit {
		b.endGroup(false)
	}
}

// taken queues what is taken of the next n rows of t for some columns, and says how many rows that is.
func (b *batch) taken(t *taking, columns []int, n int64) int64 {
	k := t.mask.Count(t.next, t.next+n)
	t.next += n
	if k == 0 {
		return 0
	}
	for _, i := range columns {
		t.hold()
		b.pool.submit(i, task{from: t, column: i, first: t.queued, n: t.next - t.queued, kept: k, weight: 1 + k*t.perRow/int64(len(columns))})
	}
	t.queued = t.next
	t.left -= k
	return k
}

// take encodes n rows of a flat leaf into the open chunk, which it opens if there is none: those that the leaf's mask
// has, of which there are kept. nil stands for a column of nulls, nested or not.
func (e *Encoder) take(r *leafReader, first, n, kept int64, d *decoded) error {
	for _, l := range e.leaves {
		if l.w != nil {
			continue
		}
		l.hint = noHint
		if r != nil {
			l.hint = r.hint
		}
		if err := l.open(); err != nil {
			return err
		}
	}
	e.rows += kept
	if r == nil {
		return e.nulls(kept, d)
	}
	e.taken += kept
	l := e.leaves[0]
	required := e.node.field.Required
	return r.take(first, n, d, func(d *decoded) error {
		switch {
		case required && d.values < d.rows:
			return fmt.Errorf("column %q: null where a value is required", l.leaf.Name)
		case required:
			return l.putDecoded(d, nil, nil)
		case d.def != nil:
			return l.putDecoded(d, d.def, nil)
		}
		for len(e.ones) < d.rows {
			e.ones = append(e.ones, 1)
		}
		return l.putDecoded(d, e.ones[:d.rows], nil)
	})
}

// nulls encodes n rows of null.
func (e *Encoder) nulls(n int64, d *decoded) error {
	d.values = 0
	zeros := make([]int16, n)
	for _, l := range e.leaves {
		rep := zeros
		if l.leaf.Col.MaxRepetitionLevel() == 0 {
			rep = nil
		}
		if err := l.putDecoded(d, zeros, rep); err != nil {
			return err
		}
	}
	return nil
}
