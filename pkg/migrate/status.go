package migrate

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// A Status says where a job stands.
type Status struct {
	Job          string   `json:"job"`
	State        string   `json:"state"`
	Source       End      `json:"source"`
	Destination  End      `json:"destination"`
	Branch       string   `json:"branch"`
	Before       *string  `json:"dest_snapshot_before"`
	Rows         int64    `json:"rows_moved"`
	Batches      int64    `json:"batches"`
	Cursor       string   `json:"cursor"`
	LastSnapshot string   `json:"last_snapshot,omitempty"`
	Pending      []string `json:"pending_files"`
	Staged       int64    `json:"staged_batches,omitempty"` // of a job that lands as one snapshot
	StagedRows   int64    `json:"staged_rows,omitempty"`
	Found        *int64   `json:"snapshots_found"` // that carry the job's marks in the destination; null: not looked at
	Next         string   `json:"next"`            // what another run would do
	Notes        []string `json:"notes"`
}

// StatusOf tells where the job of a checkpoint stands, and what its destination holds of it; dst may
// be nil where it cannot be reached. Nothing is changed.
func StatusOf(ctx context.Context, store *ckpt.Store, c *ckpt.Checkpoint, dst *Table) (Status, error) {
	s := Status{
		Job: c.Job, State: c.State, Branch: c.Destination.Branch, Before: c.DestSnapshotBefore,
		Source:      End{Identifier: c.Source.Identifier, UUID: c.Source.UUID},
		Destination: End{Identifier: c.Destination.Identifier, UUID: c.Destination.UUID},
		Rows:        c.Totals.RowsMoved, Batches: c.Batches, Cursor: c.Cursor, LastSnapshot: c.LastSnapshot,
		Pending: c.Pending.Paths(), Notes: append([]string{}, c.Warnings...),
	}
	if id := c.Source.SnapshotID; id != "" {
		s.Source.SnapshotID = &id
	}
	staged, err := stagedOf(store, c)
	if err != nil {
		return s, err
	}
	s.stagedNote(staged)
	s.Next = next(c, staged)
	if dst != nil {
		s.look(ctx, store, c, dst)
	} else if c.State == ckpt.Running {
		s.Next = "unknown: the destination could not be looked at"
	}
	return s, nil
}

// stagedNote says what is staged of a job that lands as one snapshot.
func (s *Status) stagedNote(staged []ckpt.Pending) {
	if len(staged) == 0 {
		return
	}
	files := int64(0)
	for i := range staged {
		files += int64(len(staged[i].Files))
	}
	s.Staged = int64(len(staged))
	s.StagedRows, _ = (&staging{batches: staged}).rows()
	s.Notes = append(s.Notes, fmt.Sprintf("%s of %s, %s, are staged: they land as one snapshot at the end", plural(s.Staged, "batch", "batches"), plural(s.StagedRows, "row", "rows"), plural(files, "file", "files")))
}

func next(c *ckpt.Checkpoint, staged []ckpt.Pending) string {
	switch {
	case c.State == ckpt.Complete:
		return "nothing: the migration is complete"
	case c.State == ckpt.Undone:
		if c.Left != nil && c.Left.Head != "" {
			return fmt.Sprintf("nothing: the migration was undone; redo puts it back while snapshot %s is retained, reset forgets it", c.Left.Head)
		}
		return "nothing: the migration was undone; reset forgets it"
	case c.Pending != nil:
		return fmt.Sprintf("settle pending batch %d, then go on from cursor %s", c.Pending.Batch, c.Pending.To)
	case len(staged) > 0:
		return "go on from cursor " + staged[len(staged)-1].To
	}
	return "go on from cursor " + c.Cursor
}

// look counts the job's snapshots in the destination, and says what a run would refuse for them.
func (s *Status) look(ctx context.Context, store *ckpt.Store, c *ckpt.Checkpoint, dst *Table) {
	refuse := func(err error) {
		if c.State != ckpt.Undone {
			s.Next = "refuse: " + err.Error()
		}
	}
	if err := remade(c, "", dst.lake); err != nil {
		refuse(err)
		return
	}
	history, err := dst.lake.History(c.Destination.Branch)
	if err != nil {
		refuse(err)
		return
	}
	if len(history.Snapshots) > 0 {
		s.Destination.SnapshotID = snapshotText(&history.Snapshots[0].SnapshotID)
	}
	marks, err := history.MarksOf(c.Job)
	if err != nil {
		refuse(err)
		return
	}
	n := int64(len(marks))
	s.Found = &n
	if c.State != ckpt.Running {
		return
	}
	if s.Next, err = outlook(ctx, store, c, dst.lake, history); err != nil {
		refuse(err)
	}
}

