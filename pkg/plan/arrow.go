package plan

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
)

// Keys of the metadata of Arrow fields, as iceberg-go and Parquet readers use them.
const (
	fieldIDKey = "PARQUET:field_id"
	docKey     = "doc"
)

// arrowSchema is the Arrow schema of an Iceberg schema. It is what iceberg-go's
// table.SchemaToArrowSchema gives with field IDs and without large types, but for two things: a
// column that is not added yet has no field ID rather than 0, and nothing panics.
func arrowSchema(fields []iceberg.NestedField) *arrow.Schema {
	return arrow.NewSchema(arrowFields(fields), nil)
}

func arrowFields(fields []iceberg.NestedField) []arrow.Field {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = arrowField(f)
	}
	return out
}

func arrowField(f iceberg.NestedField) arrow.Field {
	meta := map[string]string{}
	if f.Doc != "" {
		meta[docKey] = f.Doc
	}
	if f.ID > 0 {
		meta[fieldIDKey] = strconv.Itoa(f.ID)
	}
	out := arrow.Field{Name: f.Name, Type: arrowType(f.Type), Nullable: !f.Required}
	if len(meta) > 0 {
		out.Metadata = arrow.MetadataFrom(meta)
	}
	return out
}

// arrowType returns the Arrow type of a type that checkLeaf allows.
func arrowType(t iceberg.Type) arrow.DataType {
	switch t := t.(type) {
	case *iceberg.StructType:
		return arrow.StructOf(arrowFields(t.FieldList)...)
	case *iceberg.ListType:
		return arrow.ListOfField(arrowField(t.ElementField()))
	case *iceberg.MapType:
		return arrow.MapOfFields(arrowField(t.KeyField()), arrowField(t.ValueField()))
	case iceberg.FixedType:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Len()}
	case iceberg.DecimalType:
		return &arrow.Decimal128Type{Precision: int32(t.Precision()), Scale: int32(t.Scale())}
	case iceberg.BooleanType:
		return arrow.FixedWidthTypes.Boolean
	case iceberg.Int32Type:
		return arrow.PrimitiveTypes.Int32
	case iceberg.Int64Type:
		return arrow.PrimitiveTypes.Int64
	case iceberg.Float32Type:
		return arrow.PrimitiveTypes.Float32
	case iceberg.Float64Type:
		return arrow.PrimitiveTypes.Float64
	case iceberg.DateType:
		return arrow.FixedWidthTypes.Date32
	case iceberg.TimeType:
		return arrow.FixedWidthTypes.Time64us
	case iceberg.TimestampType:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case iceberg.TimestampTzType:
		return arrow.FixedWidthTypes.Timestamp_us
	case iceberg.TimestampNsType:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}
	case iceberg.TimestampTzNsType:
		return arrow.FixedWidthTypes.Timestamp_ns
	case iceberg.StringType:
		return arrow.BinaryTypes.String
	case iceberg.BinaryType:
		return arrow.BinaryTypes.Binary
	case iceberg.UUIDType:
		return extensions.NewUUIDType()
	}
	return arrow.Null
}
