package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// Reconcile returns the stream with its rows projected to the destination's columns, by the plan made
// before or, where that is nil, by one made of the options; what becomes of values that do not fit is said
// by either. It refuses what does not fit before the
// first row.
//
// A value that does not fit is a *PlacedError of the stream, unless the plan's policy is another (see
// plan.Options.OnCastError); rejects says where rows go then.
func (r Rejects) Reconcile(ctx context.Context, in rows.Stream, dst *Table, o plan.Options, made *plan.Plan) (rows.Stream, error) {
	described, err := dst.lake.Describe(dst.lake.Schema())
	if err != nil {
		return rows.Stream{}, err
	}
	if err := apart(in.Header, described); err != nil {
		return rows.Stream{}, err
	}
	p, err := planFor(in, dst, o, made)
	if err != nil {
		return rows.Stream{}, err
	}
	return r.ReconcileBy(ctx, in, p, described)
}

// Reconcile is Rejects.Reconcile where no row is rejected.
func Reconcile(ctx context.Context, in rows.Stream, dst *Table, o plan.Options, made *plan.Plan) (rows.Stream, error) {
	return Rejects{}.Reconcile(ctx, in, dst, o, made)
}

// ReconcileBy is Rejects.ReconcileBy where no row is rejected.
func ReconcileBy(ctx context.Context, in rows.Stream, p *plan.Plan, dst rows.Table) (rows.Stream, error) {
	return Rejects{}.ReconcileBy(ctx, in, p, dst)
}

// Describe says which table it is and what its schema is now, as the header of a stream has it.
func (t *Table) Describe() (rows.Table, error) { return t.lake.Describe(t.lake.Schema()) }

func planFor(in rows.Stream, dst *Table, o plan.Options, made *plan.Plan) (*plan.Plan, error) {
	if made != nil {
		p, err := made.WithPolicy(o.OnCastError).ResolveAhead(dst.lake.Schema())
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", dst.Name(), err)
		}
		return p, dst.lake.Writable(p)
	}
	schema, err := sourceSchema(in, dst)
	if err != nil {
		return nil, err
	}
	p, err := plan.Build(schema, dst.lake.Schema(), dst.lake.Metadata().Version(), o)
	if err != nil {
		return nil, err
	}
	return p, dst.lake.Writable(p)
}

// sourceSchema is the Iceberg schema of a stream: its header's, or for a stream of another program
// what its Arrow schema says.
func sourceSchema(in rows.Stream, dst *Table) (*iceberg.Schema, error) {
	if len(in.Header.Source.Schema) == 0 {
		s, err := plan.FromArrow(in.Schema, hasNanos(dst.lake.Schema()))
		if err != nil {
			return nil, fmt.Errorf("schema of the stream: %w", err)
		}
		return s, nil
	}
	var s iceberg.Schema
	if err := json.Unmarshal(in.Header.Source.Schema, &s); err != nil {
		return nil, fmt.Errorf("schema in the stream's header: %w", err)
	}
	return &s, nil
}

// hasNanos reports whether a schema has a timestamp in nanoseconds: only then are those of another
// program kept as such.
func hasNanos(s *iceberg.Schema) bool {
	for _, id := range s.FieldIDs() {
		f, _ := s.FindFieldByID(id)
		switch f.Type.(type) {
		case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			return true
		}
	}
	return false
}

// ReconcileBy is Reconcile by a plan that was made before, for a destination so described. No
// catalog is asked.
func (r Rejects) ReconcileBy(ctx context.Context, in rows.Stream, p *plan.Plan, dst rows.Table) (rows.Stream, error) {
	if rejecting := p.Settings.OnCastError == plan.PolicyReject; rejecting != (r.File != "") {
		if rejecting {
			return rows.Stream{}, errors.New("the plan rejects rows that do not fit; say where they go: --reject-file FILE")
		}
		return rows.Stream{}, errors.New("a reject file is given, and the plan rejects no rows; give --on-cast-error reject")
	}
	if in.Header.Destination != nil {
		return rows.Stream{}, errors.New("the stream is reconciled already; one ice-reconcile is enough, with all mappings")
	}
	if err := apart(in.Header, dst); err != nil {
		return rows.Stream{}, err
	}
	if err := p.Covers(in.Schema); err != nil {
		return rows.Stream{}, err
	}
	projector, err := p.Projector(in.Schema, memory.DefaultAllocator)
	if err != nil {
		return rows.Stream{}, err
	}
	out := in
	if out.Header.Plan, err = p.MarshalJSON(); err != nil {
		return rows.Stream{}, err
	}
	out.Header.Destination = &dst
	out.Header.Reconciler = p.Settings.Canonical()
	out.Schema = projector.Schema()
	s := &sorter{projector: projector, rejects: r, job: rejecter(out.Header), foreign: in.Header.Foreign}
	out.Spans = func(yield func(rows.Span, error) bool) {
		if err := s.begin(in); err != nil {
			yield(rows.Span{}, err)
			return
		}
		defer s.close(false)
		for span, err := range in.Spans {
			if err == nil {
				span, err = s.projected(span)
			}
			s.failed = s.failed || err != nil
			if !yield(span, err) || err != nil {
				return
			}
		}
		_, unsealed := in.Seal()
		if err := s.close(unsealed == nil); err != nil {
			yield(rows.Span{}, err)
		}
	}
	out.Seal = func() (rows.Seal, error) {
		seal, err := in.Seal()
		if err != nil {
			return seal, err
		}
		if s.failed {
			return rows.Seal{}, rows.ErrUnsealed
		}
		seal.Rejects += s.count
		seal.Warnings = append(seal.Warnings[:len(seal.Warnings):len(seal.Warnings)], s.warnings()...)
		return seal, nil
	}
	return out, nil
}

// projected is a span with its rows projected, once it is opened where it is not yet. It takes the span over.
func (s *sorter) projected(span rows.Span) (rows.Span, error) {
	if span.Read == nil {
		return s.opened(span)
	}
	read := span.Read
	span.Read = func(ctx context.Context) iter.Seq2[rows.Span, error] {
		return func(yield func(rows.Span, error) bool) {
			for part, err := range read(ctx) {
				if err == nil {
					part, err = s.opened(part)
				}
				if !yield(part, err) || err != nil {
					return
				}
			}
		}
	}
	if span.Part != nil {
		span.Part = placed(span.Part, s.projector.Origins())
	}
	return span, nil
}

// placed is a part with its columns as they are after a projection.
func placed(p *rows.Part, origins []int) *rows.Part {
	out := *p
	out.Leaves, out.Nested, out.Known = make([]int, len(origins)), make([][]int, len(origins)), nil
	for i, from := range origins {
		switch {
		case from == plan.Empty:
			out.Leaves[i] = rows.Nulls
		case from == plan.Made:
			out.Leaves[i] = rows.Opaque
		default:
			out.Leaves[i] = p.Leaves[from]
			if p.Nested != nil {
				out.Nested[i] = p.Nested[from]
			}
			for _, k := range p.Known {
				if k.Column == from {
					k.Column = i
					out.Known = append(out.Known, k)
				}
			}
		}
	}
	return &out
}
