package migrate

import (
	"context"
	"fmt"

	"icepipe/internal/datafile"
	"icepipe/pkg/rows"
)

// open is the batch that is being written.
type open struct {
	from, to rows.Cursor
	rows     int64 // source rows
	written  int64 // rows in files
	number   int64
}

// take writes a span's rows, unless a former run has them. It takes the span over.
func (w *writer) take(ctx context.Context, span rows.Span, batch *open, files *datafile.Writer, arranged *arranged) error {
	defer span.Release()
	if span.To.Compare(batch.to) <= 0 && !w.in.Header.Foreign {
		return nil // before the place that the job has come to
	}
	if span.From.Compare(batch.to) != 0 && !w.in.Header.Foreign {
		return fmt.Errorf("the stream goes on at cursor %s, and rows are missing from %s on; scan again with the job's checkpoint", span.From, batch.to)
	}
	batch.to = span.To
	batch.rows += span.Rows
	w.taken += span.Rows
	if span.Batch != nil && span.Batch.NumRows() == 0 {
		return nil
	}
	n, err := w.put(ctx, span, files, arranged)
	if err != nil {
		return fmt.Errorf("batch %d, rows from cursor %s: %w", batch.number, span.From, err)
	}
	batch.written += n
	w.observe()
	return nil
}

// opened is the stream with those spans opened that the files cannot take as parts of a row group, or that
// begin before start.
func (w *writer) opened(ctx context.Context, start rows.Cursor, files *datafile.Writer, arranged *arranged) rows.Stream {
	if w.ahead == 0 {
		return rows.Opened(ctx, w.in)
	}
	return rows.Ahead(ctx, w.in, w.ahead, func(s rows.Span) bool {
		if w.upsert != nil || s.Part == nil || s.From.Compare(start) < 0 {
			return false
		}
		ok, why := files.Takes(arranged.part(s.Part))
		if why != nil {
			w.refused.CompareAndSwap(nil, &why)
		}
		return ok
	})
}

// put hands a span's rows to the files, and says how many.
func (w *writer) put(ctx context.Context, span rows.Span, files *datafile.Writer, arranged *arranged) (int64, error) {
	if span.Batch == nil {
		return span.Rows, files.Take(ctx, arranged.part(span.Part))
	}
	if err := w.copied(); err != nil {
		return 0, err
	}
	record, err := arranged.projector.Project(span.Batch)
	if err != nil {
		return 0, err
	}
	defer record.Release()
	if w.upsert != nil {
		w.upsert.rows += record.NumRows()
		return record.NumRows(), w.upsert.batch.Add(ctx, record, w.upsert.to(ctx, files))
	}
	return record.NumRows(), files.Write(ctx, record)
}

// finish closes the files of a batch and hands them on to be committed. A batch without rows makes no
// snapshot: its range joins the next commit's (case 19).
func (w *writer) finish(ctx context.Context, batch *open, files *datafile.Writer, commits *committer) error {
	if w.upsert != nil {
		return w.finishUpsert(ctx, batch, files)
	}
	if batch.written == 0 {
		return nil
	}
	if err := commits.submit(ctx, finished{open: *batch, files: files.End(ctx)}); err != nil {
		return err
	}
	*batch = open{from: batch.to, to: batch.to, number: batch.number + 1}
	return nil
}
