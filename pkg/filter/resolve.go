package filter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/apache/iceberg-go"

	"icepipe/internal/spelling"
)

// A field is a column, or a field of a struct in one, that a predicate asks about.
type field struct {
	ids   []int    // of the top-level column and of each field on the way down
	path  []string // their names
	typ   iceberg.Type
	text  string // the path as Parse reads it
	order int    // of the top-level column in the schema
}

func (f *field) id() int { return f.ids[len(f.ids)-1] }

// resolve finds a column in the schema. The error has no place yet.
func resolve(schema *iceberg.Schema, c column) (*field, error) {
	if !c.joined {
		f, err := walk(schema.Fields(), c.parts)
		if err != nil {
			return nil, fmt.Errorf("%w%s", err, whichNear(schema, c.parts))
		}
		return f, nil
	}
	var found []*field
	for _, parts := range splits(c.parts) {
		if f, err := walk(schema.Fields(), parts); err == nil {
			found = append(found, f)
		}
	}
	name := strings.Join(c.parts, ".")
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no column %q%s", name, whichNear(schema, c.parts))
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("the name %q can mean %s and %s; write the filter as text, where names that hold dots stand in double quotes", name, found[0].text, found[1].text)
}

// splits are the ways to make names of parts that were joined by dots. There are few ways that can be
// meant; a name of very many dots is taken part by part.
func splits(parts []string) [][]string {
	if len(parts) == 1 || len(parts) > 12 {
		return [][]string{parts}
	}
	var out [][]string
	for n := 1; n <= len(parts); n++ {
		head := strings.Join(parts[:n], ".")
		if n == len(parts) {
			out = append(out, []string{head})
			break
		}
		for _, tail := range splits(parts[n:]) {
			out = append(out, append([]string{head}, tail...))
		}
	}
	return out
}

func walk(fields []iceberg.NestedField, parts []string) (*field, error) {
	f := &field{text: formatPath(parts), path: parts}
	for i, name := range parts {
		at := slices.IndexFunc(fields, func(n iceberg.NestedField) bool { return n.Name == name })
		if at < 0 {
			if i == 0 {
				return nil, fmt.Errorf("there is no column %s", quotePath(parts[:1]))
			}
			return nil, fmt.Errorf("there is no field %s in %s", quotePath(parts[i:i+1]), quotePath(parts[:i]))
		}
		if i == 0 {
			f.order = at
		}
		f.ids = append(f.ids, fields[at].ID)
		f.typ = fields[at].Type
		if i == len(parts)-1 {
			return f, nil
		}
		inside, ok := f.typ.(*iceberg.StructType)
		if !ok {
			return nil, fmt.Errorf("column %s has type %s, and a path goes through structs alone", quotePath(parts[:i+1]), typeText(f.typ))
		}
		fields = inside.FieldList
	}
	return nil, fmt.Errorf("the path is empty")
}

// whichNear names columns that may be meant, "" when none is near.
func whichNear(schema *iceberg.Schema, parts []string) string {
	type candidate struct {
		text     string
		distance int
	}
	want := strings.ToLower(strings.Join(parts, "."))
	last := strings.ToLower(parts[len(parts)-1])
	var near []candidate
	var all []string
	var visit func(fields []iceberg.NestedField, path []string)
	visit = func(fields []iceberg.NestedField, path []string) {
		for _, f := range fields {
			at := append(path[:len(path):len(path)], f.Name)
			text := formatPath(at)
			if len(path) == 0 {
				all = append(all, text)
			}
			whole := distance(want, strings.ToLower(strings.Join(at, ".")))
			name := distance(last, strings.ToLower(f.Name))
			if d := min(whole, 2*name+1); whole == 0 || name < len([]rune(last)) && name <= max(1, len([]rune(last))/3) || whole <= len([]rune(want))/3 {
				near = append(near, candidate{text, d})
			}
			if s, ok := f.Type.(*iceberg.StructType); ok && len(path) < maxDepth {
				visit(s.FieldList, at)
			}
		}
	}
	visit(schema.Fields(), nil)
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, c := range near[:min(3, len(near))] {
		names = append(names, c.text)
	}
	switch {
	case len(names) > 0:
		return "; near are " + strings.Join(names, ", ")
	case len(all) == 0:
		return "; the table has no columns"
	case len(all) > 12:
		return fmt.Sprintf("; the table has %d columns, such as %s", len(all), strings.Join(all[:10], ", "))
	}
	return "; there are " + strings.Join(all, ", ")
}

// distance is how far apart two names are; those too long to be a slip of the pen are not compared.
func distance(a, b string) int {
	if n := utf8.RuneCountInString(a) + utf8.RuneCountInString(b); n > 400 {
		return n
	}
	return spelling.Distance(a, b)
}

// typeText shows a type to people, nested ones by their kind.
func typeText(t iceberg.Type) string {
	switch t := t.(type) {
	case *iceberg.StructType:
		return "struct"
	case *iceberg.ListType:
		return "list"
	case *iceberg.MapType:
		return "map"
	case nil:
		return "?"
	default:
		return t.String()
	}
}
