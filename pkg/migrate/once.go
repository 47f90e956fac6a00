package migrate

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/apache/iceberg-go"

	"icepipe/internal/datafile"
	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/rows"
)

// A staging is what a job that lands as one snapshot has written so far: its batches, in order, whose files
// wait for the one commit. With a checkpoint each of them is noted in FILE.staged.
type staging struct {
	from    rows.Cursor    // of the job's first row
	batches []ckpt.Pending // without what is encoded
	files   []iceberg.DataFile
	fresh   bool // FILE.staged is to be made before a batch is added
}

// each is every batch with its files.
func (s *staging) each() iter.Seq2[int, []iceberg.DataFile] {
	return func(yield func(int, []iceberg.DataFile) bool) {
		at := 0
		for i, b := range s.batches {
			end := at + len(b.Files)
			if !yield(i, s.files[at:end]) {
				return
			}
			at = end
		}
	}
}

// rows are the source rows of the staged batches, and those of them that are in no file.
func (s *staging) rows() (all, rejected int64) {
	for _, b := range s.batches {
		all, rejected = all+b.Rows, rejected+b.Rejected
	}
	return all, rejected
}

// bytes are those of the staged files.
func (s *staging) bytes() int64 {
	var n int64
	for _, b := range s.batches {
		for _, f := range b.Files {
			n += f.Size
		}
	}
	return n
}

// add takes a batch whose files are at hand.
func (s *staging) add(b ckpt.Pending, files []iceberg.DataFile) {
	b.Files = append([]ckpt.PendingFile(nil), b.Files...)
	for i := range b.Files {
		b.Files[i].Encoded = nil // what is compared is let go once it is known to the upsert
	}
	s.batches, s.files = append(s.batches, b), append(s.files, files...)
}

// once reports whether the job of a checkpoint lands as one snapshot.
func once(c *ckpt.Checkpoint) bool {
	return string(c.Settings["commit"]) == `"once"` || string(c.Settings["write_mode"]) == strconv.Quote(OverwritePartition)
}

// stagedOf are the batches that wait for the one commit of a checkpoint's job; none where it landed.
func stagedOf(store *ckpt.Store, c *ckpt.Checkpoint) ([]ckpt.Pending, error) {
	if store == nil || c == nil || !once(c) || c.Batches > 0 {
		return nil, nil
	}
	return store.Staged(c.Job)
}

// waitingPaths are the files of a job that wait for a commit: those of its pending batch, and staged ones.
func waitingPaths(store *ckpt.Store, c *ckpt.Checkpoint) ([]string, error) {
	paths := c.Pending.Paths()
	staged, err := stagedOf(store, c)
	for i := range staged {
		paths = append(paths, staged[i].Paths()...)
	}
	return paths, err
}

// whole returns those of the staged batches of a job, from its first on, that can be committed: they follow
// one another from start on, and each of their files is there, as long as it was and with its footer. why
// says of the first other one what is wrong with it.
func whole(ctx context.Context, dst *lake.Table, batches []ckpt.Pending, start rows.Cursor) (s *staging, end rows.Cursor, why, err error) {
	s = &staging{from: start, fresh: true}
	fs, err := dst.FS(ctx)
	if err != nil {
		return s, start, nil, err
	}
	for i, b := range batches {
		from, to, err := cursorsOf(&b)
		if err != nil {
			return s, start, nil, err
		}
		if from.Compare(start) != 0 {
			return s, start, fmt.Errorf("staged batch %d holds rows from %s on, and rows are missing from %s on", i, from, start), nil
		}
		if why := stale(dst, &b); why != nil {
			return s, start, fmt.Errorf("the staged batches from batch %d on are written again: %w", i, why), nil
		}
		files, err := decodeFiles(dst, b.Files)
		if err != nil {
			return s, start, nil, fmt.Errorf("staged batch %d: %w", i, err)
		}
		for _, f := range files {
			why := datafile.Verify(ctx, fs, f)
			if ctx.Err() != nil {
				return s, start, nil, ctx.Err()
			}
			if why != nil {
				return s, start, fmt.Errorf("the staged batches from batch %d on are written again: %w", i, why), nil
			}
		}
		s.add(b, files)
		start = to
	}
	return s, start, nil, nil
}

func cursorsOf(p *ckpt.Pending) (from, to rows.Cursor, err error) {
	if from, err = rows.ParseCursor(p.From); err == nil {
		to, err = rows.ParseCursor(p.To)
	}
	return from, to, err
}

