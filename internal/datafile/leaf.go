package datafile

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// writeRows is how many levels are handed to the library at most in one call. It looks at the page's
// size and at the worth of the dictionary after each call: too few, and a dictionary that would
// pay is given up on its first values.
const writeRows = 20000

// leafEncoder makes chunks of one leaf. Its buffers stay for the next chunk.
type leafEncoder struct {
	leaf  *Leaf
	index int
	w     file.ColumnChunkWriter // nil: no chunk is open
	meta  *metadata.ColumnChunkMetaDataBuilder
	sink  *Sink
	nans  int64

	pageRows int   // rows in the open page
	pageSeen int64 // bytes of finished pages when last looked

	i32   []int32
	i64   []int64
	f32   []float32
	f64   []float64
	bits  []bool
	bytes []parquet.ByteArray
	fixed []parquet.FixedLenByteArray
	slab  []byte
}

func (l *leafEncoder) open() error {
	l.sink = &Sink{}
	l.meta = metadata.NewColumnChunkMetaDataBuilder(l.leaf.Props, l.leaf.Col)
	path := l.leaf.Col.Path()
	props := l.leaf.Props
	pw, err := file.NewPageWriter(l.sink, props.CompressionFor(path), props.CompressionLevelFor(path), l.meta, 0, int16(l.index), memory.DefaultAllocator, false, nil, nil)
	if err != nil {
		return err
	}
	l.w = file.NewColumnChunkWriter(l.meta, pager{pw, l.sink}, props)
	l.nans, l.pageRows, l.pageSeen = 0, 0, 0
	return nil
}

// finish ends the open chunk, which then is the caller's.
func (l *leafEncoder) finish(rows int64) (Chunk, error) {
	if err := l.w.Close(); err != nil {
		return Chunk{}, err
	}
	l.w = nil
	return Chunk{Leaf: l.index, Rows: rows, NaNs: l.nans, meta: l.meta, base: sinkBase, body: l.sink}, nil
}

// discard gives an unfinished chunk up.
func (l *leafEncoder) discard() {
	if l.w == nil {
		return
	}
	_ = l.w.Close() // what it would write into the sink is dropped with it
	l.sink.Release()
	l.w = nil
}

// put writes the values that v means with their levels; def and rep are nil where the leaf has none.
// Every value that v means is there, and def has as many at the leaf's own level.
func (l *leafEncoder) put(arr arrow.Array, v span, def, rep []int16) error {
	levels := len(def)
	if def == nil {
		levels = v.n
	}
	if levels == 0 {
		return nil
	}
	size, err := sizes(arr)
	if err != nil {
		return fmt.Errorf("column %q: %w", l.leaf.Name, err)
	}
	for at, val := 0, 0; at < levels; {
		d, r := tail(def, at), tail(rep, at)
		k, nv, rows := l.cut(size, v.sub(val, v.n-val), levels-at, d, r)
		if err := l.write(arr, v.sub(val, nv), head(d, k), head(r, k)); err != nil {
			return fmt.Errorf("column %q: %w", l.leaf.Name, err)
		}
		if err := l.endPage(rows); err != nil {
			return fmt.Errorf("column %q: %w", l.leaf.Name, err)
		}
		at, val = at+k, val+nv
	}
	return nil
}

func tail(s []int16, i int) []int16 {
	if s == nil {
		return nil
	}
	return s[i:]
}

func head(s []int16, n int) []int16 {
	if s == nil {
		return nil
	}
	return s[:n:n]
}

// cut says how many levels to hand over in one call, how many values and rows that is: whole rows, at
// least one, as many as a page may hold.
func (l *leafEncoder) cut(size valueSizes, v span, levels int, def, rep []int16) (k, nv, rows int) {
	most := writeRows
	if l.leaf.pageRows > 0 {
		most = min(most, l.leaf.pageRows-l.pageRows)
	}
	full := l.leaf.Col.MaxDefinitionLevel()
	if rep == nil && size.width > 0 {
		k = min(levels, most, max(1, l.leaf.pageSize/size.width))
		nv = k
		if def != nil {
			nv = 0
			for _, d := range def[:k] {
				if d == full {
					nv++
				}
			}
		}
		return k, nv, k
	}
	room := l.leaf.pageSize
	for k < levels {
		if rep == nil || rep[k] == 0 {
			if rows == most || k >= writeRows || room <= 0 {
				break
			}
			rows++
		}
		if def == nil || def[k] == full {
			room -= size.at(v.at(nv))
			nv++
		}
		k++
	}
	return k, nv, rows
}

// endPage ends the page when it has as many rows as the table allows.
func (l *leafEncoder) endPage(rows int) error {
	if l.leaf.pageRows == 0 {
		return nil
	}
	l.pageRows += rows
	if done := l.w.TotalCompressedBytes(); done != l.pageSeen {
		l.pageRows, l.pageSeen = 0, done
	}
	if l.pageRows < l.leaf.pageRows {
		return nil
	}
	if err := l.w.(interface{ FlushCurrentPage() error }).FlushCurrentPage(); err != nil {
		return err
	}
	l.pageRows, l.pageSeen = 0, l.w.TotalCompressedBytes()
	return nil
}

// valueSizes says what the values of an array take when written plainly.
type valueSizes struct {
	width int // of each; 0: by offsets
	o32   []int32
	o64   []int64
}

func (s valueSizes) at(i int) int {
	switch {
	case s.width > 0:
		return s.width
	case s.o32 != nil:
		return int(s.o32[i+1]-s.o32[i]) + 4
	}
	return int(s.o64[i+1]-s.o64[i]) + 4
}

