package plan

import (
	"fmt"
	"math"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// relabel gives data another type of the same layout. Nothing is copied.
type relabel struct{ to arrow.DataType }

// reread is a relabel that makes other values of the same bytes: a cast.
type reread struct{ relabel }

func (relabel) checks() bool { return false }

func (s relabel) do(_ *run, in arrow.ArrayData, _ bitmap) (arrow.ArrayData, error) {
	return relabelled(in, s.to), nil
}

func relabelled(in arrow.ArrayData, to arrow.DataType) arrow.ArrayData {
	fields := childTypes(to)
	kids := make([]arrow.ArrayData, len(fields))
	for i, t := range fields {
		kids[i] = relabelled(in.Children()[i], t)
		defer kids[i].Release()
	}
	return array.NewData(to, in.Len(), in.Buffers(), kids, in.NullN(), in.Offset())
}

func childTypes(t arrow.DataType) []arrow.DataType {
	switch t := t.(type) {
	case *arrow.StructType:
		types := make([]arrow.DataType, t.NumFields())
		for i := range types {
			types[i] = t.Field(i).Type
		}
		return types
	case *arrow.MapType:
		return []arrow.DataType{t.Elem()}
	case *arrow.ListType:
		return []arrow.DataType{t.Elem()}
	}
	return nil
}

// structStep puts a struct together from fields of another.
type structStep struct {
	to    *arrow.StructType
	slots []slot
	check bool
}

func (s *structStep) checks() bool { return s.check }

func (s *structStep) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	valid := validity(r, in)
	defer release(valid)
	if s.check {
		dead = alsoNull(dead, valid, in.Len())
	}
	kids := make([]arrow.ArrayData, 0, len(s.slots))
	defer func() { releaseAll(kids) }()
	for _, f := range s.slots {
		kid, err := s.field(r, f, in, dead)
		if err != nil {
			return nil, err
		}
		kids = append(kids, kid)
	}
	return array.NewData(s.to, in.Len(), []*memory.Buffer{valid}, kids, nullCount(in, valid), 0), nil
}

func (s *structStep) field(r *run, f slot, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	if f.from < 0 {
		return f.fill.make(r, in.Len())
	}
	kid := in.Children()[f.from]
	if kid.Len() < in.Offset()+in.Len() {
		return nil, fmt.Errorf("a struct of %d rows has a field of %d", in.Offset()+in.Len(), kid.Len())
	}
	part := array.NewSliceData(kid, int64(in.Offset()), int64(in.Offset()+in.Len()))
	if f.step == nil {
		return part, nil
	}
	defer part.Release()
	return f.step.do(r, part, dead)
}

// listStep makes a list, or a map, with another element. The ranges of null lists stay.
type listStep struct {
	to      arrow.DataType
	path    string
	element step // nil takes the elements as they are
	wide    bool // 64-bit offsets
	fixed   bool // lists of width elements, no offsets
	width   int
	entries bool // the elements are entries of a map
}

func (s *listStep) checks() bool { return s.element != nil && s.element.checks() }

func (s *listStep) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	kid := in.Children()[0]
	offsets, lo, hi, err := s.offsets(r, in)
	if err != nil {
		return nil, err
	}
	defer offsets.Release()
	if hi > int64(kid.Len()) {
		return nil, fmt.Errorf("column %s: a list ends at element %d of %d", s.path, hi, kid.Len())
	}
	valid := validity(r, in)
	defer release(valid)

	elements := array.NewSliceData(kid, lo, hi)
	if s.element != nil {
		var inside bitmap
		ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())[:in.Len()+1] // shared ones go on behind a slice
		if s.checks() {
			inside = spread(alsoNull(dead, valid, in.Len()), ends, int(hi-lo))
		}
		before := len(r.failed)
		made, err := s.element.do(r, elements, inside)
		elements.Release()
		if err != nil {
			return nil, inList(err, ends)
		}
		for _, e := range r.failed[before:] {
			e.Row = listOf(e.Row, ends)
		}
		r.failed = append(r.failed[:before], firstOfRows(r.failed[before:])...)
		elements = made
	}
	defer elements.Release()
	if s.entries {
		if err := s.checkEntries(elements); err != nil {
			return nil, err
		}
	}
	return array.NewData(s.to, in.Len(), []*memory.Buffer{valid, offsets}, []arrow.ArrayData{elements}, nullCount(in, valid), 0), nil
}

// offsets returns the 32-bit offsets of in's lists from its first element on, and the range of
// elements that they cover.
func (s *listStep) offsets(r *run, in arrow.ArrayData) (b *memory.Buffer, lo, hi int64, err error) {
	n := in.Len()
	if s.fixed {
		lo, hi = int64(in.Offset()*s.width), int64((in.Offset()+n)*s.width)
		if hi-lo > math.MaxInt32 {
			return nil, 0, 0, tooLarge(s.path)
		}
		b = r.buffer((n + 1) * 4)
		for i, out := 0, arrow.Int32Traits.CastFromBytes(b.Bytes()); i <= n; i++ {
			out[i] = int32(i * s.width)
		}
		return b, lo, hi, nil
	}
	if n == 0 { // then there may be no offsets at all
		return r.zeros(4), 0, 0, nil
	}
	raw := in.Buffers()[1]
	if s.wide {
		return rebase[int64](r, raw, in.Offset(), n, s.path)
	}
	if in.Offset() == 0 && raw != nil && raw.Len() >= (n+1)*4 {
		if ends := arrow.Int32Traits.CastFromBytes(raw.Bytes()); ends[0] == 0 && increasing(ends[:n+1]) {
			raw.Retain()
			return raw, 0, int64(ends[n]), nil
		}
	}
	return rebase[int32](r, raw, in.Offset(), n, s.path)
}

