package lake

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
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
	columns columnMap
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
	if f.columns, err = f.src.columns(r.table.NameMapping(), r.wants(f.keys)); err != nil {
		f.src.close()
		return nil, err
	}
	f.columns.flat, f.columns.nested = r.leaves(f.columns)
	f.known = r.known(task.File)
	return f, nil
}

// group yields the spans of a row group of n rows, cut where batches end: promises where no row is
// deleted, else record batches.
func (r *run) group(ctx context.Context, f *openFile, at rows.Cursor, before, n, skip int64, yield func(rows.Span, error) bool) (bool, error) {
	plain := f.deleted == nil && len(f.keys) == 0 && r.filter == nil
	if plain && skip == n {
		return true, nil
	}
	r.bytes += f.bytes(at.RowGroup)
	if plain && skip < n {
		return r.parts(ctx, f, at, n, skip, yield), nil
	}
	if r.filter != nil {
		return r.filtered(ctx, f, at, before, skip, yield)
	}
	for batch, err := range r.live(ctx, f, at.RowGroup, before) {
		if err != nil {
			return false, err
		}
		if gone := min(skip, batch.NumRows()); gone > 0 {
			skip -= gone
			at = at.Advance(gone)
			batch = cut(batch, gone, batch.NumRows())
		}
		for left := batch; left != nil; {
			room := r.room()
			if room == 0 || left.NumRows() == 0 {
				left.Release()
				break
			}
			part := left
			left = nil
			if part.NumRows() > room {
				part, left = part.NewSlice(0, room), cut(part, room, part.NumRows())
			}
			at = at.Advance(part.NumRows())
			if !yield(r.take(part, at), nil) {
				if left != nil {
					left.Release()
				}
				return false, nil
			}
		}
		if r.full() {
			return true, nil
		}
	}
	return true, r.short(f, at, skip)
}

// short refuses a row group that ended before the start of the scan.
func (r *run) short(f *openFile, at rows.Cursor, skip int64) error {
	if skip > 0 {
		return fmt.Errorf("file %q, row group %d has fewer live rows than cursor %s: the source changed", f.src.path, at.RowGroup, r.header.First)
	}
	return nil
}

// room is how many rows still fit into the open batch, and under the limit.
func (r *run) room() int64 {
	room := r.options.BatchRows - r.inBatch
	if r.options.Limit > 0 {
		room = min(room, r.options.Limit-r.rows)
	}
	return room
}

// take makes the span of a record batch that ends at to, and moves on.
func (r *run) take(batch arrow.RecordBatch, to rows.Cursor) rows.Span {
	span := rows.Span{From: r.at, To: to, Rows: batch.NumRows(), Batch: batch}
	r.move(&span)
	return span
}

func (r *run) move(span *rows.Span) {
	r.at = span.To
	r.rows += span.Rows
	r.inBatch += span.Rows
	if r.inBatch == r.options.BatchRows {
		span.EndsBatch, r.inBatch = true, 0
	}
}

// live yields the rows of a row group that no delete took out, in the scan's schema. before is the
// position of its first row in the file.
func (r *run) live(ctx context.Context, f *openFile, group int, before int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		fail := func(err error) {
			yield(nil, fmt.Errorf("file %q, row group %d: %w", f.src.path, group, err))
		}
		for batch, err := range f.src.records(ctx, group, f.columns, f.src.recordRows(group, r.options.RecordRows)) {
			if err != nil {
				yield(nil, err)
				return
			}
			n := batch.NumRows()
			if batch, err = f.undeleted(ctx, batch, before, r.table.Metadata().Version(), r.options); err != nil {
				fail(err)
				return
			}
			before += n
			if batch.NumRows() == 0 {
				batch.Release()
				continue
			}
			if batch, err = f.columns.project(ctx, batch, r.reads, r.wholeAs, r.table.Metadata().Version()); err != nil {
				fail(err)
				return
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// undeleted takes the deleted rows out of a batch whose first row is at position before. It takes the
// batch over.
func (f *openFile) undeleted(ctx context.Context, batch arrow.RecordBatch, before int64, version int, o ScanOptions) (arrow.RecordBatch, error) {
	if f.deleted == nil && len(f.keys) == 0 {
		return batch, nil
	}
	dead := make([]bool, batch.NumRows())
	for i := range dead {
		dead[i] = f.deleted != nil && f.deleted.Contains(uint64(before)+uint64(i))
	}
	for _, k := range f.keys {
		if err := k.mark(ctx, f.columns, batch, version, dead); err != nil {
			batch.Release()
			return nil, err
		}
	}
	return keep(ctx, batch, func(row int) bool { return !dead[row] }, o.Memory)
}

// bytes are the bytes of a row group's columns in the file.
func (f *openFile) bytes(group int) int64 {
	var n int64
	meta := f.src.reader.MetaData().RowGroup(group)
	for _, leaf := range f.columns.leaves {
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
