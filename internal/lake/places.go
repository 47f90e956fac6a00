package lake

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// A PlaceScan reads the live rows of data files of one snapshot together with the positions that they have in
// their files. It may be used by several goroutines, each with files of its own.
type PlaceScan struct {
	scan  *Scan
	tasks []table.FileScanTask
}

// A PlacedFile is a data file of a PlaceScan.
type PlacedFile struct {
	Path    string
	Deletes string  // names the delete files that apply to it: the same deletes give the same text
	Groups  []int64 // rows of each row group, the deleted ones with them
	RowIDs  bool    // its rows have IDs; those of a table of format version 2 get them by the first commit in version 3
}

// A PlaceOptions says what is read.
type PlaceOptions struct {
	Columns []string        // top-level columns, nil for all, as the table's present schema has them
	Only    map[string]bool // paths of data files, nil for all of the snapshot
	RowIDs  bool            // format version 3: each row's ID and last sequence number, in two columns behind the others

	Also []iceberg.DataFile // files that wait for a commit, read beside those of the snapshot
}

// PlanPlaces plans the reading of data files of a snapshot, which may be nil. Files that cannot be read are refused.
func (t *Table) PlanPlaces(ctx context.Context, s *table.Snapshot, o PlaceOptions) (*PlaceScan, error) {
	id := t.Schema().ID
	pin := Pin{SchemaID: &id, None: s == nil}
	if s != nil {
		pin.Snapshot = &s.SnapshotID
	}
	scan, err := t.PlanScan(ctx, ScanOptions{Pin: pin, Select: o.Columns, Only: o.Only, also: o.Also, lineage: o.RowIDs && t.Metadata().Version() >= 3})
	if err != nil {
		return nil, err
	}
	p := &PlaceScan{scan: scan}
	for _, f := range scan.files {
		p.tasks = append(p.tasks, f.FileScanTask)
	}
	return p, nil
}

// Files are the planned data files.
func (p *PlaceScan) Files() []PlacedFile {
	var out []PlacedFile
	for _, f := range p.scan.files {
		one := PlacedFile{Path: f.File.FilePath(), Groups: f.groups, RowIDs: f.File.FirstRowID() != nil}
		for _, d := range f.DeleteFiles {
			one.Deletes += "p " + d.FilePath() + "\n"
		}
		for _, d := range f.EqualityDeleteFiles {
			one.Deletes += "e " + d.FilePath() + "\n"
		}
		for _, d := range f.DeletionVectorFiles {
			offset := int64(-1)
			if o := d.ContentOffset(); o != nil {
				offset = *o
			}
			one.Deletes += fmt.Sprintf("v %s %d\n", d.FilePath(), offset)
		}
		out = append(out, one)
	}
	return out
}

// Read calls f with the live rows of a planned file, a record batch after another, and with the position of each
// in the file. Row groups for which want is false are left out; a nil want takes all. f borrows the record
// batch, and at is valid until it returns.
func (p *PlaceScan) Read(ctx context.Context, file int, want func(group int) bool, f func(group int, at []int64, batch arrow.RecordBatch) error) error {
	task := p.scan.files[file]
	wrap := func(err error) error { return fmt.Errorf("file %q: %w", task.File.FilePath(), err) }
	fs, err := p.scan.table.FS(ctx)
	if err != nil {
		return err
	}
	one := []table.FileScanTask{p.tasks[file]}
	r := &run{Scan: p.scan}
	open, err := r.open(ctx, fs, task, newPositionIndex(one, r.options.Memory), newEqualityIndex(p.scan.table.Metadata(), one, r.options.Memory))
	if err != nil {
		return wrap(err)
	}
	defer open.src.close()
	before := int64(0)
	var at []int64
	for group, n := range open.src.rowGroupRows() {
		if want == nil || want(group) {
			err := r.liveOfGroup(ctx, open, task, group, before, n, func(rows liveRows) error {
				at = at[:0]
				for _, i := range rows.at {
					at = append(at, rows.before+int64(i))
				}
				return f(group, at, rows.batch)
			})
			if err != nil {
				return wrap(err)
			}
		}
		before += n
	}
	return nil
}

// Chosen are the rows of a record batch at indices, which ascend and may repeat, for a table's data files. With
// ids, the row IDs that they keep, it has two columns behind the others: those, null where they are
// negative, and null as the sequence number of the last change, which is that of the commit (specification,
// "Row Lineage").
func Chosen(ctx context.Context, batch arrow.RecordBatch, indices []int32, ids []int64) (arrow.RecordBatch, error) {
	mem := memory.DefaultAllocator
	out, err := gathered(ctx, batch, indices, mem)
	if err != nil || ids == nil {
		return out, err
	}
	defer out.Release()
	id, seq := array.NewInt64Builder(mem), array.NewInt64Builder(mem)
	defer id.Release()
	defer seq.Release()
	for _, v := range ids {
		seq.AppendNull()
		if v < 0 {
			id.AppendNull()
		} else {
			id.Append(v)
		}
	}
	lineage, err := table.SchemaToArrowSchema(iceberg.NewSchema(0, iceberg.RowID(), iceberg.LastUpdatedSequenceNumber()), nil, true, false)
	if err != nil {
		return nil, err
	}
	columns := append(slices.Clone(out.Columns()), id.NewArray(), seq.NewArray())
	defer columns[len(columns)-2].Release()
	defer columns[len(columns)-1].Release()
	schema := arrow.NewSchema(slices.Concat(out.Schema().Fields(), lineage.Fields()), nil)
	return array.NewRecordBatch(schema, columns, out.NumRows()), nil
}
