// Package migrate moves rows between two existing Iceberg tables, exactly once.
//
// Scan, Reconcile and Write are functions of streams; a Migrator makes the three calls one after
// the other. Whether a pipe lies between them makes no difference to what is written.
package migrate

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/lake"
	"icepipe/pkg/rows"
)

// A Table is a table in a catalog, loaded.
type Table struct{ lake *lake.Table }

// Open loads a table. place says how its catalog is reached, and is recorded in stream headers and
// checkpoints; it may be the zero Place where nobody has to find the table again by them.
func Open(ctx context.Context, c catalog.Catalog, identifier table.Identifier, place rows.Place) (*Table, error) {
	loaded, err := c.LoadTable(ctx, identifier)
	if err != nil {
		return nil, fmt.Errorf("load table: %w", err)
	}
	return FromLoaded(c, loaded, place), nil
}

// FromLoaded is Open for a table that was loaded from c already.
func FromLoaded(c catalog.Catalog, loaded *table.Table, place rows.Place) *Table {
	return &Table{lake: &lake.Table{Catalog: c, Place: place, Table: loaded}}
}

// Name is the table's identifier as people write it.
func (t *Table) Name() string { return t.lake.Name() }

// Iceberg is the table as iceberg-go has it, as of the last load or commit.
func (t *Table) Iceberg() *table.Table { return t.lake.Table }

// ArrowSchema is the table's present schema as Arrow has it, with field IDs.
func (t *Table) ArrowSchema() (*arrow.Schema, error) {
	return table.SchemaToArrowSchema(t.lake.Schema(), nil, true, false)
}

// A Pin says which snapshot of a source is read. At most one field is set; the zero Pin means the
// current snapshot.
type Pin struct {
	Snapshot *int64 // by ID
	Ref      string // branch or tag
	AsOf     string // a time: the snapshot that was current then

	none   bool // the table as it was when it had no snapshot
	schema *int // with Snapshot: read with this schema
}

// Check refuses a pin that no table can be read at: a time that is none.
func (p Pin) Check() error { return p.lake().Check() }

func (p Pin) lake() lake.Pin {
	return lake.Pin{Snapshot: p.Snapshot, Ref: p.Ref, AsOf: p.AsOf, None: p.none, SchemaID: p.schema}
}
