package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"icepipe/internal/catalogs"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

// verifyProgram is ice-verify.
type verifyProgram struct {
	versionFlag
	catalogs.PairFlags `embed:""`
	pinFlags           `embed:"" prefix:"source-"`
	reconcileFlags     `embed:""`
	DstBranch          string `name:"dst-branch" placeholder:"NAME" help:"Branch of the destination to compare (default main)."`
	filterFlags        `embed:""`
	Checkpoint         string `placeholder:"FILE" help:"A job's checkpoint: its source snapshot, plan and filter, and tables that no flag names."`
	Scope              string `enum:"job,table," default:"" placeholder:"job|table" help:"Compare with the rows that the checkpoint's job added (job, the default with a checkpoint), or with the whole destination (table)."`
	Method             string `enum:"row_count,partition_hash,sample,diff,auto" default:"row_count" help:"row_count, partition_hash, sample, diff, or auto: row_count, and partition_hash where the counts agree (default ${default})."`
	compareFlags       `embed:""`
	memoryFlag         `embed:""`
	EmitFixes          string `placeholder:"FILE" help:"With diff: write missing and changed rows, as the source has them, to FILE as an Arrow stream."`
	Output             string `enum:"text,json,jsonl,csv,arrow" default:"text" help:"Form of the result on stdout: text or json; with diff also jsonl, csv or arrow, for all differing rows instead of the report."`
	Quiet              bool   `short:"q" help:"No progress on stderr."`
}

// compareFlags say how rows are compared.
type compareFlags struct {
	SampleSize *int64   `placeholder:"N" help:"Rows of a sample (default 1000)."`
	Keys       []string `placeholder:"COLUMN,…" help:"Columns of the destination that identify a row (default: its identifier fields; without any, whole rows are compared)."`
	Tolerance  []string `sep:"none" placeholder:"COLUMN=X" help:"With diff: values of this float or double column that differ by X at most are equal. Repeatable."`
	Limit      *int64   `placeholder:"N" help:"Differing rows that the report names (default 20)."`
}

