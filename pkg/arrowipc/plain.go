package arrowipc

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// plainSchema is the schema of a foreign stream once its encodings are undone.
func plainSchema(s *arrow.Schema) (*arrow.Schema, error) {
	fields := s.Fields()
	for i, f := range fields {
		t, err := plainType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		fields[i].Type = t
	}
	md := s.Metadata()
	return arrow.NewSchema(fields, &md), nil
}

// plainType returns the type that values of type dt have when they are decoded.
func plainType(dt arrow.DataType) (arrow.DataType, error) {
	switch t := dt.(type) {
	case *arrow.DictionaryType:
		return plainType(t.ValueType)
	case *arrow.RunEndEncodedType:
		return plainType(t.Encoded())
	case *arrow.StringViewType:
		return arrow.BinaryTypes.String, nil
	case *arrow.BinaryViewType:
		return arrow.BinaryTypes.Binary, nil
	case *arrow.Decimal32Type:
		return &arrow.Decimal128Type{Precision: t.Precision, Scale: t.Scale}, nil
	case *arrow.Decimal64Type:
		return &arrow.Decimal128Type{Precision: t.Precision, Scale: t.Scale}, nil
	case *extensions.UUIDType, *extensions.VariantType:
		return dt, nil
	case *extensions.Bool8Type:
		return arrow.FixedWidthTypes.Boolean, nil
	case arrow.ExtensionType:
		return plainType(t.StorageType())
	case *arrow.StructType:
		fields := t.Fields()
		for i := range fields {
			if err := plainField(&fields[i]); err != nil {
				return nil, err
			}
		}
		return arrow.StructOf(fields...), nil
	case *arrow.MapType:
		key, item := t.KeyField(), t.ItemField()
		if err := plainField(&key); err != nil {
			return nil, err
		}
		if err := plainField(&item); err != nil {
			return nil, err
		}
		m := arrow.MapOfFields(key, item)
		m.KeysSorted = t.KeysSorted
		return m, nil
	case *arrow.ListType:
		return plainList(t.ElemField(), arrow.ListOfField)
	case *arrow.ListViewType:
		return plainList(t.ElemField(), arrow.ListOfField)
	case *arrow.FixedSizeListType:
		return plainList(t.ElemField(), arrow.ListOfField)
	case *arrow.LargeListType:
		return plainList(t.ElemField(), arrow.LargeListOfField)
	case *arrow.LargeListViewType:
		return plainList(t.ElemField(), arrow.LargeListOfField)
	}
	return dt, nil
}

func plainField(f *arrow.Field) (err error) {
	f.Type, err = plainType(f.Type)
	return err
}

func plainList[T arrow.DataType](elem arrow.Field, of func(arrow.Field) T) (arrow.DataType, error) {
	if err := plainField(&elem); err != nil {
		return nil, err
	}
	return of(elem), nil
}

// A plainer undoes the encodings of one record batch. What it makes counts against left, because a
// few encoded bytes can stand for any number of values.
type plainer struct {
	mem  memory.Allocator
	left int64
}

