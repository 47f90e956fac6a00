package lake

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/filter"
	"icepipe/pkg/rows"
)

// CountWhere counts the live rows of a snapshot that pass a filter, all of them where that is nil. Files
// of which the manifest says that all or none pass are counted as Count does; the others are read, and
// counted in Scanned.
func (t *Table) CountWhere(ctx context.Context, pin Pin, where *filter.Expr) (Count, error) {
	if where == nil {
		return t.Count(ctx, pin, nil)
	}
	s, err := t.PlanScan(ctx, ScanOptions{Pin: pin, Select: []string{}, Filter: where, BatchRows: autoAtMost})
	if err != nil {
		return Count{}, err
	}
	if s.filter == nil {
		return t.Count(ctx, pin, nil)
	}
	var count Count
	if s.snapshot == nil {
		return count, nil
	}
	count.Snapshot = &s.snapshot.SnapshotID
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
		if s.filter.Certain(s.fileStats(f.File)) {
			live, err := r.countFile(ctx, f, positions, keys)
			if err != nil {
				return count, fmt.Errorf("count table %q: %w", t.Name(), err)
			}
			count.Rows += live
			if len(f.EqualityDeleteFiles) > 0 {
				count.Scanned++
			}
			continue
		}
		count.Scanned++
		start := rows.Cursor{File: int64(i), Path: f.File.FilePath()}
		if _, err := r.file(ctx, start, positions, keys, func(span rows.Span, err error) bool {
			count.Rows += span.Rows
			span.Release()
			return err == nil
		}); err != nil {
			return count, fmt.Errorf("count table %q: %w", t.Name(), err)
		}
	}
	return count, nil
}