func sizes(arr arrow.Array) (valueSizes, error) {
	if arr.Len() == 0 { // there may be no offsets then
		return valueSizes{width: 1}, nil
	}
	switch a := arr.(type) {
	case *array.String:
		return valueSizes{o32: a.ValueOffsets()}, nil
	case *array.Binary:
		return valueSizes{o32: a.ValueOffsets()}, nil
	case *array.LargeString:
		return valueSizes{o64: a.ValueOffsets()}, nil
	case *array.LargeBinary:
		return valueSizes{o64: a.ValueOffsets()}, nil
	case *array.Boolean:
		return valueSizes{width: 1}, nil
	}
	if t, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
		return valueSizes{width: max(1, t.BitWidth()/8)}, nil
	}
	return valueSizes{}, fmt.Errorf("an Arrow %s cannot be written", arr.DataType())
}

// fixedValues are the values of an array of fixed width, from its offset on.
func fixedValues[T arrow.FixedWidthType](arr arrow.Array) []T {
	d := arr.Data()
	if b := d.Buffers()[1]; b != nil && d.Len() > 0 {
		return arrow.GetData[T](b.Bytes())[d.Offset() : d.Offset()+d.Len()]
	}
	return make([]T, d.Len()) // all null
}

// write hands values to the library's column writer.
func (l *leafEncoder) write(arr arrow.Array, v span, def, rep []int16) (err error) {
	switch w := l.w.(type) {
	case *file.BooleanColumnChunkWriter:
		b := arr.(*array.Boolean)
		out := grow(&l.bits, v.n)
		for i := range out {
			out[i] = b.Value(v.at(i))
		}
		_, err = w.WriteBatch(out, def, rep)
	case *file.Int32ColumnChunkWriter:
		if d, ok := arr.(*array.Decimal128); ok {
			out := grow(&l.i32, v.n)
			for i := range out {
				out[i] = int32(d.Value(v.at(i)).LowBits())
			}
			_, err = w.WriteBatch(out, def, rep)
			break
		}
		_, err = w.WriteBatch(pick(&l.i32, fixedValues[int32](arr), v), def, rep)
	case *file.Int64ColumnChunkWriter:
		if d, ok := arr.(*array.Decimal128); ok {
			out := grow(&l.i64, v.n)
			for i := range out {
				out[i] = int64(d.Value(v.at(i)).LowBits())
			}
			_, err = w.WriteBatch(out, def, rep)
			break
		}
		_, err = w.WriteBatch(pick(&l.i64, fixedValues[int64](arr), v), def, rep)
	case *file.Float32ColumnChunkWriter:
		out := pick(&l.f32, fixedValues[float32](arr), v)
		for _, x := range out {
			if x != x {
				l.nans++
			}
		}
		_, err = w.WriteBatch(out, def, rep)
	case *file.Float64ColumnChunkWriter:
		out := pick(&l.f64, fixedValues[float64](arr), v)
		for _, x := range out {
			if math.IsNaN(x) {
				l.nans++
			}
		}
		_, err = w.WriteBatch(out, def, rep)
	case *file.ByteArrayColumnChunkWriter:
		err = l.writeBytes(w, arr, v, def, rep)
	case *file.FixedLenByteArrayColumnChunkWriter:
		_, err = w.WriteBatch(l.fixedBytes(arr, v), def, rep)
	default:
		err = fmt.Errorf("no writer for Parquet type %s", l.w.Type())
	}
	return err
}

func (l *leafEncoder) writeBytes(w *file.ByteArrayColumnChunkWriter, arr arrow.Array, v span, def, rep []int16) (err error) {
	if v.n == 0 {
		_, err = w.WriteBatch(nil, def, rep)
		return err
	}
	var data []byte
	if b := arr.Data().Buffers()[2]; b != nil {
		data = b.Bytes()
	}
	size, err := sizes(arr)
	if err != nil {
		return err
	}
	straight := v.idx == nil && w.SupportsArrowOffsets() // false while there is a dictionary
	switch {
	case straight && size.o32 != nil:
		_, err = w.WriteBatchArrow(data, size.o32[v.lo:v.lo+v.n+1], def, rep)
	case straight:
		_, err = w.WriteBatchArrow64(data, size.o64[v.lo:v.lo+v.n+1], def, rep)
	case size.o32 != nil:
		_, err = w.WriteBatch(gatherBytes(&l.bytes, data, size.o32, v), def, rep)
	default:
		_, err = w.WriteBatch(gatherBytes(&l.bytes, data, size.o64, v), def, rep)
	}
	return err
}

func gatherBytes[O int32 | int64](buf *[]parquet.ByteArray, data []byte, offsets []O, v span) []parquet.ByteArray {
	out := grow(buf, v.n)
	if v.idx == nil {
		for i := range out {
			a, b := offsets[v.lo+i], offsets[v.lo+i+1]
			out[i] = data[a:b:b]
		}
		return out
	}
	for i, p := range v.idx {
		a, b := offsets[p], offsets[p+1]
		out[i] = data[a:b:b]
	}
	return out
}

// fixedBytes gives values of fixed length: as they are, or a decimal's in big-endian.
func (l *leafEncoder) fixedBytes(arr arrow.Array, v span) []parquet.FixedLenByteArray {
	out := grow(&l.fixed, v.n)
	width := l.leaf.Col.TypeLength()
	if d, ok := arr.(*array.Decimal128); ok {
		slab := grow(&l.slab, 16*v.n)
		for i := range out {
			x, b := d.Value(v.at(i)), slab[16*i:16*i+16]
			binary.BigEndian.PutUint64(b, uint64(x.HighBits()))
			binary.BigEndian.PutUint64(b[8:], x.LowBits())
			out[i] = b[16-width:]
		}
		return out
	}
	a := arr.(*array.FixedSizeBinary)
	for i := range out {
		out[i] = a.Value(v.at(i))
	}
	return out
}
