package lake

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

// The marks that a job leaves in the summary of each of its snapshots. The first two are the names
// that iceberg-ops uses, so that its users' queries keep working.
const (
	MarkJob            = "iceberg-ops.migration-job"
	MarkBatch          = "iceberg-ops.migration-batch"
	MarkFrom           = "icepipe.cursor-from"
	MarkTo             = "icepipe.cursor"
	MarkRows           = "icepipe.source-rows"
	MarkSourceUUID     = "icepipe.source-uuid"
	MarkSourceSnapshot = "icepipe.source-snapshot-id"
	MarkSettings       = "icepipe.settings"
	MarkStream         = "icepipe.stream"
	MarkInserted       = "icepipe.rows-inserted" // of upserts, as the three below
	MarkUpdated        = "icepipe.rows-updated"
	MarkUnchanged      = "icepipe.rows-unchanged"
	MarkSurplus        = "icepipe.rows-surplus"
)

// A Mark is what one snapshot says of the batch that it holds.
type Mark struct {
	Snapshot int64
	Parent   *int64
	Job      string
	Batch    int64
	From, To rows.Cursor
	Rows     int64 // source rows of the batch
	Settings string
	Stream   string
	Foreign  bool // iceberg-ops made it: no cursors
}

// Branch returns the head of a branch, nil for main without a snapshot. Another branch must exist.
func (t *Table) Branch(name string) (*table.Snapshot, error) {
	for ref, at := range t.Metadata().Refs() {
		if ref != name {
			continue
		}
		if at.SnapshotRefType != table.BranchRef {
			return nil, fmt.Errorf("%q of table %q is a %s, not a branch", name, t.Name(), at.SnapshotRefType)
		}
		s := t.Metadata().SnapshotByID(at.SnapshotID)
		if s == nil {
			return nil, fmt.Errorf("branch %q of table %q points at snapshot %d, which is not there", name, t.Name(), at.SnapshotID)
		}
		return s, t.listed(s)
	}
	if name == table.MainBranch {
		return nil, nil
	}
	return nil, fmt.Errorf("table %q has no branch %q; it has %s. Create it first", t.Name(), name, t.refNames())
}

// A History is the retained ancestry of a branch's head, newest first.
type History struct {
	Snapshots []table.Snapshot
	// Whole is set when it goes back to the first snapshot of the table: none of it has expired.
	Whole bool
}

// History returns the retained ancestry of a branch.
func (t *Table) History(branch string) (History, error) {
	at, err := t.Branch(branch)
	if err != nil {
		return History{}, err
	}
	var h History
	seen := map[int64]bool{}
	for at != nil && !seen[at.SnapshotID] {
		seen[at.SnapshotID] = true
		h.Snapshots = append(h.Snapshots, *at)
		if at.ParentSnapshotID == nil {
			h.Whole = true
			return h, nil
		}
		at = t.Metadata().SnapshotByID(*at.ParentSnapshotID)
	}
	h.Whole = len(h.Snapshots) == 0
	return h, nil
}

// ReachesTo reports whether the history is unbroken back to a snapshot, or to the beginning of the
// table for nil.
func (h History) ReachesTo(snapshot *int64) bool {
	if snapshot == nil {
		return h.Whole
	}
	for _, s := range h.Snapshots {
		if s.SnapshotID == *snapshot || s.ParentSnapshotID != nil && *s.ParentSnapshotID == *snapshot {
			return true
		}
	}
	return false
}

// Holds reports whether a snapshot is in the history.
func (h History) Holds(snapshot int64) bool {
	for _, s := range h.Snapshots {
		if s.SnapshotID == snapshot {
			return true
		}
	}
	return false
}

// Marks returns the marks of all jobs in the history, oldest first.
func (h History) Marks() ([]Mark, error) {
	return h.marks(func(job string) bool { return job != "" })
}

// MarksOf returns the marks of one job, oldest first. What others wrote into theirs is no concern of it.
func (h History) MarksOf(job string) ([]Mark, error) {
	return h.marks(func(name string) bool { return name != "" && name == job })
}

func (h History) marks(wanted func(job string) bool) ([]Mark, error) {
	var out []Mark
	for _, s := range slices.Backward(h.Snapshots) {
		if s.Summary == nil || !wanted(s.Summary.Properties[MarkJob]) {
			continue
		}
		m, err := parseMark(s)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func parseMark(s table.Snapshot) (Mark, error) {
	p := s.Summary.Properties
	m := Mark{Snapshot: s.SnapshotID, Parent: s.ParentSnapshotID, Job: p[MarkJob], Settings: p[MarkSettings], Stream: p[MarkStream]}
	if p[MarkTo] == "" {
		m.Foreign = true
		return m, nil
	}
	var err error
	wrap := func(err error) error {
		return fmt.Errorf("marks of job %s in snapshot %d: %w", m.Job, s.SnapshotID, err)
	}
	if m.Batch, err = strconv.ParseInt(p[MarkBatch], 10, 64); err != nil {
		return m, wrap(err)
	}
	if p[MarkRows] != "" {
		if m.Rows, err = strconv.ParseInt(p[MarkRows], 10, 64); err != nil {
			return m, wrap(err)
		}
	}
	if m.From, err = rows.ParseCursor(p[MarkFrom]); err != nil {
		return m, wrap(err)
	}
	if m.To, err = rows.ParseCursor(p[MarkTo]); err != nil {
		return m, wrap(err)
	}
	if m.Batch < 0 || m.Rows < 0 {
		return m, wrap(fmt.Errorf("batch %d of %d rows", m.Batch, m.Rows))
	}
	if m.To.Compare(m.From) < 0 {
		return m, wrap(fmt.Errorf("cursor %s lies before %s, where the batch starts", m.To, m.From))
	}
	return m, nil
}

// Properties are the marks as summary properties.
func (m Mark) Properties() map[string]string {
	return map[string]string{
		MarkJob:      m.Job,
		MarkBatch:    strconv.FormatInt(m.Batch, 10),
		MarkFrom:     m.From.String(),
		MarkTo:       m.To.String(),
		MarkRows:     strconv.FormatInt(m.Rows, 10),
		MarkSettings: m.Settings,
		MarkStream:   m.Stream,
	}
}

// same reports whether two marks are of the same batch: of one job, by its range of cursors.
func (m Mark) same(o Mark) bool {
	return m.Job == o.Job && !m.Foreign && !o.Foreign && m.From.Compare(o.From) == 0 && m.To.Compare(o.To) == 0
}
