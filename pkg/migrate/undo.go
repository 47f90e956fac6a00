package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/plan"
)

// An UndoOptions says how far an undo goes.
type UndoOptions struct {
	DryRun bool // say what would change, and change nothing
	Force  bool // take back the snapshots of other writers too, and what cannot be told apart any more
	Schema bool // drop the columns that the job added
}

// Undo takes a job's batches back: its branch goes to the snapshot that it was at before the job, also where it
// had none, in one commit that asserts where the branch is. No file is removed, so that Redo can put the batches
// back as long as their snapshots are retained. The checkpoint then records the job as undone: a resume
// refuses, Reset accepts.
//
// It refuses where a snapshot of another writer came in between, which would go too, and names it, unless
// o.Force is set; where snapshots between have expired, so that nobody can tell, likewise. It refuses in any
// case where the snapshot to go back to is unknown, has expired, or is not in the branch's history. Columns
// that the job added stay, unless o.Schema is set; promotions are never taken back.
func Undo(ctx context.Context, store *ckpt.Store, dst *Table, o UndoOptions) (Undoing, error) {
	return locked(ctx, store, dst, o.DryRun, func(c *ckpt.Checkpoint) (Undoing, error) {
		waiting, err := waitingPaths(store, c)
		if err != nil {
			return Undoing{}, err
		}
		if c.State == ckpt.Undone {
			return Undoing{}, fmt.Errorf("job %s was undone already; ice-migrate redo puts its batches back, ice-migrate reset forgets it", c.Job)
		}
		if history, err := dst.lake.History(c.Destination.Branch); err == nil && c.Left != nil && holds(history, c.Left.Head) {
			c.Left = nil // an undo was begun, and changed nothing
		}
		u, move, err := planUndo(c, dst.lake, o)
		u.Pending = waiting
		if err != nil || o.DryRun {
			return u, err
		}
		if c.Left == nil {
			c.Left = &ckpt.Left{Head: text(u.From), State: c.State}
		}
		if !sameSnapshot(u.From, u.To) || move.Schema != nil {
			if move.Schema != nil {
				c.Left.SchemaID = &move.SchemaFrom
			}
			if err := save(store, c); err != nil {
				return u, err
			}
			if err := dst.lake.Move(ctx, move); err != nil {
				if !errors.Is(err, lake.ErrUnknownOutcome) {
					c.Left = nil
					err = errors.Join(err, save(store, c))
				}
				return u, err
			}
		}
		c.State, c.Pending = ckpt.Undone, nil
		return u, save(store, c)
	})
}

func holds(history lake.History, snapshot string) bool {
	id, err := strconv.ParseInt(snapshot, 10, 64)
	return err == nil && history.Holds(id)
}

// locked runs f with the checkpoint, the lock held unless nothing is to be changed, and the table loaded after it.
func locked(ctx context.Context, store *ckpt.Store, dst *Table, dry bool, f func(*ckpt.Checkpoint) (Undoing, error)) (Undoing, error) {
	if !dry {
		unlock, err := store.Lock()
		if err != nil {
			return Undoing{}, err
		}
		defer unlock()
	}
	c, err := store.Load()
	if err == nil && c == nil {
		err = fmt.Errorf("checkpoint %q is not there; a job that lost its checkpoint gets it back by ice-migrate recover", store.Path())
	}
	if err != nil {
		return Undoing{}, err
	}
	wrap := func(err error) error { return fmt.Errorf("checkpoint %q: %w", store.Path(), err) }
	if err := dst.lake.Reload(ctx); err != nil {
		return Undoing{}, wrap(err)
	}
	if err := remade(c, store.Path(), dst.lake); err != nil {
		return Undoing{}, wrap(err)
	}
	u, err := f(c)
	u.DryRun = dry
	if err != nil {
		return u, wrap(err)
	}
	return u, nil
}

func save(store *ckpt.Store, c *ckpt.Checkpoint) error {
	c.Updated = time.Now().UTC()
	return store.Save(c)
}

// planUndo says what an undo changes, and refuses what it must not.
func planUndo(c *ckpt.Checkpoint, dst *lake.Table, o UndoOptions) (Undoing, lake.Move, error) {
	u, move, history, err := newUndoing(c, dst, ckpt.Undone)
	if err != nil {
		return u, move, err
	}
	if move.To, err = before(c, dst, history, o.Force); err != nil {
		return u, move, err
	}
	u.From, u.To = snapshotText(move.From), snapshotText(move.To)
	u.split(between(history, move.To), c.Job)
	switch {
	case len(u.Snapshots) == 0 && !(o.Force && len(u.Others) > 0 && !history.ReachesTo(move.To)):
		move.To, u.To, u.Others = move.From, u.From, []string{} // none of the job's: the branch stays
	case len(u.Others) > 0 && !o.Force:
		return u, move, fmt.Errorf("%s of other writers came after the job's first batch, and would be taken back too: %s; --force takes them back", plural(int64(len(u.Others)), "snapshot", "snapshots"), strings.Join(u.Others, ", "))
	}
	err = planColumns(c, dst, o.Schema, &u, &move)
	return u, move, err
}

