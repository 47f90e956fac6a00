package lake

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/pkg/rows"
)

// parts yields the rows of a row group that are had, from row from on, at which the cursor stands, as promises cut
// where batches end. Opened one after the other they read the row group once.
//
// A cursor counts live rows. A span ends behind its last row; live rows that do not pass the filter belong to the
// span behind them, in whatever row group that is.
func (r *run) parts(ctx context.Context, f *openFile, s *selection, at rows.Cursor, from int64, yield func(rows.Span, error) bool) bool {
	pass := &pass{run: r, file: f, group: at.RowGroup, selection: s}
	defer pass.end()
	for left := s.mask.Count(from, s.n); left > 0; {
		room := r.room()
		if room == 0 {
			return true // the limit is reached
		}
		end, k := s.mask.Behind(from, s.n, room)
		span := rows.Span{From: r.at, To: at.Advance(s.live.Count(from, end)), Rows: k, Part: &rows.Part{
			Path: f.src.path, Ordinal: at.RowGroup, GroupRows: s.n, From: from, To: end, Mask: s.mask, File: f.src.file,
			Leaves: f.columns.flat, Nested: f.columns.nested, Known: f.known,
		}}
		span.Part.File.Retain()
		start := at
		r.move(&span)
		left -= k
		if left == 0 && r.follows(at.File, at.RowGroup) {
			span.EndsBatch, r.inBatch = true, 0
		}
		span.Read = func(ctx context.Context) iter.Seq2[rows.Span, error] {
			return pass.read(ctx, span, start)
		}
		at, from = span.To, end
		if !yield(span, nil) {
			return false
		}
	}
	return true
}

// A pass reads a row group once from its beginning, in as many goes as it takes.
type pass struct {
	*run
	*selection
	file  *openFile
	group int
	at    int64 // rows of the row group that were read and are not left
	next  func() (arrow.RecordBatch, error, bool)
	stop  func()
	left  arrow.RecordBatch // read and not yet yielded
}

func (p *pass) end() {
	if p.left != nil {
		p.left.Release()
		p.left = nil
	}
	if p.stop != nil {
		p.stop()
	}
}

// read opens a span whose part begins at cursor at. Rows before it that nobody wanted are dropped.
func (p *pass) read(ctx context.Context, span rows.Span, at rows.Cursor) iter.Seq2[rows.Span, error] {
	return func(yield func(rows.Span, error) bool) {
		last := span.From
		for from, to := span.Part.From, span.Part.To; from < to; {
			batch, err := p.take(ctx, from, to-from)
			if err != nil {
				yield(rows.Span{}, fmt.Errorf("scan table %q: %w", p.table.Name(), err))
				return
			}
			first, n := from, batch.NumRows()
			from += n
			kept, err := p.had(ctx, batch, first)
			if err != nil {
				yield(rows.Span{}, fmt.Errorf("scan table %q: file %q, row group %d: %w", p.table.Name(), p.file.src.path, p.group, err))
				return
			}
			if kept == nil {
				at = at.Advance(p.live.Count(first, from))
				continue
			}
			end, _ := p.mask.Behind(first, from, kept.NumRows())
			part := rows.Span{From: last, To: at.Advance(p.live.Count(first, end)), Rows: kept.NumRows(), Batch: kept}
			part.EndsBatch = span.EndsBatch && part.To == span.To
			last = part.To
			at = at.Advance(p.live.Count(first, from))
			if !yield(part, nil) {
				return
			}
		}
	}
}

// had are those rows of a batch that are had, nil where there are none; its first is row first of the row group. It
// takes the batch over.
func (p *pass) had(ctx context.Context, batch arrow.RecordBatch, first int64) (arrow.RecordBatch, error) {
	n := batch.NumRows()
	k := p.mask.Count(first, first+n)
	if k == n {
		return batch, nil
	}
	defer batch.Release()
	if k == 0 {
		return nil, nil
	}
	return taken(ctx, batch, indices(p.mask, first, n), p.options.Memory)
}

// indices are the rows of a mask among n from first on, counted from there.
func indices(m rows.Mask, first, n int64) []int32 {
	out := make([]int32, 0, m.Count(first, first+n))
	for i := range n {
		if m.Has(first + i) {
			out = append(out, int32(i))
		}
	}
	return out
}

// take returns rows of the row group from row on, n at most, which the caller owns.
func (p *pass) take(ctx context.Context, row, n int64) (arrow.RecordBatch, error) {
	if p.next == nil {
		p.next, p.stop = iter.Pull2(p.records(ctx, p.file, p.group))
	}
	for {
		if p.left == nil {
			batch, err, ok := p.next()
			switch {
			case err != nil:
				return nil, err
			case !ok:
				return nil, fmt.Errorf("file %q, row group %d ends before its row %d", p.file.src.path, p.group, row)
			}
			p.left = batch
		}
		batch := p.left
		p.left = nil
		size := batch.NumRows()
		if gone := min(row-p.at, size); gone > 0 {
			p.at += gone
			if gone == size {
				batch.Release()
			} else {
				p.left = cut(batch, gone, size)
			}
			continue
		}
		if size > n {
			p.left = batch.NewSlice(n, size)
			batch = cut(batch, 0, n)
		}
		p.at += batch.NumRows()
		return batch, nil
	}
}
