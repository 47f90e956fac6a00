package lake

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// A Move puts a branch from one snapshot to another that the table still has. Nothing is written but metadata,
// and nothing is removed: the snapshots that the branch leaves stay until they are expired.
type Move struct {
	Branch string
	From   *int64 // where the branch must be; nil: it must not be there, as main of a table without a snapshot
	To     *int64 // nil: main is removed, so that the table has no current snapshot again

	// Schema becomes the current schema in the same commit, where it is not nil: one that the table has, by its
	// ID, or one of fewer columns. SchemaFrom is the ID of the one that must be current.
	Schema     *iceberg.Schema
	SchemaFrom int
}

// Move makes a move in one commit that asserts From. An answer that is not success proves nothing: the table is
// loaded again, and the branch is where it was to go, or where it was, or where another writer has put it, which
// is an error. Only where nothing has changed it is tried again, as often as a commit is.
func (t *Table) Move(ctx context.Context, m Move) error {
	tries := newRetryBound(t.Properties()).begin()
	for {
		updates, err := t.updates(m)
		if err != nil {
			return err
		}
		at, err := t.Branch(m.Branch)
		if err != nil {
			return err
		}
		if !sameID(idOf(at), m.From) {
			return fmt.Errorf("branch %q of table %q is at snapshot %s, not at %s any more: another writer has moved it meanwhile; nothing was changed, look and run again", m.Branch, t.Name(), idText(idOf(at)), idText(m.From))
		}
		if m.Schema != nil && t.Schema().ID != m.SchemaFrom {
			return fmt.Errorf("the schema of table %q is %d, not %d any more: another writer has changed it meanwhile; nothing was changed, look and run again", t.Name(), t.Schema().ID, m.SchemaFrom)
		}
		tries.made++
		failed := t.sendWithin(ctx, t.requirements(m), updates)
		if failed == nil {
			return nil
		}
		if err := t.persist(context.WithoutCancel(ctx), tries.retryBound, t.Reload); err != nil {
			return fmt.Errorf("move branch %q of table %q: %w: %w; %w", m.Branch, t.Name(), ErrUnknownOutcome, failed, err)
		}
		if t.moved(m) {
			return nil
		}
		if isDenied(failed) {
			return fmt.Errorf("move branch %q: %w", m.Branch, t.deniedText(failed))
		}
		if at, err := t.Branch(m.Branch); err == nil && !sameID(idOf(at), m.From) {
			continue // which says so
		}
		wait, more := tries.next(failed)
		if !more || isLasting(failed) || ctx.Err() != nil {
			return fmt.Errorf("move branch %q of table %q, given up after %d tries: %w", m.Branch, t.Name(), tries.made, failed)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// moved reports whether the branch, and the schema where that was asked, went where they were to go, be it that
// another writer has gone on from there.
func (t *Table) moved(m Move) bool {
	history, err := t.History(m.Branch)
	if err != nil || m.Schema != nil && !m.Schema.Equals(t.Schema()) {
		return false
	}
	switch {
	case sameID(m.From, m.To):
		return m.Schema != nil
	case m.To == nil:
		return history.Whole && !history.Holds(*m.From)
	}
	return history.Holds(*m.To) && (m.From == nil || !history.Holds(*m.From) || t.descends(*m.To, *m.From))
}

// descends reports whether a snapshot comes after another one.
func (t *Table) descends(id, from int64) bool {
	for s := t.Metadata().SnapshotByID(id); s != nil && s.ParentSnapshotID != nil; s = t.Metadata().SnapshotByID(*s.ParentSnapshotID) {
		if *s.ParentSnapshotID == from {
			return true
		}
	}
	return false
}

func (t *Table) requirements(m Move) []table.Requirement {
	out := []table.Requirement{table.AssertRefSnapshotID(m.Branch, m.From)}
	if id := t.Metadata().TableUUID(); id != uuid.Nil {
		out = append(out, table.AssertTableUUID(id))
	}
	if m.Schema != nil {
		out = append(out, table.AssertCurrentSchemaID(m.SchemaFrom))
	}
	return out
}

func (t *Table) updates(m Move) ([]table.Update, error) {
	var out []table.Update
	switch {
	case sameID(m.From, m.To):
	case m.To == nil && m.Branch != table.MainBranch:
		return nil, fmt.Errorf("branch %q of table %q cannot be without a snapshot; drop it with another tool", m.Branch, t.Name())
	case m.To == nil:
		out = append(out, table.NewRemoveSnapshotRefUpdate(m.Branch))
	case t.Metadata().SnapshotByID(*m.To) == nil:
		return nil, fmt.Errorf("table %q no longer has snapshot %d: it has expired; %s", t.Name(), *m.To, t.retained())
	default:
		var age, snapshotAge int64
		var keep int
		for name, ref := range t.Metadata().Refs() {
			if name == m.Branch { // what it retains stays
				age, snapshotAge, keep = value(ref.MaxRefAgeMs), value(ref.MaxSnapshotAgeMs), value(ref.MinSnapshotsToKeep)
			}
		}
		out = append(out, table.NewSetSnapshotRefUpdate(m.Branch, *m.To, table.BranchRef, age, snapshotAge, keep))
	}
	if m.Schema == nil {
		return out, nil
	}
	// One that the table has, as after columns that were added are dropped, is named by its ID: a server does not
	// count it as added (Java's TableMetadata).
	for _, s := range t.Metadata().Schemas() {
		if s.Equals(m.Schema) {
			return append(out, table.NewSetCurrentSchemaUpdate(s.ID)), nil
		}
	}
	return append(out, table.NewAddSchemaUpdate(m.Schema), table.NewSetCurrentSchemaUpdate(-1)), nil
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func sameID(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

func idText(id *int64) string {
	if id == nil {
		return "none"
	}
	return fmt.Sprint(*id)
}

// SchemaByID is a schema that the table has or had, nil where it does not know it.
func (t *Table) SchemaByID(id int) *iceberg.Schema {
	for _, s := range t.Metadata().Schemas() {
		if s.ID == id {
			return s
		}
	}
	return nil
}
