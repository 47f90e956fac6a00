package lake

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/datafile"
)

// The columns of a file of position deletes (specification, "Position Delete Files").
const (
	deletePathID     = 2147483546
	deletePositionID = 2147483545
)

const (
	// deleteFilesMost is how many delete files of one data file each a commit writes in a partition. Where rows
	// of more files go they share one, so that a commit of many single changes does not make as many files.
	deleteFilesMost = 64
	// ownDeleteFilesMost is how many files of position deletes a data file has of its own before a commit puts them
	// together, so that a job of many commits leaves few.
	ownDeleteFilesMost = 8
	// deleteRows is how many positions go into a record batch.
	deleteRows = 16 << 10
)

// deletesSuffix ends the names of delete files, as Java's library ends them.
const deletesSuffix = "-deletes"

// positionDeletes writes files of position deletes of format version 2 for rows of data files, which come sorted by
// path. Those that are there stay, since position deletes add up, but where a data file has many of its own.
func (t *Table) positionDeletes(ctx context.Context, u *Upsert, tasks []table.FileScanTask, gone map[string]*dv.RoaringPositionBitmap) (*replacement, error) {
	key := goneDigest("positions", gone)
	for i, task := range tasks {
		if tasks[i].DeleteFiles = own(task); len(tasks[i].DeleteFiles) < ownDeleteFilesMost {
			tasks[i].DeleteFiles = nil
		}
		key += deletesKey(tasks[i].DeleteFiles)
	}
	if done := u.kept[key]; done != nil {
		return done, nil
	}
	w, err := t.newDeleteWriter(ctx, u)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	r := &replacement{deletes: map[string]bool{}}
	of := map[string][]deletesOf{}
	positions := newPositionIndex(tasks, u.memory())
	for _, task := range tasks {
		if err := t.rewritable(int(task.File.SpecID())); err != nil {
			return nil, err
		}
		all, err := t.withDeleted(ctx, positions, task, gone[task.File.FilePath()])
		if err != nil {
			return nil, err
		}
		for _, d := range task.DeleteFiles {
			r.deletes[deleteKey(d)] = true
		}
		place := t.place(task.File)
		of[place] = append(of[place], deletesOf{task.File, all})
	}
	for _, place := range slices.Sorted(maps.Keys(of)) {
		size := 1
		if n := len(of[place]); n > deleteFilesMost {
			size = n
		}
		for part := range slices.Chunk(of[place], size) {
			f, err := w.write(ctx, t, part)
			if err != nil {
				return nil, err
			}
			r.added = append(r.added, f)
		}
	}
	u.keep(key, r)
	return r, nil
}

// Deletes of a data file.
type deletesOf struct {
	file iceberg.DataFile
	at   *dv.RoaringPositionBitmap
}