// rebase copies n+1 offsets from place off on, less the first of them.
func rebase[T int32 | int64](r *run, raw *memory.Buffer, off, n int, path string) (*memory.Buffer, int64, int64, error) {
	var in []T
	if raw != nil {
		in = arrow.GetData[T](raw.Bytes())
	}
	if len(in) < off+n+1 {
		return nil, 0, 0, fmt.Errorf("column %s: %d offsets for %d values", path, len(in), off+n)
	}
	in = in[off : off+n+1]
	lo, hi := int64(in[0]), int64(in[n])
	if lo < 0 || !increasing(in) {
		return nil, 0, 0, fmt.Errorf("column %s: the offsets go backwards", path)
	}
	if hi-lo > math.MaxInt32 {
		return nil, 0, 0, tooLarge(path)
	}
	b := r.buffer((n + 1) * 4)
	for i, out := 0, arrow.Int32Traits.CastFromBytes(b.Bytes()); i <= n; i++ {
		out[i] = int32(int64(in[i]) - lo)
	}
	return b, lo, hi, nil
}

func increasing[T int32 | int64](ends []T) bool {
	for i := 1; i < len(ends); i++ {
		if ends[i] < ends[i-1] {
			return false
		}
	}
	return true
}

func tooLarge(path string) error {
	return fmt.Errorf("column %s: one record batch holds more than 2 GiB of it; give smaller record batches", path)
}

// checkEntries holds the entries of a map to what Arrow wants: neither entries nor keys are null.
func (s *listStep) checkEntries(entries arrow.ArrayData) error {
	for _, d := range []arrow.ArrayData{entries, entries.Children()[0]} {
		if b := d.Buffers()[0]; b != nil && b.Len() > 0 && d.NullN() != 0 {
			if bitutil.CountSetBits(b.Bytes(), d.Offset(), d.Len()) != d.Len() {
				return fmt.Errorf("column %s: a map holds a null key", s.path)
			}
		}
		d.(*array.Data).SetNullN(0)
	}
	return nil
}

// inList turns the element of a ValueError into the list that holds it.
func inList(err error, ends []int32) error {
	bad, ok := err.(*ValueError)
	if !ok {
		return err
	}
	bad.Row = listOf(bad.Row, ends)
	return bad
}

func listOf(element int64, ends []int32) int64 {
	return int64(sort.Search(len(ends), func(i int) bool { return int64(ends[i]) > element }) - 1)
}

// validity returns in's validity bitmap from bit 0 on, nil if nothing is null. It is shared where
// the bits lie on a byte.
func validity(r *run, in arrow.ArrayData) *memory.Buffer {
	b := in.Buffers()[0]
	if b == nil || b.Len() == 0 || in.NullN() == 0 || in.Len() == 0 {
		return nil
	}
	bytes := int(bitutil.BytesForBits(int64(in.Len())))
	if in.Offset()%8 == 0 {
		if in.Offset() == 0 {
			b.Retain()
			return b
		}
		return memory.SliceBuffer(b, in.Offset()/8, bytes)
	}
	out := r.buffer(bytes)
	out.Bytes()[bytes-1] = 0
	bitutil.CopyBitmap(b.Bytes(), in.Offset(), in.Len(), out.Bytes(), 0)
	return out
}

func nullCount(in arrow.ArrayData, valid *memory.Buffer) int {
	if valid == nil {
		return 0
	}
	return in.NullN()
}

// alsoNull adds the null slots to the dead ones.
func alsoNull(dead bitmap, valid *memory.Buffer, n int) bitmap {
	if valid == nil {
		return dead
	}
	out := make(bitmap, bitutil.BytesForBits(int64(n)))
	bitutil.InvertBitmap(valid.Bytes(), 0, n, out, 0)
	if dead != nil {
		for i := range out {
			out[i] |= dead[i]
		}
	}
	return out
}

// spread marks the elements of dead lists dead.
func spread(dead bitmap, ends []int32, elements int) bitmap {
	if dead == nil {
		return nil
	}
	out := make(bitmap, bitutil.BytesForBits(int64(elements)))
	for i := 0; i < len(ends)-1; i++ {
		if bitutil.BitIsSet(dead, i) {
			bitutil.SetBitsTo(out, int64(ends[i]), int64(ends[i+1]-ends[i]), true)
		}
	}
	return out
}

func release(b *memory.Buffer) {
	if b != nil {
		b.Release()
	}
}

func releaseAll(data []arrow.ArrayData) {
	for _, d := range data {
		d.Release()
	}
}
