package catalogs

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

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
	for _, r := range requirements {
		if err := r.Validate(base); err != nil {
			return nil, "", err
		}
	}
	next, err := table.UpdateTableMetadata(base, updates, now)
	if err != nil {
		return nil, "", err
	}
	if next.Equals(base) {
		return base, now, nil
	}
	location, err := c.newMetadata(ctx, next, metadataVersion(now)+1)
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

// newMetadata writes metadata to a new file, where the table's properties want it and compressed as they want it.
func (c sqlCatalog) newMetadata(ctx context.Context, metadata table.Metadata, version int) (location string, err error) {
	codec := metadata.Properties().Get(table.MetadataCompressionKey, table.MetadataCompressionDefault)
	extension, ok := map[string]string{
		table.MetadataCompressionCodecNone: "", table.MetadataCompressionCodecGzip: ".gz", table.MetadataCompressionCodecZstd: ".zstd",
	}[strings.ToLower(codec)]
	if !ok {
		return "", fmt.Errorf("property %q of table %s is %q, which is not known: want none or gzip", table.MetadataCompressionKey, c.ref, codec)
	}
	folder := storage.MetadataFolder(metadata.Location(), metadata.Properties())
	location = fmt.Sprintf("%s/%05d-%s%s.metadata.json", folder, version, uuid.NewString(), extension)
	var text []byte
	if m, ok := metadata.(json.Marshaler); ok {
		text, err = m.MarshalJSON() // json.Marshal would look through the whole text once more
	} else {
		text, err = json.Marshal(metadata)
	}
	if err == nil {
		text, err = compressed(text, extension)
	}
	if err != nil {
		return "", err
	}
	files, err := c.files.FS(ctx)
	if err != nil {
		return "", err
	}
	return location, files.(iceio.WriteFileIO).WriteFile(location, text)
}

// compressed is text as a metadata file of that extension holds it.
func compressed(text []byte, extension string) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch extension {
	case ".gz":
		w = gzip.NewWriter(&out)
	case ".zstd":
		w, err = zstd.NewWriter(&out)
	default:
		return text, nil
	}
	if err == nil {
		_, err = w.Write(text)
		err = errors.Join(err, w.Close())
	}
	return out.Bytes(), err
}

// metadataNumber is the number in a metadata file's name, which the next one's follows: NUMBER-UUID, or vNUMBER as
// a table in a plain folder has it.
var metadataNumber = regexp.MustCompile(`^(?:v(\d+)|(\d+)-[0-9a-fA-F-]{36})(?:\.\w+)?\.metadata\.json(?:\.\w+)?$`)

// metadataVersion is that number, and -1 where there is none.
func metadataVersion(location string) int {
	m := metadataNumber.FindStringSubmatch(path.Base(location))
	if m == nil {
		return -1
	}
	n, err := strconv.Atoi(m[1] + m[2])
	if err != nil {
		return -1
	}
	return n
}
