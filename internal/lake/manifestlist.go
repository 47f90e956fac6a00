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

// A manifestList is a manifest list as Avro has it, so that nothing of it is lost when it is written
// again, and as the library reads it, entry by entry.
type manifestList struct {
	schema    *avro.Schema
	metadata  map[string][]byte
	entries   []map[string]any
	manifests []iceberg.ManifestFile
	changed   bool
}

// mendList merges manifests of a staged snapshot, and gives its manifest list the bounds that the
// library leaves out. The list is written again in its place: nobody knows of it before the commit.
func (t *Table) mendList(ctx context.Context, snapshot *table.Snapshot) error {
	return t.editList(ctx, snapshot, func(fs iceio.WriteFileIO, list *manifestList) error {
		return t.merge(ctx, fs, snapshot, list, iceberg.ManifestContentData)
	})
}

// editList changes the manifest list of a staged snapshot, gives it the bounds, and writes it.
func (t *Table) editList(ctx context.Context, snapshot *table.Snapshot, edit func(iceio.WriteFileIO, *manifestList) error) error {
	io, err := t.FS(ctx)
	if err != nil {
		return err
	}
	fs, ok := io.(iceio.WriteFileIO)
	if !ok {
		return fmt.Errorf("the file system of table %q cannot be written to", t.Name())
	}
	snapshot.ManifestList = t.literal(snapshot.ManifestList)
	text, err := read(fs, snapshot.ManifestList)
	if err != nil {
		return err
	}
	list, err := readList(text)
	if err == nil {
		list, err = t.toLiteral(list)
	}
	if err == nil {
		err = edit(fs, list)
	}
	if err == nil {
		err = t.textFields().mend(fs, snapshot.SnapshotID, list)
	}
	if err == nil && list.changed {
		err = list.write(fs, snapshot.ManifestList)
	}
	if err != nil {
		return fmt.Errorf("manifest list %q: %w", snapshot.ManifestList, err)
	}
	return nil
}

func readList(text []byte) (*manifestList, error) {
	manifests, err := iceberg.ReadManifestList(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	reader, err := ocf.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	list := &manifestList{schema: reader.Schema(), metadata: reader.Metadata(), manifests: manifests}
	err = eachRecord(reader, func(entry map[string]any) error {
		list.entries = append(list.entries, entry)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list.entries) != len(manifests) {
		return nil, fmt.Errorf("it has %d entries and %d manifests", len(list.entries), len(manifests))
	}
	return list, nil
}

// eachRecord calls f for every record of an Avro file, to the first error.
func eachRecord(reader *ocf.Reader, f func(map[string]any) error) error {
	for {
		var record map[string]any
		err := reader.Decode(&record)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(record)
		}
		if err != nil {
			return err
		}
	}
}

// dropEmpty leaves out the manifests of earlier snapshots that name no live file: they say what those snapshots took
// out, and nothing of this one. Lists of format version 1 need not say how many files live.
func (l *manifestList) dropEmpty(snapshot *table.Snapshot, version int) error {
	var empty []iceberg.ManifestFile
	for _, m := range l.manifests {
		if version > 1 && m.SnapshotID() != snapshot.SnapshotID && m.AddedDataFiles() == 0 && m.ExistingDataFiles() == 0 {
			empty = append(empty, m)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	return l.replace(empty, nil, snapshot, version)
}

// replace puts one manifest, at the end, in the place of others; nil: none.
func (l *manifestList) replace(old []iceberg.ManifestFile, merged iceberg.ManifestFile, snapshot *table.Snapshot, version int) error {
	gone := map[string]bool{}
	for _, m := range old {
		gone[m.FilePath()] = true
	}
	kept := manifestList{schema: l.schema, metadata: l.metadata, changed: true}
	for i, m := range l.manifests {
		if !gone[m.FilePath()] {
			kept.manifests, kept.entries = append(kept.manifests, m), append(kept.entries, l.entries[i])
		}
	}
	if merged != nil {
		added, err := listOf(merged, snapshot, version)
		if err != nil {
			return err
		}
		kept.manifests, kept.entries = append(kept.manifests, added.manifests...), append(kept.entries, added.entries...)
	}
	*l = kept
	return nil
}

// listOf is a list of one manifest that was written for the snapshot, with what it inherits. In format
// version 3 it gets the row ID after those of the snapshot's own rows: each of its files has an ID
// already, so none takes one from it, and the next snapshot may begin there.
func listOf(merged iceberg.ManifestFile, snapshot *table.Snapshot, version int) (*manifestList, error) {
	row := int64(0)
	if version >= 3 {
		if snapshot.FirstRowID == nil || snapshot.AddedRows == nil {
			return nil, errors.New("the snapshot has no row IDs")
		}
		row = *snapshot.FirstRowID + *snapshot.AddedRows
	}
	var text bytes.Buffer
	if err := iceberg.WriteManifestList(version, &text, snapshot.SnapshotID, snapshot.ParentSnapshotID, &snapshot.SequenceNumber, row, []iceberg.ManifestFile{merged}); err != nil {
		return nil, err
	}
	return readList(text.Bytes())
}

// write puts the list in the place of the file at path.
func (l *manifestList) write(fs iceio.WriteFileIO, path string) error {
	text, err := l.encode()
	if err != nil {
		return err
	}
	return fs.WriteFile(path, text)
}

// encode is the list as a file has it.
func (l *manifestList) encode() ([]byte, error) {
	metadata := map[string][]byte{}
	for k, v := range l.metadata {
		if !strings.HasPrefix(k, "avro.") {
			metadata[k] = v
		}
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, l.schema, ocf.WithSchema(string(l.metadata["avro.schema"])), ocf.WithMetadata(metadata), ocf.WithCodec(ocf.DeflateCodec(-1)))
	if err != nil {
		return nil, err
	}
	for _, entry := range l.entries {
		if err := w.Encode(entry); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func read(fs iceio.IO, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}
