package datafile

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// valueSizes says what the values of an array take when written plainly.
type valueSizes struct {
	width int // of each; 0: by offsets
	o32   []int32
	o64   []int64
	bytes []parquet.ByteArray
}

func (s valueSizes) at(i int) int {
	switch {
	case s.width > 0:
		return s.width
	case s.o32 != nil:
		return int(s.o32[i+1]-s.o32[i]) + 4
	case s.bytes != nil:
		return len(s.bytes[i]) + 4
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
		l.countNaNs32(out)
		_, err = w.WriteBatch(out, def, rep)
	case *file.Float64ColumnChunkWriter:
		out := pick(&l.f64, fixedValues[float64](arr), v)
		l.countNaNs64(out)
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

func (l *leafEncoder) countNaNs32(values []float32) {
	for _, x := range values {
		if x != x {
			l.nans++
		}
	}
}

func (l *leafEncoder) countNaNs64(values []float64) {
	for _, x := range values {
		if x != x {
			l.nans++
		}
	}
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