// goneDigest is of a kind of change and the rows that go.
func goneDigest(kind string, gone map[string]*dv.RoaringPositionBitmap) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00", kind)
	for _, path := range slices.Sorted(maps.Keys(gone)) {
		fmt.Fprintf(h, "%s\x00%d\x00", path, gone[path].Cardinality())
		var at [8]byte
		for position := range gone[path].Positions() {
			binary.LittleEndian.PutUint64(at[:], position)
			h.Write(at[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A deleteWriter writes files of position deletes.
type deleteWriter struct {
	*datafile.Writer
	schema *arrow.Schema
	mem    memory.Allocator
}

// newDeleteWriter writes with the table's delete.parquet properties, and where they are not set with those of its
// data files, as Java's library does.
func (t *Table) newDeleteWriter(ctx context.Context, u *Upsert) (*deleteWriter, error) {
	c, err := t.FileConfig(ctx, u.Resources)
	if err != nil {
		return nil, err
	}
	names := t.FileNames(u.Job)
	c.Name = func() string { return names() + deletesSuffix }
	c.Schema, c.Spec, c.SortOrder = iceberg.PositionalDeleteSchema, *iceberg.UnpartitionedSpec, table.UnsortedSortOrder
	c.Properties = deleteProperties(t.Properties())
	w, err := datafile.NewWriter(ctx, c)
	if err != nil {
		return nil, err
	}
	schema, err := table.SchemaToArrowSchema(c.Schema, nil, true, false)
	return &deleteWriter{w, schema, u.memory()}, err
}

func deleteProperties(props iceberg.Properties) iceberg.Properties {
	out := iceberg.Properties{}
	for k, v := range props {
		if !strings.HasPrefix(k, "write.metadata.metrics.") && !strings.HasPrefix(k, "write.parquet.dict-encoding-enabled.") {
			out[k] = v
		}
	}
	if _, set := props["delete.parquet.compression-codec"]; set {
		delete(out, "write.parquet.compression-level") // of another codec, it may be
	}
	for k, v := range props {
		if name, ok := strings.CutPrefix(k, "delete.parquet."); ok {
			out["write.parquet."+name] = v
		}
	}
	out["write.target-file-size-bytes"] = strconv.Itoa(math.MaxInt64) // one file is asked for each time
	return out
}

// write writes the rows of data files of one partition as one file.
func (w *deleteWriter) write(ctx context.Context, t *Table, files []deletesOf) (iceberg.DataFile, error) {
	b := array.NewRecordBuilder(w.mem, w.schema)
	defer b.Release()
	paths, positions := b.Field(0).(*array.StringBuilder), b.Field(1).(*array.Int64Builder)
	flush := func() error {
		batch := b.NewRecordBatch()
		defer batch.Release()
		return w.Write(ctx, batch)
	}
	least, most := int64(math.MaxInt64), int64(0)
	for _, f := range files {
		for at := range f.at.Positions() {
			least, most = min(least, int64(at)), max(most, int64(at))
			paths.Append(f.file.FilePath())
			positions.Append(int64(at))
			if positions.Len() == deleteRows {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	written, err := w.Finish(ctx)
	if err != nil {
		return nil, err
	}
	if len(written) != 1 {
		return nil, fmt.Errorf("position deletes were written into %d files", len(written))
	}
	return t.deleteFile(written[0], files, least, most)
}

// deleteFile describes a file of position deletes of data files of one partition. Its bounds of file_path are
// whole, so that readers find out which data files it is for.
func (t *Table) deleteFile(written iceberg.DataFile, files []deletesOf, least, most int64) (iceberg.DataFile, error) {
	first, last := files[0].file, files[len(files)-1].file
	spec := t.Metadata().PartitionSpecByID(int(first.SpecID()))
	b, err := iceberg.NewDataFileBuilder(*spec, iceberg.EntryContentPosDeletes, written.FilePath(), iceberg.ParquetFile, first.Partition(), nil, nil, written.Count(), written.FileSizeBytes())
	if err != nil {
		return nil, err
	}
	if len(files) == 1 {
		b.ReferencedDataFile(first.FilePath())
	}
	position := func(at int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(at)) }
	return b.ColumnSizes(written.ColumnSizes()).ValueCounts(written.ValueCounts()).NullValueCounts(written.NullValueCounts()).
		LowerBoundValues(map[int][]byte{deletePathID: []byte(first.FilePath()), deletePositionID: position(least)}).
		UpperBoundValues(map[int][]byte{deletePathID: []byte(last.FilePath()), deletePositionID: position(most)}).
		SplitOffsets(written.SplitOffsets()).Build(), nil
}

// dataFileOf is the data file that a file of position deletes or a deletion vector is for, "" where it is for
// more than one or for an unknown number of them. Where it is not named the bounds of file_path tell, as Java's
// library takes them: equal ones are whole, since an upper bound that was cut would be greater.
func dataFileOf(f iceberg.DataFile) string {
	if f.ContentType() != iceberg.EntryContentPosDeletes {
		return ""
	}
	if ref := f.ReferencedDataFile(); ref != nil {
		return *ref
	}
	lower, upper := f.LowerBoundValues()[deletePathID], f.UpperBoundValues()[deletePathID]
	if len(lower) == 0 || string(lower) != string(upper) {
		return ""
	}
	return string(lower)
}
