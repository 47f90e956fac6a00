package lake

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go/table"
)

// A Count is the number of live rows of a snapshot.
type Count struct {
	Snapshot *int64 // nil: the table has none
	Rows     int64
	Files    int64
	Scanned  int64 // files whose rows had to be read, because equality deletes are on them
}

// Count counts the live rows of a snapshot, of the data files only where that is not nil: by metadata where that is exact, less the distinct
// positions that position deletes and deletion vectors take out, and by reading the files that
// equality deletes are on. Never by the summary's total-records, which no delete lowers (case 27).
func (t *Table) Count(ctx context.Context, pin Pin, only map[string]bool) (Count, error) {
	snapshot, _, err := t.Resolve(pin)
	if err != nil || snapshot == nil {
		return Count{}, err
	}
	count := Count{Snapshot: &snapshot.SnapshotID}
	s := &Scan{table: t, snapshot: snapshot, options: ScanOptions{Memory: memory.DefaultAllocator, Only: only}}
	if s.schema, err = selectColumns(t.Schema(), []string{}); err != nil {
		return count, err
	}
	s.whole = s.schema
	if err := s.planFiles(ctx); err != nil {
		return count, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	var tasks []table.FileScanTask
	for _, f := range s.files {
		tasks = append(tasks, f.FileScanTask)
	}
	r := &run{Scan: s}
	positions := newPositionIndex(tasks, s.options.Memory)
	keys := newEqualityIndex(t.Metadata(), tasks, s.options.Memory)
	for _, f := range s.files {
		live, err := r.countFile(ctx, f, positions, keys)
		if err != nil {
			return count, fmt.Errorf("count table %q: %w", t.Name(), err)
		}
		count.Files++
		count.Rows += live
		if len(f.EqualityDeleteFiles) > 0 {
			count.Scanned++
		}
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
		dead := make([]bool, n)
		for i := range dead {
			dead[i] = f.deleted != nil && f.deleted.Contains(uint64(before)+uint64(i))
		}
		if len(f.keys) > 0 {
			if err := f.markGroup(ctx, g, r.table.Metadata().Version(), dead); err != nil {
				return 0, err
			}
		}
		before += n
		for _, d := range dead {
			if !d {
				live++
			}
		}
	}
	return live, nil
}

// markGroup marks the rows of a row group that equality deletes take out.
func (f *openFile) markGroup(ctx context.Context, group, version int, dead []bool) error {
	var at int64
	for batch, err := range f.src.records(ctx, group, f.columns, f.src.recordRows(group, 0)) {
		if err != nil {
			return err
		}
		n := batch.NumRows()
		for _, k := range f.keys {
			if err := k.mark(ctx, f.columns, batch, version, dead[at:at+n]); err != nil {
				batch.Release()
				return err
			}
		}
		batch.Release()
		at += n
	}
	return nil
}
