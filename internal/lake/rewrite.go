package lake

import (
	"context"
	"fmt"
	"path"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/datafile"
	"icepipe/pkg/rows"
)

// rewritten are files that rows had to be read of.
type rewritten struct {
	gone  []string           // paths of those that go
	files []iceberg.DataFile // with the rows that stay
}

// keptJob is what the names of files with rows that stay are made of, in place of the job's ID.
func keptJob(job string) string { return "kept by " + job }

// isKept reports whether a location is of such a file.
func (t *Table) isKept(job, location string) bool { return t.isOf(keptJob(job), location) }

// isOf reports whether a location has the name of a file of a job.
func (t *Table) isOf(job, location string) bool {
	m := ours.FindStringSubmatch(path.Base(location))
	return m != nil && m[2] == short(job)
}

// rewrite reads data files, deletes applied, and tells which of them have live rows in touched partitions.
// Those that have others too are written anew, without the touched rows, into files of the current spec.
// Files that were written for an earlier try of the same commit are taken again where nothing has changed
// about those that they stand for.
func (t *Table) rewrite(ctx context.Context, o *Overwrite, head *table.Snapshot, paths map[string]bool, touched *touchedPartitions) (rewritten, error) {
	scan, err := t.scanOf(ctx, head, paths, false)
	if err != nil {
		return rewritten{}, err
	}
	key := scan.digest()
	if done, ok := o.kept[key]; ok {
		return done, nil
	}
	partitions, err := datafile.NewPartitions(scan.schema, t.Spec())
	if err != nil {
		return rewritten{}, err
	}
	var out rewritten
	in, live := make([]int64, len(scan.files)), make([]int64, len(scan.files))
	for span, err := range rows.Opened(ctx, scan.Stream(ctx)).Spans {
		if err != nil {
			return rewritten{}, err
		}
		stays, err := touched.staying(partitions, span.Batch)
		n := span.Batch.NumRows()
		span.Release()
		if err != nil {
			return rewritten{}, err
		}
		live[span.To.File] += n
		in[span.To.File] += n - int64(len(stays))
	}
	mixed := map[string]bool{}
	for i, f := range scan.files {
		if in[i] == 0 {
			continue
		}
		out.gone = append(out.gone, f.File.FilePath())
		if in[i] < live[i] {
			mixed[f.File.FilePath()] = true
		}
	}
	if len(mixed) > 0 {
		scan, err := t.scanOf(ctx, head, mixed, t.Metadata().Version() >= 3)
		if err != nil {
			return rewritten{}, err
		}
		out.files, err = t.writeStaying(ctx, scan, keptJob(o.Job), o.Resources, func(rows liveRows) ([]int32, error) { return touched.staying(partitions, rows.batch) })
		if err != nil {
			return rewritten{}, err
		}
	}
	if o.kept == nil {
		o.kept = map[string]rewritten{}
	}
	o.kept[key] = out
	return out, nil
}

// scanOf plans the reading of some files of a snapshot, with the table's present schema.
func (t *Table) scanOf(ctx context.Context, head *table.Snapshot, paths map[string]bool, lineage bool) (*Scan, error) {
	id := t.Schema().ID
	return t.PlanScan(ctx, ScanOptions{Pin: Pin{Snapshot: &head.SnapshotID, SchemaID: &id}, Only: paths, lineage: lineage})
}

// staying are the rows of a record batch that lie in no touched partition.
func (p *touchedPartitions) staying(partitions *datafile.Partitions, batch arrow.RecordBatch) ([]int32, error) {
	of, found, err := partitions.SplitValues(batch)
	if err != nil {
		return nil, err
	}
	goes := make([]bool, len(found))
	for i, values := range found {
		goes[i] = p.keys[p.key(values)]
	}
	var out []int32
	for row, i := range of {
		if !goes[i] {
			out = append(out, int32(row))
		}
	}
	return out, nil
}

// writeStaying writes the rows of a scan that stay: of each record batch those at the indices that stays returns. Where
// the scan reads row IDs each row keeps its own and the sequence number that it was last changed with (specification,
// "Row Lineage"). job is what the names of the files are made of.
func (t *Table) writeStaying(ctx context.Context, scan *Scan, job string, with datafile.Resources, stays func(liveRows) ([]int32, error)) ([]iceberg.DataFile, error) {
	config, err := t.FileConfig(ctx, with)
	if err != nil {
		return nil, err
	}
	config.Schema, config.Name, config.Mem = scan.schema, t.FileNames(job), scan.options.Memory
	w, err := datafile.NewWriter(ctx, config)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	err = scan.eachLive(ctx, func(live liveRows) error {
		indices, err := stays(live)
		if err != nil || len(indices) == 0 {
			return err
		}
		left, err := taken(ctx, live.batch, indices, scan.options.Memory)
		if err != nil {
			return err
		}
		defer left.Release()
		return w.Write(ctx, left)
	})
	if err != nil {
		return nil, err
	}
	return w.Finish(ctx)
}

