package lake

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/filter"
	"icepipe/pkg/rows"
)

// A Count is the number of live rows of a snapshot.
type Count struct {
	Snapshot *int64 // nil: the table has none
	Rows     int64
	Files    int64
	Scanned  int64 // files whose rows had to be read: equality deletes are on them, or a filter asks
}

// Count counts the live rows of a snapshot, of the data files only where that is not nil, and of the rows that
// pass a filter where there is one. Files of which the manifest says that all rows pass, or none, are counted by
// metadata where that is exact: less the distinct positions that position deletes and deletion vectors take
// out, and by reading those that equality deletes are on. The others are read. Never by the summary's
// total-records, which no delete lowers (case 27).
func (t *Table) Count(ctx context.Context, pin Pin, where *filter.Expr, only map[string]bool) (Count, error) {
	s, err := t.PlanScan(ctx, ScanOptions{Pin: pin, Select: []string{}, Filter: where, Only: only, BatchRows: autoAtMost})
	if err != nil || s.snapshot == nil {
		return Count{}, err
	}
	count := Count{Snapshot: &s.snapshot.SnapshotID}
	var tasks []table.FileScanTask
	for _, f := range s.files {
		if !f.skip {
			tasks = append(tasks, f.FileScanTask)
		}
	}
	r := &run{Scan: s}
	positions := newPositionIndex(tasks, s.options.Memory)
	keys := newEqualityIndex(t.Metadata(), tasks, s.options.Memory)
	for i, f := range s.files {
		if f.skip {
			continue
		}
		count.Files++
		decided := s.filter == nil || s.filter.Certain(s.fileStats(f.File))
		if !decided || len(f.EqualityDeleteFiles) > 0 {
			count.Scanned++
		}
		live := int64(0)
		if decided {
			live, err = r.countFile(ctx, f, positions, keys)
		} else {
			start := rows.Cursor{File: int64(i), Path: f.File.FilePath()}
			_, err = r.file(ctx, start, positions, keys, func(span rows.Span, err error) bool {
				live += span.Rows
				span.Release()
				return err == nil
			})
		}
		if err != nil {
			return count, fmt.Errorf("count table %q: %w", t.Name(), err)
		}
		count.Rows += live
	}
	return count, nil
}

func (r *run) countFile(ctx context.Context, task plannedFile, positions *positionIndex, keys *equalityIndex) (int64, error) {
	if len(task.DeleteFiles)+len(task.DeletionVectorFiles)+len(task.EqualityDeleteFiles) == 0 {
		return task.File.Count(), nil
	}
	fs, err := r.table.FS(ctx)
	if err != nil {
		return 0, err
	}
	f, err := r.open(ctx, fs, task, positions, keys)
	if err != nil {
		return 0, err
	}
	defer f.src.close()
	var live, before int64
	for g, n := range f.src.rowGroupRows() {
		s, err := r.selection(ctx, f, g, before, n, nil)
		if err != nil {
			return 0, err
		}
		live += s.live.Count(0, n)
		before += n
	}
	return live, nil
}
