package rowform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

var errShort = errors.New("a row in canonical form is cut short")

// Cells takes a row apart: the form of each column's value, which are parts of row.
func (f *Form) Cells(row []byte) ([][]byte, error) {
	out := make([][]byte, len(f.Fields))
	rest := row
	for i, field := range f.Fields {
		after, err := skip(rest, field.Type)
		if err != nil {
			return nil, err
		}
		out[i] = rest[:len(rest)-len(after)]
		rest = after
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes are left behind a row in canonical form", len(rest))
	}
	return out, nil
}

// skip returns what stands behind a value.
func skip(b []byte, t iceberg.Type) ([]byte, error) {
	if len(b) == 0 {
		return nil, errShort
	}
	null := b[0] == 0
	b = b[1:]
	if null {
		return b, nil
	}
	switch t := t.(type) {
	case iceberg.BooleanType:
		return after(b, 1)
	case iceberg.DecimalType:
		return after(b, 16)
	case iceberg.StringType, iceberg.BinaryType, iceberg.FixedType, iceberg.UUIDType:
		n, b, err := length(b)
		if err != nil {
			return nil, err
		}
		return after(b, n)
	case *iceberg.StructType:
		return skipAll(b, t.FieldList)
	case *iceberg.ListType:
		return skipTimes(b, []iceberg.NestedField{t.ElementField()})
	case *iceberg.MapType:
		return skipTimes(b, []iceberg.NestedField{t.KeyField(), t.ValueField()})
	}
	return after(b, 8)
}

func skipAll(b []byte, fields []iceberg.NestedField) ([]byte, error) {
	var err error
	for _, f := range fields {
		if b, err = skip(b, f.Type); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func skipTimes(b []byte, fields []iceberg.NestedField) ([]byte, error) {
	n, b, err := length(b)
	for ; n > 0 && err == nil; n-- {
		b, err = skipAll(b, fields)
	}
	return b, err
}

func after(b []byte, n int) ([]byte, error) {
	if len(b) < n {
		return nil, errShort
	}
	return b[n:], nil
}

func length(b []byte) (int, []byte, error) {
	if len(b) < 8 {
		return 0, nil, errShort
	}
	n := binary.BigEndian.Uint64(b)
	if n > math.MaxInt32 {
		return 0, nil, errShort
	}
	return int(n), b[8:], nil
}

// Build appends a column's value to a builder of the Arrow type that the column has.
func Build(to array.Builder, cell []byte, t iceberg.Type) error {
	_, err := build(to, cell, t)
	return err
}

func build(to array.Builder, b []byte, t iceberg.Type) ([]byte, error) {
	rest, err := skip(b, t)
	if err != nil {
		return nil, err
	}
	if b[0] == 0 {
		to.AppendNull()
		return rest, nil
	}
	b = b[1:]
	switch to := to.(type) {
	case *array.BooleanBuilder:
		to.Append(b[0] != 0)
	case *array.Int32Builder:
		to.Append(int32(integer(b)))
	case *array.Int64Builder:
		to.Append(integer(b))
	case *array.Date32Builder:
		to.Append(arrow.Date32(integer(b)))
	case *array.Time64Builder:
		to.Append(arrow.Time64(integer(b)))
	case *array.TimestampBuilder:
		to.Append(arrow.Timestamp(integer(b)))
	case *array.Float32Builder:
		to.Append(float32(double(b)))
	case *array.Float64Builder:
		to.Append(double(b))
	case *array.Decimal128Builder:
		to.Append(decimal128.New(integer(b), binary.BigEndian.Uint64(b[8:])))
	case *array.StringBuilder:
		to.Append(string(b[8 : len(b)-len(rest)]))
	case *array.BinaryBuilder:
		to.Append(b[8 : len(b)-len(rest)])
	case *array.FixedSizeBinaryBuilder:
		to.Append(b[8 : len(b)-len(rest)])
	case *extensions.UUIDBuilder:
		id, err := uuid.FromBytes(b[8 : len(b)-len(rest)])
		if err != nil {
			return nil, err
		}
		to.Append(id)
	case *array.StructBuilder:
		to.Append(true)
		for i, f := range t.(*iceberg.StructType).FieldList {
			if b, err = build(to.FieldBuilder(i), b, f.Type); err != nil {
				return nil, err
			}
		}
	case *array.MapBuilder:
		m := t.(*iceberg.MapType)
		to.Append(true)
		n, b, _ := length(b)
		for range n {
			if b, err = build(to.KeyBuilder(), b, m.KeyType); err != nil {
				return nil, err
			}
			if b, err = build(to.ItemBuilder(), b, m.ValueType); err != nil {
				return nil, err
			}
		}
	case *array.ListBuilder:
		to.Append(true)
		n, b, _ := length(b)
		for range n {
			if b, err = build(to.ValueBuilder(), b, t.(*iceberg.ListType).Element); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("a %s cannot be built as Arrow %s", t, to.Type())
	}
	return rest, nil
}

func integer(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func double(b []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(b)) }

// Double is the value of a cell of a float or double, and whether there is one.
func Double(cell []byte) (float64, bool) {
	if len(cell) != 9 || cell[0] == 0 {
		return 0, false
	}
	return double(cell[1:]), true
}
