package migrate_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/arrowipc"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// A job is a migration of table src into table dst that a test makes in one form or the other. Tables are
// loaded anew for each run, as another process would.
type job struct {
	from, to   *store
	src, dst   string
	scan       migrate.ScanOptions
	reconcile  plan.Options
	rejects    migrate.Rejects
	checkpoint string // path, "" for none
	branch     string
	observe    func(migrate.Event)
	begin      func([]string)
	newJob     bool
	again      bool
	overwrite  bool // --write-mode overwrite_partition
	yes        bool
	concurrent bool                          // --overwrite-concurrent
	upsert     *migrate.UpsertOptions        // --write-mode upsert
	once       bool                          // --commit once
	copy       string                        // --copy
	expired    bool                          // --accept-expired-history
	shortcut   bool                          // scan with the checkpoint, in three programs
	spoil      func(rows.Stream) rows.Stream // the stream that the writer reads, in three programs
	corrupt    func(stream []byte) []byte    // the bytes of it
}

// newJob is a migration of ns.src into ns.dst.
func newJob(from, to *store, batchRows int64) *job {
	return &job{from: from, to: to, src: "src", dst: "dst", scan: migrate.ScanOptions{BatchRows: batchRows}}
}

func (j *job) write() migrate.WriteOptions {
	o := migrate.WriteOptions{Branch: j.branch, Observe: j.observe, Begin: j.begin, Jobs: 1, NewJob: j.newJob, Again: j.again, AcceptExpiredHistory: j.expired, Once: j.once, OverwritePartitions: j.overwrite, WholeTable: j.yes, OverwriteConcurrent: j.concurrent, Upsert: j.upsert, Copy: j.copy}
	if j.checkpoint != "" {
		o.Checkpoint = ckpt.Open(j.checkpoint)
	}
	return o
}

func (j *job) migrator(t *testing.T) *migrate.Migrator {
	t.Helper()
	return &migrate.Migrator{Source: j.from.open(t, j.src), Dest: j.to.open(t, j.dst), Scan: j.scan, Reconcile: j.reconcile, Rejects: j.rejects, Write: j.write()}
}

// A form is a way to make the migration.
type form struct {
	name string
	run  func(*job, context.Context, *testing.T) (migrate.Receipt, error)
}

var (
	one   = form{"one process", (*job).one}
	three = form{"three programs", (*job).three}
)

// one is ice-migrate.
func (j *job) one(ctx context.Context, t *testing.T) (migrate.Receipt, error) {
	return j.migrator(t).Run(ctx)
}

// three is ice-scan, ice-reconcile and ice-write, with what the pipes carry in memory.
func (j *job) three(ctx context.Context, t *testing.T) (migrate.Receipt, error) {
	reconciled, err := j.stream(ctx, t)
	if err != nil {
		return migrate.Receipt{}, err
	}
	return j.writeStream(ctx, t, reconciled)
}

// stream is what ice-scan and ice-reconcile send to ice-write.
func (j *job) stream(ctx context.Context, t *testing.T) ([]byte, error) {
	o := j.scan
	if j.shortcut {
		o.Checkpoint = j.write().Checkpoint
	}
	in, err := migrate.Scan(ctx, j.from.open(t, j.src), o)
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	var scanned, reconciled bytes.Buffer
	if _, err := arrowipc.Write(ctx, &scanned, in); err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	if in, err = arrowipc.Read(&scanned); err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	if in, err = j.rejects.Reconcile(ctx, in, j.to.open(t, j.dst), j.reconcile, nil); err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	if _, err := arrowipc.Write(ctx, &reconciled, in); err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	return reconciled.Bytes(), nil
}

func (j *job) writeStream(ctx context.Context, t *testing.T, stream []byte) (migrate.Receipt, error) {
	if j.corrupt != nil {
		stream = j.corrupt(stream)
	}
	in, err := arrowipc.Read(bytes.NewReader(stream))
	if err != nil {
		return migrate.Receipt{}, err
	}
	if j.spoil != nil {
		in = j.spoil(in)
	}
	return migrate.Write(ctx, in, j.to.open(t, j.dst), j.write())
}

