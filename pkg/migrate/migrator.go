package migrate

import (
	"cmp"
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
	Plan         *plan.Plan // made before; in place of Reconcile, but for its OnCastError where that is said
	Rejects      Rejects    // where rows go that do not fit
	Write        WriteOptions
	Compare      VerifyOptions // of Verify; its source, destination and plan are the Migrator's
}

// Run migrates, or goes on with the job that the checkpoint records. The receipt says what was done
// even when there is an error.
func (m *Migrator) Run(ctx context.Context) (Receipt, error) {
	scan := m.Scan
	scan.Checkpoint, scan.dst = m.Write.Checkpoint, m.Dest.lake
	if err := m.destined(); err != nil {
		return Receipt{}, err
	}
	planned, err := planScan(ctx, m.Source, scan)
	if err != nil {
		return Receipt{}, err
	}
	out, c, err := m.reconcile(ctx, planned.Stream(ctx))
	if err != nil {
		return Receipt{}, err
	}
	o := m.Write
	if unique := o.wantsUnique() && !o.once() && c == nil; unique || o.Copy == CopyRequire { // a job that has begun was looked through
		w := o
		p, err := m.refuse(ctx, out.Header, &w)
		if err == nil && unique {
			err = m.unique(ctx, out.Header, p, w.Upsert)
		}
		if err == nil {
			err = m.copied(ctx, planned.Stream(ctx), p, w)
		}
		if err != nil {
			return Receipt{}, err
		}
		o.unique = unique
	}
	return write(ctx, out, m.Dest, o, readAhead)
}

// refuse makes the checks of a write that ask for the header alone, and names the keys in the options where they
// are not.
func (m *Migrator) refuse(ctx context.Context, h rows.Header, w *WriteOptions) (*plan.Plan, error) {
	w.Branch = w.branch()
	p, err := accepted(h, m.Dest, *w)
	if err != nil {
		return nil, err
	}
	if err := overwritable(ctx, h, m.Dest.lake, *w); err != nil {
		return nil, err
	}
	if err := upsertable(ctx, p, m.Dest.lake, w); err != nil {
		return nil, err
	}
	return p, copyable(*w, readAhead)
}

// destined refuses a branch that is to be named, and a checkpoint whose job is over or has another
// destination, before a scan that knows no destination says what it may hold.
func (m *Migrator) destined() error {
	if err := audited(m.Dest.lake, m.Write.Branch); err != nil {
		return err
	}
	store := m.Write.Checkpoint
	if store == nil {
		return nil
	}
	c, err := store.Load()
	if err != nil || c == nil {
		return err
	}
	if err = remade(c, store.Path(), m.Dest.lake); err == nil {
		err = resumable(c, store.Path(), m.Dest.lake)
	}
	if err != nil {
		return fmt.Errorf("checkpoint %q: %w", store.Path(), err)
	}
	return nil
}

// reconcile plans anew, or goes on with the plan that the checkpoint records: the destination has the
// columns by now that the job added. It returns the checkpoint of the job to go on with, if there is one.
func (m *Migrator) reconcile(ctx context.Context, in rows.Stream) (rows.Stream, *ckpt.Checkpoint, error) {
	made, asked := m.Plan, m.Reconcile
	if made != nil {
		asked = made.Settings
	}
	policy := cmp.Or(m.Reconcile.OnCastError, asked.OnCastError, plan.PolicyError)
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
	asked.OnCastError = policy // of a recorded plan too: to say another is a cure
	out, err := m.Rejects.Reconcile(ctx, in, m.Dest, asked, made)
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
	SchemaChanges []string   `json:"schema_changes"` // of the plan's, those that the destination has not got yet
	Resumes       bool       `json:"resumes"`
	Cursor        string     `json:"cursor"`
	Warnings      []string   `json:"warnings"`
	Hints         []string   `json:"hints"`

	Upsert   *UpsertPreview `json:"upsert,omitempty"`
	Replaces string         `json:"replaces,omitempty"` // by a job that replaces partitions

	pending []plan.Change
	once    bool
}

