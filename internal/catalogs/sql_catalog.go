package catalogs

import (
	"context"
	"errors"

	"github.com/apache/iceberg-go"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	"modernc.org/sqlite"
)

// A sqlCatalog is the library's, but that a commit on a commit of its own reads no metadata, and that
// errors of the database name it: "disk I/O error" alone tells nobody which disk.
type sqlCatalog struct {
	*icesql.Catalog
	database
	ref        Ref
	mode       Mode
	properties iceberg.Properties // the catalog's
	last       *lastCommit
}

// LoadTable implements catalog.Catalog.
func (c sqlCatalog) LoadTable(ctx context.Context, identifier table.Identifier) (*table.Table, error) {
	tbl, err := c.Catalog.LoadTable(ctx, identifier)
	return tbl, c.named(err)
}

func (c sqlCatalog) named(err error) error {
	var se *sqlite.Error
	if errors.As(err, &se) || isServerError(err) {
		return c.ref.databaseError(err)
	}
	return err
}
