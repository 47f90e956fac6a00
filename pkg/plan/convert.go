package plan

import (
	"context"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// fixedStep turns values of one fixed width into values of another, by plain where every value has
// a counterpart, else by convert, which says what rule a value breaks that has none ("": it has one).
// Where converting remembers something, fresh makes a convert for one array.
type fixedStep[S, D arrow.FixedWidthType] struct {
	to      arrow.DataType
	at      site
	plain   func(S) D
	convert func(S) (D, string)
	fresh   func() func(S) (D, string)
	show    func(S) string // nil prints it as it is
}

func (s *fixedStep[S, D]) checks() bool { return s.plain == nil }

func (s *fixedStep[S, D]) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	values, err := valuesOf[S](in, s.at.path)
	if err != nil {
		return nil, err
	}
	b := r.buffer(in.Len() * arrowSize[D]())
	out := arrow.GetData[D](b.Bytes())[:len(values)]
	if s.plain != nil {
		for i, v := range values {
			out[i] = s.plain(v)
		}
		valid := validity(r, in)
		defer release(valid)
		defer b.Release()
		return array.NewData(s.to, in.Len(), []*memory.Buffer{valid, b}, nil, nullCount(in, valid), 0), nil
	}
	slots := r.slots(in, dead, s.at)
	if err := s.each(values, out, slots); err != nil {
		slots.leave()
		b.Release()
		return nil, err
	}
	return slots.end(s.to, b), nil
}

// each converts the values that count; the others become zero.
func (s *fixedStep[S, D]) each(values []S, out []D, slots *slots) error {
	convert := s.convert
	if s.fresh != nil {
		convert = s.fresh()
	}
	for i, v := range values {
		d, rule := convert(v)
		if rule != "" {
			if slots.counts(i) {
				if err := slots.fail(i, func() string { return s.text(v) }, rule); err != nil {
					return err
				}
			}
			var zero D
			d = zero
		}
		out[i] = d
	}
	return nil
}

func (s *fixedStep[S, D]) text(v S) string {
	if s.show != nil {
		return s.show(v)
	}
	return fmt.Sprint(v)
}

// widen turns numbers into numbers of a type that holds all of them.
func widen[S int8 | int16 | int32 | uint8 | uint16 | uint32 | float32, D int32 | int64 | float64](to arrow.DataType, path string) step {
	return &widenStep[S, D]{to, path}
}

type widenStep[S int8 | int16 | int32 | uint8 | uint16 | uint32 | float32, D int32 | int64 | float64] struct {
	to   arrow.DataType
	path string
}

func (s *widenStep[S, D]) checks() bool { return false }

func (s *widenStep[S, D]) do(r *run, in arrow.ArrayData, _ bitmap) (arrow.ArrayData, error) {
	values, err := valuesOf[S](in, s.path)
	if err != nil {
		return nil, err
	}
	valid := validity(r, in)
	defer release(valid)
	b := r.buffer(in.Len() * arrowSize[D]())
	defer b.Release()
	out := arrow.GetData[D](b.Bytes())[:len(values)]
	for i, v := range values {
		out[i] = D(v)
	}
	return array.NewData(s.to, in.Len(), []*memory.Buffer{valid, b}, nil, nullCount(in, valid), 0), nil
}

// divided turns counts of a unit into counts of a larger one, where nothing is lost.
func divided[S, D arrow.IntType | arrow.Date64](to arrow.DataType, at site, by int64, rule string) step {
	return &fixedStep[S, D]{to: to, at: at, convert: func(v S) (D, string) {
		q := int64(v) / by
		if int64(v)%by != 0 || int64(D(q)) != q {
			return 0, rule
		}
		return D(q), ""
	}}
}

// multiplied turns counts of a unit into counts of a smaller one.
func multiplied(to arrow.DataType, at site, by int64, rule string) step {
	return &fixedStep[int64, int64]{to: to, at: at, convert: func(v int64) (int64, string) {
		p, ok := multiply(v, by)
		if !ok {
			return 0, rule
		}
		return p, ""
	}}
}

// valuesOf returns the values of in's slots.
func valuesOf[T arrow.FixedWidthType](in arrow.ArrayData, path string) ([]T, error) {
	b := in.Buffers()[1]
	if in.Len() == 0 {
		return nil, nil
	}
	if b == nil || b.Len() < (in.Offset()+in.Len())*arrowSize[T]() {
		return nil, fmt.Errorf("column %s: its buffer is too short for %d values", path, in.Offset()+in.Len())
	}
	return arrow.GetValues[T](in, 1), nil
}

func arrowSize[T arrow.FixedWidthType]() int { return len(arrow.GetBytes(make([]T, 1))) }

