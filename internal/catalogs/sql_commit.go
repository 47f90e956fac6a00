package catalogs

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go/table"
)

// CommitTable implements catalog.Catalog, as the library does it, but that the metadata before is read only where it is
// not that of the last commit. A catalog that is opened ReadOnly refuses it.
func (c sqlCatalog) CommitTable(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	if c.mode != ReadWrite {
		return nil, "", fmt.Errorf("catalog database %q: a commit is not for this program", c.ref.store())
	}
	now, err := c.metadataLocation(ctx, identifier)
	if err != nil {
		return nil, "", c.named(err)
	}
	meta, location, err := c.last.commit(ctx, c.files, change{identifier, now, requirements, updates}, c, func(_ table.Metadata, location string) error {
		return c.swap(ctx, identifier, now, location)
	})
	return meta, location, c.named(err)
}

// swap has the table's row name the metadata at location if it names that at now.
func (c sqlCatalog) swap(ctx context.Context, identifier table.Identifier, now, location string) error {
	namespace, name := identifier[:len(identifier)-1], identifier[len(identifier)-1]
	done, err := c.db.ExecContext(ctx, c.bind(`UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
		WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?`),
		location, now, c.ref.Place.Name, stored(namespace), name, now)
	if err != nil {
		return fmt.Errorf("error updating table information: %w", err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return fmt.Errorf("error updating table information: %w", err)
	}
	if n == 0 {
		return conflict("another writer has committed to table %s meanwhile", c.ref)
	}
	return nil
}
