package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"

	"icepipe/internal/catalogs"
	"icepipe/pkg/arrowipc"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// reconcileProgram is ice-reconcile.
type reconcileProgram struct {
	versionFlag
	catalogs.SingleFlags `embed:""`
	reconcileFlags       `embed:""`
	Explain              bool `help:"Print the plan for people, and no stream. The input is read to its end: give ice-scan --limit 1."`
	streamFlags          `embed:""`
}

// Run implements Program.
func (p *reconcileProgram) Run(ctx context.Context, w *World) error {
	options, err := p.options()
	if err != nil {
		return err
	}
	rejects, err := p.rejects()
	if err != nil {
		return err
	}
	if !p.Explain {
		if err := p.check(w); err != nil {
			return err
		}
	}
	made, err := p.load()
	if err != nil {
		return err
	}
	in, out, planned, done, err := p.project(ctx, w, options, made, rejects)
	if err != nil {
		return err
	}
	defer done()
	if err := p.save(planned, *out.Header.Destination); err != nil {
		return err
	}
	if p.Explain {
		if err := planned.Explain(w.Stdout); err != nil {
			return err
		}
		for span, err := range in.Spans { // or the program before this one would die of SIGPIPE
			if err != nil {
				return err
			}
			span.Release()
		}
		return nil
	}
	for _, text := range planned.Warnings {
		fmt.Fprintf(w.Stderr, "Warning: %s\n", text)
	}
	return p.send(ctx, w, out)
}

// project returns the stream on stdin, and what becomes of it by the destination's catalog, or without one by a
// plan that says what its destination is. done is to be called when both are read.
func (p *reconcileProgram) project(ctx context.Context, w *World, o plan.Options, made *plan.Plan, rejects migrate.Rejects) (in, out rows.Stream, planned *plan.Plan, done func(), err error) {
	done = func() {}
	alone := made != nil && made.Destination != nil && !p.Flags().Given()
	var ref catalogs.Ref
	if !alone {
		if ref, err = p.Resolve(w.Env); err != nil {
			return in, out, nil, done, err
		}
	}
	if in, err = receive(ctx, w, false); err != nil {
		return in, out, nil, done, err
	}
	if alone {
		out, planned, err = reconcileAlone(ctx, in, o, made, rejects)
		return in, out, planned, done, err
	}
	dst, closed, err := open(ctx, ref, catalogs.ReadOnly)
	if err != nil {
		return in, out, nil, done, err
	}
	out, planned, err = reconcile(ctx, in, dst, o, made, rejects)
	if err != nil {
		closed()
		return in, out, nil, done, err
	}
	return in, out, planned, closed, nil
}

// receive reads the header of the stream on stdin.
func receive(ctx context.Context, w *World, unsealed bool) (rows.Stream, error) {
	if w.Terminal(w.Stdin) {
		return rows.Stream{}, usagef("stdin is a terminal; pipe an Arrow stream into it, for example from ice-scan")
	}
	var options []arrowipc.ReadOption
	if unsealed {
		options = append(options, arrowipc.WithUnsealedOK())
	}
	in, err := arrowipc.Read(bufio.NewReader(interruptible(ctx, w.Stdin)), options...)
	if err != nil {
		return rows.Stream{}, fmt.Errorf("stdin of %s: %w", w.Name, err)
	}
	spans := in.Spans
	in.Spans = func(yield func(rows.Span, error) bool) {
		for span, err := range spans {
			if err != nil {
				err = fmt.Errorf("stdin of %s: %w", w.Name, err)
			}
			if !yield(span, err) {
				return
			}
		}
	}
	return in, nil
}

// reconcile projects a stream by a plan that was made before, or by one made now.
func reconcile(ctx context.Context, in rows.Stream, dst *migrate.Table, o plan.Options, made *plan.Plan, rejects migrate.Rejects) (rows.Stream, *plan.Plan, error) {
	out, err := rejects.Reconcile(ctx, in, dst, o, made)
	if err != nil {
		return rows.Stream{}, nil, err
	}
	p, err := plan.Parse(out.Header.Plan)
	return out, p, err
}

// reconcileAlone projects a stream by a plan that says what its destination is.
func reconcileAlone(ctx context.Context, in rows.Stream, o plan.Options, made *plan.Plan, rejects migrate.Rejects) (rows.Stream, *plan.Plan, error) {
	var dst rows.Table
	if err := json.Unmarshal(made.Destination, &dst); err != nil {
		return rows.Stream{}, nil, fmt.Errorf("destination in the plan: %w", err)
	}
	p := *made.WithPolicy(o.OnCastError)
	p.Destination = nil // the header has it
	out, err := rejects.ReconcileBy(ctx, in, &p, dst)
	return out, &p, err
}
