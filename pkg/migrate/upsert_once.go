package migrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/crash"
	"icepipe/internal/lake"
	"icepipe/internal/upsert"
	"icepipe/pkg/ckpt"
)

// compareWith is the snapshot that the job's rows are compared with: the head of the branch, or that of when the
// batches that are staged already were. Where others commit meanwhile that is seen to when the batches land.
func (w *writer) compareWith() (*table.Snapshot, error) {
	j := w.job
	if j.staging == nil || len(j.staging.batches) == 0 {
		return w.dst.Branch(w.options.Branch)
	}
	return baseOf(w.dst, &j.staging.batches[0])
}

// baseOf is the snapshot that a staged batch was compared with, nil where the branch had none.
func baseOf(dst *lake.Table, b *ckpt.Pending) (*table.Snapshot, error) {
	if b.Base == nil {
		return nil, nil
	}
	id, err := strconv.ParseInt(*b.Base, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("base %q of staged batch %d: %w", *b.Base, b.Batch, err)
	}
	s := dst.Metadata().SnapshotByID(id)
	if s == nil {
		return nil, fmt.Errorf("snapshot %d, which it was compared with, has expired", id)
	}
	return s, nil
}

// stale tells why a staged batch, if it is of an upsert, cannot be landed by what it was compared with.
func stale(dst *lake.Table, b *ckpt.Pending) error {
	if b.Compared == nil {
		return nil
	}
	if b.Compared.Schema != dst.Schema().ID {
		return fmt.Errorf("the schema of table %q has changed since batch %d was compared with it", dst.Name(), b.Batch)
	}
	_, err := baseOf(dst, b)
	return err
}

// meetStaged tells the target which batches former runs staged.
func (j *job) meetStaged(ctx context.Context, target *upsert.Target) error {
	if j.staging == nil {
		return nil
	}
	for i, files := range j.staging.each() {
		b := &j.staging.batches[i]
		if b.Compared == nil {
			return fmt.Errorf("staged batch %d does not say what it was compared with", i)
		}
		if err := target.Stage(ctx, upsert.Changes{Taken: b.Compared.Taken, Same: b.Compared.Same}, files); err != nil {
			return fmt.Errorf("staged batch %d: %w", i, err)
		}
		b.Compared = nil
	}
	return nil
}

// stageUpsert stages a batch: its rows are in the table for those that come after it.
func (w *writer) stageUpsert(ctx context.Context, batch open, written []iceberg.DataFile) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j, u := w.job, w.upsert
	changes, err := u.batch.Changes()
	if err != nil {
		return err
	}
	b := j.staged(batch)
	b.Upserted, b.Base = u.counts(), snapshotText(u.target.Base())
	b.Compared = &ckpt.Compared{Schema: u.target.Schema(), Taken: changes.Taken, Same: changes.Same}
	if err := j.stage(b, written); err != nil {
		return err
	}
	j.staging.batches[len(j.staging.batches)-1].Compared = nil
	return u.target.Stage(ctx, changes, written)
}

// ready makes what is staged ready to land: rows in whose place later batches put others are taken out of its
// files, and what became of all rows is counted, with those of the open batch, which changes nothing.
func (w *writer) ready(ctx context.Context) error {
	j, u := w.job, w.upsert
	changes, err := u.batch.Changes()
	if err == nil {
		err = u.target.Stage(ctx, changes, nil)
	}
	if err == nil {
		err = w.thin(ctx)
	}
	if err != nil {
		return err
	}
	c := u.batch.Counts()
	for _, b := range j.staging.batches {
		c.Unchanged += b.Upserted.Unchanged
		c.Surplus += b.Upserted.Surplus
	}
	for _, f := range j.staging.files {
		c.Inserted += f.Count()
	}
	c.Updated = u.target.Updates()
	c.Inserted -= c.Updated
	u.landing = &c
	return nil
}

// thin writes the staged files anew some of whose rows later batches changed. The note of them is made anew at
// once, so that it names what is committed; a run that dies before does it again.
func (w *writer) thin(ctx context.Context) error {
	j := w.job
	superseded := w.upsert.target.Superseded()
	if len(superseded) == 0 {
		return nil
	}
	var noted []ckpt.Pending
	if j.store != nil {
		var err error
		if noted, err = j.store.Staged(j.note.Job); err != nil {
			return err
		}
		if len(noted) != len(j.staging.batches) {
			return fmt.Errorf("%d batches are staged, and %q names %d", len(j.staging.batches), j.path()+".staged", len(noted))
		}
	}
	fresh := &staging{from: j.staging.from}
	for i, before := range j.staging.each() {
		b := j.staging.batches[i]
		var files, old []iceberg.DataFile
		for _, f := range before {
			if gone := superseded[f.FilePath()]; gone == nil {
				files = append(files, f)
			} else {
				old = append(old, f)
				u := *b.Upserted
				u.Surplus += gone.Cardinality()
				b.Upserted = &u
			}
		}
		if len(old) > 0 {
			again, err := w.dst.Thin(ctx, j.note.Job, w.options.resources(), old, superseded)
			if err != nil {
				return fmt.Errorf("staged batch %d: %w", i, err)
			}
			files = append(files, again...)
			if b.Files, err = j.pendingFiles(files); err != nil {
				return err
			}
		}
		if noted != nil {
			if len(old) > 0 {
				noted[i].Files, noted[i].Upserted = b.Files, b.Upserted
			}
			for path := range superseded {
				delete(noted[i].Compared.Taken, path)
			}
		}
		fresh.add(b, files)
	}
	crash.Here("migrate.thinned")
	if j.store != nil {
		if err := j.store.Restage(j.note.Job, noted); err != nil {
			return err
		}
	}
	j.staging = fresh
	return nil
}

// landed forgets what has landed.
func (u *upserting) landed() {
	u.landing, u.batch, u.rows, u.n = nil, u.target.Batch(), 0, 0
}

// unstaged gives up the staged batches of an upsert that another writer's commit has made stale, so that the next run
// compares all rows anew. It returns the error that the landing ended with.
func (w *writer) unstaged(failed error) error {
	j := w.job
	if !errors.Is(failed, upsert.ErrConflict) || errors.Is(failed, lake.ErrUnknownOutcome) {
		return failed
	}
	j.staging = &staging{from: j.staging.from, fresh: true}
	if j.store == nil {
		return failed
	}
	j.note.Pending = nil
	if err := j.save(); err != nil {
		return errors.Join(failed, err)
	}
	if err := j.store.Restage(j.note.Job, nil); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}
