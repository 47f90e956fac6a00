package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/datafile"
	"icepipe/internal/lake"
	"icepipe/internal/upsert"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/plan"
)

// settings are what decides which rows an upsert writes.
func (o *UpsertOptions) settings() map[string]any {
	return map[string]any{
		"upsert_keys":      o.Keys,
		"on_duplicate_key": cmp.Or(o.Duplicates, DuplicateWithinBatch),
		"null_keys":        cmp.Or(o.NullKeys, NullKeysError),
		"float_keys":       o.FloatKeys,
		"update_all":       o.UpdateAll,
	}
}

// matching says how rows are matched, with half of the memory for the keys.
func (o *UpsertOptions) matching(memory int64) upsert.Options {
	return upsert.Options{
		Keys: o.Keys, FloatKeys: o.FloatKeys, UpdateAll: o.UpdateAll, Dir: o.Dir, Memory: memory / 2,
		NullKeys:   upsert.NullKeys(cmp.Or(o.NullKeys, NullKeysError)),
		Duplicates: upsert.Duplicates(cmp.Or(o.Duplicates, DuplicateWithinBatch)),
	}
}

// upsertable refuses an upsert by what is known before a row is read, in a dry run too. Keys that were not named
// become the destination's identifier fields.
func upsertable(ctx context.Context, p *plan.Plan, dst *lake.Table, o *WriteOptions) error {
	if o.Upsert == nil {
		return nil
	}
	u := *o.Upsert
	o.Upsert = &u
	if u.Keys == nil {
		if u.Keys = identifiers(dst); len(u.Keys) == 0 {
			return fmt.Errorf("table %q has no identifier fields; name the columns that identify a row with --upsert-keys", dst.Name())
		}
	}
	if err := upsert.CheckNames(u.Keys); err != nil {
		return err
	}
	if err := upsert.Check(p.Target(), u.matching(0)); err != nil {
		return fmt.Errorf("table %q: %w", dst.Name(), err)
	}
	for _, c := range p.Columns {
		if slices.Contains(u.Keys, c.Target.Name) && len(c.Source) == 0 {
			return fmt.Errorf("upsert key %q comes from no source column: every row would have the same key; map a column to it with --column-mapping", c.Target.Name)
		}
	}
	if p.Settings.MissingInSource == plan.PolicySkip {
		return errors.New("an upsert writes every destination column: --on-missing-in-source skip cannot leave one out; say null, which puts null there also in rows that are updated")
	}
	mode, err := dst.DeleteMode(cmp.Or(u.DeleteMode, DeleteAuto))
	if err != nil {
		return err
	}
	return dst.Upsertable(ctx, o.branch(), mode)
}

// identifiers are the names of the identifier fields of a table, nil where one is not a top-level column.
func identifiers(dst *lake.Table) []string {
	var names []string
	for _, id := range dst.Schema().IdentifierFieldIDs {
		at := slices.IndexFunc(dst.Schema().Fields(), func(f iceberg.NestedField) bool { return f.ID == id })
		if at < 0 {
			return nil
		}
		names = append(names, dst.Schema().Fields()[at].Name)
	}
	slices.Sort(names)
	return names
}

// upserting is what a run needs to upsert.
type upserting struct {
	target *upsert.Target
	batch  *upsert.Batch
	mode   lake.DeleteMode
	keys   bool  // are noted beside the checkpoint
	rows   int64 // of the open batch that were projected
	n      int64 // of them, those that were written

	landing *upsert.Counts // of all staged batches, while they land
}

// openUpsert reads the keys of the destination, whose schema has the job's changes by now.
func (w *writer) openUpsert(ctx context.Context, config *datafile.Config) (*upserting, error) {
	o := w.options.Upsert.matching(w.options.Memory)
	var err error
	if o.Mode, err = w.dst.DeleteMode(cmp.Or(w.options.Upsert.DeleteMode, DeleteAuto)); err != nil {
		return nil, err
	}
	o.Staged = w.job.staging != nil
	head, err := w.compareWith()
	if err != nil {
		return nil, err
	}
	if w.dst.Metadata().Version() >= 3 {
		if *config, err = w.dst.FileConfigLineage(ctx, w.options.resources()); err != nil {
			return nil, err
		}
	}
	u := &upserting{mode: o.Mode}
	if u.target, err = upsert.Open(ctx, w.dst, head, o); err != nil {
		return nil, err
	}
	if u.keys = w.job.store != nil && (o.Duplicates == upsert.First || o.Duplicates == upsert.Refuse); u.keys {
		err = w.job.meet(u.target)
	}
	if err == nil {
		err = w.job.meetStaged(ctx, u.target)
	}
	if err != nil {
		return nil, errors.Join(err, u.target.Close())
	}
	u.batch = u.target.Batch()
	return u, nil
}

// meet tells the target which keys the job's batches had before, and begins to note those to come.
func (j *job) meet(target *upsert.Target) error {
	batches := j.note.Batches
	if j.staging != nil {
		batches = int64(len(j.staging.batches))
	}
	had, err := j.store.Keys(j.note.Job, batches)
	if err != nil {
		return err
	}
	for _, b := range had {
		if err := target.Met(b.Keys); err != nil {
			return fmt.Errorf("keys of batch %d: %w", b.Batch, err)
		}
	}
	return j.store.RestartKeys(j.note.Job, had)
}

