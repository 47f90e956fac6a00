package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// textFields are the partition fields whose values are strings or bytes: by the ID of the spec, and in
// it by place, the ID of the field.
type textFields map[int]map[int]int

// textFields finds them in all partition specs of the table.
func (t *Table) textFields() textFields {
	out := textFields{}
	for _, spec := range t.Metadata().PartitionSpecs() {
		for at, f := range spec.PartitionType(t.Schema()).FieldList {
			switch f.Type.(type) {
			case iceberg.StringType, iceberg.BinaryType:
				if out[spec.ID()] == nil {
					out[spec.ID()] = map[int]int{}
				}
				out[spec.ID()][at] = f.ID
			}
		}
	}
	return out
}

// mendBounds gives a staged snapshot's manifest list the bounds that the library leaves out: it writes
// none for an empty string or empty bytes, which readers take for a partition of nulls alone, so that
// they find nothing for any filter on that column (case 61). The list is written again in its place:
// nobody knows of it before the commit.
func (t *Table) mendBounds(ctx context.Context, snapshot *table.Snapshot) error {
	fields := t.textFields()
	if len(fields) == 0 {
		return nil
	}
	io, err := t.FS(ctx)
	if err != nil {
		return err
	}
	fs, ok := io.(iceio.WriteFileIO)
	if !ok {
		return fmt.Errorf("the file system of table %q cannot be written to", t.Name())
	}
	if err := fields.mendList(fs, snapshot); err != nil {
		return fmt.Errorf("manifest list %q: %w", snapshot.ManifestList, err)
	}
	return nil
}

// A manifestList is a manifest list as Avro has it, so that nothing of it is lost when it is written again.
type manifestList struct {
	schema   *avro.Schema
	metadata map[string][]byte
	entries  []map[string]any
}

func (fields textFields) mendList(fs iceio.WriteFileIO, snapshot *table.Snapshot) error {
	text, err := read(fs, snapshot.ManifestList)
	if err != nil {
		return err
	}
	manifests, err := iceberg.ReadManifestList(bytes.NewReader(text))
	if err != nil {
		return err
	}
	var list *manifestList
	for i, m := range manifests {
		lacking := fields.lacking(m, m.SnapshotID() == snapshot.SnapshotID)
		if len(lacking) == 0 {
			continue
		}
		empty, err := holdEmpty(fs, m, lacking)
		if err != nil {
			return err
		}
		if len(empty) == 0 {
			continue
		}
		if list == nil {
			if list, err = readList(text); err != nil {
				return err
			}
		}
		if err := list.bound(i, empty); err != nil {
			return err
		}
	}
	if list == nil {
		return nil
	}
	return list.write(fs, snapshot.ManifestList)
}

// lacking are the text fields of a manifest that may lack their bounds, by place the ID of the field. Of
// a manifest of our own no lower bound is enough. In one that an earlier snapshot wrote it may as well
// stand for nulls alone, and is looked into only where it cannot.
func (fields textFields) lacking(m iceberg.ManifestFile, ours bool) map[int]int {
	partitions := m.Partitions()
	out := map[int]int{}
	for at, id := range fields[int(m.PartitionSpecID())] {
		if at >= len(partitions) || partitions[at].LowerBound != nil {
			continue
		}
		if ours || partitions[at].UpperBound != nil || !partitions[at].ContainsNull {
			out[at] = id
		}
	}
	return out
}

// holdEmpty returns the places of those fields that are empty, and not null, in an entry of the manifest.
func holdEmpty(fs iceio.IO, m iceberg.ManifestFile, fields map[int]int) (map[int]bool, error) {
	out := map[int]bool{}
	for entry, err := range m.Entries(fs, false) {
		if err != nil {
			return nil, fmt.Errorf("manifest %q: %w", m.FilePath(), err)
		}
		partition := entry.DataFile().Partition()
		for at, id := range fields {
			switch v := partition[id].(type) {
			case string:
				out[at] = out[at] || v == ""
			case []byte:
				out[at] = out[at] || len(v) == 0
			}
		}
	}
	for at, empty := range out {
		if !empty {
			delete(out, at)
		}
	}
	return out, nil
}

func readList(text []byte) (*manifestList, error) {
	reader, err := ocf.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	list := &manifestList{schema: reader.Schema(), metadata: reader.Metadata()}
	for {
		var entry map[string]any
		err := reader.Decode(&entry)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list.entries = append(list.entries, entry)
	}
}

// bound sets the bounds of those partition fields of a manifest whose least value is the empty one.
func (l *manifestList) bound(manifest int, empty map[int]bool) error {
	if manifest >= len(l.entries) {
		return fmt.Errorf("it has %d manifests, not the %d of a moment ago", len(l.entries), manifest+1)
	}
	partitions, _ := l.entries[manifest]["partitions"].([]any)
	for at := range empty {
		if at >= len(partitions) {
			return fmt.Errorf("manifest %d of it has no partition field %d", manifest, at)
		}
		summary, ok := partitions[at].(map[string]any)
		if !ok {
			return fmt.Errorf("partition field %d of manifest %d is a %T", at, manifest, partitions[at])
		}
		summary["lower_bound"] = []byte{}
		if summary["upper_bound"] == nil { // there is no other value
			summary["upper_bound"] = []byte{}
		}
	}
	return nil
}

// write puts the list in the place of the file at path.
func (l *manifestList) write(fs iceio.WriteFileIO, path string) error {
	metadata := map[string][]byte{}
	for k, v := range l.metadata {
		if !strings.HasPrefix(k, "avro.") {
			metadata[k] = v
		}
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, l.schema, ocf.WithSchema(string(l.metadata["avro.schema"])), ocf.WithMetadata(metadata), ocf.WithCodec(ocf.DeflateCodec(-1)))
	if err != nil {
		return err
	}
	for _, entry := range l.entries {
		if err := w.Encode(entry); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	f, err := fs.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(out.Bytes())
	return errors.Join(err, f.Close())
}

func read(fs iceio.IO, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}
