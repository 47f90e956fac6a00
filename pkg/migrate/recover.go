package migrate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"

	"icepipe/internal/crash"
	"icepipe/internal/datafile"
	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/rows"
)

// recover settles what the checkpoint does not know: batches that landed without being noted, and
// the pending one. first is where the stream starts.
func (j *job) recover(ctx context.Context, first rows.Cursor) error {
	var err error
	if j.start, err = rows.ParseCursor(j.note.Cursor); err != nil {
		return err
	}
	j.before = j.note.Totals.RowsMoved
	j.resumed = j.note.Batches > 0 || j.note.Pending != nil
	history, err := j.dst.History(j.branch)
	if err != nil {
		return err
	}
	if err := j.kept(ctx, history); err != nil {
		return err
	}
	if err := j.find(history); err != nil {
		return err
	}
	if len(history.Snapshots) > 0 {
		j.searched = &history.Snapshots[0].SnapshotID // older ones that were found may have expired
	}
	crash.Here("migrate.marks-found")
	if err := j.redo(ctx); err != nil {
		return err
	}
	if j.staging != nil {
		if err := j.adopt(ctx); err != nil {
			return err
		}
	}
	if first.Compare(j.start) > 0 {
		because := ""
		if len(j.warnings) > 0 { // which nobody hears of otherwise
			because = " (" + strings.Join(j.warnings, "; ") + ")"
		}
		return fmt.Errorf("the stream starts at cursor %s, and rows are missing from %s on%s; scan again with this checkpoint", first, j.start, because)
	}
	return nil
}

// totalsOf is what a batch that was found counts: by the checkpoint where it is the pending one, else by
// its snapshot's summary.
func (j *job) totalsOf(m lake.Mark, history lake.History) ckpt.Totals {
	if p := j.note.Pending; p != nil && p.From == m.From.String() && p.To == m.To.String() {
		return j.asLanded(j.pendingTotals(p), m.Snapshot)
	}
	t := ckpt.Totals{RowsMoved: m.Rows, RowsInserted: m.Rows}
	for _, s := range history.Snapshots {
		if s.SnapshotID != m.Snapshot || s.Summary == nil {
			continue
		}
		if u, ok := upsertedBy(&s); ok {
			t = withUpserted(t, u)
			t.RowsRejected = max(0, m.Rows-u.Inserted-u.Updated-u.Unchanged-u.Surplus)
		}
		kept := lake.KeptBy(&s)
		if n, err := strconv.ParseInt(s.Summary.Properties["added-records"], 10, 64); err == nil {
			if n -= kept.Records; t.RowsUpdated+t.RowsUnchanged+t.RowsSurplus == 0 {
				t.RowsInserted, t.RowsRejected = n, m.Rows-n
			}
		}
		if n, err := strconv.ParseInt(s.Summary.Properties["added-files-size"], 10, 64); err == nil {
			t.BytesWritten = n - kept.Bytes
		}
	}
	return t
}

func (j *job) pendingTotals(p *ckpt.Pending) ckpt.Totals {
	t := ckpt.Totals{RowsMoved: p.Rows, RowsInserted: p.Rows - p.Rejected, RowsRejected: p.Rejected, BytesRead: p.BytesRead}
	if p.Upserted != nil {
		t = withUpserted(t, *p.Upserted)
	}
	for _, f := range p.Files {
		t.BytesWritten += f.Size
	}
	if p.Staged > 0 {
		staged, _ := stagedOf(j.store, j.note) // a count for people: what cannot be read is told where it is needed
		t.BytesWritten = (&staging{batches: staged}).bytes()
	}
	return t
}