func (u *upserting) close() error {
	u.batch.Drop()
	return u.target.Close()
}

// to gives rows that are to be written to the files.
func (u *upserting) to(ctx context.Context, files *datafile.Writer) func(arrow.RecordBatch) error {
	return func(rec arrow.RecordBatch) error {
		u.n += rec.NumRows()
		return files.Write(ctx, rec)
	}
}

// finishUpsert ends a batch: its rows are committed, or staged, before the next batch is looked at, whose keys may be
// theirs.
// A batch that changes nothing makes no snapshot: its range joins the next commit's.
func (w *writer) finishUpsert(ctx context.Context, batch *open, files *datafile.Writer) error {
	u := w.upsert
	if err := u.batch.End(ctx, u.to(ctx, files)); err != nil {
		return fmt.Errorf("batch %d: %w", batch.number, err)
	}
	if u.n == 0 {
		return nil
	}
	ended := files.End(ctx)
	written, err := ended.Wait()
	w.job.wrote(ended.Bytes())
	if err == nil && u.keys {
		err = w.job.store.AddKeys(ckpt.BatchKeys{Batch: batch.number, Keys: u.batch.Met()})
	}
	switch {
	case err != nil:
	case w.job.staging != nil:
		err = w.stageUpsert(ctx, *batch, written)
	default:
		err = w.commitUpsert(ctx, *batch, written)
	}
	if err != nil {
		return fmt.Errorf("batch %d: %w", batch.number, err)
	}
	u.batch, u.n, u.rows = u.target.Batch(), 0, 0
	*batch = open{from: batch.to, to: batch.to, number: batch.number + 1}
	return nil
}

// commitUpsert commits a batch, and makes its rows known to those that come after it.
func (w *writer) commitUpsert(ctx context.Context, batch open, written []iceberg.DataFile) error {
	if err := w.commit(ctx, batch, written); err != nil {
		return err
	}
	head, err := w.dst.Branch(w.options.Branch)
	if err != nil {
		return err
	}
	return w.upsert.target.Landed(ctx, w.upsert.batch, head, written)
}

// taking is the commit's side of the open batch, or of all staged ones.
// properties are the summary properties of its snapshot, which say by the head that it is made on what became of
// its rows.
func (u *upserting) taking(j *job, with datafile.Resources, properties map[string]string) *lake.Upsert {
	return &lake.Upsert{Mode: u.mode, Job: j.note.Job, Resources: with,
		Gone: func(ctx context.Context, head *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) {
			gone, err := u.gone(ctx, head)
			c := u.sorted()
			for name, n := range map[string]int64{lake.MarkInserted: c.Inserted, lake.MarkUpdated: c.Updated, lake.MarkUnchanged: c.Unchanged, lake.MarkSurplus: c.Surplus} {
				properties[name] = strconv.FormatInt(n, 10)
			}
			return gone, err
		}}
}

// gone are the rows of a head that go.
func (u *upserting) gone(ctx context.Context, head *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) {
	if u.landing == nil {
		return u.batch.Gone(ctx, head)
	}
	gone, updated, err := u.target.Landing(ctx, head)
	u.landing.Inserted += u.landing.Updated - updated
	u.landing.Updated = updated
	return gone, err
}

// sorted says what became of the rows of the open batch, or of all staged ones while they land.
func (u *upserting) sorted() upsert.Counts {
	if u.landing != nil {
		return *u.landing
	}
	return u.batch.Counts()
}

func (u *upserting) counts() *ckpt.Upserted {
	c := u.sorted()
	return &ckpt.Upserted{Inserted: c.Inserted, Updated: c.Updated, Unchanged: c.Unchanged, Surplus: c.Surplus}
}

// rest are the totals of source rows at the end of the stream that no batch holds.
func (w *writer) rest(n int64) ckpt.Totals {
	if w.upsert == nil {
		return ckpt.Totals{RowsMoved: n, RowsRejected: n}
	}
	return w.upsert.count(ckpt.Totals{RowsMoved: n, RowsRejected: n - w.upsert.rows})
}

// count puts what became of the open batch's rows into its totals.
func (u *upserting) count(t ckpt.Totals) ckpt.Totals {
	return withUpserted(t, *u.counts())
}

// withUpserted are totals with what became of an upsert's rows.
func withUpserted(t ckpt.Totals, u ckpt.Upserted) ckpt.Totals {
	t.RowsInserted, t.RowsUpdated, t.RowsUnchanged, t.RowsSurplus = u.Inserted, u.Updated, u.Unchanged, u.Surplus
	return t
}

// upserted reports whether the job of a checkpoint upserts.
func upserted(c *ckpt.Checkpoint) bool {
	return string(c.Settings["write_mode"]) == strconv.Quote(Upsert)
}

// upsertedBy is what the snapshot of an upsert says of its rows.
func upsertedBy(s *table.Snapshot) (u ckpt.Upserted, ok bool) {
	for name, n := range map[string]*int64{lake.MarkInserted: &u.Inserted, lake.MarkUpdated: &u.Updated, lake.MarkUnchanged: &u.Unchanged, lake.MarkSurplus: &u.Surplus} {
		var err error
		if *n, err = strconv.ParseInt(s.Summary.Properties[name], 10, 64); err != nil {
			return u, false
		}
	}
	return u, true
}
