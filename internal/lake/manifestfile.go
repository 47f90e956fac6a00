package lake

import (
	"bytes"
	"fmt"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// A manifestInMemory is a manifest that is being written for a snapshot.
type manifestInMemory struct {
	*iceberg.ManifestWriter
	text *bytes.Buffer
}

// beginManifest begins one of the partition spec and the content of another.
func (t *Table) beginManifest(like iceberg.ManifestFile, snapshot *table.Snapshot) (manifestInMemory, error) {
	id := int(like.PartitionSpecID())
	if err := t.rewritable(id); err != nil {
		return manifestInMemory{}, err
	}
	text := &bytes.Buffer{}
	w, err := iceberg.NewManifestWriter(t.Metadata().Version(), text, *t.Metadata().PartitionSpecByID(id), t.Schema(), snapshot.SnapshotID,
		iceberg.WithManifestWriterContent(like.ManifestContent()))
	return manifestInMemory{w, text}, err
}

// end writes the manifest to the table's metadata.
func (w manifestInMemory) end(t *Table, fs iceio.WriteFileIO, content iceberg.ManifestContent) (iceberg.ManifestFile, error) {
	if err := w.Close(); err != nil {
		return nil, err
	}
	provider, err := t.LocationProvider()
	if err != nil {
		return nil, err
	}
	path := provider.NewMetadataLocation(uuid.NewString() + "-m0.avro")
	if err := write(fs, path, w.text.Bytes()); err != nil {
		return nil, err
	}
	return w.ToManifestFile(path, int64(w.text.Len()), iceberg.WithManifestFileContent(content))
}

// rewritable refuses a partition spec whose manifests cannot be written anew without loss, by its field.
func (t *Table) rewritable(id int) error {
	spec := t.Metadata().PartitionSpecByID(id)
	switch {
	case spec == nil:
		return lasting{fmt.Errorf("partition spec %d is not in the table", id)}
	case !t.mergeable(id):
		return lasting{fmt.Errorf("partition spec %d (%s): %w, since a column that it partitions by was dropped: rewrite the data files of that spec with another engine first", id, spec, errManifest)}
	case !t.writable(id):
		return lasting{fmt.Errorf("partition spec %d (%s): %w, since a name has only letters, digits and _ there: rewrite the data files of that spec with another engine first", id, spec, errManifest)}
	}
	return nil
}