// adopt goes on with the batches that former runs staged, unless they landed.
func (j *job) adopt(ctx context.Context) error {
	if j.note.Batches > 0 {
		j.staging = &staging{from: j.start, fresh: true}
		return j.store.Unstage()
	}
	batches, err := stagedOf(j.store, j.note)
	if err != nil {
		return err
	}
	var why error
	if j.staging, j.start, why, err = whole(ctx, j.dst, batches, j.start); err != nil {
		return err
	}
	if why != nil {
		j.warnings = append(j.warnings, why.Error())
		if err := j.save(); err != nil { // nothing is pending any more, of which the side file would lack files
			return err
		}
		// At once: a pipe that starts where the last of them ended is refused now, and by what is left next time.
		if err := j.store.Restage(j.note.Job, batches[:len(j.staging.batches)]); err != nil {
			return err
		}
		j.staging.fresh = false
	}
	n, _ := j.staging.rows()
	j.before += n
	j.resumed = j.resumed || n > 0
	return nil
}

// stage notes a batch whose files are written; it lands with all others at the end.
func (w *writer) stage(ctx context.Context, batch open, files []iceberg.DataFile) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.job.stage(w.job.staged(batch), files)
}

// staged is the note of a batch that waits, without its files.
func (j *job) staged(batch open) ckpt.Pending {
	return ckpt.Pending{Batch: batch.number, From: batch.from.String(), To: batch.to.String(), Rows: batch.rows, Rejected: batch.rows - batch.written, Stream: j.stream}
}

// stage notes a batch and these files of it.
func (j *job) stage(b ckpt.Pending, files []iceberg.DataFile) error {
	var err error
	if b.Files, err = j.pendingFiles(files); err != nil {
		return err
	}
	if j.store != nil {
		if err := j.restage(); err != nil {
			return err
		}
		if err := j.store.Stage(&b); err != nil {
			return err
		}
	}
	j.staging.add(b, files)
	return nil
}

// restage makes FILE.staged this run's, with the batches that it goes on with.
func (j *job) restage() error {
	if !j.staging.fresh {
		return nil
	}
	kept, err := j.store.Staged(j.note.Job)
	if err != nil && len(j.staging.batches) > 0 {
		return err
	}
	if len(kept) > len(j.staging.batches) {
		kept = kept[:len(j.staging.batches)]
	}
	if err := j.store.Restage(j.note.Job, kept); err != nil {
		return err
	}
	j.staging.fresh = false
	return nil
}

// land commits what is staged as one snapshot, which stands for all source rows from the job's first to its
// last: also for the rest of them, that no batch holds since none of it was left to write. It returns the
// rest where nothing is staged.
func (w *writer) land(ctx context.Context, rest int64) (int64, error) {
	j := w.job
	s := j.staging
	if len(s.batches) == 0 {
		return rest, nil
	}
	all, rejected := s.rows()
	all, rejected = all+rest, rejected+rest
	if w.upsert != nil {
		if err := w.ready(ctx); err != nil {
			return 0, err
		}
		s, rejected = j.staging, rejected-w.upsert.rows
	}
	mark := j.mark(s.from, w.reached, j.note.Batches, all)
	pending := &ckpt.Pending{Batch: mark.Batch, From: mark.From.String(), To: mark.To.String(), Rows: all, Rejected: rejected, Stream: j.stream, Files: []ckpt.PendingFile{}, Staged: int64(len(s.batches))}
	totals := ckpt.Totals{RowsMoved: all, RowsInserted: all - rejected, RowsRejected: rejected, BytesWritten: s.bytes()}
	if w.upsert != nil {
		pending.Upserted, totals = w.upsert.counts(), w.upsert.count(totals)
	}
	if err := w.commitPending(ctx, mark, pending, s.files, totals); err != nil {
		return 0, w.unstaged(err)
	}
	if w.upsert != nil {
		w.upsert.landed()
	}
	j.staging = &staging{from: mark.To, fresh: true}
	if j.store == nil {
		return 0, nil
	}
	return 0, j.store.Unstage()
}

// waitingStart is where a scan of the job of a checkpoint starts: behind the staged batches that are whole.
// It returns nil where nothing is staged.
func waitingStart(ctx context.Context, store *ckpt.Store, c *ckpt.Checkpoint, dst *lake.Table) (*rows.Cursor, error) {
	batches, err := stagedOf(store, c)
	if err != nil || len(batches) == 0 {
		return nil, err
	}
	start, err := rows.ParseCursor(c.Cursor)
	if err != nil {
		return nil, err
	}
	if dst == nil { // as they are noted: whoever writes looks at them
		_, end, err := cursorsOf(&batches[len(batches)-1])
		return &end, err
	}
	_, end, _, err := whole(ctx, dst, batches, start)
	return &end, err
}
