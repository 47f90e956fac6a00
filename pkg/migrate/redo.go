package migrate

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go/table"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
)

// Redo puts back what Undo took: the branch goes to the snapshot that it was taken from, with the columns that
// were dropped, and the job is what it was: a run goes on with it where it was not complete. It refuses where the
// branch has moved since, and where that snapshot has expired.
func Redo(ctx context.Context, store *ckpt.Store, dst *Table, dry bool) (Undoing, error) {
	return locked(ctx, store, dst, dry, func(c *ckpt.Checkpoint) (Undoing, error) {
		switch {
		case c.State != ckpt.Undone:
			return Undoing{}, fmt.Errorf("job %s was not undone; there is nothing to redo", c.Job)
		case c.Left == nil:
			return Undoing{}, fmt.Errorf("where the destination was before job %s was undone is not recorded", c.Job)
		}
		u, move, err := planRedo(c, dst.lake)
		if err != nil || dry {
			return u, err
		}
		if !sameSnapshot(u.From, u.To) || move.Schema != nil {
			if err := dst.lake.Move(ctx, move); err != nil {
				return u, err
			}
		}
		c.State, c.Left = c.Left.State, nil
		return u, save(store, c)
	})
}

func planRedo(c *ckpt.Checkpoint, dst *lake.Table) (Undoing, lake.Move, error) {
	u, move, _, err := newUndoing(c, dst, c.Left.State)
	u.redo = true
	if err != nil {
		return u, move, err
	}
	if c.Left.Head != "" {
		id, err := strconv.ParseInt(c.Left.Head, 10, 64)
		if err != nil {
			return u, move, fmt.Errorf("the head that was left, %q: %w", c.Left.Head, err)
		}
		move.To = &id
	}
	u.From, u.To = snapshotText(move.From), snapshotText(move.To)
	if id := c.Left.SchemaID; id != nil && *id != dst.Schema().ID {
		if move.Schema = dst.SchemaByID(*id); move.Schema == nil {
			return u, move, fmt.Errorf("schema %d, with the columns that the undo dropped, is not in the table's metadata any more", *id)
		}
		move.SchemaFrom = dst.Schema().ID
		added, err := added(c)
		if err != nil {
			return u, move, err
		}
		if !dst.Only(move.Schema, added) {
			return u, move, fmt.Errorf("another writer has changed the columns of table %q since the undo dropped some, and a redo would take that back: it is for another tool, or ice-migrate reset and a new job", dst.Name())
		}
	}
	if sameSnapshot(u.From, u.To) {
		return u, move, nil // it was put back without a note
	}
	if !sameSnapshot(u.From, c.DestSnapshotBefore) {
		return u, move, fmt.Errorf("branch %q is at snapshot %s, and the undo left it at %s: another writer has moved it since, and a redo would take that back; it is for another tool, or ice-migrate reset and a new job", move.Branch, orNone(u.From), orNone(c.DestSnapshotBefore))
	}
	if dst.Metadata().SnapshotByID(*move.To) == nil {
		return u, move, fmt.Errorf("snapshot %s, which the undo took the destination from, has expired: ice-migrate reset forgets the job, so that it can be begun anew", *u.To)
	}
	for id := move.To; id != nil && !sameSnapshot(snapshotText(id), u.From); {
		s := dst.Metadata().SnapshotByID(*id)
		if s == nil {
			break
		}
		u.split([]table.Snapshot{*s}, c.Job)
		id = s.ParentSnapshotID
	}
	slices.Reverse(u.Snapshots)
	slices.Reverse(u.Others)
	return u, move, nil
}
