package migrate

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"icepipe/internal/lake"
	"icepipe/internal/rowdiff"
	"icepipe/internal/rowform"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// A comparison is two tables whose rows are read in the columns of the destination: those of the source through
// the plan.
type comparison struct {
	src, dst  *Table
	projector *plan.Projector
	form      *rowform.Form
	source    *lake.Scan
	dest      *lake.Scan
	sourceAt  *int64
	destAt    *int64
	rejected  atomic.Int64 // rows of the source that the plan leaves out, in the reading that was last begun
}

// compareRows is how many rows of a batch there are to the scans, which commit nothing.
const compareRows = 1 << 40

// compareAhead is how many record batches of a side are decoded ahead of hashing.
const compareAhead = 2

// newComparison plans both reads. The tables must have the same columns by the plan.
func newComparison(ctx context.Context, src, dst *Table, o VerifyOptions) (*comparison, error) {
	c := &comparison{src: src, dst: dst}
	pin, only, err := o.destination(ctx, dst)
	if err != nil {
		return nil, err
	}
	snapshot, _, err := dst.lake.Resolve(pin)
	if err != nil {
		return nil, err
	}
	if snapshot != nil {
		c.destAt = &snapshot.SnapshotID
		if pin.Snapshot == nil {
			pin = lake.Pin{Snapshot: c.destAt}
		}
		id := dst.lake.Schema().ID // what rows are read as, whenever they were written
		pin.SchemaID = &id
	}
	if c.source, err = src.lake.PlanScan(ctx, lake.ScanOptions{Pin: o.Source.lake(), BatchRows: compareRows, Filter: o.Filter}); err != nil {
		return nil, err
	}
	header := c.source.Header()
	c.sourceAt = header.Source.SnapshotID
	p, err := o.plan(c.source.Stream(ctx), dst)
	if err != nil {
		return nil, err
	}
	if len(p.Changes) > 0 {
		pending, err := p.Pending(dst.lake.Schema())
		if err != nil {
			return nil, err
		}
		if len(pending) > 0 {
			return nil, fmt.Errorf("table %q: %s is still to be made: nothing was migrated with this plan yet", dst.Name(), changeText(pending[0]))
		}
		if p, err = p.Resolve(dst.lake.Schema()); err != nil {
			return nil, fmt.Errorf("table %q: %w", dst.Name(), err)
		}
	}
	if c.projector, err = p.Projector(c.source.Stream(ctx).Schema, memory.DefaultAllocator); err != nil {
		return nil, err
	}
	fields := p.Target().Fields()
	if c.form, err = rowform.New(fields); err != nil {
		return nil, err
	}
	names := []string{}
	for _, f := range fields {
		names = append(names, f.Name)
	}
	c.dest, err = dst.lake.PlanScan(ctx, lake.ScanOptions{Pin: pin, Select: names, BatchRows: compareRows, Only: only})
	return c, err
}

// destination is what is read of the destination: a snapshot, and which of its files.
func (o VerifyOptions) destination(ctx context.Context, dst *Table) (lake.Pin, map[string]bool, error) {
	if o.Job == "" {
		return o.destPin(), nil, nil
	}
	branch := o.branch()
	known := int64(-1)
	if o.by != nil {
		known = o.by.Batches
	}
	files, err := dst.lake.JobFiles(ctx, branch, o.Job, known)
	if err != nil {
		return lake.Pin{}, nil, err
	}
	if files.Snapshot < 0 {
		return lake.Pin{None: true}, files.Paths, nil
	}
	return lake.Pin{Snapshot: &files.Snapshot}, files.Paths, nil
}

// plan is how source columns become the destination's.
func (o VerifyOptions) plan(in rows.Stream, dst *Table) (*plan.Plan, error) {
	return planFor(in, dst, o.Reconcile, o.Plan)
}

// columns finds columns by name.
func (c *comparison) columns(names []string) ([]int, error) {
	var out []int
	for _, name := range names {
		i := slices.IndexFunc(c.form.Fields, func(f iceberg.NestedField) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("table %q has no column %q", c.dst.Name(), name)
		}
		if slices.Contains(out, i) {
			return nil, fmt.Errorf("column %q is named twice", name)
		}
		out = append(out, i)
	}
	return out, nil
}

// keys are the columns that identify a row: those asked for, else the destination's identifier fields, else none.
func (c *comparison) keys(asked []string) ([]int, error) {
	if len(asked) > 0 {
		return c.columns(asked)
	}
	var out []int
	for _, id := range c.dst.lake.Schema().IdentifierFieldIDs {
		i := slices.IndexFunc(c.form.Fields, func(f iceberg.NestedField) bool { return f.ID == id })
		if i < 0 {
			return nil, nil // inside a struct: rows are compared as a whole
		}
		out = append(out, i)
	}
	return out, nil
}

// sourceSide reads the source's rows through the plan, without those that it rejects.
func (c *comparison) sourceSide(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	c.rejected.Store(0)
	return batches(ctx, c.source, func(_ rows.Cursor, batch arrow.RecordBatch) (arrow.RecordBatch, error) {
		defer batch.Release()
		out, outcome, err := c.projector.ProjectRows(batch)
		c.rejected.Add(int64(len(outcome.Rejects)))
		return out, err
	})
}

// rejects says how many rows of the source the plan left out, if any.
func (c *comparison) rejects() []string {
	n := c.rejected.Load()
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s of the source left out: the plan rejects them", plural(n, "row", "rows"))}
}

// destSide reads the destination's rows.
func (c *comparison) destSide(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return batches(ctx, c.dest, func(_ rows.Cursor, batch arrow.RecordBatch) (arrow.RecordBatch, error) { return batch, nil })
}

// placedSide is destSide that counts rows in the wrong partition, by file.
func (c *comparison) placedSide(wrong map[string]int64) rowdiff.Side {
	return func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		placement := c.dest.Placement()
		return batches(ctx, c.dest, func(at rows.Cursor, batch arrow.RecordBatch) (arrow.RecordBatch, error) {
			n, err := placement.Misplaced(at.File, batch)
			if err != nil {
				batch.Release()
				return nil, err
			}
			if n > 0 {
				wrong[c.dest.FilePath(at.File)] += n
			}
			return batch, nil
		})
	}
}

// batches yields the rows of a scan, to its seal. do takes a record batch over, which begins behind a cursor in
// the file that the cursor is in.
func batches(ctx context.Context, scan *lake.Scan, do func(rows.Cursor, arrow.RecordBatch) (arrow.RecordBatch, error)) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		stream := scan.Stream(ctx)
		for span, err := range rows.Ahead(ctx, stream, compareAhead, nil).Spans {
			var batch arrow.RecordBatch
			if err == nil {
				batch, err = do(span.To, span.Batch)
			}
			if !yield(batch, err) || err != nil {
				return
			}
		}
		if _, err := stream.Seal(); err != nil {
			yield(nil, err)
		}
	}
}