// largeBytes turns 64-bit offsets into 32-bit ones; the bytes are shared.
type largeBytes struct {
	to   arrow.DataType
	path string
}

func (largeBytes) checks() bool { return false }

func (s largeBytes) do(r *run, in arrow.ArrayData, _ bitmap) (arrow.ArrayData, error) {
	valid := validity(r, in)
	defer release(valid)
	if in.Len() == 0 {
		return array.NewData(s.to, 0, []*memory.Buffer{nil, r.zeros(4), r.zeros(0)}, nil, 0, 0), nil
	}
	ends, lo, hi, err := rebase[int64](r, in.Buffers()[1], in.Offset(), in.Len(), s.path)
	if err != nil {
		return nil, err
	}
	defer ends.Release()
	text := r.zeros(0)
	if raw := in.Buffers()[2]; hi > lo {
		if raw == nil || int64(raw.Len()) < hi {
			return nil, fmt.Errorf("column %s: its buffer is too short", s.path)
		}
		text = memory.SliceBuffer(raw, int(lo), int(hi-lo))
		defer text.Release()
	}
	return array.NewData(s.to, in.Len(), []*memory.Buffer{valid, ends, text}, nil, nullCount(in, valid), 0), nil
}

// viewBytes gathers views into one buffer.
type viewBytes struct {
	to   arrow.DataType
	path string
}

func (viewBytes) checks() bool { return false }

func (s viewBytes) do(r *run, in arrow.ArrayData, _ bitmap) (arrow.ArrayData, error) {
	arr := array.MakeFromData(in)
	defer arr.Release()
	value := func(int) string { return "" }
	switch a := arr.(type) {
	case *array.StringView:
		value = a.Value
	case *array.BinaryView:
		value = func(i int) string { return string(a.Value(i)) }
	}
	size := int64(0)
	for i := range in.Len() {
		if arr.IsValid(i) {
			size += int64(len(value(i)))
		}
	}
	if size > math.MaxInt32 {
		return nil, tooLarge(s.path)
	}
	ends, text := r.buffer((in.Len()+1)*4), r.buffer(int(size))
	defer ends.Release()
	defer text.Release()
	out, n := arrow.Int32Traits.CastFromBytes(ends.Bytes()), 0
	out[0] = 0
	for i := range in.Len() {
		if arr.IsValid(i) {
			n += copy(text.Bytes()[n:], value(i))
		}
		out[i+1] = int32(n)
	}
	valid := validity(r, in)
	defer release(valid)
	return array.NewData(s.to, in.Len(), []*memory.Buffer{valid, ends, text}, nil, nullCount(in, valid), 0), nil
}

// decoded takes the values of a dictionary or of runs apart (case 7), then does a step on them.
type decoded struct {
	then step // nil: nothing
	path string
}

func (z compiler) decoded(c *Column, f arrow.Field, value, target arrow.DataType) (step, error) {
	f.Type = value
	switch value.ID() {
	case arrow.DICTIONARY, arrow.RUN_END_ENCODED, arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return nil, refuseArrow(c, f)
	}
	if _, nested := value.(arrow.NestedType); nested {
		return nil, refuseArrow(c, f)
	}
	then, err := z.value(c, f, target)
	return decoded{then: then, path: quote(c.Path)}, err
}

func (s decoded) checks() bool { return s.then != nil && s.then.checks() }

func (s decoded) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	arr := array.MakeFromData(in)
	defer arr.Release()
	var values, places arrow.Array
	switch a := arr.(type) {
	case *array.Dictionary:
		values, places = a.Dictionary(), a.Indices()
		values.Retain()
		places.Retain()
	case *array.RunEndEncoded:
		values, places = a.Values(), physical(r, a)
		values.Retain()
	}
	defer values.Release()
	defer places.Release()
	ctx := compute.WithAllocator(context.Background(), r.p.mem)
	flat, err := compute.TakeArrayOpts(ctx, values, places, compute.TakeOptions{BoundsCheck: true})
	if err != nil {
		return nil, fmt.Errorf("column %s: decode: %w", s.path, err)
	}
	defer flat.Release()
	if s.then == nil {
		flat.Data().Retain()
		return flat.Data(), nil
	}
	return s.then.do(r, flat.Data(), dead)
}

// physical returns the place of each slot's value among the values of the runs.
func physical(r *run, a *array.RunEndEncoded) arrow.Array {
	b := array.NewInt64Builder(r.p.mem)
	defer b.Release()
	b.Reserve(a.Len())
	for i := range a.Len() {
		b.UnsafeAppend(int64(a.GetPhysicalIndex(i)))
	}
	return b.NewArray()
}
