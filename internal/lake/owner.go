package lake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// A Trace is what one job left in a history: its marks, oldest first.
type Trace struct {
	Job     string
	Foreign bool   // made by iceberg-ops: it has none of our marks
	Before  *int64 // parent of its oldest retained snapshot
	Last    int64  // its newest snapshot

	// Of its newest snapshot; empty where it is foreign.
	Settings, SourceUUID, SourceSnapshot string

	Streams []string // that brought its rows, in order
	Marks   []Mark   // those that can be read
	Err     error    // of the first that cannot
}

// Rows are the source rows of its marks.
func (t Trace) Rows() int64 {
	var n int64
	for _, m := range t.Marks {
		n += m.Rows
	}
	return n
}

// Traces returns the jobs that left marks in the history, in the order of their newest snapshots, the
// newest last. What cannot be read of one is said in it, and hides no other.
func (h History) Traces() []Trace {
	var out []Trace
	at := map[string]int{}
	for i := range h.Snapshots { // newest first
		s := h.Snapshots[i]
		if s.Summary == nil || s.Summary.Properties[MarkJob] == "" {
			continue
		}
		p := s.Summary.Properties
		n, known := at[p[MarkJob]]
		if !known {
			n = len(out)
			at[p[MarkJob]] = n
			out = append(out, Trace{Job: p[MarkJob], Foreign: true, Last: s.SnapshotID, Settings: p[MarkSettings], SourceUUID: p[MarkSourceUUID], SourceSnapshot: p[MarkSourceSnapshot]})
		}
		out[n].add(s)
	}
	slices.Reverse(out)
	for i := range out {
		slices.Reverse(out[i].Marks)
		slices.Reverse(out[i].Streams)
	}
	return out
}

// add adds a snapshot that is older than those before.
func (t *Trace) add(s table.Snapshot) {
	t.Before = s.ParentSnapshotID
	if stream := s.Summary.Properties[MarkStream]; stream != "" && (len(t.Streams) == 0 || t.Streams[len(t.Streams)-1] != stream) {
		t.Streams = append(t.Streams, stream)
	}
	m, err := parseMark(s)
	switch {
	case err != nil:
		t.Foreign, t.Err = false, err
	case !m.Foreign:
		t.Foreign = false
		t.Marks = append(t.Marks, m)
	}
}

// HoldsRowsOf reports whether a manifest of the branch's head names a live data file that a snapshot added:
// then the snapshot is an ancestor of the head, though it may have expired.
func (t *Table) HoldsRowsOf(ctx context.Context, branch string, snapshot int64) (bool, error) {
	head, err := t.Branch(branch)
	if err != nil || head == nil {
		return false, err
	}
	for entry, err := range t.liveFiles(ctx, head, nil) {
		if err != nil {
			return false, err
		}
		if entry.SnapshotID() == snapshot {
			return true, nil
		}
	}
	return false, nil
}

// Audited tells which table property, if any, asks for writes to be staged and audited before they show
// (write-audit-publish): "" for none.
func (t *Table) Audited() string {
	if strings.EqualFold(t.Properties()["write.wap.enabled"], "true") {
		return "write.wap.enabled=true"
	}
	if id, ok := t.Properties()["wap.id"]; ok {
		return "wap.id=" + id
	}
	return ""
}

// Names of our data files: icepipe-TABLE-JOB-UUID.parquet, where TABLE and JOB are the first digits of
// hashes of the table's key and of the job; an object store layout may put bits before it. Delete files have
// -deletes behind the UUID, and those of deletion vectors end in .puffin.
var ours = regexp.MustCompile(`^(?:[01]+-)?icepipe-([0-9a-f]{8})-([0-9a-f]{8})-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.parquet|-deletes\.(?:parquet|puffin))$`)

// FileNames gives a new name for a data file of a job, without its suffix, at each call. Such a file can be
// told from those of other programs, and of other tables that lie or lay in the same folder. The function
// may be called while the table commits.
func (t *Table) FileNames(job string) func() string {
	prefix := "icepipe-" + t.tag() + "-" + short(job) + "-"
	return func() string { return prefix + uuid.NewString() }
}

// Ours reports whether a location has the name of a data or delete file that a job of ours made for this table.
func (t *Table) Ours(location string) bool {
	m := ours.FindStringSubmatch(path.Base(location))
	return m != nil && m[1] == t.tag()
}

// tag stands for the table: for its UUID, or for its location where a v1 table has none.
func (t *Table) tag() string {
	if id := t.Metadata().TableUUID(); id != uuid.Nil {
		return short(id.String())
	}
	return short(t.Location())
}

func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
