package lake

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/pkg/filter"
	"icepipe/pkg/rows"
)

// A selection is the rows of a row group that a scan has: those that no delete took out, and of them those that
// pass the filter. It is made of the columns that deletes and the filter ask for, before any other is read.
type selection struct {
	n    int64     // rows of the row group
	live rows.Mask // nil: all
	mask rows.Mask // of the live ones; nil: all rows of the row group
}

// selection reads what tells which rows of a row group, whose first is at position before of the file, are had by
// deletes and by a filter, nil for none.
func (r *run) selection(ctx context.Context, f *openFile, group int, before, n int64, where *filter.Bound) (*selection, error) {
	s := &selection{n: n}
	if f.deleted != nil {
		s.live = rows.NewMask(n)
		for i := range n {
			s.live.Set(i, !f.deleted.Contains(uint64(before+i)))
		}
	}
	s.mask = s.live
	if len(f.keys) > 0 || where != nil {
		if err := r.test(ctx, f, group, s, where); err != nil {
			return nil, err
		}
	}
	if s.live.Count(0, n) == n {
		s.live = nil
	}
	if s.mask.Count(0, n) == n {
		s.mask = nil
	}
	return s, nil
}

// test takes out what equality deletes and the filter do.
func (r *run) test(ctx context.Context, f *openFile, group int, s *selection, where *filter.Bound) error {
	had := s.live
	if len(f.keys) > 0 {
		s.live = rows.NewMask(s.n)
	}
	s.mask = s.live
	if where != nil {
		s.mask = rows.NewMask(s.n)
	}
	at := int64(0)
	for batch, err := range f.src.records(ctx, group, f.tests, f.src.recordRows(group, r.options.RecordRows)) {
		if err != nil {
			return err
		}
		dead, passes, err := r.tested(ctx, f, batch, where)
		if err != nil {
			return fmt.Errorf("file %q, row group %d: %w", f.src.path, group, err)
		}
		for i, gone := range dead {
			lives := had.Has(at) && !gone
			if len(f.keys) > 0 {
				s.live.Set(at, lives)
			}
			if where != nil {
				s.mask.Set(at, lives && passes[i])
			}
			at++
		}
	}
	return nil
}

// tested says which rows of a batch equality deletes take out, and which pass the filter, if there is one. It takes
// the batch over.
func (r *run) tested(ctx context.Context, f *openFile, batch arrow.RecordBatch, where *filter.Bound) (dead, passes []bool, err error) {
	version := r.table.Metadata().Version()
	dead = make([]bool, batch.NumRows())
	for _, k := range f.keys {
		if err := k.mark(ctx, f.tests, batch, version, dead); err != nil {
			batch.Release()
			return nil, nil, err
		}
	}
	if where == nil {
		batch.Release()
		return dead, nil, nil
	}
	if batch, err = f.tests.project(ctx, batch, r.tests.reads, r.tests.arrow, version); err != nil {
		return nil, nil, err
	}
	defer batch.Release()
	passes, err = where.Mask(batch)
	return dead, passes, err
}
