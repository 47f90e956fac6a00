package lake

import (
	"fmt"

	"github.com/apache/iceberg-go/table"
)

// committedSince searches the branch, from its head back to c.Since, for the batch: another process that
// has a copy of the job's checkpoint may have committed it, and the head may be its doing. The commit
// that follows asserts that head, so that nothing can come between.
//
// It returns nil when the batch is not there, and a lasting error when that cannot be told, when the
// branch was rolled back behind c.Since, or when it holds rows of the job that the batch does not fit to.
func (t *Table) committedSince(c Commit) (*Committed, error) {
	at, err := t.Branch(c.Branch)
	if err != nil {
		return nil, err
	}
	var ahead *Mark // rows of the job behind the batch's first
	seen := map[int64]bool{}
	for !c.isSince(at) {
		if at == nil || seen[at.SnapshotID] {
			return nil, lasting{fmt.Errorf("branch %q of table %q %w: it no longer goes back to snapshot %s, on which the batch was to follow; it was rolled back meanwhile", c.Branch, t.Name(), ErrMovedAway, idText(c.Since))}
		}
		seen[at.SnapshotID] = true
		if err := c.met(at, t.Name()); err != nil {
			return nil, err
		}
		m, err := markOfJob(at, c.Mark.Job)
		switch {
		case err != nil:
			return nil, lasting{err}
		case m != nil && m.same(c.Mark):
			return &Committed{Snapshot: m.Snapshot, Parent: m.Parent}, nil
		case m != nil && m.To.Compare(c.Mark.From) > 0:
			ahead = m
		}
		if at.ParentSnapshotID == nil {
			at = nil
			continue
		}
		if c.Since != nil && *at.ParentSnapshotID == *c.Since {
			break // whether it is retained or not
		}
		parent := t.Metadata().SnapshotByID(*at.ParentSnapshotID)
		if parent == nil {
			return nil, lasting{fmt.Errorf("%w: snapshots of table %q have expired that came after the batch before", ErrUnknownOutcome, t.Name())}
		}
		at = parent
	}
	if ahead != nil {
		return nil, lasting{fmt.Errorf("snapshot %d of table %q holds rows %s to %s of this job, and rows %s to %s were to be committed: another process works on a copy of the job that is cut in another way; let it end, then run again",
			ahead.Snapshot, t.Name(), ahead.From, ahead.To, c.Mark.From, c.Mark.To)}
	}
	return nil, nil
}

// isSince reports whether a snapshot, nil for the beginning of the table, is where the search ends.
func (c Commit) isSince(at *table.Snapshot) bool {
	if at == nil || c.Since == nil {
		return at == nil && c.Since == nil
	}
	return at.SnapshotID == *c.Since
}

// met refuses a commit that is to be alone, where a snapshot is another job's with the same settings.
func (c Commit) met(s *table.Snapshot, name string) error {
	if !c.Alone || s.Summary == nil || c.Mark.Settings == "" {
		return nil
	}
	p := s.Summary.Properties
	if p[MarkSettings] != c.Mark.Settings || p[MarkJob] == "" || p[MarkJob] == c.Mark.Job {
		return nil
	}
	return lasting{fmt.Errorf("snapshot %d of table %q is of job %s, which was begun with the same settings at the same time, so that the rows would be there twice; nothing of this job was committed: let the other end; --new-job writes its rows once more", s.SnapshotID, name, p[MarkJob])}
}

// markOfJob is what a snapshot says of a job's batch, nil where it is not the job's.
func markOfJob(s *table.Snapshot, job string) (*Mark, error) {
	if s.Summary == nil || job == "" || s.Summary.Properties[MarkJob] != job {
		return nil, nil
	}
	m, err := parseMark(*s)
	if err != nil || m.Foreign {
		return nil, err
	}
	return &m, nil
}
