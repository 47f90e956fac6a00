package lake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/datafile"
)

const (
	readBuffer     = 256 << 10 // of one column
	recordRowsMost = 32 << 10
	recordBytes    = 16 << 20 // of one record batch, as Parquet counts uncompressed bytes
)

// A source is an open Parquet file of the table: a data file or a file of deletes.
type source struct {
	path   string
	reader *file.Reader
	file   *datafile.Source // of reader
	mem    memory.Allocator
}

// openSource opens a file of the table and reads its footer. The footer's row count is held against
// want, the manifest's record_count; -1 says that nothing is known.
func openSource(ctx context.Context, fs iceio.IO, path string, want int64, mem memory.Allocator) (*source, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	props := parquet.NewReaderProperties(mem)
	props.BufferedStreamEnabled = true
	props.BufferSize = readBuffer
	// One value of more than 64 MiB makes a page that the library takes for a hostile one (case 97).
	props.MaxCompressedPageSize, props.MaxUncompressedPageSize = math.MaxInt32, math.MaxInt32
	in := &input{File: f}
	reader, err := file.NewParquetReader(in, file.WithReadProps(props))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %q: %w", path, err), f.Close())
	}
	in.readAhead(reader.MetaData())
	s := &source{path: path, reader: reader, file: datafile.NewSource(path, reader, f), mem: mem}
	if n := reader.NumRows(); want >= 0 && n != want {
		s.close()
		return nil, fmt.Errorf("file %q holds %d rows, but the table's manifest says %d: it was changed or cut short", path, n, want)
	}
	return s, nil
}

// close closes the file once those who hold s.file have released it too.
func (s *source) close() { s.file.Release() }

// rowGroupRows are the rows of each row group.
func (s *source) rowGroupRows() []int64 {
	out := make([]int64, s.reader.NumRowGroups())
	for i := range out {
		out[i] = s.reader.MetaData().RowGroup(i).NumRows()
	}
	return out
}

// columns finds the wanted top-level fields in the file.
func (s *source) columns(mapping iceberg.NameMapping, want map[int]iceberg.Type) (columnMap, error) {
	manifest, err := pqarrow.NewSchemaManifest(s.reader.MetaData().Schema, s.reader.MetaData().KeyValueMetadata(), &pqarrow.ArrowReadProperties{})
	if err != nil {
		return columnMap{}, fmt.Errorf("file %q: %w", s.path, err)
	}
	m, err := newColumnMap(manifest, mapping, want, s.isInt96)
	if err != nil {
		return columnMap{}, fmt.Errorf("file %q: %w", s.path, err)
	}
	return m, nil
}

// recordRows is how many rows of a row group a record batch may have, so that neither many rows nor
// wide ones make it large (case 97). most is the user's bound, 0 for none.
func (s *source) recordRows(group int, most int64) int64 {
	meta := s.reader.MetaData().RowGroup(group)
	rows := int64(recordRowsMost)
	if most > 0 {
		rows = most
	}
	if width := meta.TotalByteSize() / max(1, meta.NumRows()); width > 0 {
		rows = min(rows, max(1, recordBytes/width))
	}
	return rows
}

// records reads the columns m of one row group. It yields record batches under the file's names
// that the consumer owns; their rows together are exactly the row group's, or the last item is an
// error: arrow-go takes a column that ends early for the end of the file.
func (s *source) records(ctx context.Context, group int, m columnMap, rows int64) iter.Seq2[arrow.RecordBatch, error] {
	total := s.reader.MetaData().RowGroup(group).NumRows()
	if len(m.leaves) == 0 {
		return blank(total, rows, s.mem)
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		fail := func(err error) {
			yield(nil, fmt.Errorf("file %q, row group %d: %w", s.path, group, err))
		}
		reader, err := s.groupReader(ctx, group, m, rows)
		if err != nil {
			fail(err)
			return
		}
		defer reader.release()
		for seen := int64(0); seen < total; {
			batch, err := reader.next(min(rows, total-seen))
			if err == nil && batch == nil {
				err = fmt.Errorf("%d rows could be read of %d: the file is cut short or damaged", seen, total)
			}
			if err == nil && ctx.Err() != nil {
				batch.Release()
				err = ctx.Err()
			}
			if err != nil {
				fail(err)
				return
			}
			seen += batch.NumRows()
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// A groupReader reads the columns of one row group side by side: by pqarrow, but for INT96.
type groupReader struct {
	others pqarrow.RecordReader // nil when all are INT96
	int96  map[string]*int96Column
}

func (s *source) groupReader(ctx context.Context, group int, m columnMap, rows int64) (*groupReader, error) {
	r := &groupReader{int96: map[string]*int96Column{}}
	var others []int
	for _, leaf := range m.leaves {
		kind, ok := m.int96[leaf]
		if !ok {
			others = append(others, leaf)
			continue
		}
		column, err := s.newInt96(group, leaf, kind)
		if err != nil {
			r.release()
			return nil, err
		}
		r.int96[s.reader.MetaData().Schema.Column(leaf).Name()] = column
	}
	if len(others) == 0 {
		return r, nil
	}
	arrowReader, err := pqarrow.NewFileReader(s.reader, pqarrow.ArrowReadProperties{BatchSize: rows, PreAllocBinaryData: true}, s.mem)
	if err == nil {
		r.others, err = arrowReader.GetRecordReader(ctx, others, []int{group})
	}
	if err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

func (r *groupReader) release() {
	for _, column := range r.int96 {
		column.chunk.Close()
	}
	if r.others != nil {
		r.others.Release()
	}
}

// next reads the next record batch, of n rows where nothing else decides; nil at the end.
func (r *groupReader) next(n int64) (arrow.RecordBatch, error) {
	var fields []arrow.Field
	var columns []arrow.Array
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	if r.others != nil {
		if !r.others.Next() {
			if err := r.others.Err(); err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			return nil, nil
		}
		batch := r.others.RecordBatch()
		if len(r.int96) == 0 {
			batch.Retain()
			return batch, nil
		}
		n = batch.NumRows()
		fields = slices.Clone(batch.Schema().Fields())
		for _, c := range batch.Columns() {
			c.Retain()
			columns = append(columns, c)
		}
	}
	for name, column := range r.int96 {
		c, err := column.next(n)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
		fields = append(fields, arrow.Field{Name: name, Type: c.DataType(), Nullable: true})
		columns = append(columns, c)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, n), nil
}

// blank yields record batches that count rows and have one column that nobody asks for.
func blank(total, rows int64, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	schema := arrow.NewSchema([]arrow.Field{{Name: "", Type: arrow.Null, Nullable: true}}, nil)
	return func(yield func(arrow.RecordBatch, error) bool) {
		for total > 0 {
			n := min(rows, total)
			total -= n
			column := array.NewNull(int(n))
			batch := array.NewRecordBatch(schema, []arrow.Array{column}, n)
			column.Release()
			if !yield(batch, nil) {
				return
			}
		}
	}
}
