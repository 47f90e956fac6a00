package plan

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
)

// FromArrow returns the Iceberg schema that a stream of another program stands for, to be the
// source of Build. It takes every Arrow type that a Projector reads: names, nullability and docs
// are kept, field IDs are fresh. Timestamps in nanoseconds are timestamp_ns and timestamptz_ns if
// nanos is set; otherwise they are taken for microseconds, and the Projector refuses a value that
// is finer. A type without counterpart is an error that names the column.
func FromArrow(sc *arrow.Schema, nanos bool) (*iceberg.Schema, error) {
	r := arrowReader{nanos: nanos}
	fields, err := r.fields(sc.Fields(), nil)
	if err != nil {
		return nil, err
	}
	return iceberg.NewSchema(0, fields...), nil
}

type arrowReader struct {
	nanos  bool
	lastID int
}

func (r *arrowReader) id() int {
	r.lastID++
	return r.lastID
}

func (r *arrowReader) fields(in []arrow.Field, parent []string) ([]iceberg.NestedField, error) {
	var out []iceberg.NestedField
	for _, f := range in {
		field, err := r.field(f, join(parent, f.Name))
		if err != nil {
			return nil, err
		}
		out = append(out, field)
	}
	return out, nil
}

func (r *arrowReader) field(f arrow.Field, path []string) (iceberg.NestedField, error) {
	out := iceberg.NestedField{ID: r.id(), Name: f.Name, Required: !f.Nullable}
	if doc, ok := f.Metadata.GetValue(docKey); ok {
		out.Doc = doc
	}
	if len(path) > maxDepth {
		return out, fmt.Errorf("column %s: it is nested more than %d deep; that is not supported", quote(path), maxDepth)
	}
	var err error
	switch t := f.Type.(type) {
	case *arrow.StructType:
		st := &iceberg.StructType{}
		st.FieldList, err = r.fields(t.Fields(), path)
		out.Type = st
	case *arrow.MapType:
		var k, v iceberg.NestedField
		if k, err = r.field(t.KeyField(), join(path, "key")); err == nil {
			v, err = r.field(t.ItemField(), join(path, "value"))
		}
		out.Type = &iceberg.MapType{KeyID: k.ID, KeyType: k.Type, ValueID: v.ID, ValueType: v.Type, ValueRequired: v.Required}
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
		var e iceberg.NestedField
		e, err = r.field(t.(arrow.ListLikeType).ElemField(), join(path, "element"))
		out.Type = &iceberg.ListType{ElementID: e.ID, Element: e.Type, ElementRequired: e.Required}
	default:
		if out.Type = r.leaf(f.Type); out.Type == nil {
			err = fmt.Errorf("column %s: the Arrow type %s has no counterpart in Iceberg; cast it upstream", quote(path), f.Type)
		}
	}
	return out, err
}

// leaf returns the Iceberg type of a primitive Arrow type, nil if it has none.
func (r *arrowReader) leaf(t arrow.DataType) iceberg.Type {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return r.leaf(t.ValueType)
	case *arrow.RunEndEncodedType:
		return r.leaf(t.Encoded())
	case *arrow.TimestampType:
		return r.timestamp(t)
	case arrow.DecimalType:
		return decimalOf(t)
	case *arrow.FixedSizeBinaryType:
		if t.ByteWidth > 0 {
			return iceberg.FixedTypeOf(t.ByteWidth)
		}
		return nil
	case *extensions.UUIDType:
		return iceberg.UUIDType{}
	}
	switch t.ID() {
	case arrow.NULL:
		return iceberg.UnknownType{}
	case arrow.BOOL:
		return iceberg.BooleanType{}
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.UINT8, arrow.UINT16:
		return iceberg.Int32Type{}
	case arrow.INT64, arrow.UINT32, arrow.UINT64:
		return iceberg.Int64Type{}
	case arrow.FLOAT16, arrow.FLOAT32:
		return iceberg.Float32Type{}
	case arrow.FLOAT64:
		return iceberg.Float64Type{}
	case arrow.DATE32, arrow.DATE64:
		return iceberg.DateType{}
	case arrow.TIME32, arrow.TIME64:
		return iceberg.TimeType{}
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return iceberg.StringType{}
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return iceberg.BinaryType{}
	}
	return nil
}

func (r *arrowReader) timestamp(t *arrow.TimestampType) iceberg.Type {
	switch nanos := r.nanos && t.Unit == arrow.Nanosecond; {
	case nanos && t.TimeZone != "":
		return iceberg.TimestampTzNsType{}
	case nanos:
		return iceberg.TimestampNsType{}
	case t.TimeZone != "":
		return iceberg.TimestampTzType{}
	}
	return iceberg.TimestampType{}
}

func decimalOf(t arrow.DecimalType) iceberg.Type {
	p, s := int(t.GetPrecision()), int(t.GetScale())
	if t.ID() == arrow.DECIMAL256 || p < 1 || p > 38 || s < 0 || s > p {
		return nil
	}
	return iceberg.DecimalTypeOf(p, s)
}
