package lake

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/iceberg-go"

	"icepipe/pkg/plan"
)

// readable returns the schema as the library reads it rightly. It keeps the initial defaults of dates and
// times as the text of the metadata file, and then cannot read them; here they have their types. It
// releases UUIDs twice, and does not take files that have them as bytes; here they are bytes.
func readable(schema *iceberg.Schema) (*iceberg.Schema, error) {
	fields, err := typedFields(schema.Fields())
	if err != nil {
		return nil, err
	}
	return iceberg.NewSchema(schema.ID, fields...), nil
}

func typedFields(in []iceberg.NestedField) ([]iceberg.NestedField, error) {
	out := make([]iceberg.NestedField, len(in))
	for i, f := range in {
		var err error
		if f.InitialDefault != nil {
			if f.InitialDefault, err = typedDefault(f.InitialDefault, f.Type); err != nil {
				return nil, fmt.Errorf("initial default of column %q: %w", f.Name, err)
			}
		}
		if f.Type, err = typedInside(f.Type); err != nil {
			return nil, err
		}
		out[i] = f
	}
	return out, nil
}

func typedInside(t iceberg.Type) (iceberg.Type, error) {
	switch t := t.(type) {
	case *iceberg.StructType:
		fields, err := typedFields(t.FieldList)
		return &iceberg.StructType{FieldList: fields}, err
	case *iceberg.ListType:
		element, err := typedInside(t.Element)
		return &iceberg.ListType{ElementID: t.ElementID, Element: element, ElementRequired: t.ElementRequired}, err
	case *iceberg.MapType:
		out := *t
		var err error
		if out.KeyType, err = typedInside(t.KeyType); err != nil {
			return nil, err
		}
		out.ValueType, err = typedInside(t.ValueType)
		return &out, err
	}
	if _, ok := t.(iceberg.UUIDType); ok {
		return iceberg.FixedTypeOf(16), nil
	}
	return t, nil
}

func typedDefault(v any, t iceberg.Type) (any, error) {
	bytes, err := plan.DefaultBytes(v, t)
	if err != nil {
		return nil, err
	}
	long := func() int64 { return int64(binary.LittleEndian.Uint64(bytes)) }
	switch t.(type) {
	case iceberg.DateType:
		return iceberg.Date(binary.LittleEndian.Uint32(bytes)), nil
	case iceberg.TimeType:
		return iceberg.Time(long()), nil
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.Timestamp(long()), nil
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.TimestampNano(long()), nil
	case iceberg.UUIDType:
		return bytes, nil
	}
	return v, nil
}
