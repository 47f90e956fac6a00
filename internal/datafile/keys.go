package datafile

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// A source is a column that rows are clustered or sorted by, and its transform.
type source struct {
	top       int   // column of the record batch
	path      []int // on through structs
	typ       iceberg.Type
	transform iceberg.Transform
}

// findSource finds the column of a field ID: a primitive at the top or inside structs.
func findSource(s *iceberg.Schema, id int, tr iceberg.Transform) (source, error) {
	for i, f := range s.Fields() {
		if path, typ, ok := findField(f, id); ok {
			if _, prim := typ.(iceberg.PrimitiveType); !prim || !tr.CanTransform(typ) {
				return source{}, fmt.Errorf("transform %s does not take %s", tr, typ)
			}
			return source{top: i, path: path, typ: typ, transform: tr}, nil
		}
	}
	return source{}, fmt.Errorf("its source column (field ID %d) is not in the schema, or inside a list or map", id)
}

func findField(f iceberg.NestedField, id int) ([]int, iceberg.Type, bool) {
	if f.ID == id {
		return nil, f.Type, true
	}
	st, ok := f.Type.(*iceberg.StructType)
	if !ok {
		return nil, nil, false
	}
	for i, k := range st.FieldList {
		if path, typ, ok := findField(k, id); ok {
			return append([]int{i}, path...), typ, true
		}
	}
	return nil, nil, false
}

// keys are the values of a column in a form that compares and hashes without knowing the type:
// integers in value order, or bytes in value order.
type keys struct {
	typ   iceberg.Type
	valid []bool // nil: all
	ints  []int64
	bytes [][]byte // set instead of ints for text, bytes and long decimals
}

func (k keys) null(i int) bool { return k.valid != nil && !k.valid[i] }

// keys reads the source's values out of a record batch's column and transforms them.
func (s source) keys(top arrow.Array) (keys, error) {
	var there []bool
	arr := top
	for _, i := range s.path {
		st, ok := storage(arr).(*array.Struct)
		if !ok {
			return keys{}, fmt.Errorf("an Arrow %s stands where a struct is due", arr.DataType())
		}
		there = narrow(st, there)
		arr = st.Field(i)
	}
	k := keys{typ: s.typ, valid: narrow(arr, there)}
	if err := k.read(storage(arr)); err != nil {
		return keys{}, err
	}
	return k.apply(s.transform)
}

func (k *keys) read(arr arrow.Array) error {
	n := arr.Len()
	switch a := arr.(type) {
	case *array.Null:
		k.ints, k.valid = make([]int64, n), make([]bool, n)
	case *array.Boolean:
		k.ints = make([]int64, n)
		for i := range k.ints {
			if a.Value(i) {
				k.ints[i] = 1
			}
		}
	case *array.Int32:
		k.ints = widen(a.Int32Values())
	case *array.Date32:
		k.ints = widen(a.Date32Values())
	case *array.Int64:
		k.ints = a.Int64Values()
	case *array.Time64:
		k.ints = fixedValues[int64](a)
	case *array.Timestamp:
		k.ints = fixedValues[int64](a)
	case *array.Float32:
		k.ints = make([]int64, n)
		for i, v := range a.Float32Values() {
			b := int32(math.Float32bits(v))
			if v != v {
				b = 0x7fc00000 // one NaN for all, and the last
			}
			k.ints[i] = int64(orderBits32(b))
		}
	case *array.Float64:
		k.ints = make([]int64, n)
		for i, v := range a.Float64Values() {
			b := int64(math.Float64bits(v))
			if v != v {
				b = 0x7ff8000000000000
			}
			k.ints[i] = orderBits64(b)
		}
	case *array.Decimal128:
		k.readDecimals(a)
	case *array.String:
		k.bytes = views(a.ValueOffsets(), a)
	case *array.Binary:
		k.bytes = views(a.ValueOffsets(), a)
	case *array.LargeString:
		k.bytes = views(a.ValueOffsets(), a)
	case *array.LargeBinary:
		k.bytes = views(a.ValueOffsets(), a)
	case *array.FixedSizeBinary:
		k.bytes = make([][]byte, n)
		for i := range k.bytes {
			k.bytes[i] = a.Value(i)
		}
	default:
		return fmt.Errorf("an Arrow %s cannot be clustered by", arr.DataType())
	}
	return nil
}

func (k *keys) readDecimals(a *array.Decimal128) {
	if k.typ.(iceberg.DecimalType).Precision() <= 18 {
		k.ints = make([]int64, a.Len())
		for i, v := range a.Values() {
			k.ints[i] = int64(v.LowBits())
		}
		return
	}
	k.bytes = make([][]byte, a.Len())
	slab := make([]byte, 16*a.Len())
	for i, v := range a.Values() {
		k.bytes[i] = decimalKey(slab[16*i:16*i+16:16*i+16], v)
	}
}

// decimalKey puts a decimal into 16 bytes that compare as it does.
func decimalKey(b []byte, v decimal128.Num) []byte {
	binary.BigEndian.PutUint64(b, uint64(v.HighBits())^1<<63)
	binary.BigEndian.PutUint64(b[8:], v.LowBits())
	return b
}

func keyDecimal(b []byte) decimal128.Num {
	return decimal128.New(int64(binary.BigEndian.Uint64(b)^1<<63), binary.BigEndian.Uint64(b[8:]))
}

// orderBits64 turns the bits of a float into an integer of the same order, -0.0 before 0.0, and back.
func orderBits64(b int64) int64 { return b ^ (b >> 63 & math.MaxInt64) }

func orderBits32(b int32) int32 { return b ^ (b >> 31 & math.MaxInt32) }

func widen[T ~int32](in []T) []int64 {
	out := make([]int64, len(in))
	for i, v := range in {
		out[i] = int64(v)
	}
	return out
}

func views[O int32 | int64](offsets []O, arr arrow.Array) [][]byte {
	out := make([][]byte, arr.Len())
	b := arr.Data().Buffers()[2]
	if b == nil {
		return out
	}
	data := b.Bytes()
	for i := range out {
		out[i] = data[offsets[i]:offsets[i+1]:offsets[i+1]]
	}
	return out
}

// value is the i-th value as iceberg-go's manifests and literals want it; nil for a null. It shares
// nothing with the record batch.
func (k keys) value(i int) any {
	if k.null(i) {
		return nil
	}
	switch t := k.typ.(type) {
	case iceberg.BooleanType:
		return k.ints[i] != 0
	case iceberg.Int32Type:
		return int32(k.ints[i])
	case iceberg.Int64Type:
		return k.ints[i]
	case iceberg.Float32Type:
		return math.Float32frombits(uint32(orderBits32(int32(k.ints[i]))))
	case iceberg.Float64Type:
		return math.Float64frombits(uint64(orderBits64(k.ints[i])))
	case iceberg.DateType:
		return iceberg.Date(k.ints[i])
	case iceberg.TimeType:
		return iceberg.Time(k.ints[i])
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.Timestamp(k.ints[i])
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.TimestampNano(k.ints[i])
	case iceberg.StringType:
		return string(k.bytes[i])
	case iceberg.UUIDType:
		return uuid.UUID(k.bytes[i])
	case iceberg.DecimalType:
		if k.bytes != nil {
			return iceberg.Decimal{Val: keyDecimal(k.bytes[i]), Scale: t.Scale()}
		}
		return iceberg.Decimal{Val: decimal128.FromI64(k.ints[i]), Scale: t.Scale()}
	}
	return append([]byte{}, k.bytes[i]...)
}
