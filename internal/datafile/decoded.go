package datafile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// decoded is a run of rows of a flat leaf, as Parquet has them: definition levels and the values that are
// there. Which of the slices holds the values is told by the leaf's physical type. Its buffers stay for the
// next run of whatever leaf, and bytes lie in the library's page. One goroutine at a time has it.
type decoded struct {
	rows   int
	def    []int16 // nil where the leaf is required
	values int
	kind   parquet.Type

	levels []int16 // that def is a part of
	kept   []int32 // places of values

	i32   []int32
	i64   []int64
	f32   []float32
	f64   []float64
	bits  []bool
	bytes []parquet.ByteArray
	fixed []parquet.FixedLenByteArray
	slab  []byte

	packed bytes.Buffer // of the page that is compressed
}

// decodedRuns holds what workers had that are done, so that those of the next batch need not make buffers anew.
var decodedRuns = sync.Pool{New: func() any { return new(decoded) }}

// mostPacked is the largest buffer for a compressed page that is kept: that of a page of a few usual ones.
const mostPacked = 1 << 20

// giveBack has d serve another worker. Nothing of a file stays in it.
func (d *decoded) giveBack() {
	clear(d.bytes[:cap(d.bytes)])
	clear(d.fixed[:cap(d.fixed)])
	if d.packed.Cap() > mostPacked {
		d.packed = bytes.Buffer{}
	}
	decodedRuns.Put(d)
}

// read takes n rows at most from one page.
func (d *decoded) read(chunk file.ColumnChunkReader, n int64, optional bool) (int64, error) {
	k := int(n)
	d.def, d.kind = nil, chunk.Type()
	if optional {
		d.def = grow(&d.levels, k)
	}
	var rows int64
	var err error
	switch c := chunk.(type) {
	case *file.BooleanColumnChunkReader:
		rows, d.values, err = c.ReadBatchInPage(n, grow(&d.bits, k), d.def, nil)
	case *file.Int32ColumnChunkReader:
		rows, d.values, err = c.ReadBatchInPage(n, grow(&d.i32, k), d.def, nil)
	case *file.Int64ColumnChunkReader:
		rows, d.values, err = c.ReadBatchInPage(n, grow(&d.i64, k), d.def, nil)
	case *file.Float32ColumnChunkReader:
		rows, d.values, err = c.ReadBatchInPage(n, grow(&d.f32, k), d.def, nil)
	case *file.Float64ColumnChunkReader:
		rows, d.values, err = c.ReadBatchInPage(n, grow(&d.f64, k), d.def, nil)
	case *file.ByteArrayColumnChunkReader:
		rows, d.values, err = c.ReadBatchInPage(n, grow(&d.bytes, k), d.def, nil)
	case *file.FixedLenByteArrayColumnChunkReader:
		rows, d.values, err = c.ReadBatchInPage(n, grow(&d.fixed, k), d.def, nil)
	default:
		err = fmt.Errorf("no reader for Parquet type %s", chunk.Type())
	}
	if err != nil {
		return 0, err
	}
	d.rows = int(rows)
	there := d.rows
	if optional {
		d.def = d.def[:d.rows]
		there = 0
		for _, l := range d.def {
			there += int(l)
		}
	}
	if rows == 0 || d.values != there {
		return 0, fmt.Errorf("a page has %d values where its levels mean %d: the file is damaged", d.values, there)
	}
	return rows, nil
}

// decimalBound is what decimals of a precision are below.
type decimalBound struct {
	precision, scale int // precision 0: no decimal
	limit            decimal128.Num
}

func boundOf(precision, scale int) decimalBound {
	return decimalBound{precision, scale, decimal128.GetScaleMultiplier(precision)}
}

func (b decimalBound) fits(v decimal128.Num) bool {
	return v.Less(b.limit) && b.limit.Negate().Less(v)
}

func (b decimalBound) refuse(v decimal128.Num) error {
	return fmt.Errorf("%s does not fit decimal(%d, %d)", v.ToString(int32(b.scale)), b.precision, b.scale)
}

