// Package migratetest helps people test their own code that uses pkg/migrate.
package migratetest

import (
	"github.com/apache/iceberg-go/catalog"

	"icepipe/internal/catalogs"
)

// Catalog makes a throw-away SQLite catalog in dir, which must be there: the database is catalog.db, the
// tables lie in folders beside it. The caller closes it (it is a catalog.Closer) and removes dir.
func Catalog(dir string) (catalog.Catalog, error) { return catalogs.Temporary(dir) }
