// Package rowform is the canonical form of a row: bytes that are the same for the same values, whichever
// table, engine or file they came from, and differ for different ones. Rows are compared by it, hashed by
// it and kept in it on disk.
//
// A row is its columns in the order of the schema. A value is the byte 0 when it is null, else the byte 1 and:
//
//	boolean                     one byte, 0 or 1
//	int, long, date, time,      8 bytes, two's complement, big-endian: the number, the days or the
//	timestamps                  micro- or nanoseconds
//	float, double               8 bytes: the double of that value as IEEE 754 has it, big-endian;
//	                            any NaN is 7ff8000000000000; -0.0 is not 0.0
//	decimal                     16 bytes: the unscaled number in two's complement, big-endian
//	string, binary, fixed,      the number of bytes in 8 bytes, big-endian, and the bytes
//	uuid
//	struct                      its fields, in the order of the schema
//	list                        the number of elements in 8 bytes, and the elements
//	map                         the number of entries in 8 bytes, and each entry's key and value,
//	                            ordered by the bytes of the whole entry
//
// So a promoted column has the form of what it was promoted from, apart from decimals of another scale.
package rowform

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

// A Form is the canonical form of the rows of one schema. It may be used by several goroutines.
type Form struct {
	Fields []iceberg.NestedField
}

// New returns the form of rows with these columns. A type that has none is an error that names the column.
func New(fields []iceberg.NestedField) (*Form, error) {
	for _, f := range fields {
		if err := known(f.Type); err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	return &Form{Fields: slices.Clone(fields)}, nil
}

func known(t iceberg.Type) error {
	switch t := t.(type) {
	case iceberg.NestedType:
		for _, f := range t.Fields() {
			if err := known(f.Type); err != nil {
				return err
			}
		}
		return nil
	case iceberg.BooleanType, iceberg.Int32Type, iceberg.Int64Type, iceberg.Float32Type, iceberg.Float64Type,
		iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType,
		iceberg.TimestampTzNsType, iceberg.DecimalType, iceberg.StringType, iceberg.BinaryType, iceberg.FixedType,
		iceberg.UUIDType, iceberg.UnknownType:
		return nil
	}
	return fmt.Errorf("values of type %s cannot be compared", t)
}

// Rows are the rows of one record batch, which must outlive them.
type Rows struct {
	columns []appender
}

// An appender appends the form of the value at a place.
type appender func(dst []byte, i int) []byte

// Bind returns the rows of a record batch whose columns are those of the form, in their order.
func (f *Form) Bind(batch arrow.RecordBatch) (*Rows, error) {
	if int(batch.NumCols()) != len(f.Fields) {
		return nil, fmt.Errorf("a record batch has %d columns, and %d are compared", batch.NumCols(), len(f.Fields))
	}
	r := &Rows{columns: make([]appender, len(f.Fields))}
	for i, field := range f.Fields {
		var err error
		if r.columns[i], err = bind(batch.Column(i), field.Type); err != nil {
			return nil, fmt.Errorf("column %q: %w", field.Name, err)
		}
	}
	return r, nil
}

// Append appends the form of a row.
func (r *Rows) Append(dst []byte, row int) []byte {
	for _, c := range r.columns {
		dst = c(dst, row)
	}
	return dst
}

// AppendColumn appends the form of one column's value.
func (r *Rows) AppendColumn(dst []byte, column, row int) []byte { return r.columns[column](dst, row) }

// bind returns the appender of an array's values, nulls included.
func bind(arr arrow.Array, t iceberg.Type) (appender, error) {
	if x, ok := arr.(array.ExtensionArray); ok {
		arr = x.Storage()
	}
	if arr.DataType().ID() == arrow.NULL {
		return func(dst []byte, _ int) []byte { return append(dst, 0) }, nil
	}
	value, err := bindValue(arr, t)
	if err != nil {
		return nil, err
	}
	if arr.NullN() == 0 {
		return func(dst []byte, i int) []byte { return value(append(dst, 1), i) }, nil
	}
	return func(dst []byte, i int) []byte {
		if arr.IsNull(i) {
			return append(dst, 0)
		}
		return value(append(dst, 1), i)
	}, nil
}

func bindValue(arr arrow.Array, t iceberg.Type) (appender, error) {
	switch a := arr.(type) {
	case *array.Boolean:
		return func(dst []byte, i int) []byte {
			if a.Value(i) {
				return append(dst, 1)
			}
			return append(dst, 0)
		}, nil
	case *array.Int32:
		return number(a.Int32Values()), nil
	case *array.Int64:
		return number(a.Int64Values()), nil
	case *array.Date32:
		return number(a.Date32Values()), nil
	case *array.Time64:
		return number(a.Time64Values()), nil
	case *array.Timestamp:
		return number(a.TimestampValues()), nil
	case *array.Float32:
		v := a.Float32Values()
		return func(dst []byte, i int) []byte { return appendDouble(dst, float64(v[i])) }, nil
	case *array.Float64:
		v := a.Float64Values()
		return func(dst []byte, i int) []byte { return appendDouble(dst, v[i]) }, nil
	case *array.Decimal128:
		v := a.Values()
		return func(dst []byte, i int) []byte {
			dst = binary.BigEndian.AppendUint64(dst, uint64(v[i].HighBits()))
			return binary.BigEndian.AppendUint64(dst, v[i].LowBits())
		}, nil
	case *array.String:
		return func(dst []byte, i int) []byte { return appendText(dst, a.Value(i)) }, nil
	case *array.LargeString:
		return func(dst []byte, i int) []byte { return appendText(dst, a.Value(i)) }, nil
	case *array.Binary:
		return func(dst []byte, i int) []byte { return appendText(dst, a.Value(i)) }, nil
	case *array.LargeBinary:
		return func(dst []byte, i int) []byte { return appendText(dst, a.Value(i)) }, nil
	case *array.FixedSizeBinary:
		return func(dst []byte, i int) []byte { return appendText(dst, a.Value(i)) }, nil
	case *array.Struct:
		return bindStruct(a, t)
	case *array.Map:
		return bindMap(a, t)
	case array.ListLike:
		return bindList(a, t)
	}
	return nil, fmt.Errorf("an Arrow %s stands where a %s is due", arr.DataType(), t)
}

func number[T ~int32 | ~int64](v []T) appender {
	return func(dst []byte, i int) []byte { return binary.BigEndian.AppendUint64(dst, uint64(int64(v[i]))) }
}

func appendDouble(dst []byte, v float64) []byte {
	bits := math.Float64bits(v)
	if v != v {
		bits = 0x7ff8000000000000
	}
	return binary.BigEndian.AppendUint64(dst, bits)
}

func appendText[T string | []byte](dst []byte, v T) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(len(v))), v...)
}