// convert brings the values to the physical type that is written, and checks decimals (case 29).
func (d *decoded) convert(to conversion, from *schema.Column, most decimalBound) error {
	switch to {
	case intToLong:
		out := grow(&d.i64, d.values)
		for i, v := range d.i32[:d.values] {
			out[i] = int64(v)
		}
	case floatToDouble:
		out := grow(&d.f64, d.values)
		for i, v := range d.f32[:d.values] {
			out[i] = float64(v)
		}
	}
	if most.precision == 0 {
		return nil
	}
	switch to {
	case asIs, intToLong:
		if from.PhysicalType() == parquet.Types.FixedLenByteArray {
			return d.eachBytes(most, func(int, decimal128.Num) {})
		}
		return d.checkSmall(from.PhysicalType() == parquet.Types.Int32 && to == asIs, most)
	case bytesToInt:
		out := grow(&d.i32, d.values)
		return d.eachBytes(most, func(i int, v decimal128.Num) { out[i] = int32(v.LowBits()) })
	case bytesToLong:
		out := grow(&d.i64, d.values)
		return d.eachBytes(most, func(i int, v decimal128.Num) { out[i] = int64(v.LowBits()) })
	}
	width := decimalBytes(most.precision)
	slab, out := grow(&d.slab, 16*d.values), grow(&d.fixed, d.values)
	put := func(i int, v decimal128.Num) {
		b := slab[16*i : 16*i+16]
		binary.BigEndian.PutUint64(b, uint64(v.HighBits()))
		binary.BigEndian.PutUint64(b[8:], v.LowBits())
		out[i] = b[16-width:]
	}
	if to == bytesToBytes {
		return d.eachBytes(most, put)
	}
	for i := range d.values {
		v := int64(0)
		if to == intToBytes {
			v = int64(d.i32[i])
		} else {
			v = d.i64[i]
		}
		n := decimal128.FromI64(v)
		if !most.fits(n) {
			return most.refuse(n)
		}
		put(i, n)
	}
	return nil
}

// checkSmall checks decimals of 18 digits at most.
func (d *decoded) checkSmall(narrow bool, most decimalBound) error {
	edge := int64(most.limit.LowBits())
	if narrow {
		for _, v := range d.i32[:d.values] {
			if int64(v) >= edge || int64(v) <= -edge {
				return most.refuse(decimal128.FromI64(int64(v)))
			}
		}
		return nil
	}
	for _, v := range d.i64[:d.values] {
		if v >= edge || v <= -edge {
			return most.refuse(decimal128.FromI64(v))
		}
	}
	return nil
}

// eachBytes reads decimals out of big-endian bytes.
func (d *decoded) eachBytes(most decimalBound, f func(int, decimal128.Num)) error {
	for i, b := range d.fixed[:d.values] {
		v, ok := bigEndian(b)
		if !ok || !most.fits(v) {
			return fmt.Errorf("the bytes %x do not fit decimal(%d, %d)", []byte(b), most.precision, most.scale)
		}
		f(i, v)
	}
	return nil
}

// bigEndian reads two's complement; not ok when it takes more than 128 bits.
func bigEndian(b []byte) (decimal128.Num, bool) {
	if len(b) == 0 {
		return decimal128.Num{}, false
	}
	fill := byte(int8(b[0]) >> 7)
	for len(b) > 16 {
		if b[0] != fill || b[1]>>7 != fill>>7 {
			return decimal128.Num{}, false
		}
		b = b[1:]
	}
	var whole [16]byte
	for i := range whole {
		whole[i] = fill
	}
	copy(whole[16-len(b):], b)
	return decimal128.New(int64(binary.BigEndian.Uint64(whole[:])), binary.BigEndian.Uint64(whole[8:])), true
}

// sizes says what the values take when written plainly as that physical type.
func (d *decoded) sizes(t parquet.Type) valueSizes {
	switch t {
	case parquet.Types.ByteArray:
		if d.values == 0 {
			return valueSizes{width: 1}
		}
		return valueSizes{bytes: d.bytes[:d.values]}
	case parquet.Types.FixedLenByteArray:
		if d.values == 0 {
			return valueSizes{width: 1}
		}
		return valueSizes{width: max(1, len(d.fixed[:d.values][0]))}
	case parquet.Types.Int64, parquet.Types.Double:
		return valueSizes{width: 8}
	case parquet.Types.Boolean:
		return valueSizes{width: 1}
	}
	return valueSizes{width: 4}
}

// writeDecoded hands values to the library's column writer.
func (l *leafEncoder) writeDecoded(d *decoded, v span, def, rep []int16) (err error) {
	from, to := v.lo, v.lo+v.n
	switch w := l.w.(type) {
	case *file.BooleanColumnChunkWriter:
		_, err = w.WriteBatch(d.bits[from:to], def, rep)
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(d.i32[from:to], def, rep)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(d.i64[from:to], def, rep)
	case *file.Float32ColumnChunkWriter:
		l.countNaNs32(d.f32[from:to])
		_, err = w.WriteBatch(d.f32[from:to], def, rep)
	case *file.Float64ColumnChunkWriter:
		l.countNaNs64(d.f64[from:to])
		_, err = w.WriteBatch(d.f64[from:to], def, rep)
	case *file.ByteArrayColumnChunkWriter:
		_, err = w.WriteBatch(d.bytes[from:to], def, rep)
	case *file.FixedLenByteArrayColumnChunkWriter:
		_, err = w.WriteBatch(d.fixed[from:to], def, rep)
	default:
		err = fmt.Errorf("no writer for Parquet type %s", l.w.Type())
	}
	return err
}
