package command

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"icepipe/internal/catalogs"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// versionFlag is on every program.
type versionFlag struct {
	Version kong.VersionFlag `help:"Print the version and exit."`
}

// pinFlags say which snapshot of the source is read.
type pinFlags struct {
	Snapshot string `placeholder:"ID" help:"Read this snapshot of the source."`
	Ref      string `placeholder:"BRANCH|TAG" help:"Read the snapshot of this branch or tag."`
	AsOf     string `placeholder:"TIME" help:"Read the snapshot that was current at this time (2006-01-02T15:04:05Z, a date, or milliseconds since 1970)."`
}

func (f pinFlags) pin(prefix string) (migrate.Pin, error) {
	given := 0
	for _, s := range []string{f.Snapshot, f.Ref, f.AsOf} {
		if s != "" {
			given++
		}
	}
	if given > 1 {
		return migrate.Pin{}, usagef("--%ssnapshot, --%sref and --%sas-of exclude each other", prefix, prefix, prefix)
	}
	p := migrate.Pin{Ref: f.Ref, AsOf: f.AsOf}
	if f.Snapshot != "" {
		id, err := strconv.ParseInt(f.Snapshot, 10, 64)
		if err != nil {
			return p, usagef("--%ssnapshot %q: want a snapshot ID", prefix, f.Snapshot)
		}
		p.Snapshot = &id
	}
	if err := p.Check(); err != nil {
		return p, usagef("--%sas-of: %v", prefix, err)
	}
	return p, nil
}

// cutFlags say which rows are read and how they are cut.
type cutFlags struct {
	Select          []string `placeholder:"COLUMN,…" help:"Read these source columns alone, in this order."`
	filterFlags     `embed:""`
	BatchRows       string `default:"50000" placeholder:"N|auto" help:"Source rows of one commit (default ${default}), or auto: whole row groups of the source's files, as many as suit them."`
	RecordBatchRows *int64 `placeholder:"N" help:"Rows of one Arrow record batch at most (default: what suits the rows)."`
	Limit           *int64 `placeholder:"N" help:"Read N rows at most: a trial, which takes no checkpoint."`
}

func (f cutFlags) options() (migrate.ScanOptions, error) {
	o := migrate.ScanOptions{Select: f.Select}
	var err error
	if o.Filter, err = f.filter(); err != nil {
		return o, err
	}
	if o.RecordRows, err = count("--record-batch-rows", f.RecordBatchRows); err != nil {
		return o, err
	}
	if o.Limit, err = count("--limit", f.Limit); err != nil {
		return o, err
	}
	o.BatchRows, err = batchRows(f.BatchRows)
	return o, err
}

// count is the value of a flag that, where it is given, is at least 1.
func count(flag string, n *int64) (int64, error) {
	switch {
	case n == nil:
		return 0, nil
	case *n < 1:
		return 0, usagef("%s %d: want at least 1", flag, *n)
	}
	return *n, nil
}

func batchRows(text string) (int64, error) {
	if text == "auto" {
		return migrate.AutoBatchRows, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, usagef("--batch-rows %q: want a number of at least 1, or auto", text)
	}
	return n, nil
}

// reconcileFlags say how source columns become destination columns.
type reconcileFlags struct {
	ColumnMapping   []string `sep:"none" placeholder:"SRC:DST" help:"The source column SRC becomes the destination column DST. Repeatable."`
	OnMissingInSrc  string   `name:"on-missing-in-source" enum:"error,null,skip," default:"" placeholder:"error|null|skip" help:"What becomes of a destination column that the source lacks (default error): null writes null, skip the column's write-default."`
	OnMissingInDest string   `name:"on-missing-in-dest" enum:"error,auto_add,ignore," default:"" placeholder:"error|auto_add|ignore" help:"What becomes of a source column that the destination lacks (default error): auto_add adds it there, ignore leaves it out."`
	Drop            []string `sep:"none" placeholder:"COL" help:"Leave the source column COL out on purpose. Repeatable."`
	IgnoreCase      bool     `help:"Match names that differ only by case; two that cannot be told apart are an error."`
	TypeCoercion    []string `sep:"none" placeholder:"COL:TYPE" help:"The destination column COL has or gets TYPE. Repeatable."`
	AssumeTimezone  string   `placeholder:"ZONE" help:"The zone of timestamps without one, where they become timestamptz or the other way round: UTC, +02:00, Europe/Berlin."`
	OnCastError     string   `enum:"error,null,reject," default:"" placeholder:"error|null|reject" help:"What becomes of a value that does not fit (default error): null takes its place where it may, or reject puts its row into --reject-file."`
	RejectFile      string   `placeholder:"FILE" help:"Put rejected rows into FILE with reason and place: an Arrow stream if it ends in .arrow, .arrows or .ipc, else JSON lines."`
	MaxRejects      *int64   `placeholder:"N" help:"End the run when more than N rows are rejected."`
	Plan            string   `placeholder:"FILE" help:"Take the plan from FILE, as --plan-out wrote it, in place of the mapping flags."`
	PlanOut         string   `placeholder:"FILE" help:"Write the plan to FILE as JSON."`
}

