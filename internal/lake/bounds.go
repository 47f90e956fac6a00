package lake

import (
	"fmt"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
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

// mend gives the manifest list of a snapshot the bounds that the library leaves out: it writes none for
// an empty string or empty bytes, which readers take for a partition of nulls alone, so that they find
// nothing for any filter on that column (case 61).
func (fields textFields) mend(fs iceio.IO, snapshot int64, list *manifestList) error {
	if len(fields) == 0 {
		return nil
	}
	for i, m := range list.manifests {
		lacking := fields.lacking(m, m.SnapshotID() == snapshot)
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
		if err := list.bound(i, empty); err != nil {
			return err
		}
	}
	return nil
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

// bound sets the bounds of those partition fields of a manifest whose least value is the empty one.
func (l *manifestList) bound(manifest int, empty map[int]bool) error {
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
		l.changed = true
	}
	return nil
}
