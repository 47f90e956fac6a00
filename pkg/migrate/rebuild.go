package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// Recover makes the lost checkpoint of a job anew: from the marks that the job left in the destination, and
// from the settings of m, which must be those that it was begun with. A run with that checkpoint goes on
// exactly after the batches that are there. id names the job; "" finds the one whose settings these are.
//
// It refuses where the checkpoint is there, where no job or more than one fits, and, unless
// m.Write.AcceptExpiredHistory is set, where the snapshots of the job's first batches have expired: then
// its dest_snapshot_before is not known any more.
func (m *Migrator) Recover(ctx context.Context, id string) (Status, error) {
	store := m.Write.Checkpoint
	if store == nil {
		return Status{}, errors.New("recover: name the checkpoint to make")
	}
	unlock, err := store.Lock()
	if err != nil {
		return Status{}, err
	}
	defer unlock()
	if c, err := store.Load(); err != nil {
		return Status{}, err
	} else if c != nil {
		return Status{}, fmt.Errorf("checkpoint %q is there already, of job %s; move it away to make another", store.Path(), c.Job)
	}
	history, err := m.Dest.lake.History(m.Write.branch())
	if err != nil {
		return Status{}, err
	}
	f, err := m.find(ctx, history, id)
	if err != nil {
		return Status{}, err
	}
	note, err := m.rebuild(f, history)
	if err != nil {
		return Status{}, fmt.Errorf("job %s: %w", f.trace.Job, err)
	}
	if err := store.Save(note); err != nil {
		return Status{}, err
	}
	return StatusOf(ctx, store, note, m.Dest)
}

// found is a job whose settings are those asked for, with the scan that it makes.
type found struct {
	trace    lake.Trace
	scan     *lake.Scan
	settings ckpt.Settings
}

// find returns the job with the settings of m, and of that id where one is given.
func (m *Migrator) find(ctx context.Context, history lake.History, id string) (found, error) {
	branch, name := m.Write.branch(), m.Dest.Name()
	var fits []found
	var seen []string
	for _, t := range history.Traces() {
		if id != "" && t.Job != id {
			continue
		}
		f, why := m.fits(ctx, t)
		if why != nil {
			seen = append(seen, fmt.Sprintf("%s (%v)", t.Job, why))
			continue
		}
		fits = append(fits, f)
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		var ids []string
		for _, f := range fits {
			ids = append(ids, f.trace.Job)
		}
		return found{}, fmt.Errorf("branch %q of table %q holds batches of %d jobs with these settings, %s: name one with --job", branch, name, len(fits), strings.Join(ids, ", "))
	case id != "" && len(seen) == 0:
		return found{}, fmt.Errorf("branch %q of table %q holds no batches of job %s", branch, name, id)
	case len(seen) == 0:
		return found{}, fmt.Errorf("branch %q of table %q holds no batches of any job: there is nothing to recover, begin anew", branch, name)
	}
	return found{}, fmt.Errorf("branch %q of table %q holds no batches of a job with these settings, but of %s; give the flags that the job was begun with", branch, name, strings.Join(seen, ", "))
}

// errOtherSettings says of a job that it was begun with other settings. Its marks hold a digest of them
// alone, so that nothing tells which.
var errOtherSettings = errors.New("other settings")

// fits plans the scan of a job's source snapshot, and holds the settings that come of it against the job's.
// Which of the source's schemas it was begun with is found by trying.
func (m *Migrator) fits(ctx context.Context, t lake.Trace) (found, error) {
	switch {
	case t.Foreign:
		return found{}, errors.New("of iceberg-ops")
	case t.Err != nil:
		return found{}, t.Err
	case t.SourceUUID != "" && t.SourceUUID != uuidText(m.Source.lake.Metadata().TableUUID()):
		return found{}, fmt.Errorf("of another source, UUID %s", t.SourceUUID)
	}
	snapshot, err := strconv.ParseInt(t.SourceSnapshot, 10, 64)
	if err != nil {
		return found{}, fmt.Errorf("its mark of the source snapshot is %q", t.SourceSnapshot)
	}
	if m.Source.lake.Metadata().SnapshotByID(snapshot) == nil {
		return found{}, fmt.Errorf("its source snapshot %d has expired, so that it cannot be gone on with%s", snapshot, beforeHint(t))
	}
	if asked := m.Scan.Pin.Snapshot; asked != nil && *asked != snapshot {
		return found{}, fmt.Errorf("of source snapshot %d", snapshot)
	}
	o, err := m.Scan.lake()
	if err != nil {
		return found{}, err
	}
	asked := m.Reconcile
	if m.Plan != nil {
		asked = m.Plan.Settings
	}
	failed := errOtherSettings
	for _, schema := range m.schemas(snapshot) {
		o.Pin = lake.Pin{Snapshot: &snapshot, SchemaID: &schema}
		scan, err := m.Source.lake.PlanScan(ctx, o)
		if ctx.Err() != nil {
			return found{}, ctx.Err()
		}
		if err != nil {
			failed = err
			continue
		}
		now, err := m.settingsOf(scan.Header(), asked)
		if err != nil {
			return found{}, err
		}
		if now.Digest() == t.Settings {
			return found{t, scan, now}, nil
		}
	}
	return found{}, failed
}