// planColumns says which of the columns that the job added stay, and which are dropped. One that another writer
// has made anew by the same name since is not the job's.
func planColumns(c *ckpt.Checkpoint, dst *lake.Table, drop bool, u *Undoing, move *lake.Move) error {
	added, err := added(c)
	if err != nil {
		return err
	}
	then := dst.Schema()
	if s := writtenBy(c, dst, u.Snapshots); s != nil {
		then = s
	}
	var own [][]string
	for _, path := range added {
		same, grown := dst.SameColumn(path, then)
		switch name := dst.NameOf(path, then); {
		case same && grown && drop:
			return fmt.Errorf("column %s of table %q holds fields that another writer has added since, so that it cannot be dropped", name, dst.Name())
		case same && drop:
			own = append(own, path)
			u.Dropped = append(u.Dropped, name)
		case name != "":
			u.Kept = append(u.Kept, name)
		}
	}
	if len(own) > 0 {
		move.SchemaFrom = dst.Schema().ID
		move.Schema, err = dst.Without(own)
	}
	return err
}

// writtenBy is the schema that the job's first snapshot was written with, nil where nobody can tell.
func writtenBy(c *ckpt.Checkpoint, dst *lake.Table, snapshots []string) *iceberg.Schema {
	for _, text := range append(slices.Clone(snapshots), c.LastSnapshot) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue
		}
		if s := dst.Metadata().SnapshotByID(id); s != nil && s.SchemaID != nil {
			return dst.SchemaByID(*s.SchemaID)
		}
	}
	return nil
}

// before is the snapshot that an undo goes back to, nil for none.
func before(c *ckpt.Checkpoint, dst *lake.Table, history lake.History, force bool) (*int64, error) {
	const expired = "snapshots of the destination have expired, so that nobody can tell whether those of other writers are between the job's; --force goes back all the same"
	switch at := c.DestSnapshotBefore; {
	case at == nil && !history.Whole && !force:
		return nil, errors.New(expired)
	case at == nil && c.Destination.Branch != table.MainBranch:
		return nil, fmt.Errorf("branch %q had no snapshot before the job, and cannot be without one; drop it with another tool", c.Destination.Branch)
	case at == nil:
		return nil, nil
	case *at == ckpt.UnknownSnapshot:
		return nil, errors.New("dest_snapshot_before is unknown, since it expired before the checkpoint was made anew: delete the job's rows with another tool")
	default:
		id, err := strconv.ParseInt(*at, 10, 64)
		switch {
		case err != nil:
			return nil, fmt.Errorf("dest_snapshot_before %q: %w", *at, err)
		case dst.Metadata().SnapshotByID(id) == nil:
			return nil, fmt.Errorf("snapshot %d, where the destination was before the job, has expired: delete the job's rows with another tool", id)
		case history.Holds(id):
			return &id, nil
		case history.Whole:
			return nil, fmt.Errorf("branch %q was moved off snapshot %d, where it was before the job: its history no longer holds it", c.Destination.Branch, id)
		case !force:
			return nil, errors.New(expired)
		}
		return &id, nil
	}
}

// between are the snapshots of a history that came after one, oldest first.
func between(history lake.History, after *int64) []table.Snapshot {
	var out []table.Snapshot
	for _, s := range history.Snapshots {
		if after != nil && s.SnapshotID == *after {
			break
		}
		out = append(out, s)
	}
	slices.Reverse(out)
	return out
}

// added are the paths of the columns that the job added, and not another writer before it could.
func added(c *ckpt.Checkpoint) ([][]string, error) {
	if len(c.Plan) == 0 {
		return nil, nil
	}
	p, err := plan.Parse(c.Plan)
	if err != nil {
		return nil, fmt.Errorf("recorded plan: %w", err)
	}
	var out [][]string
	for _, change := range p.Changes {
		made := fmt.Sprintf("added column %s ", plan.FormatPath(change.Path))
		if change.Kind == plan.AddColumn && slices.ContainsFunc(c.SchemaChanges, func(s string) bool { return strings.HasPrefix(s, made) }) {
			out = append(out, change.Path)
		}
	}
	return out, nil
}
