package migrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/iceberg-go"
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
	settings string // digest
	start    rows.Cursor
	snapshot []int64 // that this run made or found
	found    int64   // rows of batches that this run found landed or committed from pending files
	batches  int64   // number of such batches
	written  int64   // their bytes
	resumed  bool

	mu sync.Mutex // held while the committer changes counts that a progress display reads
}

// settings are all that decides which rows and values are written.
func settings(h rows.Header, dst *lake.Table, branch string) (ckpt.Settings, error) {
	optional := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	var reconciler any
	if len(h.Reconciler) > 0 {
		reconciler = h.Reconciler
	}
	var selected any
	if h.Select != nil {
		selected = h.Select
	}
	var snapshot any
	if h.Source.SnapshotID != nil {
		snapshot = strconv.FormatInt(*h.Source.SnapshotID, 10)
	}
	return ckpt.NewSettings(map[string]any{
		"source":             tableKey(h.Source.UUID, h.Source.Location),
		"source_snapshot_id": snapshot,
		"source_schema_id":   h.Source.SchemaID,
		"source_files":       h.Files,
		"destination":        tableKey(uuidText(dst.Metadata().TableUUID()), dst.Location()),
		"branch":             branch,
		"row_filter":         optional(h.RowFilter),
		"select":             selected,
		"batch_rows":         h.BatchRows,
		"write_mode":         "append",
		"reconciler":         reconciler,
	})
}

func uuidText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

// tableKey identifies a table: by UUID, or by location where a v1 table has none.
func tableKey(id, location string) string {
	if id != "" {
		return "uuid " + id
	}
	return "location " + location
}

// openJob begins a job or goes on with the one that the checkpoint records: it holds the settings
// against those of the stream, and settles what the checkpoint does not know of the destination.
func openJob(ctx context.Context, h rows.Header, dst *lake.Table, branch string, store *ckpt.Store) (*job, error) {
	now, err := settings(h, dst, branch)
	if err != nil {
		return nil, err
	}
	j := &job{store: store, dst: dst, branch: branch, stream: h.Stream, settings: now.Digest(), start: h.First}
	if store != nil {
		if j.note, err = store.Load(); err != nil {
			return nil, err
		}
	}
	if j.note == nil {
		return j, j.begin(h, now)
	}
	wrap := func(err error) error { return fmt.Errorf("checkpoint %q: %w", store.Path(), err) }
	if err := resumable(j.note); err != nil {
		return nil, wrap(err)
	}
	if err := unchanged(j.note, now); err != nil {
		return nil, wrap(err)
	}
	if err := j.recover(ctx); err != nil {
		return nil, wrap(err)
	}
	return j, nil
}

// checkResume refuses what openJob would refuse by the checkpoint and the destination's history alone,
// and tells whether there is a job to go on with. It writes nothing.
func checkResume(h rows.Header, dst *lake.Table, o WriteOptions) (bool, error) {
	now, err := settings(h, dst, o.Branch)
	if err != nil {
		return false, err
	}
	c, err := o.Checkpoint.Load()
	if err != nil || c == nil {
		return false, err
	}
	j := &job{store: o.Checkpoint, note: c, dst: dst, branch: o.Branch}
	history, err := dst.History(o.Branch)
	if err == nil {
		err = errors.Join(resumable(c), unchanged(c, now), j.kept(history))
	}
	if err != nil {
		return false, fmt.Errorf("checkpoint %q: %w", o.Checkpoint.Path(), err)
	}
	return c.Batches > 0 || c.Pending != nil, nil
}

// pinOf is the source snapshot that a checkpoint's job reads.
func pinOf(c *ckpt.Checkpoint) (Pin, error) {
	if c.Source.SnapshotID == "" {
		return Pin{}, nil
	}
	id, err := strconv.ParseInt(c.Source.SnapshotID, 10, 64)
	if err != nil {
		return Pin{}, fmt.Errorf("source snapshot %q: %w", c.Source.SnapshotID, err)
	}
	return Pin{Snapshot: &id}, nil
}