func (f compareFlags) options() (migrate.VerifyOptions, error) {
	o := migrate.VerifyOptions{Keys: f.Keys}
	var err error
	if o.SampleSize, err = count("--sample-size", f.SampleSize); err != nil {
		return o, err
	}
	if f.Limit != nil {
		if o.Limit = *f.Limit; o.Limit < 0 {
			return o, usagef("--limit %d: want 0 or more", o.Limit)
		}
		if o.Limit == 0 {
			o.Limit = -1
		}
	}
	for _, text := range f.Tolerance {
		name, value, ok := cutLast(text, "=")
		x, err := strconv.ParseFloat(value, 64)
		if !ok || name == "" || err != nil || !(x >= 0) {
			return o, usagef("--tolerance %q: want COLUMN=X with a number X of 0 or more", text)
		}
		if o.Tolerance == nil {
			o.Tolerance = map[string]float64{}
		}
		o.Tolerance[name] = x
	}
	return o, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Run implements Program.
func (p *verifyProgram) Run(ctx context.Context, w *World) error {
	o, err := p.options()
	if err != nil {
		return err
	}
	srcRef, dstRef, err := p.tables(w, &o)
	if err != nil {
		return err
	}
	src, done, err := open(ctx, srcRef, catalogs.ReadOnly)
	if err != nil {
		return verifyError{err}
	}
	defer done()
	dst, done, err := open(ctx, dstRef, catalogs.ReadOnly)
	if err != nil {
		return verifyError{err}
	}
	defer done()
	if src.Iceberg().MetadataLocation() == dst.Iceberg().MetadataLocation() && o.Source == (migrate.Pin{}) && o.DestBranch == "" {
		return usagef("source and destination are the same table %s; name another one, or another snapshot of it with --source-snapshot, --source-ref or --source-as-of", src.Name())
	}
	return p.compare(ctx, w, src, dst, o)
}

// options are those that can be told without a catalog.
func (p *verifyProgram) options() (migrate.VerifyOptions, error) {
	o, err := p.compareFlags.options()
	if err != nil {
		return o, err
	}
	if o.Memory, err = p.bytes(); err != nil {
		return o, err
	}
	collectEarly(o.Memory, true)
	o.Method, o.DestBranch, o.WholeTable = p.Method, p.DstBranch, p.Scope == "table"
	switch {
	case p.Scope == "job" && p.Checkpoint == "":
		return o, usagef("--scope job needs the job's --checkpoint")
	case p.Method != migrate.MethodDiff && (p.EmitFixes != "" || p.Output == "jsonl" || p.Output == "csv" || p.Output == "arrow" || len(p.Tolerance) > 0):
		return o, usagef("--emit-fixes, --tolerance and --output %s are for --method diff", strings.Join([]string{"jsonl", "csv", "arrow"}, "|"))
	}
	if p.RejectFile != "" || p.MaxRejects != nil {
		return o, usagef("--reject-file and --max-rejects are not for ice-verify, which writes no rows; it counts what --on-cast-error reject takes out")
	}
	if p.PlanOut != "" {
		return o, usagef("--plan-out is not for ice-verify; ice-migrate --dry-run --plan-out FILE writes the plan")
	}
	if o.Source, err = p.pin("source-"); err != nil {
		return o, err
	}
	if o.Filter, err = p.filter(); err != nil {
		return o, err
	}
	if o.Reconcile, err = p.reconcileFlags.options(); err != nil {
		return o, err
	}
	o.Plan, err = p.reconcileFlags.load()
	return o, err
}

// tables names the tables: by flags, else by the checkpoint.
func (p *verifyProgram) tables(w *World, o *migrate.VerifyOptions) (src, dst catalogs.Ref, err error) {
	if p.Checkpoint == "" {
		return p.Resolve(w.Env)
	}
	c, err := ckpt.Open(p.Checkpoint).Load()
	if err != nil {
		return src, dst, verifyError{err}
	}
	if c == nil {
		return src, dst, verifyError{fmt.Errorf("checkpoint %q is not there", p.Checkpoint)}
	}
	asked := *o
	if err := o.By(c); err != nil {
		return src, dst, verifyError{fmt.Errorf("checkpoint %q: %w", p.Checkpoint, err)}
	}
	if asked.Source != (migrate.Pin{}) {
		o.Source = asked.Source
	}
	if asked.Filter != nil {
		o.Filter = asked.Filter
	}
	planned := p.reconcileFlags
	planned.OnCastError = "" // a policy is for the recorded plan too
	if planned.asked() {
		o.Plan = asked.Plan
	}
	if p.Src != "" || p.Source.Given() || p.Dst != "" || p.Destination.Given() {
		return p.Resolve(w.Env)
	}
	if src, err = recorded(c.Source, w.Env); err != nil {
		return src, dst, err
	}
	dst, err = recorded(c.Destination, w.Env)
	return src, dst, err
}

func recorded(t ckpt.Table, env catalogs.Env) (catalogs.Ref, error) {
	var place rows.Place
	if t.Place != nil {
		place = rows.Place(*t.Place)
	}
	return catalogs.FromPlace(place, t.Identifier, env)
}

// compare makes the comparison and writes what it found.
func (p *verifyProgram) compare(ctx context.Context, w *World, src, dst *migrate.Table, o migrate.VerifyOptions) error {
	out, err := newDifferences(w, p.Output, p.EmitFixes, dst)
	if err != nil {
		return verifyError{err}
	}
	if out.wanted() {
		o.Differing = out.add
	}
	show := newProgress(w, p.Quiet)
	defer show.end()
	o.Observe = show.compared
	v, err := migrate.Verify(ctx, src, dst, o)
	show.end()
	if err == nil {
		err = out.close()
	}
	if err != nil {
		return verifyError{err}
	}
	if !out.rowsOnStdout() {
		if err := writeResult(w, p.Output, v); err != nil {
			return verifyError{err}
		}
	}
	if !v.Matches {
		return errDiffer
	}
	return nil
}
