package datafile

import (
	"context"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// A Writer writes the data files of a table, batch after batch. Its methods are called by one
// goroutine. Between a batch's first Write and the end of its Finish or Abort it runs goroutines of
// its own; between batches there are none, so that a Writer needs no closing.
type Writer struct {
	plan    *plan
	checker *checker

	batch *batch
	// Record batches of a partitioned or sorted table wait here to be clustered.
	held      []arrow.RecordBatch
	heldBytes int64
	failed    error // of this batch: nothing but Abort is left

	taking *taking // the row group that is being taken as it is

	mu   sync.Mutex
	idle [][]*Encoder // with their buffers, for the batches to come
}

// NewWriter returns a Writer, or what Check refuses.
func NewWriter(ctx context.Context, cfg Config) (*Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := newPlan(cfg)
	if err != nil {
		return nil, err
	}
	return &Writer{plan: p, checker: newChecker(cfg.Schema)}, nil
}

// Write adds the rows of a record batch. It borrows it, and keeps what it needs longer. The batch has
// the columns of the table's schema in its order, of the types that table.SchemaToArrowSchema gives;
// other columns are an error. A value that the table cannot hold is a *ValueError, found before
// anything of the record batch is written; the Writer can go on without it, as after a batch of other
// columns. After any other error only Abort is left, and Finish, which aborts and tells it again.
//
// Write returns before the rows are encoded, so that the failure of a disk shows later, in Finish at
// the latest.
func (w *Writer) Write(ctx context.Context, rb arrow.RecordBatch) error {
	if w.failed != nil {
		return w.failed
	}
	if err := w.checker.checkTypes(rb.Schema()); err != nil {
		return err
	}
	if err := w.checker.check(rb); err != nil {
		return err
	}
	if err := w.add(ctx, rb); err != nil {
		w.failed = err
		return err
	}
	return nil
}

func (w *Writer) add(ctx context.Context, rb arrow.RecordBatch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if rb.NumRows() == 0 {
		return nil
	}
	if w.batch != nil {
		if err := w.batch.pool.failure(); err != nil {
			return err
		}
	}
	if w.streams() {
		w.start()
		g := gather(w.plan.cfg.Mem, []arrow.RecordBatch{rb})
		defer g.drop()
		w.batch.add(g, rowsOf(0, int(g.rows)), w.plan.part.whole(), 0)
		return nil
	}
	size := sizeOf(rb)
	if len(w.held) > 0 && w.heldBytes+size > w.plan.cfg.GatherBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	rb.Retain()
	w.held = append(w.held, rb)
	w.heldBytes += size
	return nil
}

// streams reports whether rows go straight into the open file.
func (w *Writer) streams() bool { return w.plan.part.plain && !w.plan.sort.sorts() }

func (w *Writer) start() {
	if w.batch == nil {
		w.batch = startBatch(w.plan, w.encoders())
	}
}

func (w *Writer) encoders() []*Encoder {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.idle); n > 0 {
		e := w.idle[n-1]
		w.idle = w.idle[:n-1]
		return e
	}
	out := make([]*Encoder, len(w.plan.shape.columns))
	for i := range out {
		out[i] = NewEncoder(w.plan.shape, i)
	}
	return out
}

// flush clusters and sorts the record batches held, and hands them on, a file after another.
func (w *Writer) flush() error {
	if len(w.held) == 0 {
		return nil
	}
	g := gather(w.plan.cfg.Mem, w.held)
	defer g.drop()
	w.release()
	if g.rows > 1<<31-1 {
		return fmt.Errorf("a record batch of %d rows is too large to cluster", g.rows)
	}
	clusters, err := w.plan.part.split(int(g.rows), g.column)
	if err != nil {
		return err
	}
	sorted, err := w.plan.sort.keys(g.column)
	if err != nil {
		return fmt.Errorf("sort: %w", err)
	}
	w.start()
	for _, c := range clusters {
		sortID := 0
		if w.plan.sort.sorts() {
			w.plan.sort.sort(c.rows, sorted)
			sortID = w.plan.sort.id
		}
		w.batch.add(g, rowsAt(c.rows), c.part, sortID)
		w.batch.endGroup(true)
	}
	return nil
}

func (w *Writer) release() {
	for _, rb := range w.held {
		rb.Release()
	}
	w.held, w.heldBytes = nil, 0
}

// Finish ends the batch. Once it returns the batch's data files they are whole, and with their names
// survive a crash, where they are local. The Writer is then ready for the next batch. A batch without
// rows has no files.
func (w *Writer) Finish(ctx context.Context) ([]iceberg.DataFile, error) {
	return w.End(ctx).Wait()
}

// End ends the batch without waiting for its files, so that the next one can be written at once.
// Wait of what it returns must be called, once; it may be called while Write is.
func (w *Writer) End(ctx context.Context) *Pending {
	err := w.failed
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		w.Abort()
		return &Pending{err: err}
	}
	b := w.batch
	w.batch = nil
	if b == nil {
		return &Pending{}
	}
	b.endGroup(true)
	return &Pending{w: w, batch: b}
}

// Pending is a batch whose files are being finished.
type Pending struct {
	w     *Writer
	batch *batch
	err   error
	bytes Bytes
}

// Bytes are those of the files that Wait returned.
func (p *Pending) Bytes() Bytes { return p.bytes }

// Wait returns the files as Finish does.
func (p *Pending) Wait() ([]iceberg.DataFile, error) {
	if p.batch == nil {
		return nil, p.err
	}
	files, err := p.batch.wait()
	p.bytes = p.batch.bytes
	p.w.recycle(p.batch)
	return files, err
}

func (w *Writer) recycle(b *batch) {
	encoders := make([]*Encoder, len(b.pool.columns))
	for i := range encoders {
		encoders[i] = b.pool.columns[i].enc
		encoders[i].Discard()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = append(w.idle, encoders)
}

// Abort gives the batch up and waits for what runs. Files of it that were begun or finished stay where
// they are: nothing here deletes files. The Writer is then ready for another batch.
func (w *Writer) Abort() {
	w.release()
	w.leave()
	w.failed = nil
	b := w.batch
	w.batch = nil
	if b == nil {
		return
	}
	b.pool.fail(errAborted)
	_, _ = b.wait() // errAborted, or what went wrong before
	w.recycle(b)
}
