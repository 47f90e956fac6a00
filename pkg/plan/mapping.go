package plan

import (
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"
)

type mapping struct {
	from, to []string
	used     bool
}

type dropping struct {
	path []string
	used bool
}

// inside refuses a mapping that takes a field out of its struct.
func (m *mapping) inside(sp, dp []string) error {
	if key(m.from[:len(m.from)-1]) == key(sp) && key(m.to[:len(m.to)-1]) == key(dp) {
		return nil
	}
	return m.moves()
}

func (m *mapping) moves() error {
	return fmt.Errorf("column mapping %s:%s: a column keeps its place and gets another name; "+
		"moving it into or out of a struct is not supported", FormatPath(m.from), FormatPath(m.to))
}

// known finds the columns that the options name, and refuses those that the source does not have. With
// --ignore-case their paths get the letters that the schemas have.
func (b *builder) known(src, dst []iceberg.NestedField) error {
	for _, m := range b.order {
		var err error
		if m.from, err = b.find(src, m.from); err != nil {
			return fmt.Errorf("column mapping %s:%s: %w", FormatPath(m.from), FormatPath(m.to), err)
		}
		if !hasPath(src, m.from) {
			return fmt.Errorf("column mapping %s:%s: the source has no column %s%s",
				FormatPath(m.from), FormatPath(m.to), quote(m.from), nearName(src, m.from))
		}
		if m.to, err = b.find(dst, m.to); err != nil {
			return fmt.Errorf("column mapping %s:%s: %w", FormatPath(m.from), FormatPath(m.to), err)
		}
		if b.from[key(m.from)] != nil || b.to[key(m.to)] != nil {
			return fmt.Errorf("column mapping %s:%s: one of them is mapped already under a name that differs by case; map it once",
				FormatPath(m.from), FormatPath(m.to))
		}
		b.from[key(m.from)], b.to[key(m.to)] = m, m
	}
	for _, d := range b.drops {
		var err error
		if d.path, err = b.find(src, d.path); err != nil {
			return fmt.Errorf("drop %s: %w", FormatPath(d.path), err)
		}
		if !hasPath(src, d.path) {
			return fmt.Errorf("drop %s: the source has no column %s%s", FormatPath(d.path), quote(d.path), nearName(src, d.path))
		}
		if b.from[key(d.path)] != nil {
			return fmt.Errorf("drop %s: source column %s is mapped too; do one or the other", FormatPath(d.path), quote(d.path))
		}
		b.drop[key(d.path)] = d
	}
	for _, c := range b.coerced {
		var err error
		if c.column, err = b.find(dst, c.column); err != nil {
			return fmt.Errorf("type coercion of %s: %w", quote(c.column), err)
		}
		b.coerce[key(c.column)] = c
	}
	return nil
}

// find gives a path the letters that the columns on it have, where case is ignored and they are there.
func (b *builder) find(fields []iceberg.NestedField, path []string) ([]string, error) {
	if !b.fold {
		return path, nil
	}
	out := make([]string, 0, len(path))
	for i, part := range path {
		at := -1
		for k, f := range fields {
			if f.Name == part {
				at = k
				break
			}
			if !strings.EqualFold(f.Name, part) {
				continue
			}
			if at >= 0 {
				return path, fmt.Errorf("%s and %s differ from %s only by case; write it as it is meant",
					quote(join(out, fields[at].Name)), quote(join(out, f.Name)), quote(path[:i+1]))
			}
			at = k
		}
		if at < 0 {
			return append(out, path[i:]...), nil
		}
		out, fields = append(out, fields[at].Name), children(fields[at].Type)
	}
	return out, nil
}

// dropped tells whether a source column is left out on purpose.
func (b *builder) dropped(path []string) bool { return b.drop[key(path)] != nil }

// folded is a name as names are compared.
func (b *builder) folded(name string) string {
	if b.fold {
		return strings.ToLower(name)
	}
	return name
}

// sources are the places of the fields of a struct of the source.
type sources struct {
	named  map[string]int // those that are matched by name, as names are compared
	mapped map[string]int // those that the user maps
}

// names finds the places of the source's fields; dropped ones have none. With --ignore-case two names that
// cannot be told apart are an error, on either side.
func (b *builder) names(src, dst []iceberg.NestedField, sp, dp []string) (sources, error) {
	found := sources{named: make(map[string]int, len(src)), mapped: map[string]int{}}
	for i, f := range src {
		path := join(sp, f.Name)
		switch {
		case b.from[key(path)] != nil:
			found.mapped[f.Name] = i
			continue
		case b.dropped(path):
			continue
		}
		if other, ok := found.named[b.folded(f.Name)]; ok {
			return found, fmt.Errorf("source columns %s and %s differ only by case, which --ignore-case does not tell apart; "+
				"give --column-mapping or --drop for one of them", quote(join(sp, src[other].Name)), quote(path))
		}
		found.named[b.folded(f.Name)] = i
	}
	if !b.fold {
		return found, nil
	}
	seen := make(map[string]string, len(dst))
	for _, f := range dst {
		path := join(dp, f.Name)
		if b.to[key(path)] != nil {
			continue
		}
		if other, ok := seen[b.folded(f.Name)]; ok {
			return found, fmt.Errorf("destination columns %s and %s differ only by case, which --ignore-case does not tell apart; "+
				"give --column-mapping for one of them", quote(join(dp, other)), quote(path))
		}
		seen[b.folded(f.Name)] = f.Name
	}
	return found, nil
}

// unused refuses mappings, drops and coercions that met no column.
func (b *builder) unused() error {
	for _, m := range b.order {
		if m.used {
			continue
		}
		if len(m.from) != len(m.to) {
			return m.moves()
		}
		return fmt.Errorf("column mapping %s:%s: only the fields of structs that both sides have can be renamed; "+
			"map what is around them too", FormatPath(m.from), FormatPath(m.to))
	}
	for _, d := range b.drops {
		if !d.used {
			return fmt.Errorf("drop %s: only columns and the fields of structs that are moved can be left out; "+
				"leave out what is around it", FormatPath(d.path))
		}
	}
	for _, c := range b.coerced {
		if !c.used {
			return fmt.Errorf("type coercion: the destination has no column %s, and none of that name is added",
				quote(c.column))
		}
	}
	return nil
}
