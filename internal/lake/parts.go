package lake

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/pkg/rows"
)

// parts yields the rows of a row group from which nothing is deleted, from skip on, as promises cut where
// batches end. Opened one after the other they read the row group once.
func (r *run) parts(ctx context.Context, f *openFile, at rows.Cursor, n, skip int64, yield func(rows.Span, error) bool) bool {
	pass := &pass{run: r, file: f, group: at.RowGroup}
	defer pass.end()
	at = at.Advance(skip)
	for from := skip; from < n; {
		k := min(r.room(), n-from)
		if k == 0 {
			return true // the limit is reached
		}
		span := rows.Span{From: r.at, To: at.Advance(k), Rows: k, Part: &rows.Part{
			Path: f.src.path, Ordinal: at.RowGroup, GroupRows: n, From: from, File: f.src.file,
			Leaves: f.columns.flat, Nested: f.columns.nested, Known: f.known,
		}}
		span.Part.File.Retain()
		start := at
		r.move(&span)
		if from+k == n && r.follows(at.File, at.RowGroup) {
			span.EndsBatch, r.inBatch = true, 0
		}
		span.Read = func(ctx context.Context) iter.Seq2[rows.Span, error] {
			return pass.read(ctx, span, start)
		}
		at, from = span.To, from+k
		if !yield(span, nil) {
			return false
		}
	}
	return true
}

// A pass reads a row group once from its beginning, in as many goes as it takes.
type pass struct {
	*run
	file  *openFile
	group int
	at    int64 // rows of the row group that were yielded or dropped
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

// read opens a span that starts at cursor at. Rows before it that nobody wanted are dropped.
func (p *pass) read(ctx context.Context, span rows.Span, at rows.Cursor) iter.Seq2[rows.Span, error] {
	return func(yield func(rows.Span, error) bool) {
		from := span.From
		for at != span.To {
			batch, err := p.take(ctx, at.Row, span.To.Row-at.Row)
			if err != nil {
				yield(rows.Span{}, fmt.Errorf("scan table %q: %w", p.table.Name(), err))
				return
			}
			at = at.Advance(batch.NumRows())
			part := rows.Span{From: from, To: at, Rows: batch.NumRows(), Batch: batch, EndsBatch: span.EndsBatch && at == span.To}
			from = at
			if !yield(part, nil) {
				return
			}
		}
	}
}

// take returns rows of the row group from row on, n at most, which the caller owns.
func (p *pass) take(ctx context.Context, row, n int64) (arrow.RecordBatch, error) {
	if p.next == nil {
		p.next, p.stop = iter.Pull2(p.live(ctx, p.file, p.group, 0))
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
