package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/datafile"
)

// A touch is what is known of a file: whether it holds rows of the partitions that are replaced.
type touch int

const (
	untouched touch = iota
	perhaps         // its rows decide
	wholly          // by its partition's values, all of them
)

// touchedPartitions are partitions of the table's current spec, by value.
type touchedPartitions struct {
	table  *Table
	fields []iceberg.PartitionField // of the spec, but for void ones, which tell nothing apart
	values []map[int]any
	keys   map[string]bool
	specs  map[int]*otherSpec
}

// An otherSpec says what the values of another spec tell about partitions of the current one.
type otherSpec struct {
	known [][2]int        // field of the current spec, and the field of the other one with the same values
	keys  map[string]bool // of the values of known in the partitions that are touched
	all   bool            // they are all of the current spec's
}

// touched are the partitions that files of a job lie in. They are of the spec that the table has now: where
// it changed since the files were written nobody can tell what they replace.
func (t *Table) touched(files []iceberg.DataFile) (*touchedPartitions, error) {
	spec := t.Spec()
	p := &touchedPartitions{table: t, keys: map[string]bool{}, specs: map[int]*otherSpec{}}
	for _, f := range spec.Fields() {
		if !isVoid(f) {
			p.fields = append(p.fields, f)
		}
	}
	for _, f := range files {
		if int(f.SpecID()) != spec.ID() {
			return nil, fmt.Errorf("file %q was written for partition spec %d, and table %q has spec %d by now: what it was to replace is not known any more; begin the job anew", f.FilePath(), f.SpecID(), t.Name(), spec.ID())
		}
		values := f.Partition()
		if key := p.key(values); !p.keys[key] {
			p.keys[key] = true
			p.values = append(p.values, values)
		}
	}
	return p, nil
}

func isVoid(f iceberg.PartitionField) bool {
	return f.Transform.Equals(iceberg.VoidTransform{})
}

func (p *touchedPartitions) key(values map[int]any) string {
	var of []any
	for _, f := range p.fields {
		of = append(of, values[f.FieldID])
	}
	return datafile.ValuesKey(of...)
}

// of tells about a file of any spec by its partition's values.
func (p *touchedPartitions) of(f iceberg.DataFile) (touch, error) {
	id, values := int(f.SpecID()), f.Partition()
	if current := p.table.Spec(); id == current.ID() {
		if p.keys[p.key(values)] {
			return wholly, nil
		}
		return untouched, nil
	}
	s, err := p.spec(id)
	if err != nil {
		return untouched, err
	}
	var known []any
	for _, k := range s.known {
		known = append(known, values[k[1]])
	}
	switch {
	case !s.keys[datafile.ValuesKey(known...)]:
		return untouched, nil
	case s.all:
		return wholly, nil
	}
	return perhaps, nil
}

func (p *touchedPartitions) spec(id int) (*otherSpec, error) {
	if s := p.specs[id]; s != nil {
		return s, nil
	}
	spec := p.table.Metadata().PartitionSpecByID(id)
	if spec == nil {
		return nil, lasting{fmt.Errorf("partition spec %d is not in table %q", id, p.table.Name())}
	}
	s := &otherSpec{keys: map[string]bool{}}
	for _, f := range p.fields {
		for _, g := range spec.Fields() {
			if slices.Equal(f.SourceIDs, g.SourceIDs) && f.Transform.String() == g.Transform.String() {
				s.known = append(s.known, [2]int{f.FieldID, g.FieldID})
				break
			}
		}
	}
	s.all = len(s.known) == len(p.fields)
	for _, values := range p.values {
		var known []any
		for _, k := range s.known {
			known = append(known, values[k[0]])
		}
		s.keys[datafile.ValuesKey(known...)] = true
	}
	p.specs[id] = s
	return s, nil
}

