package lake

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// check says whether the columns can be brought to the schema, without reading any of them.
func (m columnMap) check(ctx context.Context, to *iceberg.Schema, arrowSchema *arrow.Schema, version int, mem memory.Allocator) error {
	if err := sameShape(m.schema, to.Fields()); err != nil {
		return err
	}
	columns := make([]arrow.Array, m.arrow.NumFields())
	for i, f := range m.arrow.Fields() {
		builder := array.NewBuilder(mem, f.Type) // MakeArrayOfNull releases extension arrays twice
		columns[i] = builder.NewArray()
		builder.Release()
		defer columns[i].Release()
	}
	out, err := m.project(ctx, array.NewRecordBatch(m.arrow, columns, 0), to, arrowSchema, version)
	if err != nil {
		return err
	}
	out.Release()
	return nil
}

// sameShape refuses fields that are nested in the file and not in the table, or the other way: the
// library takes one for the other.
func sameShape(inFile *iceberg.Schema, fields []iceberg.NestedField) error {
	shape := func(t iceberg.Type) string {
		if _, nested := t.(iceberg.NestedType); nested {
			return t.Type() // struct, list or map
		}
		return ""
	}
	for _, f := range fields {
		has, ok := inFile.FindFieldByID(f.ID)
		if ok && shape(has.Type) != shape(f.Type) {
			return fmt.Errorf("column %q is %s in the file and %s in the table", f.Name, has.Type, f.Type)
		}
		if nested, deeper := f.Type.(iceberg.NestedType); ok && deeper {
			if err := sameShape(inFile, nested.Fields()); err != nil {
				return err
			}
		}
	}
	return nil
}

// project brings a record batch under the file's names to the schema: field by field by ID, promoted,
// with the initial default of fields that the file does not have. It takes the batch over.
func (m columnMap) project(ctx context.Context, batch arrow.RecordBatch, to *iceberg.Schema, arrowSchema *arrow.Schema, version int) (arrow.RecordBatch, error) {
	if len(to.Fields()) == 0 { // of which the library cannot tell how many rows there are
		defer batch.Release()
		return array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, batch.NumRows()), nil
	}
	batch, err := plain(batch)
	if err != nil {
		return nil, err
	}
	defer batch.Release()
	out, err := table.ToRequestedSchema(ctx, to, m.schema, batch, table.SchemaOptions{
		IncludeFieldIDs:   true,
		DowncastTimestamp: true,
		FormatVersion:     version,
	})
	if err != nil {
		return nil, err
	}
	defer out.Release()
	if arrowSchema == nil {
		out.Retain()
		return out, nil
	}
	columns := make([]arrow.Array, len(arrowSchema.Fields()))
	for i, f := range arrowSchema.Fields() {
		if columns[i], err = labelled(out.Column(i), f.Type); err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		defer columns[i].Release()
	}
	return array.NewRecordBatch(arrowSchema, columns, out.NumRows()), nil
}

// storageType is what arrays of an extension type are made of, and any other type itself.
func storageType(t arrow.DataType) arrow.DataType {
	if ext, ok := t.(arrow.ExtensionType); ok {
		return ext.StorageType()
	}
	return t
}

// bare is the type without extension types at any depth.
func bare(t arrow.DataType) arrow.DataType {
	field := func(f arrow.Field) arrow.Field {
		f.Type = bare(f.Type)
		return f
	}
	switch t := storageType(t).(type) {
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			fields[i] = field(f)
		}
		return arrow.StructOf(fields...)
	case *arrow.ListType:
		return arrow.ListOfField(field(t.ElemField()))
	case *arrow.LargeListType:
		return arrow.LargeListOfField(field(t.ElemField()))
	case *arrow.MapType:
		return arrow.MapOfFields(field(t.KeyField()), field(t.ItemField()))
	default:
		return t
	}
}

// plain is the batch with extension types read as what they are made of. It takes the batch over.
func plain(batch arrow.RecordBatch) (arrow.RecordBatch, error) {
	fields := slices.Clone(batch.Schema().Fields())
	columns := make([]arrow.Array, len(fields))
	changed := false
	for i := range fields {
		as := bare(fields[i].Type)
		if arrow.TypeEqual(as, fields[i].Type) {
			as = fields[i].Type
		} else {
			changed = true
		}
		var err error
		if columns[i], err = labelled(batch.Column(i), as); err != nil {
			batch.Release()
			return nil, fmt.Errorf("column %q: %w", fields[i].Name, err)
		}
		defer columns[i].Release()
		fields[i].Type = as
	}
	if !changed {
		return batch, nil
	}
	defer batch.Release()
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, batch.NumRows()), nil
}

// labelled returns the array under a type of the same layout: one that differs from its own in whether
// nested fields may be null and in their metadata, which the library gets wrong inside maps, or in
// extension types.
func labelled(arr arrow.Array, as arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(arr.DataType(), as, arrow.CheckMetadata()) {
		arr.Retain()
		return arr, nil
	}
	data, err := relabel(arr.Data(), as)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

func relabel(data arrow.ArrayData, as arrow.DataType) (arrow.ArrayData, error) {
	misread := fmt.Errorf("it was read as %s, not as %s", data.DataType(), as)
	to, nested := storageType(as).(arrow.NestedType)
	if !nested {
		if !arrow.TypeEqual(storageType(data.DataType()), storageType(as)) {
			return nil, misread
		}
		if arrow.TypeEqual(data.DataType(), as) {
			data.Retain()
			return data, nil
		}
		return array.NewData(as, data.Len(), data.Buffers(), nil, data.NullN(), data.Offset()), nil
	}
	fields := to.Fields()
	if storageType(data.DataType()).ID() != to.ID() || len(fields) != len(data.Children()) {
		return nil, misread
	}
	children := make([]arrow.ArrayData, len(fields))
	for i, f := range fields {
		child, err := relabel(data.Children()[i], f.Type)
		if err != nil {
			return nil, err
		}
		defer child.Release()
		children[i] = child
	}
	return array.NewData(as, data.Len(), data.Buffers(), children, data.NullN(), data.Offset()), nil
}
