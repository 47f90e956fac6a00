package plan

import (
	"bytes"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A fill makes data of a type out of nothing: nulls, or a value over and over.
type fill struct {
	to    arrow.DataType
	path  string
	value []byte // as literalOf gives it; not used when null
	null  bool
}

func compileFill(c *Column, target arrow.DataType) (fill, error) {
	f := fill{to: target, path: quote(c.Path), null: c.Action != Default}
	if f.null {
		return f, nil
	}
	var err error
	if f.value, err = literalOf(c.Target.WriteDefault, c.Target.Type); err != nil {
		return f, fmt.Errorf("column %s: its write-default cannot be written: %w", f.path, err)
	}
	return f, nil
}

// nullStep fills a column whose source is always null.
func nullStep(c *Column, target arrow.DataType) (step, error) {
	if target.ID() == arrow.NULL {
		return nil, nil
	}
	return nulls{fill{to: target, path: quote(c.Path), null: true}}, nil
}

type nulls struct{ fill fill }

func (nulls) checks() bool { return false }

func (s nulls) do(r *run, in arrow.ArrayData, _ bitmap) (arrow.ArrayData, error) {
	return s.fill.make(r, in.Len())
}

func (f fill) make(r *run, n int) (arrow.ArrayData, error) {
	if f.null {
		return f.nulls(r, f.to, n)
	}
	return f.values(r, n)
}

// nulls makes n nulls of a type at any depth, out of one shared buffer of zeros.
func (f fill) nulls(r *run, t arrow.DataType, n int) (arrow.ArrayData, error) {
	if t.ID() == arrow.NULL {
		return array.NewData(t, n, []*memory.Buffer{nil}, nil, n, 0), nil
	}
	buffers := []*memory.Buffer{r.zeros((n + 7) / 8)}
	var kids []arrow.ArrayData
	defer func() { releaseAll(kids) }()
	switch t := t.(type) {
	case *arrow.StructType, *arrow.ListType, *arrow.MapType:
		inside := n
		if _, isStruct := t.(*arrow.StructType); !isStruct {
			buffers = append(buffers, r.zeros((n+1)*4))
			inside = 0
		}
		for _, child := range childTypes(t) {
			kid, err := f.nulls(r, child, inside)
			if err != nil {
				return nil, err
			}
			kids = append(kids, kid)
		}
	case *arrow.StringType, *arrow.BinaryType:
		buffers = append(buffers, r.zeros((n+1)*4), r.zeros(0))
	default:
		size, err := f.size(t, n)
		if err != nil {
			return nil, err
		}
		buffers = append(buffers, r.zeros(size))
	}
	return array.NewData(t, n, buffers, kids, n, 0), nil
}

// size returns the bytes of n values of a fixed width.
func (f fill) size(t arrow.DataType, n int) (int, error) {
	bits := t.(arrow.FixedWidthDataType).BitWidth()
	size := (int64(n)*int64(bits) + 7) / 8
	if size > math.MaxInt32 {
		return 0, tooLarge(f.path)
	}
	return int(size), nil
}

// values makes n copies of the value.
func (f fill) values(r *run, n int) (arrow.ArrayData, error) {
	var buffers []*memory.Buffer
	switch t := f.to.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		if int64(n)*int64(len(f.value)) > math.MaxInt32 {
			return nil, tooLarge(f.path)
		}
		ends, text := r.buffer((n+1)*4), r.buffer(n*len(f.value))
		for i, out := 0, arrow.Int32Traits.CastFromBytes(ends.Bytes()); i <= n; i++ {
			out[i] = int32(i * len(f.value))
		}
		copy(text.Bytes(), bytes.Repeat(f.value, n))
		buffers = []*memory.Buffer{nil, ends, text}
	case *arrow.BooleanType:
		bits := r.buffer((n + 7) / 8)
		memory.Set(bits.Bytes(), f.value[0]*0xff)
		buffers = []*memory.Buffer{nil, bits}
	default:
		size, err := f.size(t, n)
		if err != nil {
			return nil, err
		}
		b := r.buffer(size)
		for out := b.Bytes(); len(out) > 0; {
			out = out[copy(out, f.value):]
		}
		buffers = []*memory.Buffer{nil, b}
	}
	defer func() {
		for _, b := range buffers {
			release(b)
		}
	}()
	return array.NewData(f.to, n, buffers, nil, 0, 0), nil
}
