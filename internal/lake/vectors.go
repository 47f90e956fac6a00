package lake

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/datafile"
)

// vectors writes deletion vectors of format version 3 for rows of data files, which come sorted by path, into one
// Puffin file. A data file has one vector at most, which stands in place of all its position deletes, so that the
// new one holds the positions that were deleted before; the old one goes, and files of position deletes of
// that data file alone go too (specification, "Deletion Vectors").
func (t *Table) vectors(ctx context.Context, u *Upsert, head *table.Snapshot, files []iceberg.DataFile, gone map[string]*dv.RoaringPositionBitmap) (*replacement, error) {
	tasks, err := t.deletesOf(ctx, head, gone)
	if err != nil {
		return nil, err
	}
	key := goneDigest("vectors", gone)
	for _, f := range files {
		for _, d := range append(tasks[f.FilePath()].DeleteFiles, tasks[f.FilePath()].DeletionVectorFiles...) {
			key += "\x00" + deleteKey(d)
		}
	}
	if done := u.kept[key]; done != nil {
		return done, nil
	}
	fs, err := t.FS(ctx)
	if err != nil {
		return nil, err
	}
	var all []table.FileScanTask
	for _, f := range files {
		all = append(all, tasks[f.FilePath()])
	}
	positions := newPositionIndex(all, u.memory())
	r := &replacement{deletes: map[string]bool{}}
	puffin := &inMemory{}
	w := dv.NewDVWriter(puffin, func(id int32) *iceberg.PartitionSpec { return t.Metadata().PartitionSpecByID(int(id)) })
	for i, f := range files {
		if err := t.rewritable(int(f.SpecID())); err != nil {
			return nil, err
		}
		before, err := positions.deleted(ctx, fs, all[i])
		if err != nil {
			return nil, fmt.Errorf("file %q: %w", f.FilePath(), err)
		}
		for at := range gone[f.FilePath()].Positions() {
			if before != nil && before.Contains(at) {
				return nil, lasting{fmt.Errorf("row %d of data file %q is to go, and is deleted already", at, f.FilePath())}
			}
		}
		w.Load(f.FilePath(), gone[f.FilePath()], f.SpecID(), f.Partition())
		if before != nil {
			w.Load(f.FilePath(), before, f.SpecID(), f.Partition())
		}
		for _, d := range all[i].DeletionVectorFiles {
			r.deletes[deleteKey(d)] = true
		}
		for _, d := range all[i].DeleteFiles {
			if dataFileOf(d) == f.FilePath() {
				r.deletes[deleteKey(d)] = true
			}
		}
	}
	c, err := t.FileConfig(ctx, u.Jobs)
	if err != nil {
		return nil, err
	}
	location, err := datafile.Location(c, t.FileNames(u.Job)()+deletesSuffix+".puffin")
	if err != nil {
		return nil, err
	}
	if r.added, err = w.Flush(ctx, location); err != nil {
		return nil, err
	}
	if err := datafile.WriteFile(c.FS, location, puffin.text); err != nil {
		return nil, err
	}
	u.keep(key, r)
	return r, nil
}

// deletesOf are data files of a snapshot with their deletes, by path.
func (t *Table) deletesOf(ctx context.Context, head *table.Snapshot, of map[string]*dv.RoaringPositionBitmap) (map[string]table.FileScanTask, error) {
	s := &Scan{table: t, snapshot: head}
	tasks, err := s.tasks(ctx)
	if err != nil {
		return nil, fmt.Errorf("plan snapshot %d: %w%s", head.SnapshotID, err, s.oddPartitionNames())
	}
	out := map[string]table.FileScanTask{}
	for _, task := range tasks {
		if of[task.File.FilePath()] != nil {
			out[task.File.FilePath()] = task
		}
	}
	return out, nil
}

// inMemory is where the library writes one file to, so that it can be written as data files are.
type inMemory struct {
	iceio.WriteFileIO
	text []byte
}

// WriteFile implements iceio.WriteFileIO.
func (m *inMemory) WriteFile(_ string, text []byte) error {
	m.text = text
	return nil
}
