package catalogs

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/iceberg-go/table"

	"icepipe/internal/storage"
)

// A lastCommit is the metadata of a table as the last commit through this catalog left it. Metadata files
// never change, so that while the catalog names the same file it need not be read and parsed again for the
// next commit: with a long history that is half of a commit's cost.
type lastCommit struct {
	sync.Mutex
	identifier table.Identifier
	metadata   table.Metadata
	location   string
	texts      snapshotTexts
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

// A change is what is asked of a table whose metadata is in the file at now.
type change struct {
	identifier   table.Identifier
	now          string
	requirements []table.Requirement
	updates      []table.Update
}

// commit makes a change: the requirements are checked, the new metadata is written to a new file, and swap is to make
// the catalog name it if that still names the one before. The metadata before is read only where it is not that of the
// last commit.
func (l *lastCommit) commit(ctx context.Context, files *storage.Store, c change, in table.CatalogIO, swap func(next table.Metadata, location string) error) (table.Metadata, string, error) {
	base := l.base(c.identifier, c.now)
	if base == nil {
		old, err := loaded(ctx, c.identifier, c.now, files, in)
		if err != nil {
			return nil, "", err
		}
		base = old.Metadata()
	}
	next, same, err := applied(base, c.now, c.requirements, c.updates)
	if err != nil {
		return nil, "", err
	}
	location := c.now
	if !same {
		if location, err = newMetadata(ctx, files, next, metadataVersion(c.now)+1, &l.texts); err == nil {
			err = swap(next, location)
		}
		if err != nil {
			return nil, "", err
		}
		base = next
	}
	l.keep(slices.Clone(c.identifier), base, location)
	return base, location, nil
}

// conflict says that another writer was there first.
func conflict(format string, args ...any) error {
	return fmt.Errorf("%w: %s", table.ErrCommitFailed, fmt.Sprintf(format, args...))
}
