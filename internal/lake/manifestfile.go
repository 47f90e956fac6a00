package lake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// A manifestInMemory is a manifest that is being written for a snapshot.
type manifestInMemory struct {
	writer  *iceberg.ManifestWriter
	text    *bytes.Buffer
	content iceberg.ManifestContent
	of      []string // the data file that each entry, a delete file, is for; "" for none
}

// beginManifest begins one of a partition spec.
func (t *Table) beginManifest(spec int, content iceberg.ManifestContent, snapshot *table.Snapshot) (*manifestInMemory, error) {
	if err := t.rewritable(spec); err != nil {
		return nil, err
	}
	text := &bytes.Buffer{}
	w, err := iceberg.NewManifestWriter(t.Metadata().Version(), text, *t.Metadata().PartitionSpecByID(spec), t.Schema(), snapshot.SnapshotID,
		iceberg.WithManifestWriterContent(content))
	if err != nil {
		return nil, err
	}
	return &manifestInMemory{writer: w, text: text, content: content}, nil
}

func (w *manifestInMemory) note(entry iceberg.ManifestEntry, err error) error {
	of := ""
	if ref := entry.DataFile().ReferencedDataFile(); ref != nil {
		of = *ref
	}
	w.of = append(w.of, of)
	return err
}

// Add, Existing and Delete write an entry of that status.
func (w *manifestInMemory) Add(entry iceberg.ManifestEntry) error {
	return w.note(entry, w.writer.Add(entry))
}
func (w *manifestInMemory) Existing(entry iceberg.ManifestEntry) error {
	return w.note(entry, w.writer.Existing(entry))
}
func (w *manifestInMemory) Delete(entry iceberg.ManifestEntry) error {
	return w.note(entry, w.writer.Delete(entry))
}

// end writes the manifest to the table's metadata.
func (w *manifestInMemory) end(t *Table, fs iceio.WriteFileIO) (iceberg.ManifestFile, error) {
	if err := w.writer.Close(); err != nil {
		return nil, err
	}
	text := w.text.Bytes()
	if t.Metadata().Version() == 2 && strings.Join(w.of, "") != "" {
		var err error
		if text, err = withReferences(text, w.of); err != nil {
			return nil, err
		}
	}
	path := t.metadataFolder() + "/" + uuid.NewString() + "-m0.avro"
	if err := fs.WriteFile(path, text); err != nil {
		return nil, err
	}
	return w.writer.ToManifestFile(path, int64(len(text)), iceberg.WithManifestFileContent(w.content))
}

// withReferences gives the entries of a manifest of format version 2 the data file that each is for, field 143,
// which the specification has there and the library leaves out.
func withReferences(text []byte, of []string) ([]byte, error) {
	reader, err := ocf.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	schema, err := withReferenceField(reader.Metadata()["avro.schema"])
	if err != nil {
		return nil, fmt.Errorf("schema of a manifest: %w", err)
	}
	parsed, err := avro.Parse(string(schema))
	if err != nil {
		return nil, err
	}
	metadata := map[string][]byte{}
	for k, v := range reader.Metadata() {
		if !strings.HasPrefix(k, "avro.") {
			metadata[k] = v
		}
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, parsed, ocf.WithSchema(string(schema)), ocf.WithMetadata(metadata), ocf.WithCodec(ocf.DeflateCodec(-1)))
	if err != nil {
		return nil, err
	}
	n := 0
	err = eachRecord(reader, func(entry map[string]any) error {
		file, ok := entry["data_file"].(map[string]any)
		if !ok || n >= len(of) {
			return fmt.Errorf("entry %d of %d is a %T", n, len(of), entry["data_file"])
		}
		if file["referenced_data_file"] = nil; of[n] != "" {
			file["referenced_data_file"] = of[n]
		}
		n++
		return w.Encode(entry)
	})
	if err == nil && n != len(of) {
		err = fmt.Errorf("a manifest has %d entries of %d", n, len(of))
	}
	if err == nil {
		err = w.Close()
	}
	return out.Bytes(), err
}

func withReferenceField(schema []byte) ([]byte, error) {
	var root any
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		return nil, err
	}
	entry, _ := root.(map[string]any)
	fields, _ := entry["fields"].([]any)
	for _, f := range fields {
		field, _ := f.(map[string]any)
		record, ok := field["type"].(map[string]any)
		if field["name"] != "data_file" || !ok {
			continue
		}
		inside, _ := record["fields"].([]any)
		record["fields"] = append(inside, map[string]any{
			"name": "referenced_data_file", "type": []string{"null", "string"}, "default": nil, "field-id": 143,
			"doc": "Fully qualified location of a data file that all deletes reference",
		})
		return json.Marshal(root)
	}
	return nil, fmt.Errorf("it has no data_file")
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
