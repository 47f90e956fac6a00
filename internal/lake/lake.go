// Package lake is the only caller of iceberg-go's planning, reading and committing. It knows what
// that library does wrong, and keeps it from the rest of the program.
package lake

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// A Table is a table in its catalog, as it was when it was last loaded.
type Table struct {
	Catalog catalog.Catalog
	Place   rows.Place
	*table.Table

	// CallTimeout bounds one call to the catalog in a commit; 0 stands for two minutes.
	CallTimeout time.Duration

	// files opens the table's file system: that of the table as it was first loaded, so that a
	// table made of a commit's answer does not keep all those before it alive.
	files table.FSysF
	// access tells whether this user may write a file, or make files in a folder; nil asks the system.
	access func(path string, folder bool) error
}

// Name is the table's identifier as people write it.
func (t *Table) Name() string { return plan.FormatPath(t.Identifier()) }

// Describe identifies the table, with the given schema, for a stream's header.
func (t *Table) Describe(schema *iceberg.Schema) (rows.Table, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return rows.Table{}, fmt.Errorf("schema of table %q: %w", t.Name(), err)
	}
	place := t.Place
	out := rows.Table{
		Identifier: slices.Clone(t.Identifier()),
		Location:   t.Location(),
		SchemaID:   schema.ID,
		Schema:     text,
		Version:    t.Metadata().Version(),
		Place:      &place,
	}
	if id := t.Metadata().TableUUID(); id != uuid.Nil {
		out.UUID = id.String()
	}
	return out, nil
}

// Same reports whether the table is the one that was described: by its UUID, or by its location
// where a v1 table has none.
func (t *Table) Same(described rows.Table) bool {
	if id := t.Metadata().TableUUID(); id != uuid.Nil && described.UUID != "" {
		return id.String() == described.UUID
	}
	return t.Location() == described.Location
}
