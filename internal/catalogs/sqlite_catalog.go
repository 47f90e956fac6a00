package catalogs

import (
	"context"
	"errors"

	icesql "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	"modernc.org/sqlite"
)

// A sqliteCatalog is the library's, but for errors of SQLite: they name the database. "disk I/O error"
// alone tells nobody which disk.
type sqliteCatalog struct {
	*icesql.Catalog
	ref Ref
}

// CommitTable implements catalog.Catalog.
func (c sqliteCatalog) CommitTable(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	meta, location, err := c.Catalog.CommitTable(ctx, identifier, requirements, updates)
	return meta, location, c.named(err)
}

// LoadTable implements catalog.Catalog.
func (c sqliteCatalog) LoadTable(ctx context.Context, identifier table.Identifier) (*table.Table, error) {
	tbl, err := c.Catalog.LoadTable(ctx, identifier)
	return tbl, c.named(err)
}

func (c sqliteCatalog) named(err error) error {
	var se *sqlite.Error
	if errors.As(err, &se) {
		return c.ref.databaseError(err)
	}
	return err
}
