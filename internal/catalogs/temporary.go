package catalogs

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icesql "github.com/apache/iceberg-go/catalog/sql"
)

// TemporaryName is the name of a Temporary catalog.
const TemporaryName = "temporary"

// Temporary makes a throw-away SQLite catalog for tests and examples: the database is catalog.db
// in dir, tables lie in folders beside it. dir is there, and the caller removes it. The catalog is
// a catalog.Closer; commands reach it with --db-path.
func Temporary(dir string) (catalog.Catalog, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	cat, err := catalog.Load(context.Background(), TemporaryName, iceberg.Properties{
		"type":            "sql",
		icesql.DriverKey:  "sqlite",
		icesql.DialectKey: string(icesql.SQLite),
		"warehouse":       dir,
		"uri": dsn(filepath.Join(dir, "catalog.db"), url.Values{
			"_busy_timeout": {busyTimeout}, "_txlock": {"immediate"},
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("temporary catalog in %q: %w", dir, err)
	}
	return cat, nil
}
