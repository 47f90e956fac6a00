package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"icepipe/internal/datafile"
	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/rows"
)

// A job is one migration as the writer knows it: what is in the destination already, and what of it
// the checkpoint says. Without a checkpoint it lives in the destination's marks alone.
type job struct {
	store    *ckpt.Store // nil without a checkpoint
	note     *ckpt.Checkpoint
	dst      *lake.Table
	branch   string
	stream   string
	settings string      // digest
	start    rows.Cursor // where rows are missing from
	before   int64       // source rows that the checkpoint knew of when it was loaded
	loaded   bool        // the checkpoint was there
	expired  bool        // batches that the history does not show count as expired
	resumed  bool
	searched *int64 // snapshot up to which the destination was searched for the job's batches
	warnings []string
	beside   []string // of rows that are there already, told before the first is written
	options  WriteOptions
	alone    bool     // no other job with the same settings may write beside it
	staging  *staging // of a job that lands as one snapshot, else nil

	// What this run committed, and what it found in the destination without a note. The committer
	// changes it under mu, since a progress display reads it.
	mu        sync.Mutex
	run       ckpt.Totals
	batches   int64
	snapshots []int64
	written   datafile.Bytes
}

// wrote counts what was written into files of a batch.
func (j *job) wrote(b datafile.Bytes) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written = j.written.Plus(b)
}

// openJob begins a job or goes on with the one that the checkpoint records: it holds the settings
// against those of the stream, and settles what the checkpoint does not know of the destination.
func openJob(ctx context.Context, h rows.Header, dst *lake.Table, o WriteOptions) (*job, error) {
	now, err := settings(h, dst, o)
	if err != nil {
		return nil, err
	}
	store := o.Checkpoint
	j := &job{store: store, dst: dst, branch: o.Branch, stream: h.Stream, settings: now.Digest(), start: h.First, expired: o.AcceptExpiredHistory, options: o}
	j.alone = o.alone(h)
	if o.once() {
		j.staging = &staging{from: h.First, fresh: true}
	}
	if store != nil {
		if j.note, err = store.Load(); err != nil {
			return nil, err
		}
		// A note is younger than the commit that it tells of, so the table is loaded after it: another
		// process may have gone on with the job since it was loaded first.
		if err := dst.Reload(ctx); err != nil {
			return nil, err
		}
	}
	if j.note == nil {
		if err := first(h, now, dst, o); err != nil {
			return nil, err
		}
		if err := o.unproven(); err != nil {
			return nil, err
		}
		if j.beside, err = beside(h, dst, o); err != nil {
			return nil, err
		}
		return j, j.begin(h, now)
	}
	j.loaded = true
	wrap := func(err error) error { return fmt.Errorf("checkpoint %q: %w", store.Path(), err) }
	if err := j.same(h, now); err != nil {
		return nil, wrap(err)
	}
	if err := j.rival(h); err != nil {
		return nil, wrap(err)
	}
	if err := j.recover(ctx, h.First); err != nil {
		return nil, wrap(err)
	}
	return j, nil
}

// same refuses to go on with another job than the one that is noted.
func (j *job) same(h rows.Header, now ckpt.Settings) error {
	c, path := j.note, j.path()
	if err := remade(c, path, j.dst); err != nil {
		return err
	}
	if err := resumable(c, path, j.dst); err != nil {
		return err
	}
	if err := otherSource(c, path, noteTable(h.Source), j.dst); err != nil {
		return err
	}
	return unchanged(c, path, now, j.dst)
}

// noted reports whether the job was begun by a former run.
func (j *job) noted() bool { return j.loaded }

// path is that of the checkpoint, "" where there is none.
func (j *job) path() string {
	if j.store == nil {
		return ""
	}
	return j.store.Path()
}