func (m *Migrator) settingsOf(h rows.Header, asked plan.Options) (ckpt.Settings, error) {
	h.Reconciler = asked.Canonical()
	w := m.Write
	w.Branch = w.branch()
	return settings(h, m.Dest.lake, w)
}

// schemas are the IDs of the source's schemas, the likely ones first: that of now and that of the snapshot.
func (m *Migrator) schemas(snapshot int64) []int {
	meta := m.Source.lake.Metadata()
	out := []int{m.Source.lake.Schema().ID}
	add := func(id int) {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	if s := meta.SnapshotByID(snapshot); s != nil && s.SchemaID != nil {
		add(*s.SchemaID)
	}
	for _, s := range slices.Backward(meta.Schemas()) {
		add(s.ID)
	}
	return out
}

// rebuild makes the checkpoint of a job that goes on after its marks.
func (m *Migrator) rebuild(f found, history lake.History) (*ckpt.Checkpoint, error) {
	first := f.trace.Marks[0]
	for i, mark := range f.trace.Marks[1:] {
		if before := f.trace.Marks[i]; mark.From.Compare(before.To) != 0 {
			return nil, fmt.Errorf("its batches have a gap: snapshot %d holds rows up to %s, snapshot %d rows from %s on; %s before you begin anew", before.Snapshot, before.To, mark.Snapshot, mark.From, takeOut(f.trace))
		}
	}
	dst, branch := m.Dest.lake, m.Write.branch()
	h := f.scan.Header()
	note := &ckpt.Checkpoint{
		Job: f.trace.Job, State: ckpt.Running, Settings: f.settings,
		Source: noteTable(h.Source), Destination: tableNow(dst, branch),
		Cursor: first.From.String(), Batches: first.Batch, DestSnapshotBefore: snapshotText(f.trace.Before),
	}
	if s := dst.Metadata().SnapshotByID(first.Snapshot); s != nil {
		note.Created = time.UnixMilli(s.TimestampMs).UTC()
	}
	note.Updated = time.Now().UTC()
	if (first.From.Compare(rows.Cursor{}) != 0) {
		if !m.Write.AcceptExpiredHistory {
			return nil, fmt.Errorf("the snapshots of its batches before batch %d have expired, so that its dest_snapshot_before is not known; a job commits its batches in order, so their rows are there unless the branch was rolled back: --accept-expired-history says that it was not", first.Batch)
		}
		unknown := ckpt.UnknownSnapshot
		note.DestSnapshotBefore = &unknown
		// Counted by the files, since nothing else tells any more.
		n := f.scan.ExpectedFrom(rows.Cursor{}).Rows - f.scan.ExpectedFrom(first.From).Rows
		note.Warnings = []string{fmt.Sprintf("the snapshots of batches 0 to %d have expired: their rows are counted by the source's files, those among them that were deleted there", first.Batch-1)}
		note.Totals = ckpt.Totals{RowsMoved: n, RowsInserted: n}
	}
	j := &job{note: note, dst: dst, branch: branch}
	for _, mark := range f.trace.Marks {
		j.landed(mark.To, j.totalsOf(mark, history), lake.Committed{Snapshot: mark.Snapshot, Parent: mark.Parent})
	}
	return note, nil
}

// takeOut says how a job's rows are taken out of the destination.
func takeOut(t lake.Trace) string {
	return rollBack(&ckpt.Checkpoint{DestSnapshotBefore: snapshotText(t.Before)})
}
