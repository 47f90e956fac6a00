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
func (t *Table) vectors(ctx context.Context, u *Upsert, tasks []table.FileScanTask, gone map[string]*dv.RoaringPositionBitmap) (*replacement, error) {
	key := goneDigest("vectors", gone)
	for _, task := range tasks {
		key += deletesKey(task.DeletionVectorFiles) + deletesKey(task.DeleteFiles)
	}
	if done := u.kept[key]; done != nil {
		return done, nil
	}
	r := &replacement{deletes: map[string]bool{}}
	puffin := &inMemory{}
	w := dv.NewDVWriter(puffin, func(id int32) *iceberg.PartitionSpec { return t.Metadata().PartitionSpecByID(int(id)) })
	positions := newPositionIndex(tasks, u.memory())
	for _, task := range tasks {
		f := task.File
		if err := t.rewritable(int(f.SpecID())); err != nil {
			return nil, err
		}
		all, err := t.withDeleted(ctx, positions, task, gone[f.FilePath()])
		if err != nil {
			return nil, err
		}
		w.Load(f.FilePath(), all, f.SpecID(), f.Partition())
		for _, d := range append(own(task), task.DeletionVectorFiles...) {
			r.deletes[deleteKey(d)] = true
		}
	}
	c, err := t.FileConfig(ctx, u.Resources)
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

// withDeleted are the positions of rows that go of a data file, and of those that deletes took out before.
func (t *Table) withDeleted(ctx context.Context, positions *positionIndex, task table.FileScanTask, gone *dv.RoaringPositionBitmap) (*dv.RoaringPositionBitmap, error) {
	fs, err := t.FS(ctx)
	if err != nil {
		return nil, err
	}
	before, err := positions.deleted(ctx, fs, task)
	if err != nil {
		return nil, fmt.Errorf("file %q: %w", task.File.FilePath(), err)
	}
	all := dv.NewRoaringPositionBitmap()
	all.Or(before)
	all.Or(gone)
	if before != nil && all.Cardinality() != before.Cardinality()+gone.Cardinality() {
		return nil, lasting{fmt.Errorf("of the %d rows that are to go of data file %q, %d are deleted already", gone.Cardinality(), task.File.FilePath(), before.Cardinality()+gone.Cardinality()-all.Cardinality())}
	}
	return all, nil
}

// own are the files of position deletes that are for the task's data file alone.
func own(task table.FileScanTask) (out []iceberg.DataFile) {
	for _, d := range task.DeleteFiles {
		if dataFileOf(d) == task.File.FilePath() {
			out = append(out, d)
		}
	}
	return out
}

func deletesKey(files []iceberg.DataFile) (key string) {
	for _, d := range files {
		key += "\x00" + deleteKey(d)
	}
	return key
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
