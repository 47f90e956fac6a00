package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

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

// An Undoing is what an undo or a redo did, or would do.
type Undoing struct {
	Job       string   `json:"job"`
	State     string   `json:"state"` // of the job afterwards
	Branch    string   `json:"branch"`
	From      *string  `json:"from_snapshot"`     // head of the branch before; null: none
	To        *string  `json:"to_snapshot"`       // and after
	Snapshots []string `json:"snapshots"`         // of the job, that are taken back or put back, oldest first
	Others    []string `json:"foreign_snapshots"` // and those of other writers
	Dropped   []string `json:"columns_dropped"`
	Kept      []string `json:"columns_kept"` // that the job added
	Pending   []string `json:"pending_files"`
	DryRun    bool     `json:"dry_run"`

	redo bool
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
		if c.State == ckpt.Undone {
			return Undoing{}, fmt.Errorf("job %s was undone already; ice-migrate redo puts its batches back, ice-migrate reset forgets it", c.Job)
		}
		if history, err := dst.lake.History(c.Destination.Branch); err == nil && c.Left != nil && holds(history, c.Left.Head) {
			c.Left = nil // an undo was begun, and changed nothing
		}
		u, move, err := planUndo(c, dst.lake, o)
		if err != nil || o.DryRun {
			return u, err
		}
		if c.Left == nil {
			c.Left = &ckpt.Left{Head: text(u.From), State: c.State}
		}
		if !sameSnapshot(u.From, u.To) || move.Schema != nil {
			if move.Schema != nil {
				id := dst.lake.Schema().ID
				c.Left.SchemaID = &id
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
	u := newUndoing(c, ckpt.Undone)
	move := lake.Move{Branch: c.Destination.Branch}
	history, err := dst.History(move.Branch)
	if err != nil {
		return u, move, err
	}
	if len(history.Snapshots) > 0 {
		move.From = &history.Snapshots[0].SnapshotID
	}
	if move.To, err = before(c, dst, history, o.Force); err != nil {
		return u, move, err
	}
	u.From, u.To = snapshotText(move.From), snapshotText(move.To)
	if c.Pending != nil {
		for _, p := range c.Pending.Files {
			u.Pending = append(u.Pending, p.Path)
		}
	}
	u.split(between(history, move.To), c.Job)
	switch {
	case len(u.Snapshots) == 0 && !(o.Force && len(u.Others) > 0):
		move.To, u.To, u.Others = move.From, u.From, []string{} // none of the job's: the branch stays
	case len(u.Others) > 0 && !o.Force:
		return u, move, fmt.Errorf("%s of other writers came after the job's first batch, and would be taken back too: %s; --force takes them back", plural(int64(len(u.Others)), "snapshot", "snapshots"), strings.Join(u.Others, ", "))
	}
	added, err := added(c)
	if err != nil {
		return u, move, err
	}
	for _, path := range added {
		u.Kept = append(u.Kept, plan.FormatPath(path))
	}
	if o.Schema && len(added) > 0 {
		if move.Schema, err = dst.Without(added); err != nil {
			return u, move, err
		}
		if move.Schema != nil {
			u.Kept, u.Dropped = []string{}, u.Kept
		}
	}
	return u, move, nil
}

func newUndoing(c *ckpt.Checkpoint, state string) Undoing {
	return Undoing{Job: c.Job, State: state, Branch: c.Destination.Branch, Snapshots: []string{}, Others: []string{}, Dropped: []string{}, Kept: []string{}, Pending: []string{}}
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

// split tells the job's snapshots from those of others.
func (u *Undoing) split(snapshots []table.Snapshot, job string) {
	for _, s := range snapshots {
		id := strconv.FormatInt(s.SnapshotID, 10)
		if s.Summary != nil && s.Summary.Properties[lake.MarkJob] == job {
			u.Snapshots = append(u.Snapshots, id)
			continue
		}
		what := "snapshot"
		if s.Summary != nil {
			what = string(s.Summary.Operation)
		}
		u.Others = append(u.Others, fmt.Sprintf("%s (%s at %s)", id, what, time.UnixMilli(s.TimestampMs).UTC().Format(time.RFC3339)))
	}
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

func sameSnapshot(a, b *string) bool { return text(a) == text(b) }

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

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
	u := newUndoing(c, c.Left.State)
	u.redo = true
	move := lake.Move{Branch: c.Destination.Branch}
	history, err := dst.History(move.Branch)
	if err != nil {
		return u, move, err
	}
	if len(history.Snapshots) > 0 {
		move.From = &history.Snapshots[0].SnapshotID
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

// WriteText says what was undone or redone, or would be.
func (u Undoing) WriteText(w io.Writer) error {
	verb, took := "undone", "taken back"
	if u.redo {
		verb, took = "redone", "put back"
	}
	is := "is"
	if u.DryRun {
		is = "would be"
	}
	lines := []string{fmt.Sprintf("job %s %s %s: branch %s goes from snapshot %s to %s", u.Job, is, verb, u.Branch, orNone(u.From), orNone(u.To))}
	if sameSnapshot(u.From, u.To) {
		lines[0] = fmt.Sprintf("job %s %s %s: branch %s stays at snapshot %s, which holds no batch to take", u.Job, is, verb, u.Branch, orNone(u.From))
		if u.redo {
			lines[0] = fmt.Sprintf("job %s %s %s: branch %s is at snapshot %s already", u.Job, is, verb, u.Branch, orNone(u.From))
		}
	}
	lines = append(lines, fmt.Sprintf("%s of the job %s", plural(int64(len(u.Snapshots)), "snapshot", "snapshots"), took))
	for _, o := range u.Others {
		lines = append(lines, fmt.Sprintf("snapshot of another writer %s: %s", took, o))
	}
	for _, c := range u.Dropped {
		lines = append(lines, "column "+c+" dropped")
	}
	for _, c := range u.Kept {
		lines = append(lines, "column "+c+", which the job added, stays")
	}
	for _, p := range u.Pending {
		lines = append(lines, "pending file "+p+" stays; ice-migrate clean finds it")
	}
	if u.DryRun {
		lines = append(lines, "nothing was changed: this was a dry run")
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
