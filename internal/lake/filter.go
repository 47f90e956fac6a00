package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/filter"
	"icepipe/pkg/rows"
)

// bindFilter ties the row filter to the snapshot's schema, and adds the columns that it asks about to
// those that are read. A filter that selects every row is none.
func (s *Scan) bindFilter(full *iceberg.Schema) error {
	s.whole = s.schema
	if s.options.Filter == nil {
		return nil
	}
	bound, err := s.options.Filter.Bind(full)
	if err != nil {
		return &FilterError{Err: err}
	}
	if bound.All() {
		return nil
	}
	s.filter = bound
	fields := slices.Clone(s.schema.Fields())
	for _, id := range bound.Columns() {
		has := func(f iceberg.NestedField) bool { return f.ID == id }
		if at := slices.IndexFunc(full.Fields(), has); at >= 0 && !slices.ContainsFunc(fields, has) {
			fields = append(fields, full.Fields()[at])
		}
	}
	s.whole = iceberg.NewSchema(s.schema.ID, fields...)
	return nil
}

// A FilterError says that a row filter does not fit the table. Caret shows where, where that is known.
type FilterError struct{ Err error }

func (e *FilterError) Error() string { return "row filter: " + e.Err.Error() }
func (e *FilterError) Unwrap() error { return e.Err }

// Caret is the place in the filter's text, "" where there is none.
func (e *FilterError) Caret() string {
	var at *filter.Error
	if errors.As(e.Err, &at) {
		return at.Caret()
	}
	return ""
}

// filtered yields the rows of a row group that pass the filter. A span ends behind its last row, so that
// cursors do not depend on the size of record batches; rows that do not pass belong to the span behind
// them, in whatever row group that is.
func (r *run) filtered(ctx context.Context, f *openFile, at rows.Cursor, before, skip int64, yield func(rows.Span, error) bool) (bool, error) {
	for batch, err := range r.live(ctx, f, at.RowGroup, before) {
		if err != nil {
			return false, err
		}
		if gone := min(skip, batch.NumRows()); gone > 0 {
			skip -= gone
			at = at.Advance(gone)
			batch = cut(batch, gone, batch.NumRows())
		}
		n := batch.NumRows()
		more, err := r.pass(ctx, batch, at, yield)
		if err != nil {
			return false, fmt.Errorf("file %q, row group %d: %w", f.src.path, at.RowGroup, err)
		}
		if !more {
			return false, nil
		}
		if r.full() {
			return true, nil
		}
		at = at.Advance(n)
	}
	return true, r.short(f, at, skip)
}

// pass yields the rows of a batch that pass the filter, the first of them at the cursor. It takes the batch
// over.
func (r *run) pass(ctx context.Context, batch arrow.RecordBatch, at rows.Cursor, yield func(rows.Span, error) bool) (bool, error) {
	defer batch.Release()
	mask, err := r.filter.Mask(batch)
	if err != nil {
		return false, err
	}
	passing := make([]int32, 0, len(mask))
	for i, selected := range mask {
		if selected {
			passing = append(passing, int32(i))
		}
	}
	narrow := array.NewRecordBatch(r.arrow, batch.Columns()[:r.arrow.NumFields()], batch.NumRows())
	defer narrow.Release()
	for len(passing) > 0 {
		n := min(r.room(), int64(len(passing)))
		if n == 0 {
			return true, nil // the limit is reached
		}
		part, err := taken(ctx, narrow, passing[:n], r.options.Memory)
		if err != nil {
			return false, err
		}
		to := at.Advance(int64(passing[n-1]) + 1)
		passing = passing[n:]
		if !yield(r.take(part, to), nil) {
			return false, nil
		}
	}
	return true, nil
}