// column returns arr as an array of type dt, which the caller owns.
func (p *plainer) column(arr arrow.Array, dt arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(arr.DataType(), dt) {
		arr.Retain()
		return arr, nil
	}
	if ext, ok := arr.(array.ExtensionArray); ok && arrow.TypeEqual(ext.Storage().DataType(), dt) {
		ext.Storage().Retain()
		return ext.Storage(), nil
	}
	b := array.NewBuilder(p.mem, dt)
	defer b.Release()
	for i := range arr.Len() {
		if err := p.append(b, arr, i); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// append appends value i of arr to a builder of arr's plain type.
func (p *plainer) append(b array.Builder, arr arrow.Array, i int) error {
	if p.left -= width(arr.DataType()); p.left < 0 {
		return fmt.Errorf("record batch is too large when it is decoded")
	}
	if arr.IsNull(i) {
		b.AppendNull()
		return nil
	}
	switch a := arr.(type) {
	case *array.Null:
		b.AppendNull()
	case *array.Dictionary:
		return p.append(b, a.Dictionary(), a.GetValueIndex(i))
	case *array.RunEndEncoded:
		return p.append(b, a.Values(), a.GetPhysicalIndex(i))
	case *extensions.Bool8Array:
		b.(*array.BooleanBuilder).Append(a.Value(i))
	case array.ExtensionArray:
		if ext, ok := b.(interface{ StorageBuilder() array.Builder }); ok {
			b = ext.StorageBuilder()
		}
		return p.append(b, a.Storage(), i)
	case array.StringLike:
		return p.bytes(b.(array.StringLikeBuilder), a.Value(i))
	case interface{ Value(int) []byte }:
		v := a.Value(i)
		if fixed, ok := b.(*array.FixedSizeBinaryBuilder); ok {
			fixed.Append(v)
			return nil
		}
		return p.binary(b.(array.BinaryLikeBuilder), v)
	case *array.Struct:
		s := b.(*array.StructBuilder)
		s.Append(true)
		for k := range a.NumField() {
			if err := p.append(s.FieldBuilder(k), a.Field(k), i); err != nil {
				return err
			}
		}
	case *array.Map:
		m := b.(*array.MapBuilder)
		m.Append(true)
		from, to := a.ValueOffsets(i)
		for k := int(from); k < int(to); k++ {
			if err := p.append(m.KeyBuilder(), a.Keys(), k); err != nil {
				return err
			}
			if err := p.append(m.ItemBuilder(), a.Items(), k); err != nil {
				return err
			}
		}
	case array.ListLike:
		l := b.(array.ListLikeBuilder)
		l.Append(true)
		from, to := a.ValueOffsets(i)
		for k := int(from); k < int(to); k++ {
			if err := p.append(l.ValueBuilder(), a.ListValues(), k); err != nil {
				return err
			}
		}
	default:
		return appendNumber(b, arr, i)
	}
	return nil
}

func (p *plainer) bytes(b array.StringLikeBuilder, v string) error {
	if err := p.room(b, len(v)); err != nil {
		return err
	}
	b.Append(v)
	return nil
}

func (p *plainer) binary(b array.BinaryLikeBuilder, v []byte) error {
	if err := p.room(b, len(v)); err != nil {
		return err
	}
	b.Append(v)
	return nil
}

// room checks that n more bytes fit.
func (p *plainer) room(b array.Builder, n int) error {
	if p.left -= int64(n); p.left < 0 {
		return fmt.Errorf("record batch is too large when it is decoded")
	}
	if data, ok := b.(interface{ DataLen() int }); ok && data.DataLen()+n > math.MaxInt32 {
		if id := b.Type().ID(); id == arrow.STRING || id == arrow.BINARY {
			return fmt.Errorf("more than 2 GiB in a record batch when it is decoded: write smaller record batches")
		}
	}
	return nil
}

// width is what a value costs at least.
func width(dt arrow.DataType) int64 {
	if fixed, ok := dt.(arrow.FixedWidthDataType); ok {
		return int64(fixed.BitWidth()+7) / 8
	}
	return 4
}

// appendNumber appends a value of fixed width that is not null.
func appendNumber(b array.Builder, arr arrow.Array, i int) error {
	switch a := arr.(type) {
	case *array.Decimal32:
		b.(*array.Decimal128Builder).Append(decimal128.FromI64(int64(a.Value(i))))
	case *array.Decimal64:
		b.(*array.Decimal128Builder).Append(decimal128.FromI64(int64(a.Value(i))))
	case *array.Decimal128:
		b.(*array.Decimal128Builder).Append(a.Value(i))
	case *array.Decimal256:
		b.(*array.Decimal256Builder).Append(a.Value(i))
	case *array.Boolean:
		b.(*array.BooleanBuilder).Append(a.Value(i))
	case *array.Int8:
		b.(*array.Int8Builder).Append(a.Value(i))
	case *array.Int16:
		b.(*array.Int16Builder).Append(a.Value(i))
	case *array.Int32:
		b.(*array.Int32Builder).Append(a.Value(i))
	case *array.Int64:
		b.(*array.Int64Builder).Append(a.Value(i))
	case *array.Uint8:
		b.(*array.Uint8Builder).Append(a.Value(i))
	case *array.Uint16:
		b.(*array.Uint16Builder).Append(a.Value(i))
	case *array.Uint32:
		b.(*array.Uint32Builder).Append(a.Value(i))
	case *array.Uint64:
		b.(*array.Uint64Builder).Append(a.Value(i))
	case *array.Float16:
		b.(*array.Float16Builder).Append(a.Value(i))
	case *array.Float32:
		b.(*array.Float32Builder).Append(a.Value(i))
	case *array.Float64:
		b.(*array.Float64Builder).Append(a.Value(i))
	case *array.Date32:
		b.(*array.Date32Builder).Append(a.Value(i))
	case *array.Date64:
		b.(*array.Date64Builder).Append(a.Value(i))
	case *array.Time32:
		b.(*array.Time32Builder).Append(a.Value(i))
	case *array.Time64:
		b.(*array.Time64Builder).Append(a.Value(i))
	case *array.Timestamp:
		b.(*array.TimestampBuilder).Append(a.Value(i))
	case *array.Duration:
		b.(*array.DurationBuilder).Append(a.Value(i))
	case *array.MonthInterval:
		b.(*array.MonthIntervalBuilder).Append(a.Value(i))
	case *array.DayTimeInterval:
		b.(*array.DayTimeIntervalBuilder).Append(a.Value(i))
	case *array.MonthDayNanoInterval:
		b.(*array.MonthDayNanoIntervalBuilder).Append(a.Value(i))
	default:
		return fmt.Errorf("type %s cannot be decoded: leave the column out", arr.DataType())
	}
	return nil
}
