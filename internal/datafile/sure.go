package datafile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"icepipe/pkg/rows"
)

// sure is the partition that all rows of a row group belong to, or why that is not known. It is known by what the
// source says of the whole file, or by bounds of the row group that the transform takes to one value.
func (p *partitioner) sure(source *Source, part *rows.Part) (*partition, error) {
	if p.plain {
		return p.whole(), nil
	}
	all := make([]keys, len(p.fields))
	for i, f := range p.fields {
		if f.void {
			continue
		}
		k, ok := f.said(part)
		if !ok {
			k, ok = f.bounded(source, part)
		}
		if !ok {
			return nil, fmt.Errorf("its rows may belong to more than one value of partition field %q", f.name)
		}
		all[i] = k
	}
	return p.partitionOf(all, 0), nil
}

// key tells the partitions of the spec apart.
func (p *partitioner) key(part *partition) string {
	var b []byte
	for _, f := range p.fields {
		b = appendValue(b, part.values[f.id])
	}
	return string(b)
}

// said is the value that the source's metadata gives for the same transform of the same column.
func (f partitionField) said(part *rows.Part) (keys, bool) {
	if len(f.path) > 0 || part.Leaves[f.top] == rows.Nulls { // which are read as nulls
		return keys{}, false
	}
	for _, k := range part.Known {
		if k.Column == f.top && k.Transform == f.transform.String() {
			return keyOf(k.Value, f.transform.ResultType(f.typ))
		}
	}
	return keys{}, false
}

// bounded is the value that every row of a row group has by the bounds of its column.
func (f partitionField) bounded(source *Source, part *rows.Part) (keys, bool) {
	if len(f.path) > 0 {
		return keys{}, false
	}
	null := keys{typ: f.transform.ResultType(f.typ), valid: []bool{false}, ints: []int64{0}}
	leaf := part.Leaves[f.top]
	switch {
	case leaf == rows.Nulls:
		return null, true
	case leaf < 0:
		return keys{}, false
	}
	st := statisticsOf(source, part.Ordinal, leaf)
	meta := source.Reader.MetaData()
	switch {
	case !st.HasNullCount:
		return keys{}, false
	case st.NullCount == meta.RowGroups[part.Ordinal].Columns[leaf].MetaData.NumValues:
		return null, true
	case st.NullCount > 0, !st.HasMin, !st.HasMax, !st.counted, st.nans > 0:
		return keys{}, false
	}
	physical := meta.Schema.Column(leaf).PhysicalType()
	k := keys{typ: f.typ}
	for _, b := range [][]byte{st.Min, st.Max} {
		if !k.bound(b, physical) {
			return keys{}, false
		}
	}
	if _, bucket := f.transform.(iceberg.BucketTransform); bucket && !k.one() { // keeps no order
		return keys{}, false
	}
	k, err := k.apply(f.transform)
	return k, err == nil && k.one()
}

// one reports whether both of two values are the same.
func (k keys) one() bool {
	if k.bytes != nil {
		return bytes.Equal(k.bytes[0], k.bytes[1])
	}
	return k.ints[0] == k.ints[1]
}

// bound appends a value of the statistics of a column that can become one of type k.typ.
func (k *keys) bound(b []byte, physical parquet.Type) bool {
	decimal, isDecimal := k.typ.(iceberg.DecimalType)
	var n int64
	switch physical {
	case parquet.Types.Boolean:
		n = int64(b[0])
	case parquet.Types.Int32:
		n = int64(int32(binary.LittleEndian.Uint32(b)))
	case parquet.Types.Int64:
		n = int64(binary.LittleEndian.Uint64(b))
	case parquet.Types.Float:
		bits := binary.LittleEndian.Uint32(b)
		n = int64(orderBits32(int32(bits)))
		if _, double := k.typ.(iceberg.Float64Type); double {
			n = orderBits64(int64(math.Float64bits(float64(math.Float32frombits(bits)))))
		}
	case parquet.Types.Double:
		n = orderBits64(int64(binary.LittleEndian.Uint64(b)))
	case parquet.Types.ByteArray, parquet.Types.FixedLenByteArray:
		if !isDecimal {
			k.bytes = append(k.bytes, b)
			return true
		}
		if len(b) == 0 || len(b) > 16 {
			return false
		}
		return k.decimal(wideDecimal(b), decimal)
	default:
		return false
	}
	if isDecimal {
		return k.decimal(decimal128.FromI64(n), decimal)
	}
	k.ints = append(k.ints, n)
	return true
}

// decimal appends a decimal, in the form of keys of its type.
func (k *keys) decimal(v decimal128.Num, t iceberg.DecimalType) bool {
	if t.Precision() > 18 {
		k.bytes = append(k.bytes, decimalKey(make([]byte, 16), v))
		return true
	}
	k.ints = append(k.ints, int64(v.LowBits()))
	return v == decimal128.FromI64(int64(v.LowBits()))
}

// wideDecimal reads big-endian two's complement of at most 16 bytes.
func wideDecimal(b []byte) decimal128.Num {
	var wide [16]byte
	if b[0]&0x80 != 0 {
		for i := range wide {
			wide[i] = 0xff
		}
	}
	copy(wide[16-len(b):], b)
	return decimal128.New(int64(binary.BigEndian.Uint64(wide[:])), binary.BigEndian.Uint64(wide[8:]))
}

// keyOf is one value, as a manifest has it, of a type that it was perhaps promoted to.
func keyOf(v any, t iceberg.Type) (keys, bool) {
	k := keys{typ: t}
	decimal, isDecimal := t.(iceberg.DecimalType)
	switch v := v.(type) {
	case nil:
		k.valid, k.ints = []bool{false}, []int64{0}
		return k, true
	case iceberg.Decimal:
		ok := isDecimal && v.Scale == decimal.Scale() && k.decimal(v.Val, decimal)
		return k, ok
	case iceberg.DecimalLiteral:
		ok := isDecimal && v.Scale == decimal.Scale() && k.decimal(v.Val, decimal)
		return k, ok
	case uuid.UUID:
		k.bytes = [][]byte{v[:]}
		_, ok := t.(iceberg.UUIDType)
		return k, ok
	case []byte:
		k.bytes = [][]byte{v}
		return k, wantsBytes(t)
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Bool:
		k.ints = []int64{0}
		if r.Bool() {
			k.ints[0] = 1
		}
		_, ok := t.(iceberg.BooleanType)
		return k, ok
	case reflect.Int, reflect.Int32, reflect.Int64:
		k.ints = []int64{r.Int()}
		return k, wantsInteger(t)
	case reflect.Float32, reflect.Float64:
		return k.float(r.Float())
	case reflect.String:
		k.bytes = [][]byte{[]byte(r.String())}
		_, ok := t.(iceberg.StringType)
		return k, ok
	}
	return keys{}, false
}

func (k keys) float(x float64) (keys, bool) {
	switch k.typ.(type) {
	case iceberg.Float32Type:
		bits := int32(math.Float32bits(float32(x)))
		if x != x {
			bits = 0x7fc00000
		}
		k.ints = []int64{int64(orderBits32(bits))}
		return k, true
	case iceberg.Float64Type:
		bits := int64(math.Float64bits(x))
		if x != x {
			bits = 0x7ff8000000000000
		}
		k.ints = []int64{orderBits64(bits)}
		return k, true
	}
	return k, false
}

func wantsInteger(t iceberg.Type) bool {
	switch t.(type) {
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType,
		iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return true
	}
	return false
}

func wantsBytes(t iceberg.Type) bool {
	switch t.(type) {
	case iceberg.BinaryType, iceberg.FixedType:
		return true
	}
	return false
}
