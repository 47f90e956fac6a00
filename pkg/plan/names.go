package plan

import (
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"
)

// reserved are the names of the metadata columns, which readers answer themselves (spec, Reserved
// Field IDs; case 58). They stand at the root of a row only.
var reserved = map[string]bool{
	"_file": true, "_pos": true, "_deleted": true, "_spec_id": true, "_partition": true,
	"_row_id": true, "_last_updated_sequence_number": true,
	"_change_type": true, "_change_ordinal": true, "_commit_snapshot_id": true,
}

// firstReservedID is where the field IDs of metadata columns begin (case 58).
const firstReservedID = iceberg.MaxStructFieldID

// checkFields refuses what neither side may have: duplicate names, reserved field IDs, types that
// are not carried, and on the destination reserved names.
//
// What skip, which may be nil, says of a path is not looked at.
func checkFields(side string, fields []iceberg.NestedField, parent []string, skip func([]string) bool) error {
	if len(parent) >= maxDepth {
		return fmt.Errorf("%s column %s: it is nested more than %d deep; that is not supported", side, quote(parent), maxDepth)
	}
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		path := join(parent, f.Name)
		if skip != nil && skip(path) {
			continue
		}
		if err := checkField(side, f, path); err != nil {
			return err
		}
		if seen[f.Name] {
			return fmt.Errorf("%s column %s: the name is there twice; rename one in the %s table", side, quote(path), side)
		}
		seen[f.Name] = true
		if err := checkFields(side, children(f.Type), path, skip); err != nil {
			return err
		}
	}
	return nil
}

func checkField(side string, f iceberg.NestedField, path []string) error {
	if f.ID >= firstReservedID {
		return fmt.Errorf("%s column %s: its field ID %d is reserved for metadata columns; drop the column and add it anew in the %s table",
			side, quote(path), f.ID, side)
	}
	if side == "destination" && len(path) == 1 && reserved[f.Name] {
		return fmt.Errorf("destination column %s: the name is reserved for a metadata column; rename the column in the destination table",
			quote(path))
	}
	if isNested(f.Type) {
		return nil
	}
	if err := checkLeaf(f.Type); err != nil {
		cure := "give --drop " + FormatPath(path)
		if side == "destination" {
			cure = "drop the column in the destination table"
		}
		return fmt.Errorf("%s column %s: %w; %s", side, quote(path), err, cure)
	}
	return nil
}

// checkAdded refuses added columns that the destination cannot hold beside the others: with a
// reserved name, or with a dotted name that is another column's path, by which the library would
// mistake one for the other.
func checkAdded(columns []Column) error {
	adds := changesOf(columns)
	if len(adds) == 0 {
		return nil
	}
	dotted := map[string]string{}
	for _, a := range adds {
		if a.Kind != AddColumn {
			continue
		}
		if len(a.Path) == 1 && reserved[a.Path[0]] {
			return fmt.Errorf("column %s: the name is reserved for a metadata column, so it cannot be added; give --column-mapping %s:NAME",
				quote(a.Path), FormatPath(a.Path))
		}
		dotted[strings.Join(a.Path, ".")] = key(a.Path)
	}
	return walk(columns, func(c *Column) error {
		if k, ok := dotted[strings.Join(c.Path, ".")]; ok && k != key(c.Path) {
			return fmt.Errorf("column %s: it cannot be added beside %s, whose name reads the same; give --column-mapping to another name",
				k, quote(c.Path))
		}
		return nil
	})
}

// walk calls f on every column, parents first.
func walk(columns []Column, f func(*Column) error) error {
	for i := range columns {
		if err := f(&columns[i]); err != nil {
			return err
		}
		if err := walk(columns[i].Fields, f); err != nil {
			return err
		}
	}
	return nil
}

// warnCase warns of names that engines which ignore case cannot tell apart.
func (b *builder) warnCase(fields []iceberg.NestedField, parent []string) {
	fold := make(map[string]string, len(fields))
	for _, f := range fields {
		path := join(parent, f.Name)
		if other, ok := fold[strings.ToLower(f.Name)]; ok {
			b.warnings = append(b.warnings, fmt.Sprintf("destination columns %s and %s differ only by case; "+
				"they are matched with case, but engines that ignore it cannot tell them apart", quote(join(parent, other)), quote(path)))
		}
		fold[strings.ToLower(f.Name)] = f.Name
		b.warnCase(children(f.Type), path)
	}
}

// hasPath tells whether a path leads to a column.
func hasPath(fields []iceberg.NestedField, path []string) bool {
	for _, f := range fields {
		if f.Name == path[0] {
			return len(path) == 1 || hasPath(children(f.Type), path[1:])
		}
	}
	return false
}

// nearName names a column that differs from path only by case.
func nearName(fields []iceberg.NestedField, path []string) string {
	var found []string
	for len(path) > len(found) {
		var next *iceberg.NestedField
		for i, f := range fields {
			if f.Name == path[len(found)] {
				next = &fields[i]
				break
			}
			if strings.EqualFold(f.Name, path[len(found)]) {
				next = &fields[i]
			}
		}
		if next == nil {
			return ""
		}
		found, fields = append(found, next.Name), children(next.Type)
	}
	return fmt.Sprintf("; %s differs by case", quote(found))
}

// printable escapes what would break a line or a terminal.
func printable(s string) string {
	if isPrintable(s) {
		return s
	}
	q := fmt.Sprintf("%q", s)
	return q[1 : len(q)-1]
}