// writeRejecting writes a stream without the rows at the given places.
func (j *job) writeRejecting(t *testing.T, stream []byte, gone map[int]bool) (migrate.Receipt, error) {
	in, err := arrowipc.Read(bytes.NewReader(stream))
	if err != nil {
		return migrate.Receipt{}, err
	}
	return migrate.Write(t.Context(), rejecting(t, in, gone), j.to.open(t, j.dst), j.write())
}

// brokenAfter is a stream that breaks with err after so many batches and the rows of the next one; one
// that has no more than that is whole.
func brokenAfter(batches int, err error) func(rows.Stream) rows.Stream {
	return func(in rows.Stream) rows.Stream {
		out := in
		out.Spans = func(yield func(rows.Span, error) bool) {
			left := batches
			for span, broken := range in.Spans {
				if broken != nil {
					yield(rows.Span{}, broken)
					return
				}
				if left == 0 && span.EndsBatch {
					span.EndsBatch = false
					if !yield(span, nil) {
						return
					}
					break
				}
				if span.EndsBatch {
					left--
				}
				if !yield(span, nil) {
					return
				}
			}
			if left == 0 {
				yield(rows.Span{}, err)
			}
		}
		return out
	}
}

// rejecting takes the rows at the given places of a stream out of it.
func rejecting(t *testing.T, in rows.Stream, gone map[int]bool) rows.Stream {
	out := in
	out.Spans = func(yield func(rows.Span, error) bool) {
		at := 0
		for span, err := range in.Spans {
			if err == nil {
				kept := make([]byte, (span.Rows+7)/8)
				var left []string
				for i, row := range texts(t, span.Batch) {
					if !gone[at+i] {
						kept[i/8] |= 1 << (i % 8)
						left = append(left, row)
					}
				}
				at += int(span.Rows)
				span.Release()
				span.Kept, span.Batch = kept, fromJSON(t, memory.DefaultAllocator, in.Schema, left)
			}
			if !yield(span, err) {
				return
			}
		}
	}
	return out
}

// note is the checkpoint as it stands.
func (j *job) note(t *testing.T) *ckpt.Checkpoint {
	t.Helper()
	c, err := ckpt.Open(j.checkpoint).Load()
	must(t, err)
	if c == nil {
		t.Fatal("no checkpoint")
	}
	return c
}

// finished holds the destination to have each row of want once, in snapshots whose batches and cursors
// follow one another, and the checkpoint to say so.
func (j *job) finished(t *testing.T, want []string, batches int) {
	t.Helper()
	equal(t, "rows", j.to.content(t, j.dst), want)
	at := "0/0/0"
	snaps := j.to.snaps(t, j.dst)
	for i, s := range snaps {
		equal(t, fmt.Sprintf("batch of snapshot %d", i), s.mark["iceberg-ops.migration-batch"], fmt.Sprint(i))
		equal(t, fmt.Sprintf("start of batch %d", i), place(s.mark["icepipe.cursor-from"]), at)
		at = place(s.mark["icepipe.cursor"])
	}
	equal(t, "number of batches", len(snaps), batches)
	if j.checkpoint == "" {
		return
	}
	c := j.note(t)
	equal(t, "state", c.State, ckpt.Complete)
	equal(t, "rows moved in all", c.Totals.RowsMoved, int64(len(want)))
	equal(t, "rows inserted in all", c.Totals.RowsInserted, int64(len(want)))
	equal(t, "batches in all", c.Batches, int64(batches))
	equal(t, "cursor", place(c.Cursor), at)
	equal(t, "pending", c.Pending, nil)
	var size int64
	for _, s := range snaps {
		var n int64
		fmt.Sscan(s.mark["added-files-size"], &n)
		size += n
	}
	equal(t, "bytes written in all", c.Totals.BytesWritten, size)
}

// place is a cursor without its path.
func place(cursor string) string {
	c, err := rows.ParseCursor(cursor)
	if err != nil {
		return err.Error()
	}
	c.Path = ""
	return c.String()
}
