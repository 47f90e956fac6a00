package lake

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
)

// A positionIndex finds the deleted row positions of data files. It reads each file of position
// deletes once and forgets it with the last data file that it speaks of.
type positionIndex struct {
	mem   memory.Allocator
	users map[string]int                                  // data files still to come, by delete file
	wants map[string]map[string]bool                      // data files that are asked for, by delete file
	known map[string]map[string]*dv.RoaringPositionBitmap // delete file, data file
}

func newPositionIndex(tasks []table.FileScanTask, mem memory.Allocator) *positionIndex {
	x := &positionIndex{mem: mem, users: map[string]int{}, wants: map[string]map[string]bool{}, known: map[string]map[string]*dv.RoaringPositionBitmap{}}
	for _, t := range tasks {
		if len(t.DeletionVectorFiles) > 0 {
			continue
		}
		for _, d := range t.DeleteFiles {
			path := d.FilePath()
			x.users[path]++
			if x.wants[path] == nil {
				x.wants[path] = map[string]bool{}
			}
			x.wants[path][t.File.FilePath()] = true
		}
	}
	return x
}

// deleted returns the deleted positions of the task's file, nil where there are none. A deletion
// vector stands in place of all position deletes (specification, "Deletion Vectors").
func (x *positionIndex) deleted(ctx context.Context, fs iceio.IO, task table.FileScanTask) (*dv.RoaringPositionBitmap, error) {
	if len(task.DeletionVectorFiles) > 1 {
		return nil, fmt.Errorf("file %q has %d deletion vectors, more than the one that is allowed", task.File.FilePath(), len(task.DeletionVectorFiles))
	}
	if len(task.DeletionVectorFiles) == 1 {
		vector := task.DeletionVectorFiles[0]
		bits, err := dv.ReadDV(fs, vector)
		if err != nil {
			return nil, fmt.Errorf("deletion vector in %q: %w", vector.FilePath(), err)
		}
		return bits, nil
	}
	var all *dv.RoaringPositionBitmap
	for _, d := range task.DeleteFiles {
		path := d.FilePath()
		if x.known[path] == nil {
			read, err := readPositions(ctx, fs, d, x.wants[path], x.mem)
			if err != nil {
				return nil, fmt.Errorf("position deletes: %w", err)
			}
			x.known[path] = read
		}
		if bits := x.known[path][task.File.FilePath()]; bits != nil {
			if all == nil {
				all = dv.NewRoaringPositionBitmap()
			}
			all.Or(bits)
		}
		if x.users[path]--; x.users[path] <= 0 {
			delete(x.known, path)
		}
	}
	return all, nil
}

// readPositions reads a file of position deletes: the positions of each data file in want.
func readPositions(ctx context.Context, fs iceio.IO, d iceberg.DataFile, want map[string]bool, mem memory.Allocator) (map[string]*dv.RoaringPositionBitmap, error) {
	if d.FileFormat() != iceberg.ParquetFile {
		return nil, fmt.Errorf("file %q is %s; only Parquet can be read", d.FilePath(), d.FileFormat())
	}
	src, err := openSource(ctx, fs, d.FilePath(), d.Count(), mem)
	if err != nil {
		return nil, err
	}
	defer src.close()
	schema := iceberg.PositionalDeleteSchema
	columns, err := src.columns(schema.NameMapping(), typesOf(schema))
	if err != nil {
		return nil, err
	}
	out := map[string]*dv.RoaringPositionBitmap{}
	for group := range src.reader.NumRowGroups() {
		for batch, err := range src.records(ctx, group, columns, recordRowsMost) {
			if err != nil {
				return nil, err
			}
			batch, err = columns.project(ctx, batch, schema, nil, 2)
			if err != nil {
				return nil, fmt.Errorf("file %q: %w", d.FilePath(), err)
			}
			err = collect(batch, want, out)
			batch.Release()
			if err != nil {
				return nil, fmt.Errorf("file %q: %w", d.FilePath(), err)
			}
		}
	}
	return out, nil
}

func collect(batch arrow.RecordBatch, want map[string]bool, out map[string]*dv.RoaringPositionBitmap) error {
	paths, ok := batch.Column(0).(*array.String)
	positions, also := batch.Column(1).(*array.Int64)
	if !ok || !also || paths.NullN() > 0 || positions.NullN() > 0 {
		return fmt.Errorf("it has no columns file_path and pos as position deletes have")
	}
	for i := range paths.Len() {
		path := paths.Value(i)
		if !want[path] {
			continue
		}
		if positions.Value(i) < 0 {
			return fmt.Errorf("it deletes position %d", positions.Value(i))
		}
		bits := out[path]
		if bits == nil {
			bits = dv.NewRoaringPositionBitmap()
			out[string([]byte(path))] = bits
		}
		bits.Set(uint64(positions.Value(i)))
	}
	return nil
}

// taken is the batch's rows at indices, which ascend.
func taken(ctx context.Context, batch arrow.RecordBatch, indices []int32, mem memory.Allocator) (arrow.RecordBatch, error) {
	if len(indices) > 0 && int(indices[len(indices)-1]-indices[0]) == len(indices)-1 {
		return batch.NewSlice(int64(indices[0]), int64(indices[len(indices)-1])+1), nil
	}
	return gathered(ctx, batch, indices, mem)
}

// gathered is taken where a row may be asked for more than once.
func gathered(ctx context.Context, batch arrow.RecordBatch, indices []int32, mem memory.Allocator) (arrow.RecordBatch, error) {
	if len(indices) == 0 {
		return batch.NewSlice(0, 0), nil
	}
	t := &taker{indices: indices, mem: mem}
	defer t.release()
	columns := make([]arrow.Array, 0, batch.NumCols())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for _, c := range batch.Columns() {
		taken, err := t.take(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("take rows of a column of type %s: %w", c.DataType(), err)
		}
		columns = append(columns, taken)
	}
	return array.NewRecordBatch(batch.Schema(), columns, int64(len(indices))), nil
}
