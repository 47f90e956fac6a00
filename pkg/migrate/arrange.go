package migrate

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"icepipe/internal/lake"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// arranged is how the columns of a reconciled stream lie in the destination as it is now: its plan
// with the targets found again, and a projector that puts the columns in their places.
type arranged struct {
	plan      *plan.Plan
	projector *plan.Projector
}

// arrange finds the plan's targets in the destination's schema by ID and type, so that an unrelated change of
// its schema since the stream was reconciled does not stop the job.
func arrange(in *arrow.Schema, p *plan.Plan, dst *lake.Table, schema *iceberg.Schema) (*arranged, error) {
	wrap := func(err error) error { return fmt.Errorf("table %q: %w", dst.Name(), err) }
	resolved, err := p.Resolve(schema)
	if err != nil {
		return nil, wrap(err)
	}
	carried, err := p.Carry(schema)
	if err != nil {
		return nil, wrap(err)
	}
	projector, err := carried.Projector(in, memory.DefaultAllocator)
	if err != nil {
		return nil, wrap(err)
	}
	return &arranged{plan: resolved, projector: projector}, nil
}

// arrange makes the schema changes of the plan, and notes how the columns go into the destination. A
// job whose plan is recorded has made its changes.
func (w *writer) arrange(ctx context.Context) (*arranged, error) {
	note := w.job.note
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	if w.changes, err = w.dst.Evolve(context.WithoutCancel(ctx), w.plan); err != nil {
		return nil, err
	}
	note.SchemaChanges = append(note.SchemaChanges, w.changes...)
	arranged, err := arrange(w.in.Schema, w.plan, w.dst, w.dst.Schema())
	if err != nil {
		return nil, err
	}
	recorded := arranged.plan
	if note.Plan != nil {
		if recorded, err = w.recorded(); recorded == nil {
			return arranged, err
		}
	}
	if note.Plan, err = recorded.MarshalJSON(); err != nil {
		return nil, err
	}
	return arranged, w.job.save()
}

// recorded is the plan to record for a job that has one: the same, with what now becomes of values that do
// not fit, which is no setting of the job but what a verification goes by; nil where it stays.
func (w *writer) recorded() (*plan.Plan, error) {
	then, err := plan.Parse(w.job.note.Plan)
	if err != nil {
		return nil, fmt.Errorf("recorded plan: %w", err)
	}
	before, now := then.CastPolicy(), w.plan.CastPolicy()
	if before == now || now == plan.PolicyError {
		return nil, nil
	}
	if before != plan.PolicyError && w.job.note.Batches > 0 {
		w.warnings = append(w.warnings, fmt.Sprintf("the job's earlier batches were written with --on-cast-error %s: a verification, which goes by %s from now on, can find them to differ", before, now))
	}
	return then.WithPolicy(now), nil
}

// part is a part of a row group with its columns in their places.
func (a *arranged) part(p *rows.Part) *rows.Part {
	return placed(p, a.projector.Origins())
}

// samePlan holds the plan of a resumed job against the one that its checkpoint records: every
// destination column, at any depth, gets its values from the same source column as in the batches
// before. Nothing is changed.
func (w *writer) samePlan() error {
	then, err := plan.Parse(w.job.note.Plan)
	if err != nil {
		return fmt.Errorf("recorded plan: %w", err)
	}
	pending, err := w.plan.Pending(w.dst.Schema())
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		return fmt.Errorf("column %q: the destination was to be changed for it, and the job has made its changes; go on with ice-migrate, which has the recorded plan, or undo what became of the destination's columns meanwhile", plan.FormatPath(pending[0].Path))
	}
	now, err := w.plan.Resolve(w.dst.Schema())
	if err != nil {
		return err
	}
	return sameSources(then.Columns, now.Columns)
}

func sameSources(then, now []plan.Column) error {
	before := map[int]plan.Column{}
	for _, c := range then {
		before[c.Target.ID] = c
	}
	for _, c := range now {
		b, ok := before[c.Target.ID]
		if !ok && len(c.Source) == 0 {
			continue // a column that the destination got meanwhile, filled with nulls
		}
		if !ok || !slices.Equal(b.Source, c.Source) {
			return fmt.Errorf("column %q would now come from %s, and came from %s in the batches before; go on with the recorded mapping", plan.FormatPath(c.Path), sourceText(c), sourceText(b))
		}
		if err := sameSources(b.Fields, c.Fields); err != nil {
			return err
		}
	}
	return nil
}

func sourceText(c plan.Column) string {
	if len(c.Source) == 0 {
		return "no source column"
	}
	return "source column " + plan.FormatPath(c.Source)
}
