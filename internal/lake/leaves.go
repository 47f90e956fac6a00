package lake

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/rows"
)

// leaves says of each column of the scan which leaf of the file its values are, and which leaves where it is
// nested and in the file as in the table.
func (s *Scan) leaves(m columnMap) (flat []int, nested [][]int) {
	flat, nested = make([]int, len(s.schema.Fields())), make([][]int, len(s.schema.Fields()))
	for i, f := range s.schema.Fields() {
		leaf, ok := m.byID[f.ID]
		switch {
		case ok:
			flat[i], nested[i] = leaf, m.within[f.ID]
		case f.InitialDefault == nil && !f.Required:
			flat[i] = rows.Nulls
		default:
			flat[i] = rows.Opaque
		}
	}
	return flat, nested
}

// nestedLeaves are the leaves of a nested field of a file in the order of the table's type; nil where the file
// lacks one of them.
func nestedLeaves(f arrow.Field, leaves []int, as iceberg.Type) []int {
	byID := map[int]int{}
	if len(leavesByID(f, leaves, byID)) > 0 {
		return nil
	}
	out, ok := inOrder(nil, 0, as, byID)
	if !ok {
		return nil
	}
	return out
}

// leavesByID gives the leaves, in order, to the primitive fields in f, and returns those that are left.
func leavesByID(f arrow.Field, leaves []int, byID map[int]int) []int {
	var fields []arrow.Field
	switch t := f.Type.(type) {
	case *arrow.StructType:
		fields = t.Fields()
	case *arrow.MapType:
		fields = []arrow.Field{t.KeyField(), t.ItemField()}
	case arrow.ListLikeType:
		fields = []arrow.Field{t.ElemField()}
	default:
		if id, ok := fieldID(f); ok && len(leaves) > 0 {
			byID[id] = leaves[0]
			return leaves[1:]
		}
		return leaves
	}
	for _, kid := range fields {
		leaves = leavesByID(kid, leaves, byID)
	}
	return leaves
}

// inOrder appends the leaves of the primitive fields in a type.
func inOrder(out []int, id int, t iceberg.Type, byID map[int]int) ([]int, bool) {
	nested, ok := t.(iceberg.NestedType)
	if !ok {
		leaf, ok := byID[id]
		return append(out, leaf), ok
	}
	for _, f := range nested.Fields() {
		if out, ok = inOrder(out, f.ID, f.Type, byID); !ok {
			return nil, false
		}
	}
	return out, true
}

// known is what the manifest says of all rows of a data file: the values of its partition.
func (s *Scan) known(f iceberg.DataFile) []rows.Known {
	spec := s.table.Metadata().PartitionSpecByID(int(f.SpecID()))
	if spec == nil {
		return nil
	}
	var out []rows.Known
	for _, field := range spec.Fields() {
		value, there := f.Partition()[field.FieldID]
		if !there || len(field.SourceIDs) != 1 {
			continue
		}
		for i, column := range s.schema.Fields() {
			if column.ID == field.SourceIDs[0] {
				out = append(out, rows.Known{Column: i, Transform: field.Transform.String(), Value: value})
			}
		}
	}
	return out
}