// partitionText is a file's partition for people.
func (t *Table) partitionText(f iceberg.DataFile) string {
	spec := t.Metadata().PartitionSpecByID(int(f.SpecID()))
	if spec == nil || spec.IsUnpartitioned() {
		return "the table, which has no partitions"
	}
	var parts []string
	for _, field := range spec.Fields() {
		text := "null"
		if v := f.Partition()[field.FieldID]; v != nil {
			text = fmt.Sprint(v)
		}
		parts = append(parts, field.Name+"="+text)
	}
	return "partition " + strings.Join(parts, "/")
}

// ErrConflict says that another writer changed what was to be replaced.
var ErrConflict = errors.New("another writer changed a partition that the job replaces")

// conflict refuses when another writer added or removed files, since the job began, in a partition that is
// replaced: their rows would go unseen. Snapshots that rewrote files and changed no row (operation replace)
// are none.
func (t *Table) conflict(ctx context.Context, c Commit, head *table.Snapshot, touched *touchedPartitions) error {
	if c.Overwrite.Concurrent {
		return nil
	}
	fs, err := t.FS(ctx)
	if err != nil {
		return err
	}
	base := Commit{Since: c.Overwrite.Base}
	for at := head; !base.isSince(at); {
		if at == nil {
			return lasting{fmt.Errorf("branch %q of table %q %w: it no longer goes back to snapshot %s, where it was when the job began; it was rolled back meanwhile", c.Branch, t.Name(), ErrMovedAway, idText(c.Overwrite.Base))}
		}
		if at.Summary == nil || at.Summary.Operation != table.OpReplace {
			manifests, err := at.Manifests(fs)
			if err != nil {
				return err
			}
			for _, m := range manifests {
				if m.SnapshotID() != at.SnapshotID {
					continue
				}
				for entry, err := range m.Entries(fs, false) {
					if err == nil {
						err = ctx.Err()
					}
					if err != nil {
						return fmt.Errorf("manifest %q: %w", m.FilePath(), err)
					}
					if err := t.conflictIn(entry, at, touched); err != nil {
						return err
					}
				}
			}
		}
		if at.ParentSnapshotID == nil {
			at = nil
			continue
		}
		if base.Since != nil && *at.ParentSnapshotID == *base.Since {
			break
		}
		if at = t.Metadata().SnapshotByID(*at.ParentSnapshotID); at == nil {
			return lasting{fmt.Errorf("snapshots of table %q have expired that came since the job began, so that nobody can tell whether they changed what it replaces; --overwrite-concurrent replaces it all the same", t.Name())}
		}
	}
	return nil
}

// conflictIn refuses an entry that a snapshot of another writer added or removed in a touched partition.
func (t *Table) conflictIn(entry iceberg.ManifestEntry, at *table.Snapshot, touched *touchedPartitions) error {
	if entry.Status() == iceberg.EntryStatusEXISTING || entry.SnapshotID() != at.SnapshotID {
		return nil
	}
	f := entry.DataFile()
	is, err := touched.of(f)
	if err != nil || is == untouched && !everywhere(t, f) {
		return err
	}
	verb, what := "added", "data file"
	if entry.Status() == iceberg.EntryStatusDELETED {
		verb = "removed"
	}
	if f.ContentType() != iceberg.EntryContentData {
		what = "delete file"
	}
	operation := "commit"
	if at.Summary != nil {
		operation = string(at.Summary.Operation)
	}
	return lasting{fmt.Errorf("%w: snapshot %d (%s) %s %s %q in %s since the job began; look at what it wrote, then begin the job anew, or replace it too with --overwrite-concurrent",
		ErrConflict, at.SnapshotID, operation, verb, what, f.FilePath(), t.partitionText(f))}
}

// everywhere reports whether a delete file is for data files of all partitions (specification, "Scan Planning":
// equality deletes of an unpartitioned spec).
func everywhere(t *Table, f iceberg.DataFile) bool {
	spec := t.Metadata().PartitionSpecByID(int(f.SpecID()))
	return f.ContentType() == iceberg.EntryContentEqDeletes && spec != nil && spec.IsUnpartitioned()
}
