package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/internal/lake"
	"icepipe/internal/upsert"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// wantsUnique reports whether no row may be written of a source that holds a key twice.
func (o WriteOptions) wantsUnique() bool {
	return o.Upsert != nil && o.Upsert.Duplicates == DuplicateError
}

// unproven refuses to begin a job that wants its source's keys to be unique and commits batches before it has seen
// them all, where nobody has looked at them before: a stream is read once.
func (o WriteOptions) unproven() error {
	if !o.wantsUnique() || o.once() || o.unique {
		return nil
	}
	return errors.New("--on-duplicate-key error commits nothing of a source that holds a key twice, and a stream is read but once: say --commit once, which lands all batches when all keys were seen, or use ice-migrate, which reads the keys first")
}

// unique looks through the keys of the source that a stream of the header h reads, where one that comes twice ends
// the job: the same snapshot, filter and plan, and, where no row can be rejected for another column, the key columns
// alone. Nothing is written.
func (m *Migrator) unique(ctx context.Context, h rows.Header, p *plan.Plan, o *UpsertOptions) (err error) {
	l, err := m.Scan.lake()
	if err != nil {
		return err
	}
	if h.Source.SnapshotID != nil {
		l.Pin = lake.Pin{Snapshot: h.Source.SnapshotID, SchemaID: &h.Source.SchemaID}
	} else {
		l.Pin = lake.Pin{None: true, SchemaID: &h.Source.SchemaID}
	}
	keys := *p
	if p.CastPolicy() != plan.PolicyReject {
		keys.Columns, l.Select = nil, []string{}
		for _, c := range p.Columns {
			if !slices.Contains(o.Keys, c.Target.Name) {
				continue
			}
			keys.Columns = append(keys.Columns, c)
			if !slices.Contains(l.Select, c.Source[0]) {
				l.Select = append(l.Select, c.Source[0])
			}
		}
	}
	scan, err := m.Source.lake.PlanScan(ctx, l)
	if err != nil {
		return err
	}
	in := scan.Stream(ctx)
	projector, err := keys.Projector(in.Schema, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	seen, err := upsert.NewUnique(keys.Target(), o.matching(m.Write.Memory))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seen.Close()) }()
	for span, err := range rows.Opened(ctx, in).Spans {
		if err != nil {
			return err
		}
		out, _, err := projector.ProjectRows(span.Batch)
		if err == nil {
			err = seen.Add(ctx, out)
			out.Release()
		}
		span.Release()
		if err != nil {
			return fmt.Errorf("keys of the source, rows from cursor %s: %w", span.From, err)
		}
	}
	_, err = in.Seal()
	return err
}