// begin makes the record of a new job.
func (j *job) begin(h rows.Header, now ckpt.Settings) error {
	head, err := j.dst.Branch(j.branch)
	if err != nil {
		return err
	}
	if (h.First != rows.Cursor{}) {
		return fmt.Errorf("the stream starts at cursor %s, and without a checkpoint of that job the rows before it would be missing", h.First)
	}
	j.note = &ckpt.Checkpoint{
		Job: uuid.NewString(), State: ckpt.Running, Created: time.Now().UTC(), Settings: now,
		Source:      noteTable(h.Source),
		Destination: noteTable(rows.Table{Identifier: j.dst.Identifier(), UUID: uuidText(j.dst.Metadata().TableUUID()), Location: j.dst.Location(), Branch: j.branch, Place: &j.dst.Place}),
		Cursor:      h.First.String(),
	}
	if head != nil {
		j.note.DestSnapshotBefore = snapshotText(&head.SnapshotID)
	}
	return nil
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

// unchanged refuses a resume with other settings, naming which, then and now.
func unchanged(c *ckpt.Checkpoint, now ckpt.Settings) error {
	if len(c.Settings) == 0 {
		return fmt.Errorf("it records no settings, so that nothing tells whether this is the same job; reset it to begin anew%s", undoHint(c))
	}
	diff := c.Settings.Diff(now)
	if len(diff) == 0 {
		return nil
	}
	var texts []string
	for _, d := range diff {
		texts = append(texts, d.String())
	}
	return fmt.Errorf("settings differ from those the job was begun with: %s; go on with the same, or reset it to begin anew%s", strings.Join(texts, "; "), undoHint(c))
}

// recover settles what the checkpoint does not know: batches that landed without being noted, and
// the pending one.
func (j *job) recover(ctx context.Context) error {
	var err error
	if j.start, err = rows.ParseCursor(j.note.Cursor); err != nil {
		return err
	}
	history, err := j.dst.History(j.branch)
	if err != nil {
		return err
	}
	if err := j.kept(history); err != nil {
		return err
	}
	marks, err := history.Marks()
	if err != nil {
		return err
	}
	j.resumed = j.note.Batches > 0 || j.note.Pending != nil
	for _, m := range marks {
		if m.Job == j.note.Job && m.To.Compare(j.start) > 0 {
			if m.From.Compare(j.start) != 0 {
				return fmt.Errorf("the destination holds rows %s to %s of the job in snapshot %d, but none from %s on", m.From, m.To, m.Snapshot, j.start)
			}
			j.resumed = true
			j.landed(m.From, m.To, m.Rows, lake.Committed{Snapshot: m.Snapshot, Parent: m.Parent})
		}
	}
	return j.redo(ctx)
}

// kept refuses when a snapshot that the job made is not in the destination's history any more: the
// rows of that batch would be skipped. A snapshot that expired behind an unbroken history is fine.
func (j *job) kept(history lake.History) error {
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
	return fmt.Errorf("the history of branch %q of the destination no longer holds snapshot %d of the job: it was rolled back, or its snapshots expired; reset the checkpoint to begin anew%s", j.branch, id, undoHint(j.note))
}

// redo commits the pending batch when it is not in the destination: the very same files, after a look
// at each of them. A batch whose files are gone is written again from the source.
func (j *job) redo(ctx context.Context) error {
	p := j.note.Pending
	if p == nil {
		return nil
	}
	mark, err := j.pendingMark(p)
	if err != nil {
		return err
	}
	if mark.To.Compare(j.start) <= 0 {
		j.note.Pending = nil
		return nil
	}
	commit := lake.Commit{Branch: j.branch, Mark: mark, Properties: j.properties()}
	if commit.Files, err = j.decode(p); err != nil {
		return err
	}
	var base *int64
	if p.Base != nil {
		id, err := strconv.ParseInt(*p.Base, 10, 64)
		if err != nil {
			return fmt.Errorf("pending base %q: %w", *p.Base, err)
		}
		base = &id
	}
	found, err := j.dst.Landed(ctx, commit, base)
	if err != nil {
		return fmt.Errorf("cannot tell whether batch %d landed: %w; look for the files of its pending batch in the destination, then reset the checkpoint or roll back%s", p.Batch, err, undoHint(j.note))
	}
	if found == nil {
		fs, err := j.dst.FS(ctx)
		if err != nil {
			return err
		}
		for _, f := range commit.Files {
			if err := datafile.Verify(ctx, fs, f); err != nil {
				j.note.Pending = nil // its files are gone or damaged: the batch is written again
				return nil
			}
		}
		landed, err := j.dst.Append(ctx, commit)
		if err != nil {
			return fmt.Errorf("commit pending batch %d: %w", p.Batch, err)
		}
		found = &landed
	}
	for _, f := range commit.Files {
		j.written += f.FileSizeBytes()
	}
	j.landed(mark.From, mark.To, p.Rows, *found)
	return j.save()
}

func (j *job) pendingMark(p *ckpt.Pending) (lake.Mark, error) {
	from, err := rows.ParseCursor(p.From)
	if err != nil {
		return lake.Mark{}, err
	}
	to, err := rows.ParseCursor(p.To)
	if err != nil {
		return lake.Mark{}, err
	}
	m := j.mark(from, to, p.Batch, p.Rows)
	m.Stream = p.Stream
	return m, nil
}

func (j *job) mark(from, to rows.Cursor, batch, n int64) lake.Mark {
	return lake.Mark{Job: j.note.Job, Batch: batch, From: from, To: to, Rows: n, Settings: j.settings, Stream: j.stream}
}

// properties are the summary properties beside the marks.
func (j *job) properties() map[string]string {
	return map[string]string{
		lake.MarkSourceUUID:     j.note.Source.UUID,
		lake.MarkSourceSnapshot: j.note.Source.SnapshotID,
		"engine-name":           "icepipe",
		"engine-version":        Version,
	}
}

// landed notes a batch that is in the destination.
func (j *job) landed(from, to rows.Cursor, n int64, c lake.Committed) {
	j.start = to
	j.found += n
	j.batches++
	j.snapshot = append(j.snapshot, c.Snapshot)
	j.note.Cursor = to.String()
	j.note.Batches++
	j.note.Totals.RowsMoved += n
	j.note.Totals.RowsInserted += n
	j.note.LastSnapshot = strconv.FormatInt(c.Snapshot, 10)
	j.note.Pending = nil
}

func (j *job) save() error {
	if j.store == nil {
		return nil
	}
	j.note.Updated = time.Now().UTC()
	return j.store.Save(j.note)
}

// pendingFiles notes data files so that another process can commit them.
func (j *job) pendingFiles(files []iceberg.DataFile) ([]ckpt.PendingFile, error) {
	var out []ckpt.PendingFile
	for _, f := range files {
		text, err := j.dst.EncodeFile(f)
		if err != nil {
			return nil, err
		}
		out = append(out, ckpt.PendingFile{SpecID: int(f.SpecID()), Path: f.FilePath(), Size: f.FileSizeBytes(), Rows: f.Count(), Encoded: text})
	}
	return out, nil
}

func (j *job) decode(p *ckpt.Pending) ([]iceberg.DataFile, error) {
	var out []iceberg.DataFile
	for _, f := range p.Files {
		file, err := j.dst.DecodeFile(f.Encoded, f.SpecID)
		if err != nil {
			return nil, fmt.Errorf("pending file %q: %w", f.Path, err)
		}
		if file.FilePath() != f.Path || file.Count() != f.Rows || file.FileSizeBytes() != f.Size {
			return nil, fmt.Errorf("pending file %q: its record is damaged", f.Path)
		}
		out = append(out, file)
	}
	return out, nil
}

// done notes that all rows are in the destination.
func (j *job) done(last rows.Cursor, warnings []string) error {
	j.note.State = ckpt.Complete
	j.note.Cursor = last.String()
	j.note.Warnings = warnings
	return j.save()
}
