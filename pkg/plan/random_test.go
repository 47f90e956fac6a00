package plan

import (
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A maker makes random schemas, and arrays with nulls at every depth, offsets at every depth, and
// rubbish in the slots that nobody sees.
type maker struct {
	rng  *rand.Rand
	mem  memory.Allocator
	last int

	casts bool // destinations have other types than sources, where there is a cast
}

func (m *maker) n(n int) int           { return m.rng.IntN(n) }
func (m *maker) chance(p float64) bool { return m.rng.Float64() < p }

func (m *maker) name() string {
	m.last++
	return fmt.Sprintf("%s%d", []string{"a", "B", "x.y", `q"`, "ü:", "with space", "_p"}[m.n(7)], m.last)
}

var leaves = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
	arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView,
	&arrow.FixedSizeBinaryType{ByteWidth: 3}, extensions.NewUUIDType(), arrow.Null,
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
	arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
	&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"},
	&arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "US/Pacific"},
	&arrow.TimestampType{Unit: arrow.Nanosecond}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "+02:00"},
	&arrow.Decimal32Type{Precision: 7, Scale: 2}, &arrow.Decimal64Type{Precision: 15, Scale: 0}, &arrow.Decimal128Type{Precision: 30, Scale: 5},
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: arrow.PrimitiveTypes.Uint64},
	arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int16),
}

func (m *maker) typ(depth int) arrow.DataType {
	if depth == 0 || m.chance(0.6) {
		return leaves[m.n(len(leaves))]
	}
	switch m.n(6) {
	case 0:
		return arrow.ListOfField(m.field("item", depth-1))
	case 1:
		return arrow.LargeListOfField(m.field("element", depth-1))
	case 2:
		return arrow.FixedSizeListOfField(int32(1+m.n(3)), m.field("bag", depth-1))
	case 3:
		key := m.field("key", 0)
		for key.Type.ID() == arrow.NULL || key.Type.ID() == arrow.RUN_END_ENCODED || key.Type.ID() == arrow.DICTIONARY {
			key = m.field("key", 0)
		}
		key.Nullable = false
		return arrow.MapOfFields(key, m.field("value", depth-1))
	}
	var fields []arrow.Field
	for range m.n(4) {
		fields = append(fields, m.field(m.name(), depth-1))
	}
	return arrow.StructOf(fields...)
}

func (m *maker) field(name string, depth int) arrow.Field {
	f := arrow.Field{Name: name, Type: m.typ(depth), Nullable: m.chance(0.8)}
	if id := f.Type.ID(); id == arrow.NULL || id == arrow.RUN_END_ENCODED {
		f.Nullable = true
	}
	return f
}

// array makes n values; those of dead slots may break the rules of their type. The result is often
// a slice of something longer.
func (m *maker) array(f arrow.Field, n int, dead []bool) arrow.Array {
	before, after := 0, 0
	if m.chance(0.5) {
		before, after = m.n(12), m.n(4)
	}
	all := make([]bool, before+n+after)
	for i := range all {
		all[i] = i < before || i >= before+n || (dead != nil && dead[i-before])
	}
	full := m.whole(f, all)
	defer full.Release()
	return array.NewSlice(full, int64(before), int64(before+n))
}

// nulls chooses null slots and returns their bitmap, nil for none, and all slots that do not count.
func (m *maker) nulls(nullable bool, dead []bool) (*memory.Buffer, []bool, int) {
	gone := append([]bool{}, dead...)
	if !nullable || m.chance(0.3) {
		return nil, gone, 0
	}
	b := memory.NewResizableBuffer(m.mem)
	b.Resize((len(dead) + 7) / 8)
	memory.Set(b.Bytes(), 0)
	count := 0
	for i := range dead {
		if m.chance(0.25) {
			gone[i] = true
			count++
			continue
		}
		bitutil.SetBit(b.Bytes(), i)
	}
	return b, gone, count
}

func (m *maker) whole(f arrow.Field, dead []bool) arrow.Array {
	n := len(dead)
	switch t := f.Type.(type) {
	case *arrow.StructType:
		valid, gone, nulls := m.nulls(f.Nullable, dead)
		var kids []arrow.ArrayData
		for _, f := range t.Fields() {
			kids = append(kids, m.data(m.array(f, n, gone)))
		}
		return m.made(t, n, []*memory.Buffer{valid}, kids, nulls)
	case *arrow.FixedSizeListType:
		valid, gone, nulls := m.nulls(f.Nullable, dead)
		var inside []bool
		for _, g := range gone {
			for range t.Len() {
				inside = append(inside, g)
			}
		}
		return m.made(t, n, []*memory.Buffer{valid}, []arrow.ArrayData{m.data(m.array(t.ElemField(), len(inside), inside))}, nulls)
	case *arrow.MapType:
		valid, ends, inside, nulls := m.lists(f.Nullable, dead, false)
		kids := []arrow.ArrayData{m.data(m.array(t.KeyField(), len(inside), inside)), m.data(m.array(t.ItemField(), len(inside), inside))}
		entries := m.made(t.Elem(), len(inside), []*memory.Buffer{nil}, kids, 0)
		return m.made(t, n, []*memory.Buffer{valid, ends}, []arrow.ArrayData{m.data(entries)}, nulls)
	case arrow.ListLikeType:
		valid, ends, inside, nulls := m.lists(f.Nullable, dead, t.ID() == arrow.LARGE_LIST)
		return m.made(t, n, []*memory.Buffer{valid, ends}, []arrow.ArrayData{m.data(m.array(t.ElemField(), len(inside), inside))}, nulls)
	case *arrow.DictionaryType:
		values := m.whole(arrow.Field{Type: t.ValueType, Nullable: true}, make([]bool, 5))
		defer values.Release()
		places := array.NewBuilder(m.mem, t.IndexType)
		defer places.Release()
		for range n {
			if f.Nullable && m.chance(0.2) {
				places.AppendNull()
			} else if b, ok := places.(*array.Int8Builder); ok {
				b.Append(int8(m.n(5)))
			} else {
				places.(*array.Uint32Builder).Append(uint32(m.n(5)))
			}
		}
		indices := places.NewArray()
		defer indices.Release()
		return array.NewDictionaryArray(t, indices, values)
	case *arrow.RunEndEncodedType:
		b := array.NewRunEndEncodedBuilder(m.mem, t.RunEnds(), t.Encoded())
		defer b.Release()
		for left := n; left > 0; {
			run := 1 + m.n(left)
			if m.chance(0.3) {
				b.AppendNull()
			} else {
				b.Append(uint64(1))
				b.ValueBuilder().(*array.Int16Builder).Append(int16(m.n(9)))
			}
			if run > 1 {
				b.ContinueRun(uint64(run - 1))
			}
			left -= run
		}
		return b.NewArray()
	}
	b := array.NewBuilder(m.mem, f.Type)
	defer b.Release()
	for _, d := range dead {
		if f.Nullable && m.chance(0.25) {
			b.AppendNull()
		} else {
			m.leaf(b, d)
		}
	}
	return b.NewArray()
}

