package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/iceberg-go"

	"icepipe/internal/crash"
	"icepipe/internal/datafile"
	"icepipe/internal/lake"
	"icepipe/internal/upsert"
	"icepipe/pkg/ckpt"
)

// errCommitFailed ends the writing when a commit failed; the committer has the error itself.
var errCommitFailed = errors.New("a commit failed")

// finished is a batch all of whose rows are written; its files are on disk once files says so.
type finished struct {
	open
	files *datafile.Pending
}

// A committer commits finished batches in order, in a goroutine of its own, so that the next batch can
// be written meanwhile. One batch waits at most.
type committer struct {
	queue chan finished
	done  chan struct{}
	mu    sync.Mutex
	err   error
}

func newCommitter(ctx context.Context, w *writer) *committer {
	c := &committer{queue: make(chan finished, 1), done: make(chan struct{})}
	commit := w.commit
	if w.job.staging != nil {
		commit = w.stage
	}
	go func() {
		defer close(c.done)
		for batch := range c.queue {
			files, err := batch.files.Wait()
			if c.failed() != nil {
				continue
			}
			if err == nil {
				w.job.wrote(batch.files.Bytes())
				err = commit(ctx, batch.open, files)
			}
			if err != nil {
				c.mu.Lock()
				c.err = fmt.Errorf("batch %d: %w", batch.number, err)
				c.mu.Unlock()
			}
		}
	}()
	return c
}

func (c *committer) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// submit hands a batch on. It returns the error of an earlier batch, if one failed.
func (c *committer) submit(ctx context.Context, batch finished) error {
	c.queue <- batch // the committer takes it in every case, since its files must be waited for
	if c.failed() != nil {
		return errCommitFailed
	}
	return ctx.Err()
}

// wait ends the committer and returns the first error of a commit. It is called once.
func (c *committer) wait() error {
	close(c.queue)
	<-c.done
	return c.failed()
}

// commit notes a batch as pending, commits it and notes it as done. An interruption leaves a batch
// that is not begun for the resume; a commit that was begun is ended.
func (w *writer) commit(ctx context.Context, batch open, files []iceberg.DataFile) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := w.job
	mark := j.mark(batch.from, batch.to, j.note.Batches, batch.rows)
	pending := &ckpt.Pending{Batch: mark.Batch, From: mark.From.String(), To: mark.To.String(), Rows: batch.rows, Rejected: batch.rows - batch.written, Stream: j.stream}
	if j.store != nil {
		var err error
		if pending.Files, err = j.pendingFiles(files); err != nil {
			return err
		}
	}
	totals := ckpt.Totals{RowsMoved: batch.rows, RowsInserted: batch.written, RowsRejected: batch.rows - batch.written}
	for _, f := range files {
		totals.BytesWritten += f.FileSizeBytes()
	}
	if w.upsert != nil {
		pending.Upserted = w.upsert.counts()
	}
	return w.commitPending(ctx, mark, pending, files, totals)
}

// commitPending notes a commit as pending, makes it, and notes that it is done.
func (w *writer) commitPending(ctx context.Context, mark lake.Mark, pending *ckpt.Pending, files []iceberg.DataFile, totals ckpt.Totals) error {
	j := w.job
	head, err := w.dst.Branch(w.options.Branch)
	if err != nil {
		return err
	}
	if j.store != nil {
		if head != nil {
			pending.Base = snapshotText(&head.SnapshotID)
		}
		j.note.Pending = pending
		if err := j.save(); err != nil {
			return err
		}
		crash.Here("migrate.pending-noted")
	}
	defer w.waiting(ctx)()
	commit, err := j.toCommit(mark, files)
	if err != nil {
		return err
	}
	if w.upsert != nil {
		commit.Upsert = w.upsert.taking(j, w.options.resources(), commit.Properties)
	}
	landed, err := w.dst.Append(context.WithoutCancel(ctx), commit)
	if err != nil {
		return j.notCommitted(err)
	}
	if w.upsert != nil {
		totals = w.upsert.count(totals)
	}
	j.landed(mark.To, totals, landed)
	if err := j.save(); err != nil {
		return err
	}
	crash.Here("migrate.landed-noted")
	return nil
}

// toCommit is a commit of the job.
func (j *job) toCommit(mark lake.Mark, files []iceberg.DataFile) (lake.Commit, error) {
	o, err := j.overwrite()
	return lake.Commit{Branch: j.branch, Mark: mark, Properties: j.properties(), Files: files, Since: j.searched, Overwrite: o, Alone: j.alone && mark.Batch == 0}, err
}

// waiting tells the user who interrupts a commit that it is waited for. What it returns ends that.
func (w *writer) waiting(ctx context.Context) (end func()) {
	if w.options.Waiting == nil {
		return func() {}
	}
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		w.options.Waiting()
	})
	return func() {
		if !stop() {
			<-told
		}
	}
}

// notCommitted says of a batch whose commit failed for certain what becomes of its files.
func (j *job) notCommitted(err error) error {
	switch {
	case j.store == nil, errors.Is(err, lake.ErrUnknownOutcome), errors.Is(err, upsert.ErrConflict):
		return err
	case j.options.Upsert != nil && j.staging == nil:
		return fmt.Errorf("%w (the batch is not committed; a run with the checkpoint writes it again)", err)
	}
	return fmt.Errorf("%w (the batch is not committed; its files are kept, and a run with the checkpoint commits them)", err)
}
