package lake

import (
	"fmt"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// A Pin says which snapshot of a table is meant. At most one of its fields is set; none means the
// current snapshot.
type Pin struct {
	Snapshot *int64 // by ID
	Ref      string // branch or tag
	AsOf     string // RFC 3339, a date, or milliseconds since 1970

	None     bool // the table as it was before it had a snapshot
	SchemaID *int // with Snapshot: read with this schema, as a resumed job does
}

// Check refuses a time that is none.
func (p Pin) Check() error {
	if p.AsOf == "" {
		return nil
	}
	_, err := parseTime(p.AsOf)
	return err
}

// Resolve returns the snapshot that pin means and the schema to read it with. The snapshot is nil
// where the table has none yet and the pin asks for the current one.
func (t *Table) Resolve(pin Pin) (*table.Snapshot, *iceberg.Schema, error) {
	snapshot, byID, err := t.find(pin)
	if err == nil && snapshot != nil {
		err = t.listed(snapshot)
	}
	if err != nil || snapshot == nil {
		return nil, t.Schema(), err
	}
	id := pin.SchemaID
	if id == nil && byID {
		id = snapshot.SchemaID
	}
	if id == nil {
		return snapshot, t.Schema(), nil
	}
	for _, s := range t.Metadata().Schemas() {
		if s.ID == *id {
			return snapshot, s, nil
		}
	}
	return nil, nil, fmt.Errorf("snapshot %d of table %q: its schema %d is not in the table's metadata", snapshot.SnapshotID, t.Name(), *id)
}

// listed refuses a snapshot that names no manifest list: it would pass for an empty table. Format version 1 may name
// the manifests themselves (specification, "Snapshots").
func (t *Table) listed(s *table.Snapshot) error {
	if s.ManifestList != "" || t.Metadata().Version() < 2 {
		return nil
	}
	return fmt.Errorf("snapshot %d of table %q names no manifest list: the table's metadata is damaged", s.SnapshotID, t.Name())
}

// find returns the pinned snapshot and whether it is read with the schema of its time: the current
// snapshot and a branch are read with the table's current schema, as the specification has it for
// branches; an ID, a tag and a time travel to the schema of that snapshot.
func (t *Table) find(pin Pin) (*table.Snapshot, bool, error) {
	meta := t.Metadata()
	switch {
	case pin.None:
		return nil, false, nil
	case pin.Snapshot != nil:
		s := meta.SnapshotByID(*pin.Snapshot)
		if s == nil {
			return nil, false, fmt.Errorf("table %q has no snapshot %d (expired, or never there); %s", t.Name(), *pin.Snapshot, t.retained())
		}
		return s, true, nil
	case pin.Ref != "":
		for name, ref := range meta.Refs() {
			if name != pin.Ref {
				continue
			}
			s := meta.SnapshotByID(ref.SnapshotID)
			if s == nil {
				return nil, false, fmt.Errorf("%s %q of table %q points at snapshot %d, which is not there", ref.SnapshotRefType, name, t.Name(), ref.SnapshotID)
			}
			return s, ref.SnapshotRefType == table.TagRef, nil
		}
		return nil, false, fmt.Errorf("table %q has no branch or tag %q; it has %s", t.Name(), pin.Ref, t.refNames())
	case pin.AsOf != "":
		at, err := parseTime(pin.AsOf)
		if err != nil {
			return nil, false, err
		}
		var last *table.SnapshotLogEntry
		for entry := range meta.SnapshotLogs() {
			if entry.TimestampMs <= at.UnixMilli() {
				last = &entry
			}
		}
		if last == nil {
			return nil, false, fmt.Errorf("table %q had no snapshot at %s; %s", t.Name(), at.UTC().Format(time.RFC3339Nano), t.retained())
		}
		s := meta.SnapshotByID(last.SnapshotID)
		if s == nil {
			return nil, false, fmt.Errorf("table %q: snapshot %d, current at %s, is expired; %s", t.Name(), last.SnapshotID, at.UTC().Format(time.RFC3339Nano), t.retained())
		}
		return s, true, nil
	}
	return meta.CurrentSnapshot(), false, nil
}

func (t *Table) retained() string {
	all := t.Metadata().Snapshots()
	if len(all) == 0 {
		return "it has no snapshots"
	}
	oldest, newest := all[0], all[0]
	for _, s := range all {
		if s.TimestampMs < oldest.TimestampMs {
			oldest = s
		}
		if s.TimestampMs >= newest.TimestampMs {
			newest = s
		}
	}
	return fmt.Sprintf("it has %d snapshots, %d (%s) to %d (%s)", len(all),
		oldest.SnapshotID, time.UnixMilli(oldest.TimestampMs).UTC().Format(time.RFC3339),
		newest.SnapshotID, time.UnixMilli(newest.TimestampMs).UTC().Format(time.RFC3339))
}

func (t *Table) refNames() string {
	var names []string
	for name, ref := range t.Metadata().Refs() {
		names = append(names, fmt.Sprintf("%s %q", ref.SnapshotRefType, name))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// parseTime reads a point in time. A time without a zone is in UTC.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	var ms int64
	if n, err := fmt.Sscanf(text, "%d", &ms); n == 1 && err == nil && fmt.Sprint(ms) == text {
		return time.UnixMilli(ms), nil
	}
	return time.Time{}, fmt.Errorf("time %q: want 2006-01-02T15:04:05Z, a date, or milliseconds since 1970", text)
}