// lists makes offsets that do not start at 0; null lists may be long.
func (m *maker) lists(nullable bool, dead []bool, wide bool) (valid, ends *memory.Buffer, inside []bool, nulls int) {
	valid, gone, nulls := m.nulls(nullable, dead)
	at := m.n(3)
	for range at {
		inside = append(inside, true)
	}
	offsets := []int{at}
	for _, g := range gone {
		for range m.n(4) {
			inside = append(inside, g)
		}
		offsets = append(offsets, len(inside))
	}
	ends = memory.NewResizableBuffer(m.mem)
	if wide {
		ends.Resize(len(offsets) * 8)
		for i, o := range offsets {
			arrow.Int64Traits.CastFromBytes(ends.Bytes())[i] = int64(o)
		}
	} else {
		ends.Resize(len(offsets) * 4)
		for i, o := range offsets {
			arrow.Int32Traits.CastFromBytes(ends.Bytes())[i] = int32(o)
		}
	}
	return valid, ends, append(inside, true), nulls
}

func (m *maker) made(t arrow.DataType, n int, buffers []*memory.Buffer, kids []arrow.ArrayData, nulls int) arrow.Array {
	data := array.NewData(t, n, buffers, kids, nulls, 0)
	defer data.Release()
	for _, b := range buffers {
		release(b)
	}
	releaseAll(kids)
	return array.MakeFromData(data)
}

func (m *maker) data(a arrow.Array) arrow.ArrayData {
	defer a.Release()
	a.Data().Retain()
	return a.Data()
}

// leaf appends a value of a type, or rubbish.
func (m *maker) leaf(b array.Builder, rubbish bool) {
	i := []int64{0, 1, -1, 127, -128, int64(m.rng.Int32()), -int64(m.rng.Int32())}[m.n(7)]
	step := func(by int64) int64 { // a multiple, or not
		if rubbish {
			return i*by + 1
		}
		return i * by
	}
	text := []string{"", "x", "längerer Text, der in keine view passt", "\x00"}[m.n(4)]
	if m.casts {
		texts := textBounds()
		text = texts[m.n(len(texts))]
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(i&1 == 0)
	case *array.Int8Builder:
		b.Append(int8(i))
	case *array.Int16Builder:
		b.Append(int16(i))
	case *array.Int32Builder:
		b.Append(int32(i))
	case *array.Int64Builder:
		b.Append(i << 20)
	case *array.Uint8Builder:
		b.Append(uint8(i))
	case *array.Uint16Builder:
		b.Append(uint16(i))
	case *array.Uint32Builder:
		b.Append(uint32(i))
	case *array.Uint64Builder:
		if rubbish {
			b.Append(1 << 63)
		} else {
			b.Append(uint64(i) &^ (1 << 63))
		}
	case *array.Float16Builder:
		b.Append(float16.New(float32(i)))
	case *array.Float32Builder:
		b.Append(float32(i) / 3)
	case *array.Float64Builder:
		b.Append(float64(i) / 3)
	case *array.StringBuilder:
		b.Append(text)
	case *array.LargeStringBuilder:
		b.Append(text)
	case *array.StringViewBuilder:
		b.Append(text)
	case *array.BinaryBuilder:
		b.Append([]byte(text))
	case *array.BinaryViewBuilder:
		b.Append([]byte(text))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{1, byte(i), 3})
	case *extensions.UUIDBuilder:
		b.AppendBytes([16]byte{1, byte(i), 3})
	case *array.NullBuilder:
		b.AppendNull()
	case *array.Date32Builder:
		b.Append(arrow.Date32(i % 100_000))
	case *array.Date64Builder:
		i %= 100_000
		b.Append(arrow.Date64(step(86_400_000)))
	case *array.Time32Builder:
		b.Append(arrow.Time32(i & 0xffff))
	case *array.Time64Builder:
		b.Append(arrow.Time64(step(1000)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(step(1000)))
	case *array.Decimal32Builder:
		b.Append(decimal.Decimal32(i % 9_999_999))
	case *array.Decimal64Builder:
		b.Append(decimal.Decimal64(i))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(i << 30))
	default:
		panic(fmt.Sprintf("no value for %T", b))
	}
}
