package lake

import (
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"

	"icepipe/pkg/plan"
)

// Without returns the table's schema less those of the columns, each named by its path, that it has; nil where it
// has none of them. A column that partitions or sorts the table, or identifies its rows, cannot go: that is an
// error.
func (t *Table) Without(paths [][]string) (*iceberg.Schema, error) {
	id := 0
	for _, s := range t.Metadata().Schemas() {
		id = max(id, s.ID+1)
	}
	for _, path := range paths {
		gone, ok := fieldAt(t.Schema().Fields(), path)
		if !ok {
			continue
		}
		if use := t.useOf(gone); use != "" {
			return nil, fmt.Errorf("column %s of table %q %s, so that it cannot be dropped", plan.FormatPath(path), t.Name(), use)
		}
	}
	fields, dropped := without(t.Schema(), paths)
	if !dropped {
		return nil, nil
	}
	return iceberg.NewSchemaWithIdentifiers(id, slices.Clone(t.Schema().IdentifierFieldIDs), fields...), nil
}

// without are the fields of a schema less those that it has of the columns.
func without(s *iceberg.Schema, paths [][]string) (fields []iceberg.NestedField, dropped bool) {
	fields = slices.Clone(s.Fields())
	for _, path := range paths {
		if _, ok := fieldAt(fields, path); ok {
			fields, dropped = dropField(fields, path), true
		}
	}
	return fields, dropped
}

// Only reports whether the table's schema is another one less some of these columns, and nothing else.
func (t *Table) Only(whole *iceberg.Schema, less [][]string) bool {
	var gone [][]string
	for _, path := range less {
		if f, ok := fieldAt(whole.Fields(), path); ok && !has(t.Schema(), f.ID) {
			gone = append(gone, path)
		}
	}
	fields, _ := without(whole, gone)
	return iceberg.NewSchemaWithIdentifiers(0, whole.IdentifierFieldIDs, fields...).Equals(t.Schema())
}

// SameColumn reports whether the table's column of a path is the one that a schema has there, and has no more fields
// inside, rather than one that somebody has made anew, or put more into.
func (t *Table) SameColumn(path []string, then *iceberg.Schema) (same, grown bool) {
	old, ok := fieldAt(then.Fields(), path)
	now, found := fieldAt(t.Schema().Fields(), path)
	if !ok || !found || old.ID != now.ID {
		return false, false
	}
	inside := idsIn(old.Type)
	for _, id := range idsIn(now.Type) {
		grown = grown || !slices.Contains(inside, id)
	}
	return true, grown
}

// NameOf is the present name of the column that a schema has at a path, "" where the table has it no more.
func (t *Table) NameOf(path []string, then *iceberg.Schema) string {
	f, ok := fieldAt(then.Fields(), path)
	if !ok || !has(t.Schema(), f.ID) {
		return ""
	}
	if now, ok := fieldAt(t.Schema().Fields(), path); ok && now.ID == f.ID {
		return plan.FormatPath(path)
	}
	name, _ := t.Schema().FindColumnName(f.ID)
	return name
}

func has(s *iceberg.Schema, id int) bool {
	_, ok := s.FindFieldByID(id)
	return ok
}

// useOf says what a column is needed for, "" for nothing.
func (t *Table) useOf(f iceberg.NestedField) string {
	spec, order := t.Spec(), t.SortOrder()
	for _, id := range append(idsIn(f.Type), f.ID) {
		for _, p := range spec.Fields() {
			if slices.Contains(p.SourceIDs, id) {
				return "partitions it"
			}
		}
		for _, s := range order.Fields() {
			if slices.Contains(s.SourceIDs, id) {
				return "sorts it"
			}
		}
		if slices.Contains(t.Schema().IdentifierFieldIDs, id) {
			return "identifies its rows"
		}
	}
	return ""
}

func idsIn(t iceberg.Type) []int {
	nested, ok := t.(iceberg.NestedType)
	if !ok {
		return nil
	}
	var out []int
	for _, f := range nested.Fields() {
		out = append(append(out, f.ID), idsIn(f.Type)...)
	}
	return out
}

func fieldAt(fields []iceberg.NestedField, path []string) (iceberg.NestedField, bool) {
	for _, f := range fields {
		if f.Name != path[0] {
			continue
		}
		if len(path) == 1 {
			return f, true
		}
		if nested, ok := f.Type.(iceberg.NestedType); ok {
			return fieldAt(nested.Fields(), path[1:])
		}
	}
	return iceberg.NestedField{}, false
}

// dropField drops a field that is there, be it inside structs, lists and maps.
func dropField(fields []iceberg.NestedField, path []string) []iceberg.NestedField {
	at := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.Name == path[0] })
	fields = slices.Clone(fields)
	if len(path) == 1 {
		return slices.Delete(fields, at, at+1)
	}
	fields[at].Type = dropInside(fields[at].Type, path[1:])
	return fields
}

func dropInside(t iceberg.Type, path []string) iceberg.Type {
	switch t := t.(type) {
	case *iceberg.StructType:
		return &iceberg.StructType{FieldList: dropField(t.FieldList, path)}
	case *iceberg.ListType:
		out := *t
		out.Element = dropInside(t.Element, path[1:])
		return &out
	case *iceberg.MapType:
		out := *t
		if path[0] == "key" {
			out.KeyType = dropInside(t.KeyType, path[1:])
		} else {
			out.ValueType = dropInside(t.ValueType, path[1:])
		}
		return &out
	}
	return t
}
