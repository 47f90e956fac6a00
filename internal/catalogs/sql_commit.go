package catalogs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
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

// base is the metadata to commit on, if it is known; else the library's way has to find it.
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

// CommitTable implements catalog.Catalog. A catalog that is opened ReadOnly refuses it.
func (c sqlCatalog) CommitTable(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	if c.mode != ReadWrite {
		return nil, "", fmt.Errorf("catalog database %q: a commit is not for this program", c.ref.store())
	}
	meta, location, err := c.commitOnLast(ctx, identifier, requirements, updates)
	if errors.Is(err, errNotOnLast) {
		meta, location, err = c.Catalog.CommitTable(ctx, identifier, requirements, updates)
	}
	if err == nil {
		c.last.keep(slices.Clone(identifier), meta, location)
	}
	return meta, location, c.named(err)
}

// errNotOnLast says that a commit has to go the library's way; nothing was done.
var errNotOnLast = errors.New("not on the last commit")

// commitOnLast commits on the metadata of the last commit, as the library does on what it loads: the
// requirements are checked, the metadata is written to a new file, and the row is made to name that file
// if it still names the one before.
func (c sqlCatalog) commitOnLast(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	namespace, name := identifier[:len(identifier)-1], identifier[len(identifier)-1]
	if strings.Contains(strings.Join(namespace, "."), namespaceMark) {
		return nil, "", errNotOnLast // which of two forms it has is the library's to find
	}
	var now string
	key := []any{c.ref.Place.Name, stored(namespace), name}
	err := c.db.QueryRowContext(ctx, c.bind(`SELECT metadata_location FROM iceberg_tables
		WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?`), key...).Scan(&now)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, "", errNotOnLast
	}
	if err != nil {
		return nil, "", err
	}
	base := c.last.base(identifier, now)
	version, numbered := metadataVersion(now)
	if base == nil || !numbered {
		return nil, "", errNotOnLast
	}
	for _, r := range requirements {
		if err := r.Validate(base); err != nil {
			return nil, "", err
		}
	}
	next, err := table.UpdateTableMetadata(base, updates, now)
	if err != nil {
		return nil, "", err
	}
	codec := next.Properties().Get(table.MetadataCompressionKey, table.MetadataCompressionDefault)
	if next.Equals(base) || codec != table.MetadataCompressionCodecNone {
		return nil, "", errNotOnLast
	}
	location, err := c.newMetadata(ctx, next, version+1)
	if err != nil {
		return nil, "", err
	}
	done, err := c.db.ExecContext(ctx, c.bind(`UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
		WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?`),
		append([]any{location, now}, append(key, now)...)...)
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

// newMetadata writes metadata to a new file, where the table's properties want it.
func (c sqlCatalog) newMetadata(ctx context.Context, metadata table.Metadata, version int) (location string, err error) {
	places, err := table.LoadLocationProvider(metadata.Location(), metadata.Properties())
	if err != nil {
		return "", err
	}
	if location, err = places.NewTableMetadataFileLocation(version); err != nil {
		return "", err
	}
	properties := iceberg.Properties{}
	maps.Copy(properties, c.properties)
	maps.Copy(properties, metadata.Properties())
	files, err := iceio.LoadFSFunc(properties, location)(ctx)
	if err != nil {
		return "", err
	}
	writable, ok := files.(iceio.WriteFileIO)
	if !ok {
		return "", fmt.Errorf("metadata %q: cannot be written there", location)
	}
	out, err := writable.Create(location)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var text []byte
	if m, ok := metadata.(json.Marshaler); ok {
		text, err = m.MarshalJSON() // json.Marshal would look through the whole text once more
	} else {
		text, err = json.Marshal(metadata)
	}
	if err != nil {
		return "", err
	}
	_, err = out.Write(text)
	return location, err
}

// metadataNumber is the number in a metadata file's name, which the next one's follows.
var metadataNumber = regexp.MustCompile(`^(\d+)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\.metadata\.json$`)

func metadataVersion(location string) (int, bool) {
	m := metadataNumber.FindStringSubmatch(path.Base(location))
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}
