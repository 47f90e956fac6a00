package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// mergeMost bounds the manifests that one commit merges, so that no commit takes long on a table that
// nobody ever merged: each later one goes on with it.
const mergeMost = 1000

// A mergeRule says which manifests a commit merges: Java's default, or what the table's owner set.
type mergeRule struct {
	count int   // with fewer manifests the newest ones stay as they are
	size  int64 // of a merged manifest, in bytes
}

// mergeRule returns the table's rule; nil where its owner wants no merging.
func (t *Table) mergeRule() *mergeRule {
	props := t.Properties()
	// Java's parseBoolean: anything but "true" is false.
	if enabled, set := props[table.ManifestMergeEnabledKey]; set && !strings.EqualFold(enabled, "true") {
		return nil
	}
	return &mergeRule{
		count: props.GetInt(table.ManifestMinMergeCountKey, table.ManifestMinMergeCountDefault),
		size:  int64(props.GetInt(table.ManifestTargetSizeBytesKey, table.ManifestTargetSizeBytesDefault)),
	}
}

// bin returns the manifests to merge into one, as they stand in the list of a snapshot; none where all
// may stay. Manifests of one partition spec are packed from the oldest on until the target size is
// reached. The bin that the snapshot's own manifest falls into waits until it has as many as the rule
// says. All this is Java's rule, but for three things: one bin a commit, not many more than mergeMost
// manifests, and the snapshot's own manifest is never merged, so that its rows get their IDs as in any
// append.
func (r mergeRule) bin(manifests []iceberg.ManifestFile, content iceberg.ManifestContent, snapshot int64, mergeable map[int]bool) []iceberg.ManifestFile {
	most := max(mergeMost, r.count)
	open := map[int32][]iceberg.ManifestFile{} // by spec
	size := map[int32]int64{}
	ready := func(bin []iceberg.ManifestFile) []iceberg.ManifestFile {
		older := slices.DeleteFunc(slices.Clone(bin), func(m iceberg.ManifestFile) bool { return m.SnapshotID() == snapshot })
		if len(older) < 2 || len(older) < len(bin) && len(bin) < r.count {
			return nil
		}
		slices.Reverse(older)
		return older
	}
	for _, m := range slices.Backward(manifests) {
		spec := m.PartitionSpecID()
		if m.ManifestContent() != content || !mergeable[int(spec)] {
			continue
		}
		if len(open[spec]) > 0 && (size[spec]+m.Length() > r.size || len(open[spec]) == most) {
			if bin := ready(open[spec]); bin != nil {
				return bin
			}
			open[spec], size[spec] = nil, 0
		}
		open[spec] = append(open[spec], m)
		size[spec] += m.Length()
	}
	for _, spec := range slices.Sorted(maps.Keys(open)) {
		if bin := ready(open[spec]); bin != nil {
			return bin
		}
	}
	return nil
}

// mergeable tells whether manifests of a partition spec can be written anew without loss: a value of a
// column that the schema no longer has cannot.
func (t *Table) mergeable(spec int) bool {
	s := t.Metadata().PartitionSpecByID(spec)
	if s == nil {
		return false
	}
	for _, f := range s.Fields() {
		if _, void := f.Transform.(iceberg.VoidTransform); void {
			continue
		}
		for _, id := range f.SourceIDs {
			if _, ok := t.Schema().FindTypeByID(id); !ok {
				return false
			}
		}
	}
	return true
}

// writable tells whether the library can write manifests of a partition spec at all: it cannot where
// Avro does not take a field's name.
func (t *Table) writable(spec int) bool {
	s := t.Metadata().PartitionSpecByID(spec)
	_, err := iceberg.NewManifestWriter(t.Metadata().Version(), io.Discard, *s, t.Schema(), 0)
	return err == nil
}

// merge merges manifests of one content of a staged snapshot where the table's rule says so, and puts the merged one
// at the end of the list. Its entries are those of the manifests that it stands for, with the sequence
// numbers and row IDs that they had from these (spec: Sequence Number Inheritance, First Row ID
// Inheritance). Merged manifests are written, and none is removed.
func (t *Table) merge(ctx context.Context, fs iceio.WriteFileIO, snapshot *table.Snapshot, list *manifestList, content iceberg.ManifestContent) error {
	rule := t.mergeRule()
	if rule == nil {
		return nil
	}
	mergeable := map[int]bool{}
	for _, m := range list.manifests {
		spec := int(m.PartitionSpecID())
		if _, known := mergeable[spec]; !known {
			mergeable[spec] = t.mergeable(spec)
		}
	}
	bin := rule.bin(list.manifests, content, snapshot.SnapshotID, mergeable)
	for len(bin) > 0 && !t.writable(int(bin[0].PartitionSpecID())) {
		mergeable[int(bin[0].PartitionSpecID())] = false
		bin = rule.bin(list.manifests, content, snapshot.SnapshotID, mergeable)
	}
	if len(bin) == 0 {
		return nil
	}
	merged, err := t.mergedManifest(ctx, fs, snapshot, bin)
	if err != nil {
		return fmt.Errorf("merge %d manifests (the table's %s=false would leave them as they are): %w", len(bin), table.ManifestMergeEnabledKey, err)
	}
	return list.replace(bin, merged, snapshot, t.Metadata().Version())
}

// mergedManifest writes one manifest with the live entries of others; nil where all were deleted.
func (t *Table) mergedManifest(ctx context.Context, fs iceio.WriteFileIO, snapshot *table.Snapshot, bin []iceberg.ManifestFile) (iceberg.ManifestFile, error) {
	w, err := t.beginManifest(int(bin[0].PartitionSpecID()), bin[0].ManifestContent(), snapshot)
	if err != nil {
		return nil, err
	}
	live := int32(0)
	for _, m := range bin {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		files, err := copyLive(w, fs, m)
		if err != nil {
			return nil, fmt.Errorf("manifest %q: %w", m.FilePath(), err)
		}
		live += files
	}
	if live == 0 {
		return nil, nil
	}
	return w.end(t, fs)
}

// copyLive writes the live entries of a manifest, as existing ones, and returns their number, which it
// holds against what the list says.
func copyLive(w *manifestInMemory, fs iceio.IO, m iceberg.ManifestFile) (int32, error) {
	text, err := read(fs, m.FilePath())
	if err != nil {
		return 0, err
	}
	r, err := iceberg.NewManifestReader(m, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	defer r.Close()
	files, rows := int32(0), int64(0)
	for {
		entry, err := r.ReadEntry()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if entry.Status() == iceberg.EntryStatusDELETED {
			continue
		}
		files, rows = files+1, rows+entry.DataFile().Count()
		if err := w.Existing(entry); err != nil {
			return 0, err
		}
	}
	if m.AddedDataFiles() < 0 || m.ExistingDataFiles() < 0 || m.AddedRows() < 0 || m.ExistingRows() < 0 {
		return files, nil // a v1 list need not say
	}
	if said, saidRows := m.AddedDataFiles()+m.ExistingDataFiles(), m.AddedRows()+m.ExistingRows(); said != files || saidRows != rows {
		return 0, fmt.Errorf("it has %d live files of %d rows, but the manifest list says %d of %d", files, rows, said, saidRows)
	}
	return files, nil
}
