package catalogs

import (
	"context"
	"database/sql"
	"errors"

	"github.com/apache/iceberg-go"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	"modernc.org/sqlite"
)

// A sqliteCatalog is the library's, but that a commit on a commit of its own reads no metadata, and that
// errors of SQLite name the database: "disk I/O error" alone tells nobody which disk.
type sqliteCatalog struct {
	*icesql.Catalog
	ref        Ref
	db         *sql.DB
	properties iceberg.Properties // the catalog's
	last       *lastCommit
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
