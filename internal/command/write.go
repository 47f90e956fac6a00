package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"icepipe/internal/catalogs"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

// writeProgram is ice-write.
type writeProgram struct {
	versionFlag
	catalogs.SingleFlags `embed:""`
	Branch               string `placeholder:"NAME" help:"Branch of the table to append to (default main). It must exist."`
	modeFlags            `embed:""`
	reconcileFlags       `embed:""`
	BatchRows            string `placeholder:"N" help:"With --unsealed-ok: rows of one commit (default 50000)."`
	UnsealedOK           bool   `name:"unsealed-ok" help:"Take a plain Arrow stream of another program. It has no places: no checkpoint is kept, and a run that dies leaves the batches that it committed."`
	Again                bool   `help:"Write a saved stream once more although the table holds batches of it."`
	commitFlags          `embed:""`
}

// Run implements Program.
func (p *writeProgram) Run(ctx context.Context, w *World) error {
	options, err := p.options()
	if err != nil {
		return err
	}
	if err := p.mode(new(migrate.WriteOptions)); err != nil {
		return err
	}
	rejects, err := p.rejects()
	if err != nil {
		return err
	}
	made, err := p.load()
	if err != nil {
		return err
	}
	if p.UnsealedOK && p.Checkpoint != "" {
		return usagef("--unsealed-ok takes no checkpoint: the rows of another program's stream have no places to resume from")
	}
	o, err := p.writeOptions(p.Branch)
	if err != nil {
		return err
	}
	in, err := receive(ctx, w, p.UnsealedOK)
	if err != nil {
		return err
	}
	if in, err = p.cut(in, w); err != nil {
		return err
	}
	ref, err := p.destination(in.Header, w)
	if err != nil {
		return err
	}
	dst, done, err := open(ctx, ref, catalogs.ReadWrite)
	if err != nil {
		return err
	}
	defer done()
	if in.Header.Destination == nil {
		out, planned, err := reconcile(ctx, in, dst, options, made, rejects)
		if err != nil {
			return err
		}
		if err := p.save(planned, *out.Header.Destination); err != nil {
			return err
		}
		in = out
	}
	show := newProgress(w, p.Quiet)
	defer show.end()
	o.Again = p.Again
	if err := p.mode(&o); err != nil {
		return err
	}
	collectEarly(o.Memory, o.Upsert != nil)
	show.watch(&o)
	receipt, err := migrate.Write(ctx, in, dst, o)
	show.end()
	return p.result(w, receipt, err)
}

// cut gives a stream of another program batches, and says what is given up.
func (p *writeProgram) cut(in rows.Stream, w *World) (rows.Stream, error) {
	if !in.Header.Foreign {
		if p.BatchRows != "" {
			return in, usagef("--batch-rows belongs to ice-scan, which cut this stream into batches; here it is for --unsealed-ok alone")
		}
		return in, nil
	}
	n := int64(migrate.DefaultBatchRows)
	if p.BatchRows != "" {
		var err error
		if n, err = batchRows(p.BatchRows); err != nil || n == migrate.AutoBatchRows {
			return in, usagef("--batch-rows %q: want a number of at least 1", p.BatchRows)
		}
	}
	fmt.Fprintln(w.Stderr, "Warning: a stream of another program has no places and no seal: a run that dies cannot be resumed, and running it again writes its committed batches twice")
	return migrate.Cut(in, n), nil
}

// destination is the table that the flags name, or the header's where they name none.
func (p *writeProgram) destination(h rows.Header, w *World) (catalogs.Ref, error) {
	flags := p.Flags()
	if h.Destination == nil || h.Destination.Place == nil {
		return p.Resolve(w.Env)
	}
	ref, err := catalogs.FromPlace(*h.Destination.Place, h.Destination.Identifier, w.Env)
	if err != nil || !flags.Given() {
		return ref, err
	}
	return flags.ResolveOver(ref, w.Env)
}

// result writes the receipt, also of a run that failed after it had committed something, and says of a
// failure what became of the batches.
func (f commitFlags) result(w *World, r migrate.Receipt, failed error) error {
	if failed != nil && r.Job == "" {
		return failed // refused before anything was done: the message says what to do
	}
	if failed != nil && !errors.Is(failed, errDiffer) {
		failed = advised{failed, f.advice(r, failed)}
		if r.Batches == 0 {
			return failed
		}
	}
	if err := writeResult(w, f.Output, r); err != nil && failed == nil {
		return fmt.Errorf("the migration is complete, but its receipt could not be written: %w", err)
	}
	return failed
}

// advice says what a second run would do after one that failed.
func (f commitFlags) advice(r migrate.Receipt, failed error) string {
	switch {
	case r.Complete && f.Checkpoint != "":
		return fmt.Sprintf("the migration is complete, its verification is not: ice-verify --checkpoint %s makes it", f.Checkpoint)
	case r.Complete:
		return "the migration is complete, its verification is not: ice-verify makes it"
	case errors.Is(failed, migrate.ErrMovedAway):
		return "the batches that were committed before are recorded in the checkpoint; ice-migrate status says what another run would do"
	case f.Checkpoint != "":
		if errors.As(failed, new(*migrate.PlacedError)) {
			return "what was committed is recorded in the checkpoint; once the row fits, or with another --on-cast-error, run the command again to resume"
		}
		return "what was committed is recorded in the checkpoint; run the same command again to resume"
	case r.Batches == 0:
		return "nothing was committed"
	}
	are := fmt.Sprintf("%d batches are committed and stay", r.Batches)
	if r.Batches == 1 {
		are = "1 batch is committed and stays"
	}
	before := "empty the destination, which had no snapshot before"
	if r.DestSnapshotBefore != nil {
		before = "roll the destination back to snapshot " + *r.DestSnapshotBefore
	}
	if len(r.Source.Identifier) == 0 { // a stream of another program
		return fmt.Sprintf("%s; a second run writes their rows again: first %s", are, before)
	}
	return fmt.Sprintf("%s; ice-migrate recover makes a checkpoint of them, with which a run goes on, or %s", are, before)
}

// writeResult writes the one result on stdout, as text or JSON.
func writeResult(w *World, form string, v interface{ WriteText(io.Writer) error }) error {
	if form != "json" {
		return v.WriteText(w.Stdout)
	}
	e := json.NewEncoder(w.Stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
