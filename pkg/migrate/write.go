package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"icepipe/internal/crash"
	"icepipe/internal/datafile"
	"icepipe/internal/lake"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// Version is the engine-version that snapshots carry.
const Version = "0.1.0"

// Write appends the rows of a reconciled stream to dst: one commit a batch, exactly once.
//
// It checks the destination on the header alone before anything is written, makes the schema changes
// of the plan, and drops rows that a former run of the job has written. Each batch is written to data
// files, noted in the checkpoint as pending, committed, and noted as done; the next batch is written
// while one commits. Of a stream that ends before its seal the last, unfinished batch is not committed.
// On any error what was committed stays and is in the receipt.
//
// With o.Once the files of each batch are noted beside the checkpoint instead, and all of them land at the end
// of the stream as one snapshot: readers see nothing of the job, or all of it.
func Write(ctx context.Context, in rows.Stream, dst *Table, o WriteOptions) (Receipt, error) {
	return write(ctx, in, dst, o, 0)
}

// write is Write with spans opened ahead by a goroutine of their own. Such a stream must not come from a
// pipe: an upstream that stalls would hold the goroutine, and so the end of a run that failed.
func write(ctx context.Context, in rows.Stream, dst *Table, o WriteOptions, ahead int) (Receipt, error) {
	if err := audited(dst.lake, o.Branch); err != nil {
		return Receipt{}, err
	}
	o.Branch = o.branch()
	planned, err := accepted(in.Header, dst, o)
	if err != nil {
		return Receipt{}, err
	}
	if err := overwritable(ctx, in.Header, dst.lake, o); err != nil {
		return Receipt{}, err
	}
	if err := upsertable(ctx, planned, dst.lake, &o); err != nil {
		return Receipt{}, err
	}
	if err := copyable(o, ahead); err != nil {
		return Receipt{}, err
	}
	if o.Checkpoint != nil {
		unlock, err := o.Checkpoint.Lock()
		if err != nil {
			return Receipt{}, err
		}
		defer unlock()
	}
	j, err := openJob(ctx, in.Header, dst.lake, o)
	if err != nil {
		return Receipt{}, err
	}
	w := &writer{job: j, in: in, plan: planned, dst: dst.lake, options: o, ahead: ahead}
	err = w.run(ctx)
	return w.receipt(), err
}

// accepted refuses a stream that does not belong into the destination, and a destination that cannot
// be written; it returns the stream's plan.
func accepted(h rows.Header, dst *Table, o WriteOptions) (*plan.Plan, error) {
	if h.Destination == nil || len(h.Plan) == 0 {
		return nil, errors.New("the stream is not reconciled with a destination; put ice-reconcile before ice-write")
	}
	if now := tableNow(dst.lake, ""); !dst.lake.Same(*h.Destination) && sameName(noteTable(*h.Destination), now) {
		return nil, fmt.Errorf("the destination was dropped and made anew (%s) since the stream was reconciled with it; the job's rows are not in it; scan and reconcile again, with a checkpoint of its own", thenNow(noteTable(*h.Destination), now))
	}
	if !dst.lake.Same(*h.Destination) {
		return nil, fmt.Errorf("the stream was reconciled with table %s (UUID %s), not with table %q", plan.FormatPath(h.Destination.Identifier), h.Destination.UUID, dst.Name())
	}
	if err := apart(h, *h.Destination); err != nil {
		return nil, err
	}
	if o.Checkpoint != nil && h.Trial {
		return nil, errors.New("a trial stream (--limit) takes no checkpoint")
	}
	if o.Checkpoint != nil && h.Foreign {
		return nil, errors.New("a stream of another program has no places, so that no checkpoint can be kept; leave it out")
	}
	if _, err := dst.lake.Branch(o.Branch); err != nil {
		return nil, err
	}
	p, err := plan.Parse(h.Plan)
	if err != nil {
		return nil, fmt.Errorf("plan of the stream: %w", err)
	}
	if err := dst.lake.Writable(p); err != nil {
		return nil, err
	}
	return p, dst.lake.Permitted()
}

// A writer is one run of Write.
type writer struct {
	job     *job
	in      rows.Stream
	plan    *plan.Plan
	dst     *lake.Table
	options WriteOptions
	ahead   int                   // spans that are opened before they are asked for
	upsert  *upserting            // of a job that upserts, while it writes
	refused atomic.Pointer[error] // why a row group cannot be copied that must be

	changes  []string
	warnings []string
	seal     rows.Seal
	had      int64 // source rows that the job had moved before this stream was taken
	taken    int64 // source rows of the stream that were missing
	complete bool
	reached  rows.Cursor // end of the stream
}

