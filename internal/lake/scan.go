package lake

import (
	"context"
	"fmt"
	"iter"
	"maps"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/pkg/rows"
)

// Stream reads the planned rows. Batch k holds the same rows for the same snapshot, selection and
// batch size, whatever the size of record batches and wherever the stream starts.
func (s *Scan) Stream(ctx context.Context) rows.Stream {
	run := &run{Scan: s, at: s.header.First}
	return rows.Stream{
		Header: s.header,
		Schema: s.arrow,
		Spans:  func(yield func(rows.Span, error) bool) { run.spans(ctx, yield) },
		Seal: func() (rows.Seal, error) {
			if !run.whole {
				return rows.Seal{}, rows.ErrUnsealed
			}
			return rows.Seal{Rows: run.rows, BytesRead: run.bytes, Last: run.at}, nil
		},
	}
}

// A run is one pass over a scan.
type run struct {
	*Scan
	at      rows.Cursor // To of the last span
	inBatch int64       // rows of the open batch so far
	rows    int64
	bytes   int64
	whole   bool
}

// full reports whether the limit is reached.
func (r *run) full() bool { return r.options.Limit > 0 && r.rows >= r.options.Limit }

func (r *run) spans(ctx context.Context, yield func(rows.Span, error) bool) {
	var tasks []table.FileScanTask
	for i, f := range r.files {
		if int64(i) >= r.at.File && !f.skip {
			tasks = append(tasks, f.FileScanTask)
		}
	}
	positions := newPositionIndex(tasks, r.options.Memory)
	keys := newEqualityIndex(r.table.Metadata(), tasks, r.options.Memory)
	first := r.at
	for i := first.File; i < int64(len(r.files)) && !r.full(); i++ {
		if r.files[i].skip {
			continue
		}
		start := rows.Cursor{File: i, Path: r.files[i].File.FilePath()}
		if i == first.File {
			start.RowGroup, start.Row = first.RowGroup, first.Row
		}
		more, err := r.file(ctx, start, positions, keys, yield)
		if err != nil {
			yield(rows.Span{}, fmt.Errorf("scan table %q: %w", r.table.Name(), err))
			return
		}
		if !more {
			return
		}
	}
	r.whole = true
}

// file yields the spans of one file from start on. It returns false when the consumer wants no more.
func (r *run) file(ctx context.Context, start rows.Cursor, positions *positionIndex, keys *equalityIndex, yield func(rows.Span, error) bool) (bool, error) {
	task := r.files[start.File]
	// Asked for anew for each file: credentials that a catalog vends end in the middle of a long scan.
	fs, err := r.table.FS(ctx)
	if err != nil {
		return false, err
	}
	f, err := r.open(ctx, fs, task, positions, keys)
	if err != nil {
		return false, err
	}
	defer f.src.close()
	var before int64 // rows of the file before the row group
	for g, n := range f.src.rowGroupRows() {
		if g >= start.RowGroup && n > 0 && !r.full() && !task.skips[g] {
			at := rows.Cursor{File: start.File, RowGroup: g, Path: start.Path}
			skip := int64(0)
			if g == start.RowGroup {
				skip = start.Row
			}
			more, err := r.group(ctx, f, at, before, n, skip, yield)
			if err != nil || !more {
				return false, err
			}
		}
		before += n
	}
	return true, nil
}

// An openFile is a data file with its deletes.
type openFile struct {
	src     *source
	columns columnMap    // of the stream
	tests   columnMap    // of the filter and of equality deletes
	known   []rows.Known // of all its rows
	deleted *dv.RoaringPositionBitmap
	keys    []*keySet
}

func (r *run) open(ctx context.Context, fs iceio.IO, task plannedFile, positions *positionIndex, keys *equalityIndex) (*openFile, error) {
	f := &openFile{}
	var err error
	if f.deleted, err = positions.deleted(ctx, fs, task.FileScanTask); err != nil {
		return nil, err
	}
	if f.keys, err = keys.sets(ctx, fs, task.FileScanTask); err != nil {
		return nil, err
	}
	if f.src, err = openSource(ctx, fs, task.File.FilePath(), task.File.Count(), r.options.Memory); err != nil {
		return nil, err
	}
	f.columns, err = f.src.columns(r.table.NameMapping(), typesOf(r.schema))
	if asked := r.asked(f.keys); err == nil && len(asked) > 0 {
		f.tests, err = f.src.columns(r.table.NameMapping(), asked)
	}
	if err != nil {
		f.src.close()
		return nil, err
	}
	f.columns.flat, f.columns.nested = r.leaves(f.columns)
	f.known = r.known(task.File)
	return f, nil
}

// asked are the IDs of the top-level fields that tell which rows are had: those that the filter asks about, and
// those that the keys lie in.
func (r *run) asked(keys []*keySet) map[int]iceberg.Type {
	out := typesOf(r.tests.schema)
	for _, k := range keys {
		maps.Copy(out, k.wants())
	}
	return out
}

// group yields the spans of a row group of n rows, skip of its live rows left out, cut where batches end.
func (r *run) group(ctx context.Context, f *openFile, at rows.Cursor, before, n, skip int64, yield func(rows.Span, error) bool) (bool, error) {
	s, err := r.selection(ctx, f, at.RowGroup, before, n, r.filter)
	if err != nil {
		return false, err
	}
	from, found := s.live.Behind(0, n, skip)
	if found < skip {
		return false, fmt.Errorf("file %q, row group %d has fewer live rows than cursor %s: the source changed", f.src.path, at.RowGroup, r.header.First)
	}
	r.bytes += f.bytes(at.RowGroup, f.tests)
	if s.mask.Count(from, n) == 0 {
		return true, nil
	}
	r.bytes += f.bytes(at.RowGroup, f.columns)
	return r.parts(ctx, f, s, at.Advance(skip), from, yield), nil
}

// room is how many rows still fit into the open batch, and under the limit.
func (r *run) room() int64 {
	room := r.options.BatchRows - r.inBatch
	if r.options.Limit > 0 {
		room = min(room, r.options.Limit-r.rows)
	}
	return room
}

// move moves on to a span's end, which ends the batch if that is full.
func (r *run) move(span *rows.Span) {
	r.at = span.To
	r.rows += span.Rows
	r.inBatch += span.Rows
	if r.inBatch == r.options.BatchRows {
		span.EndsBatch, r.inBatch = true, 0
	}
}

// records yields all rows of a row group in the scan's schema.
func (r *run) records(ctx context.Context, f *openFile, group int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range f.src.records(ctx, group, f.columns, f.src.recordRows(group, r.options.RecordRows)) {
			if err == nil {
				if batch, err = f.columns.project(ctx, batch, r.reads, r.arrow, r.table.Metadata().Version()); err != nil {
					err = fmt.Errorf("file %q, row group %d: %w", f.src.path, group, err)
				}
			}
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// bytes are the bytes of columns of a row group in the file.
func (f *openFile) bytes(group int, columns columnMap) int64 {
	var n int64
	meta := f.src.reader.MetaData().RowGroup(group)
	for _, leaf := range columns.leaves {
		if chunk, err := meta.ColumnChunk(leaf); err == nil {
			n += chunk.TotalCompressedSize()
		}
	}
	return n
}

// cut slices a batch that it takes over.
func cut(batch arrow.RecordBatch, from, to int64) arrow.RecordBatch {
	out := batch.NewSlice(from, to)
	batch.Release()
	return out
}
