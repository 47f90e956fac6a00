package plan

import (
	"fmt"

	"github.com/apache/iceberg-go"
)

type mapping struct {
	from, to []string
	used     bool
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

// checkMapping refuses a mapping of a column that the source does not have.
func (b *builder) checkMapping(src []iceberg.NestedField) error {
	for _, m := range b.order {
		if !hasPath(src, m.from) {
			return fmt.Errorf("column mapping %s:%s: the source has no column %s%s",
				FormatPath(m.from), FormatPath(m.to), quote(m.from), nearName(src, m.from))
		}
	}
	return nil
}

// unused refuses mappings and coercions that met no column.
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
	for _, c := range b.coerced {
		if !c.used {
			return fmt.Errorf("type coercion: the destination has no column %s, and none of that name is added",
				quote(c.column))
		}
	}
	return nil
}
