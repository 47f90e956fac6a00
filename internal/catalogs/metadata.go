package catalogs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"icepipe/internal/storage"
)

// applied is the metadata that updates make of base, which is in the file at location, once the requirements
// hold. same says that nothing changes.
func applied(base table.Metadata, location string, requirements []table.Requirement, updates []table.Update) (next table.Metadata, same bool, err error) {
	for _, r := range requirements {
		if err := r.Validate(base); err != nil {
			return nil, false, err
		}
	}
	if next, err = table.UpdateTableMetadata(base, updates, location); err != nil {
		return nil, false, err
	}
	return next, next.Equals(base), nil
}

// loaded is the table whose metadata is in the file at location, which its errors name.
func loaded(ctx context.Context, identifier table.Identifier, location string, files *storage.Store, in table.CatalogIO) (*table.Table, error) {
	t, err := table.NewFromLocation(ctx, identifier, location, files.FS, in)
	if named := (*fs.PathError)(nil); err != nil && !errors.As(err, &named) {
		return nil, fmt.Errorf("metadata %q: %w", location, err)
	}
	return t, err
}

// newMetadata writes metadata to a new file, where the table's properties want it and compressed as they want it. texts
// has what was written of its snapshots before.
func newMetadata(ctx context.Context, files *storage.Store, metadata table.Metadata, version int, texts *snapshotTexts) (location string, err error) {
	text, err := texts.file(metadata)
	if err != nil {
		return "", err
	}
	to, err := files.FS(ctx)
	if err != nil {
		return "", err
	}
	folder := storage.MetadataFolder(metadata.Location(), metadata.Properties())
	location = fmt.Sprintf("%s/%05d-%s%s.metadata.json", folder, version, uuid.NewString(), codecEnds[metadataCodec(metadata)])
	return location, to.(iceio.WriteFileIO).WriteFile(location, text)
}

// packed is the text of metadata as its file holds it, compressed as the table's properties want it.
func packed(text []byte, metadata table.Metadata) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch codec := metadataCodec(metadata); codec {
	case table.MetadataCompressionCodecNone:
		return text, nil
	case table.MetadataCompressionCodecGzip:
		w = gzip.NewWriter(&out)
	case table.MetadataCompressionCodecZstd:
		if w, err = zstd.NewWriter(&out); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("table property %s: %q is not supported: set none or gzip", table.MetadataCompressionKey, codec)
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// metadataCodec is how a table wants its metadata compressed. Java reads the name in any case.
func metadataCodec(metadata table.Metadata) string {
	return strings.ToLower(metadata.Properties().Get(table.MetadataCompressionKey, table.MetadataCompressionDefault))
}

// codecEnds are what stands before .metadata.json in the names of compressed files.
var codecEnds = map[string]string{table.MetadataCompressionCodecGzip: ".gz", table.MetadataCompressionCodecZstd: ".zstd"}

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
