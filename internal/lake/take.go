package lake

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A taker takes rows out of arrays, at indices that ascend. Flat ones it copies itself, since the library
// takes ten times as long; the rest is the library's.
type taker struct {
	indices []int32
	mem     memory.Allocator
	array   arrow.Array // the indices, once they were needed as an array
}

func (t *taker) release() {
	if t.array != nil {
		t.array.Release()
	}
}

// take returns the rows of an array, which the caller owns.
func (t *taker) take(ctx context.Context, arr arrow.Array) (arrow.Array, error) {
	data := arr.Data()
	buffers := data.Buffers()
	if len(buffers) < 2 || buffers[1] == nil {
		return t.byLibrary(ctx, arr)
	}
	var values []*memory.Buffer
	switch typ := storageType(arr.DataType()).(type) {
	case *arrow.DictionaryType:
		return t.byLibrary(ctx, arr)
	case *arrow.BooleanType:
		values = []*memory.Buffer{t.bits(buffers[1].Bytes(), data.Offset())}
	case *arrow.StringType, *arrow.BinaryType:
		if len(buffers) < 3 || buffers[2] == nil {
			return t.byLibrary(ctx, arr)
		}
		offsets := arrow.Int32Traits.CastFromBytes(buffers[1].Bytes())[data.Offset():]
		values = t.texts(offsets, buffers[2].Bytes())
	case arrow.FixedWidthDataType:
		values = []*memory.Buffer{t.fixed(buffers[1].Bytes(), data.Offset(), typ.BitWidth()/8)}
	default:
		return t.byLibrary(ctx, arr)
	}
	nulls := 0
	var valid *memory.Buffer
	if arr.NullN() > 0 {
		valid = t.bits(buffers[0].Bytes(), data.Offset())
		nulls = len(t.indices) - bitutil.CountSetBits(valid.Bytes(), 0, len(t.indices))
	}
	all := append([]*memory.Buffer{valid}, values...)
	out := array.NewData(arr.DataType(), len(t.indices), all, nil, nulls, 0)
	defer out.Release()
	for _, b := range all {
		if b != nil {
			b.Release()
		}
	}
	return array.MakeFromData(out), nil
}

func (t *taker) byLibrary(ctx context.Context, arr arrow.Array) (arrow.Array, error) {
	if t.array == nil {
		b := array.NewInt32Builder(t.mem)
		defer b.Release()
		b.AppendValues(t.indices, nil)
		t.array = b.NewArray()
	}
	return compute.TakeArray(compute.WithAllocator(ctx, t.mem), arr, t.array)
}

func (t *taker) buffer(bytes int) *memory.Buffer {
	b := memory.NewResizableBuffer(t.mem)
	b.Resize(bytes)
	return b
}

func (t *taker) bits(from []byte, offset int) *memory.Buffer {
	out := t.buffer(int(bitutil.BytesForBits(int64(len(t.indices)))))
	to := out.Bytes()
	clear(to)
	for i, at := range t.indices {
		if bitutil.BitIsSet(from, offset+int(at)) {
			bitutil.SetBit(to, i)
		}
	}
	return out
}

func (t *taker) fixed(from []byte, offset, width int) *memory.Buffer {
	out := t.buffer(len(t.indices) * width)
	from, to := from[offset*width:], out.Bytes()
	switch width {
	case 4:
		pick(arrow.Uint32Traits.CastFromBytes(to), arrow.Uint32Traits.CastFromBytes(from), t.indices)
	case 8:
		pick(arrow.Uint64Traits.CastFromBytes(to), arrow.Uint64Traits.CastFromBytes(from), t.indices)
	default:
		for i, at := range t.indices {
			copy(to[i*width:(i+1)*width], from[int(at)*width:])
		}
	}
	return out
}

func pick[T any](to, from []T, indices []int32) {
	for i, at := range indices {
		to[i] = from[at]
	}
}

// texts returns the offsets and the bytes.
func (t *taker) texts(offsets []int32, from []byte) []*memory.Buffer {
	starts := t.buffer(4 * (len(t.indices) + 1))
	to := arrow.Int32Traits.CastFromBytes(starts.Bytes())
	size := int32(0)
	for i, at := range t.indices {
		to[i] = size
		size += offsets[at+1] - offsets[at]
	}
	to[len(t.indices)] = size
	bytes := t.buffer(int(size))
	into := bytes.Bytes()
	for i := 0; i < len(t.indices); {
		first := t.indices[i]
		start := to[i]
		for i++; i < len(t.indices) && t.indices[i] == t.indices[i-1]+1; i++ {
		}
		copy(into[start:], from[offsets[first]:offsets[t.indices[i-1]+1]])
	}
	return []*memory.Buffer{starts, bytes}
}
