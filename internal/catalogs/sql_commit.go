package catalogs

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/iceberg-go/table"
)

// A lastCommit is the metadata of a table as the last commit through this catalog left it. Metadata files
// never change, so that while the catalog names the same file it need not be read and parsed again for the
// next commit: with a long history that is half of a commit's cost.
type lastCommit struct {
	sync.Mutex
	identifier table.Identifier
	metadata   table.Metadata
	location   string
}

// base is the metadata to commit on, if it is known; nil where it has to be read.
func (l *lastCommit) base(identifier table.Identifier, location string) table.Metadata {
	l.Lock()
	defer l.Unlock()
	if l.metadata == nil || l.location != location || !slices.Equal(l.identifier, identifier) {
		return nil
	}
	return l.metadata
}

func (l *lastCommit) keep(identifier table.Identifier, metadata table.Metadata, location string) {
	l.Lock()
	defer l.Unlock()
	l.identifier, l.metadata, l.location = identifier, metadata, location
}

// CommitTable implements catalog.Catalog, as the library does it: the requirements are checked, the metadata is
// written to a new file, and the row is made to name that file if it still names the one before. Unlike there, the
// metadata before is read only where it is not that of the last commit. A catalog that is opened ReadOnly refuses it.
func (c sqlCatalog) CommitTable(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	if c.mode != ReadWrite {
		return nil, "", fmt.Errorf("catalog database %q: a commit is not for this program", c.ref.store())
	}
	meta, location, err := c.commit(ctx, identifier, requirements, updates)
	if err == nil {
		c.last.keep(slices.Clone(identifier), meta, location)
	}
	return meta, location, c.named(err)
}

func (c sqlCatalog) commit(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	now, err := c.metadataLocation(ctx, identifier)
	if err != nil {
		return nil, "", err
	}
	base := c.last.base(identifier, now)
	if base == nil {
		tbl, err := table.NewFromLocation(ctx, identifier, now, c.files.FS, c)
		if err != nil {
			return nil, "", err
		}
		base = tbl.Metadata()
	}
	next, same, err := applied(base, now, requirements, updates)
	if err != nil || same {
		return base, now, err
	}
	location, err := newMetadata(ctx, c.files, next, metadataVersion(now)+1)
	if err != nil {
		return nil, "", err
	}
	namespace, name := identifier[:len(identifier)-1], identifier[len(identifier)-1]
	done, err := c.db.ExecContext(ctx, c.bind(`UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
		WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?`),
		location, now, c.ref.Place.Name, stored(namespace), name, now)
	if err != nil {
		return nil, "", fmt.Errorf("error updating table information: %w", err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return nil, "", fmt.Errorf("error updating table information: %w", err)
	}
	if n == 0 {
		return nil, "", fmt.Errorf("%w: another writer has committed to table %s meanwhile", table.ErrCommitFailed, c.ref)
	}
	return next, location, nil
}
