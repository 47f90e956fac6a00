package lake

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

// fieldIDKey is Arrow's metadata key for a Parquet field ID.
const fieldIDKey = table.ArrowParquetFieldIDKey

// A columnMap says which columns of one Parquet file are read and which Iceberg fields they are.
//
// Fields are found by the IDs in the file, or by the table's name mapping where the file has none
// (specification, "Column Projection"; case 59). Columns are taken whole, so that the validity of a
// struct is known even when none of the fields that are asked for were in it.
type columnMap struct {
	leaves []int                        // leaf columns to read, empty when the file has none of the fields
	int96  map[int]*arrow.TimestampType // those of them that are INT96, with what they are read as
	arrow  *arrow.Schema                // what they are, under the names that the file has
	schema *iceberg.Schema              // the same

	byID   map[int]int   // leaf of each field of the file that is flat, rows.Opaque of the others
	within map[int][]int // of nested fields that the file has as the table does, the leaves in the table's order

	// By column of the scan's schema, as rows.Part has them.
	flat   []int
	nested [][]int
}

// newColumnMap finds the top-level fields want, by ID with their types in the table, in a file.
func newColumnMap(manifest *pqarrow.SchemaManifest, mapping iceberg.NameMapping, want map[int]iceberg.Type, isInt96 func(leaf int) bool) (columnMap, error) {
	names := &identifier{byName: !hasIDs(manifest.Fields)}
	if names.byName && len(mapping) == 0 && len(manifest.Fields) > 0 {
		return columnMap{}, fmt.Errorf("its columns have no field IDs and the table has no name mapping, so that nobody can tell which column is which; set the table property %s", table.DefaultNameMappingKey)
	}
	root := &iceberg.MappedField{Fields: mapping}
	m := columnMap{int96: map[int]*arrow.TimestampType{}, byID: map[int]int{}, within: map[int][]int{}}
	var fields []arrow.Field
	for _, f := range manifest.Fields {
		names.broken = nil
		field, leaves, whole := names.field(f, root.GetField(f.Field.Name))
		id, ok := fieldID(field)
		as, wanted := want[id]
		if !ok || !wanted {
			continue
		}
		m.byID[id] = rows.Opaque
		if names.broken != nil {
			return columnMap{}, fmt.Errorf("column %q: %w", f.Field.Name, names.broken)
		}
		if !whole {
			continue
		}
		if f.IsLeaf() && isInt96(f.ColIndex) {
			m.int96[f.ColIndex] = int96Type(as)
			field.Type = m.int96[f.ColIndex]
		} else if f.IsLeaf() {
			m.byID[id] = f.ColIndex
		} else {
			m.within[id] = nestedLeaves(field, leaves, as)
		}
		fields = append(fields, field)
		m.leaves = append(m.leaves, leaves...)
	}
	m.arrow = arrow.NewSchema(fields, nil)
	schema, err := table.ArrowSchemaToIceberg(m.arrow, false, nil)
	if len(fields) == 0 {
		schema, err = iceberg.NewSchema(0), nil
	}
	if err != nil {
		return columnMap{}, err
	}
	m.schema = schema
	return m, nil
}

// fieldID is the Iceberg field ID of a column; arrow-go says -1 where the file has none.
func fieldID(f arrow.Field) (int, bool) {
	text, ok := f.Metadata.GetValue(fieldIDKey)
	if !ok {
		return 0, false
	}
	id, err := strconv.Atoi(text)
	return id, err == nil && id >= 0
}

// hasIDs reports whether any column of a file carries a field ID.
func hasIDs(fields []pqarrow.SchemaField) bool {
	for _, f := range fields {
		if _, ok := fieldID(*f.Field); ok || hasIDs(f.Children) {
			return true
		}
	}
	return false
}

// identifier gives the fields of a file their IDs.
type identifier struct {
	byName bool
	broken error // of the last top-level field: what of it cannot be read
}

// field returns f with an ID at every level, and its leaf columns; not ok when it has no ID. Parts
// without an ID are left out, as if they were not in the file.
func (i *identifier) field(f pqarrow.SchemaField, mapped *iceberg.MappedField) (arrow.Field, []int, bool) {
	out := *f.Field
	if i.byName {
		if mapped == nil || mapped.FieldID == nil {
			return out, nil, false
		}
		out.Metadata = arrow.MetadataFrom(map[string]string{fieldIDKey: strconv.Itoa(*mapped.FieldID)})
	} else if _, ok := fieldID(out); !ok {
		return out, nil, false
	}
	kind, leaves, ok := i.kind(f, mapped)
	out.Type = kind
	return out, leaves, ok
}

// kind returns the type of a field with IDs inside it.
func (i *identifier) kind(f pqarrow.SchemaField, mapped *iceberg.MappedField) (arrow.DataType, []int, bool) {
	child := func(c pqarrow.SchemaField, name string) (arrow.Field, []int, bool) {
		var m *iceberg.MappedField
		if mapped != nil {
			m = mapped.GetField(name)
		}
		return i.field(c, m)
	}
	switch t := f.Field.Type.(type) {
	case *arrow.StructType:
		var fields []arrow.Field
		var leaves []int
		for _, c := range f.Children {
			field, more, ok := child(c, c.Field.Name)
			if ok {
				fields, leaves = append(fields, field), append(leaves, more...)
			}
		}
		return arrow.StructOf(fields...), leaves, len(fields) > 0
	case *arrow.MapType:
		if len(f.Children) != 1 || len(f.Children[0].Children) != 2 {
			return t, nil, false
		}
		key, keyLeaves, ok := child(f.Children[0].Children[0], "key")
		value, valueLeaves, also := child(f.Children[0].Children[1], "value")
		if !ok || !also {
			i.broken = errors.New("the keys or values of its map have no field ID, so that it would read as null")
			return t, nil, false
		}
		return arrow.MapOfFields(key, value), append(keyLeaves, valueLeaves...), true
	case arrow.ListLikeType:
		element, leaves, ok := child(f.Children[0], "element")
		if !ok {
			i.broken = errors.New("the elements of its list have no field ID, so that it would read as null")
			return t, nil, false
		}
		if _, large := t.(*arrow.LargeListType); large {
			return arrow.LargeListOfField(element), leaves, true
		}
		return arrow.ListOfField(element), leaves, true
	}
	if !f.IsLeaf() {
		i.broken = fmt.Errorf("type %s cannot be read", f.Field.Type)
		return f.Field.Type, nil, false
	}
	return storageType(f.Field.Type), []int{f.ColIndex}, true
}
