package migrate

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go/table"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
)

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

// newUndoing begins what an undo or a redo says and does: the job's branch goes from where it is now.
func newUndoing(c *ckpt.Checkpoint, dst *lake.Table, state string) (Undoing, lake.Move, lake.History, error) {
	u := Undoing{Job: c.Job, State: state, Branch: c.Destination.Branch, Snapshots: []string{}, Others: []string{}, Dropped: []string{}, Kept: []string{}, Pending: []string{}}
	move := lake.Move{Branch: c.Destination.Branch}
	history, err := dst.History(move.Branch)
	if err == nil && len(history.Snapshots) > 0 {
		move.From = &history.Snapshots[0].SnapshotID
	}
	return u, move, history, err
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

func sameSnapshot(a, b *string) bool { return text(a) == text(b) }

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
