package catalogs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/apache/iceberg-go/catalog"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	"modernc.org/sqlite"

	"icepipe/internal/storage"
	"icepipe/pkg/plan"
)

// A sqlCatalog is the library's, but that a commit on a commit of its own reads no metadata, and that
// errors of the database name it: "disk I/O error" alone tells nobody which disk.
type sqlCatalog struct {
	*icesql.Catalog
	database
	ref   Ref
	mode  Mode
	files *storage.Store
	last  *lastCommit
}

// LoadTable implements catalog.Catalog. The library would parse the location of the metadata as a URL, which not
// every path is; so it is looked up here, and read by files that take locations as they stand.
func (c sqlCatalog) LoadTable(ctx context.Context, identifier table.Identifier) (*table.Table, error) {
	location, err := c.metadataLocation(ctx, identifier)
	if err != nil {
		return nil, c.named(err)
	}
	tbl, err := loaded(ctx, identifier, location, c.files, c)
	return tbl, c.named(err)
}

// metadataLocation is where the database says that a table's metadata is. A namespace must be as this database has
// it: see identifier.
func (c sqlCatalog) metadataLocation(ctx context.Context, identifier table.Identifier) (string, error) {
	namespace, name := identifier[:len(identifier)-1], identifier[len(identifier)-1]
	var location sql.NullString
	err := c.db.QueryRowContext(ctx, c.bind(`SELECT metadata_location FROM iceberg_tables
		WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?`), c.ref.Place.Name, stored(namespace), name).Scan(&location)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", fmt.Errorf("%w: %s", catalog.ErrNoSuchTable, plan.FormatPath(identifier))
	case err != nil:
		return "", err
	case !location.Valid:
		return "", fmt.Errorf("%w: %s has no metadata", catalog.ErrNoSuchTable, plan.FormatPath(identifier))
	}
	return location.String, nil
}

func (c sqlCatalog) named(err error) error {
	var se *sqlite.Error
	if errors.As(err, &se) || isServerError(err) {
		return c.ref.databaseError(err)
	}
	return err
}
