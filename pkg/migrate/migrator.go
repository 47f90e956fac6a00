package migrate

import (
	"context"
	"fmt"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// readAhead is how many record batches are decoded ahead of the writer.
const readAhead = 4

// A Migrator moves the rows of one table into another: Scan, Reconcile and Write in one process.
type Migrator struct {
	Source, Dest *Table
	Scan         ScanOptions // its checkpoint is that of Write
	Reconcile    plan.Options
	Plan         *plan.Plan // made before; in place of Reconcile
	Write        WriteOptions
	Begin        func(rows.Header) // called when all checks are made, before the first row; may be nil
}

// Run migrates, or goes on with the job that the checkpoint records. The receipt says what was done
// even when there is an error.
func (m *Migrator) Run(ctx context.Context) (Receipt, error) {
	scan := m.Scan
	scan.Checkpoint = m.Write.Checkpoint
	in, err := Scan(ctx, m.Source, scan)
	if err != nil {
		return Receipt{}, err
	}
	out, _, err := m.reconcile(ctx, rows.Ahead(ctx, in, readAhead))
	if err != nil {
		return Receipt{}, err
	}
	if m.Begin != nil {
		m.Begin(out.Header)
	}
	return Write(ctx, out, m.Dest, m.Write)
}

// reconcile plans anew, or goes on with the plan that the checkpoint records: the destination has the
// columns by now that the job added. It returns the checkpoint of the job to go on with, if there is one.
func (m *Migrator) reconcile(ctx context.Context, in rows.Stream) (rows.Stream, *ckpt.Checkpoint, error) {
	made, asked := m.Plan, m.Reconcile
	if made != nil {
		asked = made.Settings
	}
	// What refuses the resume is said before a plan of other settings, or for another table, is tried.
	w, h := m.Write, in.Header
	w.Branch, h.Reconciler = w.branch(), asked.Canonical()
	c, err := checkResume(ctx, h, m.Dest.lake, w)
	if err != nil {
		return rows.Stream{}, nil, err
	}
	if made == nil && c != nil && len(c.Plan) > 0 {
		if made, err = plan.Parse(c.Plan); err != nil {
			return rows.Stream{}, nil, fmt.Errorf("checkpoint %q: recorded plan: %w", w.Checkpoint.Path(), err)
		}
	}
	out, err := Reconcile(ctx, in, m.Dest, m.Reconcile, made)
	return out, c, err
}

// A Preview is what a dry run finds.
type Preview struct {
	Source        End        `json:"source"`
	Destination   End        `json:"destination"`
	Rows          int64      `json:"rows"` // to come; an upper bound where equality deletes decide
	Bytes         int64      `json:"bytes"`
	Files         int64      `json:"files"` // data files to read
	BatchRows     int64      `json:"batch_rows"`
	Commits       int64      `json:"commits"`
	AutoBatchRows int64      `json:"auto_batch_rows"` // what --batch-rows auto would take
	Plan          *plan.Plan `json:"plan"`
	Resumes       bool       `json:"resumes"`
	Cursor        string     `json:"cursor"`
	Warnings      []string   `json:"warnings"`
	Hints         []string   `json:"hints"`
}

// DryRun makes every check that Run makes before it writes, and counts what is to come. It writes
// nothing, takes no lock, and leaves the checkpoint alone (case 91).
func (m *Migrator) DryRun(ctx context.Context) (Preview, error) {
	options := m.Scan
	options.Checkpoint = m.Write.Checkpoint
	scan, err := planScan(ctx, m.Source, options)
	if err != nil {
		return Preview{}, err
	}
	in := scan.Stream(ctx)
	out, c, err := m.reconcile(ctx, in)
	if err != nil {
		return Preview{}, err
	}
	w := m.Write
	w.Branch = w.branch()
	p, err := accepted(out.Header, m.Dest, w)
	if err != nil {
		return Preview{}, err
	}
	h := out.Header
	v := Preview{
		Source:      End{Identifier: h.Source.Identifier, UUID: h.Source.UUID, SnapshotID: snapshotText(h.Source.SnapshotID)},
		Destination: End{Identifier: h.Destination.Identifier, UUID: h.Destination.UUID},
		Rows:        h.Expected.Rows, Bytes: h.Expected.Bytes, Files: h.Expected.Files,
		BatchRows: h.BatchRows, Commits: commits(h.Expected.Rows, h.BatchRows),
		AutoBatchRows: lake.AutoBatchRows(h.Expected), Plan: p,
		Cursor: h.First.String(), Warnings: append([]string{}, p.Warnings...), Hints: Hints(h),
	}
	head, err := m.Dest.lake.Branch(w.Branch)
	if err != nil {
		return Preview{}, err
	}
	if head != nil {
		v.Destination.SnapshotID = snapshotText(&head.SnapshotID)
	}
	v.Resumes = c != nil && (c.Batches > 0 || c.Pending != nil)
	return v, nil
}

func commits(n, batch int64) int64 { return (n + batch - 1) / max(1, batch) }

// manyCommits is how many commits to come are worth a hint.
const manyCommits = 100

// Hints is advice on a run to come: many small commits make the destination's metadata large, since
// each one writes the whole of it anew (case 80).
func Hints(h rows.Header) []string {
	n := commits(h.Expected.Rows, h.BatchRows)
	if n < manyCommits {
		return []string{}
	}
	auto := lake.AutoBatchRows(h.Expected)
	return []string{fmt.Sprintf("%s commits of %s rows are to come; --batch-rows auto would make %s of %s rows. Each commit writes the destination's metadata anew: set write.metadata.delete-after-commit.enabled=true and write.metadata.previous-versions-max there, and expire snapshots afterwards",
		grouped(n), grouped(h.BatchRows), grouped(commits(h.Expected.Rows, auto)), grouped(auto))}
}

// Verify compares the source, at the snapshot that the checkpoint pins or m.Scan asks for, with the
// destination.
func (m *Migrator) Verify(ctx context.Context, method string) (Verification, error) {
	o := VerifyOptions{Method: method, Source: m.Scan.Pin, DestBranch: m.Write.Branch}
	if m.Write.Checkpoint != nil {
		c, err := m.Write.Checkpoint.Load()
		if err != nil {
			return Verification{}, err
		}
		if c != nil {
			if o.Source, err = pinOf(c); err != nil {
				return Verification{}, err
			}
		}
	}
	return Verify(ctx, m.Source, m.Dest, o)
}