// DryRun makes every check that Run makes before it writes, and counts what is to come. It writes
// nothing, takes no lock, and leaves the checkpoint alone (case 91).
func (m *Migrator) DryRun(ctx context.Context) (Preview, error) {
	options := m.Scan
	options.Checkpoint, options.dst = m.Write.Checkpoint, m.Dest.lake
	if err := m.destined(); err != nil {
		return Preview{}, err
	}
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
	p, err := m.refuse(ctx, out.Header, &w)
	if err == nil && w.wantsUnique() && c == nil {
		err = m.unique(ctx, out.Header, p, w.Upsert)
	}
	if err == nil {
		err = m.copied(ctx, scan.Stream(ctx), p, w)
	}
	if err != nil {
		return Preview{}, err
	}
	h, expected, start := out.Header, out.Header.Expected, out.Header.First
	if c != nil {
		if start, err = ahead(c, m.Dest.lake, w.Branch, start); err != nil {
			return Preview{}, fmt.Errorf("checkpoint %q: %w", w.Checkpoint.Path(), err)
		}
		if start.Compare(out.Header.First) < 0 {
			start = out.Header.First // behind what is staged
		}
		expected = scan.ExpectedFrom(start)
	}
	count := commits(expected.Rows, h.BatchRows)
	if w.once() {
		count = min(count, 1)
	}
	v := Preview{
		Source:      End{Identifier: h.Source.Identifier, UUID: h.Source.UUID, SnapshotID: snapshotText(h.Source.SnapshotID)},
		Destination: End{Identifier: h.Destination.Identifier, UUID: h.Destination.UUID},
		Rows:        expected.Rows, Bytes: expected.Bytes, Files: expected.Files,
		BatchRows: h.BatchRows, Commits: count,
		AutoBatchRows: lake.AutoBatchRows(expected), Plan: p, SchemaChanges: []string{},
		Cursor: start.String(), Warnings: append(append([]string{}, p.Warnings...), w.emptied(p)...), Hints: []string{},
	}
	if c == nil {
		held, err := beside(h, m.Dest.lake, w)
		if err != nil {
			return Preview{}, err
		}
		v.Warnings = append(v.Warnings, held...)
	}
	if err := v.mode(ctx, m.Dest.lake, w); err != nil {
		return Preview{}, err
	}
	if v.once = w.once(); !v.once {
		v.Hints = hints(expected, h.BatchRows, c != nil)
	}
	if v.pending, err = p.Pending(m.Dest.lake.Schema()); err != nil {
		return Preview{}, err
	}
	for _, change := range v.pending {
		v.SchemaChanges = append(v.SchemaChanges, changeText(change))
	}
	head, err := m.Dest.lake.Branch(w.Branch)
	if err != nil {
		return Preview{}, err
	}
	if head != nil {
		v.Destination.SnapshotID = snapshotText(&head.SnapshotID)
	}
	v.Resumes = c != nil && (c.Batches > 0 || c.Pending != nil || start != h.First || h.First != rows.Cursor{})
	return v, nil
}

// ahead is where rows are missing from by the marks of the destination, which may be ahead of the
// checkpoint. Nothing is changed.
func ahead(c *ckpt.Checkpoint, dst *lake.Table, branch string, start rows.Cursor) (rows.Cursor, error) {
	history, err := dst.History(branch)
	if err != nil {
		return start, err
	}
	note := *c
	j := &job{note: &note, dst: dst, branch: branch, start: start}
	err = j.find(history)
	return j.start, err
}

func changeText(c plan.Change) string {
	if c.Kind == plan.AddColumn {
		return fmt.Sprintf("add column %s %s", plan.FormatPath(c.Path), c.Type)
	}
	return fmt.Sprintf("promote column %s to %s", plan.FormatPath(c.Path), c.Type)
}

func commits(n, batch int64) int64 { return (n + batch - 1) / max(1, batch) }

// manyCommits is how many commits to come are worth a hint.
const manyCommits = 100

// hints is advice on a run to come: many small commits make the destination's metadata large, since each
// one writes the whole of it anew (case 80). A resumed job keeps its batch size.
func hints(e rows.Expected, batch int64, resumed bool) []string {
	n := commits(e.Rows, batch)
	if n < manyCommits {
		return []string{}
	}
	cure := ""
	if !resumed {
		auto := lake.AutoBatchRows(e)
		cure = fmt.Sprintf("; --batch-rows auto would make %s of %s", grouped(commits(e.Rows, auto)), plural(auto, "row", "rows"))
	}
	return []string{fmt.Sprintf("%s commits of %s are to come%s. Each commit writes the destination's metadata anew: set write.metadata.delete-after-commit.enabled=true and write.metadata.previous-versions-max there, and expire snapshots afterwards",
		grouped(n), plural(batch, "row", "rows"), cure)}
}

// Verify compares the source, at the snapshot that the checkpoint pins or m.Scan asks for, with the rows that
// the checkpoint's job added to the destination; without a checkpoint, or where m.Compare.WholeTable is
// set, with the whole destination. What else is to be said of it is in m.Compare.
func (m *Migrator) Verify(ctx context.Context, method string) (Verification, error) {
	o := m.Compare
	o.Method, o.Source, o.Filter, o.DestBranch, o.Plan, o.Reconcile = method, m.Scan.Pin, m.Scan.Filter, m.Write.Branch, m.Plan, m.Reconcile
	if m.Write.Checkpoint != nil {
		c, err := m.Write.Checkpoint.Load()
		if err != nil {
			return Verification{}, err
		}
		if c != nil {
			if err := o.By(c); err != nil {
				return Verification{}, fmt.Errorf("checkpoint %q: %w", m.Write.Checkpoint.Path(), err)
			}
		}
	}
	return Verify(ctx, m.Source, m.Dest, o)
}