// asLanded counts the rows of a pending upsert by the snapshot that it landed as: it may have been committed on
// another head than it was noted for.
func (j *job) asLanded(t ckpt.Totals, snapshot int64) ckpt.Totals {
	s := j.dst.Metadata().SnapshotByID(snapshot)
	if s == nil || s.Summary == nil {
		return t
	}
	if u, ok := upsertedBy(s); ok {
		return withUpserted(t, u)
	}
	return t
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
	if mark.From.Compare(j.start) != 0 {
		return fmt.Errorf("pending batch %d holds rows %s to %s, and rows are missing from %s on: the checkpoint and the destination do not belong together; %s and %s to begin anew",
			p.Batch, mark.From, mark.To, j.start, rollBack(j.note), deleteFile(j.path()))
	}
	files, err := j.decode(p)
	if err != nil {
		return err
	}
	commit, err := j.toCommit(mark, files)
	if err != nil {
		return err
	}
	found, err := j.landedBefore(ctx, commit, p)
	if err != nil {
		return err
	}
	if found != nil {
		searched := j.searched
		defer func() { j.searched = searched }()
	} else {
		if p.Upserted != nil { // by a head that may be another one by now
			j.note.Pending = nil
			return nil
		}
		whole, err := j.filesWhole(ctx, commit.Files)
		if err != nil {
			return err
		}
		if !whole {
			j.note.Pending = nil
			return nil
		}
		landed, err := j.dst.Append(context.WithoutCancel(ctx), commit)
		if err != nil {
			return fmt.Errorf("pending batch %d: %w", p.Batch, j.notCommitted(err))
		}
		crash.Here("migrate.redone")
		found = &landed
	}
	j.landed(mark.To, j.asLanded(j.pendingTotals(p), found.Snapshot), *found)
	return j.save()
}

// landedBefore looks for the pending batch in the destination: nil when it is proven not to be there.
func (j *job) landedBefore(ctx context.Context, commit lake.Commit, p *ckpt.Pending) (*lake.Committed, error) {
	var base *int64
	if p.Base != nil {
		id, err := strconv.ParseInt(*p.Base, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("pending base %q: %w", *p.Base, err)
		}
		base = &id
	}
	found, err := j.dst.Landed(ctx, commit, base)
	if err != nil {
		return nil, fmt.Errorf("pending batch %d: %w; look for its files in the destination, then %s and %s to begin anew", p.Batch, err, rollBack(j.note), deleteFile(j.path()))
	}
	return found, nil
}

// filesWhole reports whether the files of the pending batch can be committed. Where one is gone or
// damaged the batch is written again.
func (j *job) filesWhole(ctx context.Context, files []iceberg.DataFile) (bool, error) {
	fs, err := j.dst.FS(ctx)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		err := datafile.Verify(ctx, fs, f)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			if j.note.Pending.Staged > 0 {
				return false, nil // adopt tells which of them are written again
			}
			j.warnings = append(j.warnings, fmt.Sprintf("pending batch %d is written again: %v", j.note.Pending.Batch, err))
			return false, nil
		}
	}
	return true, nil
}

func (j *job) pendingMark(p *ckpt.Pending) (lake.Mark, error) {
	from, to, err := cursorsOf(p)
	if err != nil {
		return lake.Mark{}, err
	}
	m := j.mark(from, to, p.Batch, p.Rows)
	m.Stream = p.Stream
	return m, nil
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

// decode returns the files of the pending batch, or of all those that land with it.
func (j *job) decode(p *ckpt.Pending) ([]iceberg.DataFile, error) {
	if p.Staged == 0 {
		return decodeFiles(j.dst, p.Files)
	}
	staged, err := stagedOf(j.store, j.note)
	if err != nil {
		return nil, err
	}
	if int64(len(staged)) < p.Staged {
		return nil, fmt.Errorf("%d batches were staged, and %q names %d of them; restore it from a copy, or %s to begin anew", p.Staged, j.path()+".staged", len(staged), deleteFile(j.path()))
	}
	var out []iceberg.DataFile
	for _, b := range staged[:p.Staged] {
		files, err := decodeFiles(j.dst, b.Files)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	return out, nil
}

func decodeFiles(dst *lake.Table, files []ckpt.PendingFile) ([]iceberg.DataFile, error) {
	var out []iceberg.DataFile
	for _, f := range files {
		file, err := dst.DecodeFile(f.Encoded, f.SpecID)
		if err != nil {
			return nil, fmt.Errorf("pending file %q: %w", f.Path, err)
		}
		if file.FilePath() != f.Path || file.Count() != f.Rows || file.FileSizeBytes() != f.Size {
			return nil, fmt.Errorf("pending file %q: its record is damaged; restore the checkpoint from a copy", f.Path)
		}
		out = append(out, file)
	}
	return out, nil
}
