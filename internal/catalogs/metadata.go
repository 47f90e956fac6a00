package catalogs

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/klauspost/compress/zstd"
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

// newMetadata writes metadata to a new file, where the table's properties want it and compressed as they want it.
func newMetadata(ctx context.Context, catalog iceberg.Properties, metadata table.Metadata, version int) (location string, err error) {
	places, err := table.LoadLocationProvider(metadata.Location(), metadata.Properties())
	if err != nil {
		return "", err
	}
	if location, err = places.NewTableMetadataFileLocation(version); err != nil {
		return "", err
	}
	properties := iceberg.Properties{}
	maps.Copy(properties, catalog)
	maps.Copy(properties, metadata.Properties())
	files, err := iceio.LoadFSFunc(properties, location)(ctx)
	if err != nil {
		return "", err
	}
	writable, ok := files.(iceio.WriteFileIO)
	if !ok {
		return "", fmt.Errorf("metadata %q: cannot be written there", location)
	}
	text, err := metadataText(metadata)
	if err != nil {
		return "", err
	}
	out, err := writable.Create(location)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = out.Write(text)
	return location, err
}

// metadataText is metadata as its file holds it, compressed as the table's properties want it.
func metadataText(metadata table.Metadata) (text []byte, err error) {
	if m, ok := metadata.(json.Marshaler); ok {
		text, err = m.MarshalJSON() // json.Marshal would look through the whole text once more
	} else {
		text, err = json.Marshal(metadata)
	}
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	var w io.WriteCloser
	switch codec := metadataCodec(metadata); codec {
	case table.MetadataCompressionCodecNone:
		return text, nil
	case table.MetadataCompressionCodecGzip:
		w = gzip.NewWriter(&packed)
	case table.MetadataCompressionCodecZstd:
		if w, err = zstd.NewWriter(&packed); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("table property %s: %q is not supported: set none or gzip", table.MetadataCompressionKey, codec)
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}

// metadataCodec is how a table wants its metadata compressed. Java reads the name in any case.
func metadataCodec(metadata table.Metadata) string {
	return strings.ToLower(metadata.Properties().Get(table.MetadataCompressionKey, table.MetadataCompressionDefault))
}

// nextVersion is the number of the metadata file that follows the one at location: names that hold none are
// followed by 0, as with Java (BaseMetastoreTableOperations.parseVersion).
func nextVersion(location string) int {
	number, _, ok := strings.Cut(path.Base(location), "-")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return 0
	}
	return n + 1
}