// checkResume refuses what openJob would refuse by the checkpoint and the destination's history alone,
// and returns the checkpoint of the job to go on with, nil where there is none. It writes nothing.
func checkResume(ctx context.Context, h rows.Header, dst *lake.Table, o WriteOptions) (*ckpt.Checkpoint, error) {
	now, err := settings(h, dst, o)
	if err != nil {
		return nil, err
	}
	var c *ckpt.Checkpoint
	if o.Checkpoint != nil {
		if c, err = o.Checkpoint.Load(); err != nil {
			return nil, err
		}
	}
	if c == nil {
		return nil, first(h, now, dst, o)
	}
	if err := dst.Reload(ctx); err != nil { // after Load: see openJob
		return nil, err
	}
	j := &job{store: o.Checkpoint, note: c, dst: dst, branch: o.Branch, expired: o.AcceptExpiredHistory}
	if err = j.same(h, now); err == nil {
		var history lake.History
		if history, err = dst.History(o.Branch); err == nil {
			err = j.kept(ctx, history)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q: %w", o.Checkpoint.Path(), err)
	}
	return c, nil
}

// pinOf is the source snapshot that a checkpoint's job reads.
func pinOf(c *ckpt.Checkpoint) (Pin, error) {
	if c.Source.SnapshotID == "" {
		return Pin{none: true}, nil
	}
	id, err := strconv.ParseInt(c.Source.SnapshotID, 10, 64)
	if err != nil {
		return Pin{}, fmt.Errorf("source snapshot %q: %w", c.Source.SnapshotID, err)
	}
	var schema int
	if err := json.Unmarshal(c.Settings["source_schema_id"], &schema); err != nil {
		return Pin{}, fmt.Errorf("setting source_schema_id: %w", err)
	}
	return Pin{Snapshot: &id, schema: &schema}, nil
}

// begin makes the record of a new job.
func (j *job) begin(h rows.Header, now ckpt.Settings) error {
	head, err := j.dst.Branch(j.branch)
	if err != nil {
		return err
	}
	j.note = &ckpt.Checkpoint{
		Job: uuid.NewString(), State: ckpt.Running, Created: time.Now().UTC(), Settings: now,
		Source:      noteTable(h.Source),
		Destination: tableNow(j.dst, j.branch),
		Cursor:      h.First.String(),
	}
	if head != nil {
		j.note.DestSnapshotBefore = snapshotText(&head.SnapshotID)
		j.searched = &head.SnapshotID // there is nothing of a new job
	}
	return nil
}

func tableNow(t *lake.Table, branch string) ckpt.Table {
	return noteTable(rows.Table{Identifier: t.Identifier(), UUID: uuidText(t.Metadata().TableUUID()), Location: t.Location(), Branch: branch, Place: &t.Place})
}

func noteTable(t rows.Table) ckpt.Table {
	n := ckpt.Table{Identifier: t.Identifier, UUID: t.UUID, Location: t.Location, Branch: t.Branch}
	if t.SnapshotID != nil {
		n.SnapshotID = *snapshotText(t.SnapshotID)
	}
	if t.Place != nil {
		place := ckpt.Place(*t.Place)
		n.Place = &place
	}
	return n
}

func (j *job) mark(from, to rows.Cursor, batch, n int64) lake.Mark {
	return lake.Mark{Job: j.note.Job, Batch: batch, From: from, To: to, Rows: n, Settings: j.settings, Stream: j.stream}
}

// properties are the summary properties beside the marks.
func (j *job) properties() map[string]string {
	p := map[string]string{"engine-name": "icepipe", "engine-version": Version}
	if id := j.note.Source.UUID; id != "" {
		p[lake.MarkSourceUUID] = id
	}
	if id := j.note.Source.SnapshotID; id != "" {
		p[lake.MarkSourceSnapshot] = id
	}
	return p
}

// landed notes a batch that is in the destination.
func (j *job) landed(to rows.Cursor, t ckpt.Totals, c lake.Committed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.start = to
	j.batches++
	j.snapshots = append(j.snapshots, c.Snapshot)
	j.searched = &c.Snapshot
	j.run = sum(j.run, t)
	j.note.Cursor = to.String()
	j.note.Batches++
	j.note.Totals = sum(j.note.Totals, t)
	j.note.LastSnapshot = strconv.FormatInt(c.Snapshot, 10)
	j.note.Pending = nil
}

// done notes that all rows are in the destination. rest is what no batch holds: the rows at the end of
// which none was left to write, and the bytes that the run read.
func (j *job) done(last rows.Cursor, rest ckpt.Totals, warnings []string) error {
	j.run = sum(j.run, rest)
	j.note.Totals = sum(j.note.Totals, rest)
	j.note.State = ckpt.Complete
	j.note.Cursor = last.String()
	j.note.Warnings = warnings
	return j.save()
}

func sum(a, b ckpt.Totals) ckpt.Totals {
	return ckpt.Totals{
		RowsMoved:     a.RowsMoved + b.RowsMoved,
		RowsInserted:  a.RowsInserted + b.RowsInserted,
		RowsRejected:  a.RowsRejected + b.RowsRejected,
		RowsUpdated:   a.RowsUpdated + b.RowsUpdated,
		RowsUnchanged: a.RowsUnchanged + b.RowsUnchanged,
		RowsSurplus:   a.RowsSurplus + b.RowsSurplus,
		BytesRead:     a.BytesRead + b.BytesRead,
		BytesWritten:  a.BytesWritten + b.BytesWritten,
	}
}

func (j *job) save() error {
	if j.store == nil {
		return nil
	}
	return save(j.store, j.note)
}