func (w *writer) run(ctx context.Context) error {
	if w.job.note.Plan != nil {
		if err := w.samePlan(); err != nil {
			return fmt.Errorf("checkpoint %q: %w%s", w.options.Checkpoint.Path(), err, undoHint(w.job.note, w.dst))
		}
	}
	if err := w.job.save(); err != nil {
		return err
	}
	crash.Here("migrate.begun")
	w.had = w.job.note.Totals.RowsMoved
	if w.job.staging != nil {
		staged, _ := w.job.staging.rows()
		w.had += staged
	}
	arranged, err := w.arrange(ctx)
	if err != nil {
		return err
	}
	crash.Here("migrate.arranged")
	w.warnings = append(w.warnings, w.plan.Warnings...)
	w.warnings = append(w.warnings, w.options.emptied(w.plan)...)
	w.warnings = append(w.warnings, w.job.beside...)
	if w.options.Begin != nil {
		advice := append([]string{}, w.job.beside...)
		if w.job.staging == nil {
			advice = append(advice, hints(w.in.Header.Expected, w.in.Header.BatchRows, w.job.noted())...)
		}
		w.options.Begin(advice)
	}
	rest, err := w.write(ctx, arranged)
	if err == nil && w.job.staging != nil {
		rest, err = w.land(ctx, rest)
	}
	if w.upsert != nil {
		err = errors.Join(err, w.upsert.close())
	}
	if err != nil {
		return err
	}
	if w.seal, err = w.in.Seal(); err != nil {
		return err
	}
	w.warnings = append(w.warnings, w.seal.Warnings...)
	w.warnings = append(w.warnings, w.job.warnings...)
	crash.Here("migrate.all-written")
	totals := w.rest(rest)
	totals.BytesRead = w.seal.BytesRead - w.job.written.ByStore
	if err := w.job.done(w.seal.Last, totals, w.warnings); err != nil {
		return err
	}
	crash.Here("migrate.completed")
	w.complete = true
	w.observe()
	return nil
}

// write takes the stream to its seal, and returns the number of source rows at its end that no batch
// holds, for none of them was left to write. Batches are committed by one goroutine while the next is
// written; it is waited for in every case.
func (w *writer) write(ctx context.Context, arranged *arranged) (rest int64, err error) {
	config, err := w.dst.FileConfig(ctx, w.options.resources())
	if err != nil {
		return 0, err
	}
	if w.options.Upsert != nil {
		if w.upsert, err = w.openUpsert(ctx, &config); err != nil {
			return 0, err
		}
	}
	config.Name = w.dst.FileNames(w.job.note.Job)
	if w.ahead > 0 {
		config.Copy = w.options.copying(w.in.Header)
	}
	files, err := datafile.NewWriter(ctx, config)
	if err != nil {
		return 0, err
	}
	defer files.Abort()
	commits := newCommitter(ctx, w)
	defer func() { err = together(commits.wait(), err) }()
	batch := open{from: w.job.start, to: w.job.start, number: w.job.note.Batches}
	if w.job.staging != nil {
		batch.number = int64(len(w.job.staging.batches))
	}
	for span, err := range w.opened(ctx, w.job.start, files, arranged).Spans {
		if err == nil {
			err = w.take(ctx, span, &batch, files, arranged)
		}
		if err != nil {
			return 0, err
		}
		if span.EndsBatch {
			if err := w.finish(ctx, &batch, files, commits); err != nil {
				return 0, err
			}
		}
	}
	if _, err := w.in.Seal(); err != nil {
		return 0, err
	}
	if err := w.finish(ctx, &batch, files, commits); err != nil {
		return 0, err
	}
	w.reached = batch.to
	return batch.rows, nil
}

// together is the error of a run whose commits and whose writing ended so: one line, without saying
// twice that the run was interrupted.
func together(commits, writing error) error {
	switch {
	case commits == nil:
		return writing
	case writing == nil || errors.Is(writing, errCommitFailed):
		return commits
	case errors.Is(writing, context.Canceled) && errors.Is(commits, context.Canceled):
		return writing
	}
	return fmt.Errorf("%w; and %w", commits, writing)
}