func mismatch(arr arrow.Array, t iceberg.Type) error {
	return fmt.Errorf("an Arrow %s stands where a %s is due", arr.DataType(), t)
}

func bindStruct(a *array.Struct, t iceberg.Type) (appender, error) {
	st, ok := t.(*iceberg.StructType)
	if !ok || len(st.FieldList) != a.NumField() {
		return nil, mismatch(a, t)
	}
	fields := make([]appender, a.NumField())
	for i, f := range st.FieldList {
		var err error
		if fields[i], err = bind(a.Field(i), f.Type); err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
	}
	return func(dst []byte, i int) []byte {
		for _, f := range fields {
			dst = f(dst, i)
		}
		return dst
	}, nil
}

func bindList(a array.ListLike, t iceberg.Type) (appender, error) {
	l, ok := t.(*iceberg.ListType)
	if !ok {
		return nil, mismatch(a, t)
	}
	element, err := bind(a.ListValues(), l.Element)
	if err != nil {
		return nil, fmt.Errorf("element: %w", err)
	}
	return func(dst []byte, i int) []byte {
		from, to := a.ValueOffsets(i)
		dst = binary.BigEndian.AppendUint64(dst, uint64(to-from))
		for e := from; e < to; e++ {
			dst = element(dst, int(e))
		}
		return dst
	}, nil
}

func bindMap(a *array.Map, t iceberg.Type) (appender, error) {
	m, ok := t.(*iceberg.MapType)
	if !ok {
		return nil, mismatch(a, t)
	}
	key, err := bind(a.Keys(), m.KeyType)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	value, err := bind(a.Items(), m.ValueType)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	return func(dst []byte, i int) []byte {
		from, to := a.ValueOffsets(i)
		dst = binary.BigEndian.AppendUint64(dst, uint64(to-from))
		if to-from < 2 {
			for e := from; e < to; e++ {
				dst = value(key(dst, int(e)), int(e))
			}
			return dst
		}
		entries := make([][]byte, 0, to-from)
		for e := from; e < to; e++ {
			entries = append(entries, value(key(nil, int(e)), int(e)))
		}
		slices.SortFunc(entries, bytes.Compare)
		for _, e := range entries {
			dst = append(dst, e...)
		}
		return dst
	}, nil
}