// Live rows of a data file.
type liveRows struct {
	path   string
	batch  arrow.RecordBatch // of them alone
	before int64             // position in the file of the first row that was looked at
	at     []int32           // of each live row, counted from there
}

// eachLive calls f with the live rows of the scan's files, with their row IDs in the last two columns where
// that is asked for. f borrows the record batch.
func (s *Scan) eachLive(ctx context.Context, f func(liveRows) error) error {
	var tasks []table.FileScanTask
	for _, file := range s.files {
		tasks = append(tasks, file.FileScanTask)
	}
	r := &run{Scan: s}
	positions := newPositionIndex(tasks, s.options.Memory)
	keys := newEqualityIndex(s.table.Metadata(), tasks, s.options.Memory)
	for _, task := range s.files {
		fs, err := s.table.FS(ctx)
		if err != nil {
			return err
		}
		file, err := r.open(ctx, fs, task, positions, keys)
		if err != nil {
			return err
		}
		err = r.liveOf(ctx, file, task, f)
		file.src.close()
		if err != nil {
			return fmt.Errorf("file %q: %w", task.File.FilePath(), err)
		}
	}
	return nil
}

func (r *run) liveOf(ctx context.Context, file *openFile, task plannedFile, f func(liveRows) error) error {
	before := int64(0)
	for group, n := range file.src.rowGroupRows() {
		if err := r.liveOfGroup(ctx, file, task, group, before, n, f); err != nil {
			return err
		}
		before += n
	}
	return nil
}

// liveOfGroup is liveOf for a row group of n rows, whose first is at position before of the file.
func (r *run) liveOfGroup(ctx context.Context, file *openFile, task plannedFile, group int, before, n int64, f func(liveRows) error) error {
	version := r.table.Metadata().Version()
	s, err := r.selection(ctx, file, group, before, n, nil)
	if err != nil || s.live.Count(0, n) == 0 {
		return err
	}
	at := int64(0)
	for batch, err := range file.src.records(ctx, group, file.columns, file.src.recordRows(group, 0)) {
		if err != nil {
			return err
		}
		n := batch.NumRows()
		live := indices(s.live, at, n)
		out, err := taken(ctx, batch, live, r.options.Memory)
		batch.Release()
		if err != nil {
			return err
		}
		if len(live) > 0 {
			out, err = file.columns.project(ctx, out, r.reads, r.arrow, version)
			if err == nil && r.options.lineage {
				out, err = withRowIDs(out, task.FileScanTask, before, live, r.options.Memory)
			}
			if err != nil {
				return err
			}
			err = f(liveRows{path: task.File.FilePath(), batch: out, before: before, at: live})
		}
		out.Release()
		if err != nil {
			return err
		}
		before, at = before+n, at+n
	}
	return nil
}

// withRowIDs fills in what the last two columns of a batch, row ID and last sequence number, inherit: from the
// file's first row ID and its rows' positions, and from its data sequence number (specification, "Row
// Lineage"). Rows of before the table had row IDs have none yet, and get new ones. It takes the batch over.
func withRowIDs(batch arrow.RecordBatch, task table.FileScanTask, before int64, live []int32, mem memory.Allocator) (arrow.RecordBatch, error) {
	defer batch.Release()
	n := int(batch.NumCols())
	ids, ok := batch.Column(n - 2).(*array.Int64)
	seqs, also := batch.Column(n - 1).(*array.Int64)
	if !ok || !also {
		return nil, fmt.Errorf("row IDs of type %s", batch.Column(n-2).DataType())
	}
	id, seq := array.NewInt64Builder(mem), array.NewInt64Builder(mem)
	defer id.Release()
	defer seq.Release()
	for i, at := range live {
		inherits := task.FirstRowID != nil
		switch {
		case ids.IsValid(i):
			id.Append(ids.Value(i))
		case inherits:
			id.Append(*task.FirstRowID + before + int64(at))
		default:
			id.AppendNull()
		}
		switch {
		case seqs.IsValid(i):
			seq.Append(seqs.Value(i))
		case (inherits || ids.IsValid(i)) && task.DataSequenceNumber != nil:
			seq.Append(*task.DataSequenceNumber)
		default:
			seq.AppendNull()
		}
	}
	columns := append([]arrow.Array(nil), batch.Columns()...)
	columns[n-2], columns[n-1] = id.NewArray(), seq.NewArray()
	defer columns[n-2].Release()
	defer columns[n-1].Release()
	return array.NewRecordBatch(batch.Schema(), columns, int64(len(live))), nil
}