// outlook says what a run would do with what the checkpoint does not know of: batches that landed without
// a note, and the pending one. Nothing is changed.
func outlook(ctx context.Context, store *ckpt.Store, c *ckpt.Checkpoint, dst *lake.Table, history lake.History) (string, error) {
	note := *c
	j := &job{store: store, note: &note, dst: dst, branch: c.Destination.Branch, settings: c.SettingsDigest}
	var err error
	if j.start, err = rows.ParseCursor(c.Cursor); err != nil {
		return "", err
	}
	if err := j.kept(ctx, history); err != nil {
		return "", err
	}
	if err := j.find(history); err != nil {
		return "", err
	}
	var steps []string
	if j.batches > 0 {
		steps = append(steps, "note "+plural(j.batches, "batch that landed", "batches that landed"))
	}
	if p := note.Pending; p != nil {
		step, to, err := j.pendingStep(ctx, p)
		if err != nil {
			return "", err
		}
		steps = append(steps, step)
		j.start = to
	}
	if note.Batches == 0 && j.start.String() == c.Cursor {
		end, err := waitingStart(ctx, store, &note, dst)
		if err != nil {
			return "", err
		}
		if end != nil {
			j.start = *end
		}
	}
	return strings.Join(append(steps, "go on from cursor "+j.start.String()), ", then "), nil
}

// pendingStep is what a run would do with the pending batch, and where it would stand then.
func (j *job) pendingStep(ctx context.Context, p *ckpt.Pending) (string, rows.Cursor, error) {
	mark, err := j.pendingMark(p)
	if err != nil {
		return "", j.start, err
	}
	commit := lake.Commit{Branch: j.branch, Mark: mark}
	if commit.Files, err = j.decode(p); err != nil {
		return "", j.start, err
	}
	landed, err := j.landedBefore(ctx, commit, p)
	if err != nil {
		return "", j.start, err
	}
	if landed != nil {
		return fmt.Sprintf("note that pending batch %d landed", p.Batch), mark.To, nil
	}
	whole, err := j.filesWhole(ctx, commit.Files)
	if err != nil {
		return "", j.start, err
	}
	if whole && p.Upserted != nil { // by the head that the run finds
		if p.Staged > 0 {
			return fmt.Sprintf("land the %s", plural(p.Staged, "staged batch", "staged batches")), mark.From, nil
		}
		return fmt.Sprintf("write pending batch %d again, by what the destination is then", p.Batch), mark.From, nil
	}
	if !whole {
		return fmt.Sprintf("write pending batch %d again, whose files are gone or damaged", p.Batch), mark.From, nil
	}
	return fmt.Sprintf("commit pending batch %d, %s", p.Batch, plural(int64(len(commit.Files)), "file", "files")), mark.To, nil
}

// WriteText writes the status for people.
func (s Status) WriteText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	state, found := s.State, "unknown how many snapshots of the job are"
	if state == ckpt.Running {
		state = "not complete" // whether a process is at work nobody knows
	}
	if s.Found != nil {
		found = plural(*s.Found, "snapshot of the job is", "snapshots of the job are")
	}
	line("job", "%s (%s)", s.Job, state)
	line("source", "%s at snapshot %s", plan.FormatPath(s.Source.Identifier), orNone(s.Source.SnapshotID))
	line("destination", "%s, branch %s, at snapshot %s", plan.FormatPath(s.Destination.Identifier), s.Branch, orNone(s.Destination.SnapshotID))
	line("snapshot before", "%s", beforeText(s.Before))
	line("rows moved", "%s in %s; %s in the destination", grouped(s.Rows), plural(s.Batches, "batch", "batches"), found)
	line("cursor", "%s", s.Cursor)
	for _, p := range s.Pending {
		line("pending file", "%s", p)
	}
	line("next run", "%s", s.Next)
	for _, n := range s.Notes {
		line("note", "%s", n)
	}
	return out.Flush()
}
