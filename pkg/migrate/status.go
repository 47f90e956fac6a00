package migrate

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/plan"
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
	Found        *int64   `json:"snapshots_found"` // that carry the job's marks in the destination; null: not looked at
	Next         string   `json:"next"`            // what another run would do
	Notes        []string `json:"notes"`
}

// StatusOf tells where the job of a checkpoint stands, and what its destination holds of it; dst may
// be nil where it cannot be reached. Nothing is changed.
func StatusOf(ctx context.Context, c *ckpt.Checkpoint, dst *Table) (Status, error) {
	s := Status{
		Job: c.Job, State: c.State, Branch: c.Destination.Branch, Before: c.DestSnapshotBefore,
		Source:      End{Identifier: c.Source.Identifier, UUID: c.Source.UUID},
		Destination: End{Identifier: c.Destination.Identifier, UUID: c.Destination.UUID},
		Rows:        c.Totals.RowsMoved, Batches: c.Batches, Cursor: c.Cursor, LastSnapshot: c.LastSnapshot,
		Pending: []string{}, Notes: append([]string{}, c.Warnings...),
	}
	if id := c.Source.SnapshotID; id != "" {
		s.Source.SnapshotID = &id
	}
	if c.Pending != nil {
		for _, f := range c.Pending.Files {
			s.Pending = append(s.Pending, f.Path)
		}
	}
	s.Next = next(c)
	if dst != nil {
		s.look(ctx, c, dst)
	} else if c.State == ckpt.Running {
		s.Next = "unknown: the destination could not be looked at"
	}
	return s, nil
}

func next(c *ckpt.Checkpoint) string {
	switch {
	case c.State == ckpt.Complete:
		return "nothing: the migration is complete"
	case c.State == ckpt.Undone:
		return "nothing: the migration was undone"
	case c.Pending != nil:
		return fmt.Sprintf("settle pending batch %d, then go on from cursor %s", c.Pending.Batch, c.Pending.To)
	}
	return "go on from cursor " + c.Cursor
}

// look counts the job's snapshots in the destination, and says what a run would refuse for them.
func (s *Status) look(ctx context.Context, c *ckpt.Checkpoint, dst *Table) {
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
	j := &job{note: c, dst: dst.lake, branch: c.Destination.Branch}
	if err := j.kept(ctx, history); err != nil {
		refuse(err)
	}
}

// WriteText writes the status for people.
func (s Status) WriteText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	state, found := s.State, "unknown how many"
	if state == ckpt.Running {
		state = "not complete" // whether a process is at work nobody knows
	}
	if s.Found != nil {
		found = grouped(*s.Found)
	}
	line("job", "%s (%s)", s.Job, state)
	line("source", "%s at snapshot %s", plan.FormatPath(s.Source.Identifier), orNone(s.Source.SnapshotID))
	line("destination", "%s, branch %s, at snapshot %s", plan.FormatPath(s.Destination.Identifier), s.Branch, orNone(s.Destination.SnapshotID))
	line("snapshot before", "%s", beforeText(s.Before))
	line("rows moved", "%s in %s batches; %s snapshots of the job are in the destination", grouped(s.Rows), grouped(s.Batches), found)
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

// WriteText writes what a dry run found for people.
func (v Preview) WriteText(w io.Writer) error {
	if err := v.Explain(w); err != nil {
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(out)
	line("source", "%s at snapshot %s", plan.FormatPath(v.Source.Identifier), orNone(v.Source.SnapshotID))
	line("destination", "%s at snapshot %s", plan.FormatPath(v.Destination.Identifier), orNone(v.Destination.SnapshotID))
	line("to come", "%s rows, %s bytes in %s files, %s commits of %s rows", grouped(v.Rows), grouped(v.Bytes), grouped(v.Files), grouped(v.Commits), grouped(v.BatchRows))
	if v.Resumes {
		line("resumes", "from cursor %s", v.Cursor)
	}
	for _, h := range v.Hints {
		line("hint", "%s", h)
	}
	line("written", "nothing: this was a dry run")
	return out.Flush()
}