func (f reconcileFlags) options() (plan.Options, error) {
	o := plan.Options{MissingInSource: f.OnMissingInSrc, MissingInDest: f.OnMissingInDest, Drop: f.Drop,
		IgnoreCase: f.IgnoreCase, OnCastError: f.OnCastError, AssumeTimezone: f.AssumeTimezone}
	for _, text := range f.ColumnMapping {
		r, err := plan.ParseRename(text)
		if err != nil {
			return o, usagef("--column-mapping: %v", err)
		}
		o.Mapping = append(o.Mapping, r)
	}
	for _, text := range f.TypeCoercion {
		c, err := plan.ParseCoercion(text)
		if err != nil {
			return o, usagef("--type-coercion: %v", err)
		}
		o.Coercions = append(o.Coercions, c)
	}
	if f.Plan != "" && (len(o.Mapping)+len(o.Coercions)+len(o.Drop) > 0 || o.MissingInSource+o.MissingInDest+o.AssumeTimezone != "" || o.IgnoreCase) {
		return o, usagef("--plan takes the place of --column-mapping, --type-coercion, --drop, --ignore-case, --assume-timezone, --on-missing-in-source and --on-missing-in-dest; give one or the other")
	}
	if err := o.Check(); err != nil {
		return o, usagef("%v", err)
	}
	return o, nil
}

// rejects says where rejected rows go.
func (f reconcileFlags) rejects() (migrate.Rejects, error) {
	if f.OnCastError == plan.PolicyReject && f.RejectFile == "" {
		return migrate.Rejects{}, usagef("--on-cast-error reject wants --reject-file FILE, where the rejected rows go")
	}
	if f.RejectFile == "" && f.MaxRejects != nil {
		return migrate.Rejects{}, usagef("--max-rejects belongs to --on-cast-error reject and --reject-file")
	}
	most, err := count("--max-rejects", f.MaxRejects)
	return migrate.Rejects{File: f.RejectFile, Max: most}, err
}

// asked tells whether a flag says how columns become others.
func (f reconcileFlags) asked() bool {
	f.PlanOut = ""
	return !reflect.ValueOf(f).IsZero()
}

// load reads the plan file, nil when none was asked for.
func (f reconcileFlags) load() (*plan.Plan, error) {
	if f.Plan == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.Plan)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	p, err := plan.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("plan %q: %w", f.Plan, err)
	}
	return p, nil
}

// save writes the plan file, if one was asked for, with what there is to know of the destination.
func (f reconcileFlags) save(p *plan.Plan, dst rows.Table) error {
	if f.PlanOut == "" {
		return nil
	}
	whole := *p
	var err error
	if whole.Destination, err = json.Marshal(dst); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	text, err := whole.MarshalJSON()
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.PlanOut, append(text, '\n'), 0o666); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return nil
}

// commitFlags say how rows are committed.
type commitFlags struct {
	Checkpoint     string `placeholder:"FILE" help:"Keep the job's progress in FILE, so that a run that died can be resumed."`
	NewJob         bool   `help:"Begin a job although the destination holds batches of one with the same settings, or of iceberg-ops."`
	overwriteFlags `embed:""`
	Accept         bool   `name:"accept-expired-history" help:"Resume although snapshots of the job have expired in the destination: say that nothing was rolled back."`
	Jobs           *int64 `placeholder:"N" help:"Columns encoded at the same time (default: one more than there are processors)."`
	memoryFlag     `embed:""`
	Quiet          bool   `short:"q" help:"No progress on stderr."`
	Output         string `enum:"text,json" default:"text" help:"Form of the result on stdout: text or json."`
}

func (f commitFlags) store() *ckpt.Store {
	if f.Checkpoint == "" {
		return nil
	}
	return ckpt.Open(f.Checkpoint)
}

func (f commitFlags) writeOptions(branch string) (migrate.WriteOptions, error) {
	jobs, err := count("--jobs", f.Jobs)
	if err != nil {
		return migrate.WriteOptions{}, err
	}
	memory, err := f.bytes()
	return migrate.WriteOptions{Branch: branch, Checkpoint: f.store(), Jobs: int(jobs), Memory: memory, NewJob: f.NewJob, AcceptExpiredHistory: f.Accept, WholeTable: f.Yes, OverwriteConcurrent: f.OverwriteConcurrent}, err
}

func usagef(format string, args ...any) error {
	return &catalogs.UsageError{Text: strings.TrimSpace(fmt.Sprintf(format, args...))}
}
