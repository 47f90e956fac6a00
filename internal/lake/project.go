package lake

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// check says whether the columns can be brought to the schema, without reading any of them.
func (m columnMap) check(ctx context.Context, to *iceberg.Schema, arrowSchema *arrow.Schema, version int, mem memory.Allocator) error {
	columns := make([]arrow.Array, m.arrow.NumFields())
	for i, f := range m.arrow.Fields() {
		columns[i] = array.MakeArrayOfNull(mem, f.Type, 0)
		defer columns[i].Release()
	}
	out, err := m.project(ctx, array.NewRecordBatch(m.arrow, columns, 0), to, arrowSchema, version)
	if err != nil {
		return err
	}
	out.Release()
	return nil
}

// project brings a record batch under the file's names to the schema: field by field by ID, promoted,
// with the initial default of fields that the file does not have. It takes the batch over.
func (m columnMap) project(ctx context.Context, batch arrow.RecordBatch, to *iceberg.Schema, arrowSchema *arrow.Schema, version int) (arrow.RecordBatch, error) {
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

// labelled returns the array under a type that differs from its own at most in whether nested fields
// may be null and in their metadata, which the library gets wrong inside maps.
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
	to, nested := as.(arrow.NestedType)
	if !nested {
		if !arrow.TypeEqual(data.DataType(), as) {
			return nil, fmt.Errorf("it was read as %s, not as %s", data.DataType(), as)
		}
		data.Retain()
		return data, nil
	}
	fields := to.Fields()
	if data.DataType().ID() != as.ID() || len(fields) != len(data.Children()) {
		return nil, fmt.Errorf("it was read as %s, not as %s", data.DataType(), as)
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
