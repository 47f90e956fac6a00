package migrate

import (
	"context"
	"fmt"
	"strconv"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/rows"
)

// kept refuses when the batches that the checkpoint notes are not in the branch any more: their rows would
// be skipped. That the last of their snapshots expired is no reason: the branch may show otherwise that
// it was built on them, by a later batch of the job or by a file of that snapshot in the head's manifests.
// Where neither is there the user has to say so.
func (j *job) kept(ctx context.Context, history lake.History) error {
	if j.note.LastSnapshot == "" {
		return nil
	}
	id, err := strconv.ParseInt(j.note.LastSnapshot, 10, 64)
	if err != nil {
		return fmt.Errorf("last snapshot %q: %w", j.note.LastSnapshot, err)
	}
	if history.ReachesTo(&id) {
		return nil
	}
	if j.rolledBack(history, id) {
		return fmt.Errorf("the destination was rolled back: the history of its branch %q no longer holds snapshot %d of the job; %s to begin anew%s", j.branch, id, deleteFile(j.path()), undoHint(j.note, j.dst))
	}
	marks, err := history.MarksOf(j.note.Job)
	if err != nil {
		return err
	}
	noted, err := rows.ParseCursor(j.note.Cursor)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if m.From.Compare(noted) >= 0 {
			return nil // a job commits its batches in order, each on a history that holds those before it
		}
	}
	held, err := j.dst.HoldsRowsOf(ctx, j.branch, id)
	if err != nil {
		return fmt.Errorf("look for the files of snapshot %d: %w", id, err)
	}
	if held || j.expired {
		return nil
	}
	return fmt.Errorf("snapshots of the destination have expired, snapshot %d of the job among them, and no file of it is in the head of branch %q: it was compacted since, or rolled back, which nothing tells apart; if nothing was rolled back go on with --accept-expired-history, else %s to begin anew%s",
		id, j.branch, deleteFile(j.path()), undoHint(j.note, j.dst))
}

// rolledBack reports whether the branch was for certain moved off a snapshot that is not in its retained
// history: the history is whole, or the snapshot is there and younger than the oldest one of it.
func (j *job) rolledBack(history lake.History, id int64) bool {
	if history.Whole {
		return true
	}
	s := j.dst.Metadata().SnapshotByID(id)
	oldest := history.Snapshots[len(history.Snapshots)-1]
	return s != nil && s.SequenceNumber > 0 && s.SequenceNumber >= oldest.SequenceNumber
}

// find notes the batches that the destination's history holds and the checkpoint does not. Batches
// between whose snapshots expired are told by a later one: see kept. In a history that is unbroken such
// a gap is an error.
func (j *job) find(history lake.History) error {
	marks, err := history.MarksOf(j.note.Job)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if m.To.Compare(j.start) <= 0 {
			continue
		}
		if m.From.Compare(j.start) != 0 {
			if m.From.Compare(j.start) < 0 || j.unbroken(history) {
				return fmt.Errorf("the destination holds rows %s to %s of the job in snapshot %d, but none from %s on: snapshots between were taken out; %s and %s to begin anew",
					m.From, m.To, m.Snapshot, j.start, rollBack(j.note), deleteFile(j.path()))
			}
			j.warnings = append(j.warnings, fmt.Sprintf("the snapshots of batches %d to %d have expired: their rows are in the destination, and not in the totals", j.note.Batches, m.Batch-1))
			j.start, j.note.Batches = m.From, m.Batch
		}
		j.resumed = true
		j.landed(m.To, j.totalsOf(m, history), lake.Committed{Snapshot: m.Snapshot, Parent: m.Parent})
	}
	return nil
}

// unbroken reports whether the history goes back to what the checkpoint knows of: to the last snapshot
// of the job, or to the one before it.
func (j *job) unbroken(history lake.History) bool {
	text := j.note.DestSnapshotBefore
	if j.note.LastSnapshot != "" {
		text = &j.note.LastSnapshot
	}
	if text == nil || *text == ckpt.UnknownSnapshot {
		return history.Whole
	}
	id, err := strconv.ParseInt(*text, 10, 64)
	return err != nil || history.ReachesTo(&id)
}
