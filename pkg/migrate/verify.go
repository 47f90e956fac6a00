package migrate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/apache/iceberg-go/table"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/filter"
	"icepipe/pkg/plan"
)

// The methods of Verify.
const (
	MethodRowCount      = "row_count"
	MethodPartitionHash = "partition_hash"
	MethodSample        = "sample"
	MethodDiff          = "diff"
	MethodAuto          = "auto" // the cheapest that tells: row_count, and partition_hash where the counts agree
)

// A Verification is the answer of a comparison of two tables. A comparison that could not be made is
// an error, never a Verification that does not match.
type Verification struct {
	Method               string            `json:"method"`
	Scope                string            `json:"scope"` // table, or job: the rows that the job added
	Matches              bool              `json:"matches"`
	SourceCount          *int64            `json:"source_count"`
	DestCount            *int64            `json:"dest_count"`
	SampleSize           *int64            `json:"sample_size"`
	MismatchedPartitions []string          `json:"mismatched_partitions"`
	Details              []string          `json:"details"`
	Partitions           []PartitionDigest `json:"partitions,omitempty"`  // of partition_hash
	Differences          *Differences      `json:"differences,omitempty"` // of diff
	SourceSnapshot       *string           `json:"source_snapshot"`
	DestSnapshot         *string           `json:"dest_snapshot"`
}

// WriteText writes the verification for people.
func (v Verification) WriteText(w io.Writer) error {
	word := "differ"
	if v.Matches {
		word = "agree"
	}
	if _, err := fmt.Fprintf(w, "verify %s: the tables %s\n", v.Method, word); err != nil {
		return err
	}
	for _, d := range v.Details {
		if _, err := fmt.Fprintf(w, "  %s\n", d); err != nil {
			return err
		}
	}
	return nil
}

// A VerifyOptions says what is compared.
type VerifyOptions struct {
	Method     string       // "" for row_count
	Source     Pin          // snapshot of the source, the current one by default
	Filter     *filter.Expr // rows of the source, nil for all
	DestBranch string       // "" for main

	// Job compares with the rows that this job added, at its last snapshot; "" with the whole table.
	Job string
	// WholeTable compares with the whole table although By names a job.
	WholeTable bool

	Reconcile plan.Options // how source columns become the destination's
	Plan      *plan.Plan   // made before; in place of Reconcile

	SampleSize int64              // rows of a sample, 0 for DefaultSampleSize
	Keys       []string           // columns that identify a row; the identifier fields by default
	Tolerance  map[string]float64 // of diff: columns of floats that may differ by so much
	Limit      int64              // differences that are named, 0 for DefaultLimit, -1 for none
	Dir        string             // for temporary files, "" for the system's
	Memory     int64              // bytes that may be held, about; 0 for 256 MiB

	// Differing is called for each differing row of a diff, those beyond Limit too; may be nil.
	Differing func(DifferingRow) error
	// Observe is called now and then, once at a time, with the rows read of both sides; a diff may read them
	// twice. May be nil.
	Observe func(rows int64)

	by *ckpt.Checkpoint
}

// By takes from a checkpoint what its job read, by which plan, and whose rows they are. Verify then refuses
// another source than the job's, and with the job's rows another destination.
func (o *VerifyOptions) By(c *ckpt.Checkpoint) error {
	if c.State == ckpt.Undone && !o.WholeTable {
		return fmt.Errorf("job %s was undone: there are no rows of it to compare with; compare with the whole table (--scope table)", c.Job)
	}
	if upserted(c) && !o.WholeTable {
		return fmt.Errorf("job %s upserted: rows that were there already are in no file of it; compare with the whole table (--scope table), by the keys and with a row filter that leaves out what the source has not", c.Job)
	}
	o.by = c
	pin, err := pinOf(c)
	if err != nil {
		return err
	}
	o.Source = pin
	if len(c.Plan) > 0 {
		if o.Plan, err = plan.Parse(c.Plan); err != nil {
			return fmt.Errorf("recorded plan: %w", err)
		}
	}
	var text string
	if raw := c.Settings["row_filter"]; len(raw) > 0 {
		if err := json.Unmarshal(raw, &text); err != nil {
			return fmt.Errorf("setting row_filter: %w", err)
		}
	}
	o.Filter = nil
	if text != "" {
		if o.Filter, err = filter.Parse(text); err != nil {
			return fmt.Errorf("setting row_filter: %w", err)
		}
	}
	if !o.WholeTable {
		o.Job = c.Job
	}
	if o.DestBranch == "" {
		o.DestBranch = c.Destination.Branch
	}
	return nil
}

// Bounds that stand when none is given.
const (
	DefaultSampleSize = 1000
	DefaultLimit      = 20
)

func (o VerifyOptions) scope() string {
	if o.Job != "" {
		return "job"
	}
	return "table"
}

func (o VerifyOptions) branch() string { return cmp.Or(o.DestBranch, table.MainBranch) }

func (o VerifyOptions) destPin() lake.Pin {
	if o.DestBranch == table.MainBranch {
		return lake.Pin{} // main need not have a snapshot
	}
	return lake.Pin{Ref: o.DestBranch}
}

// Verify compares a source, at one snapshot and through the plan, with a destination as it is now, or with the
// rows that a job added to it. Against the whole table rows that were there before, and rows of others, count
// as differences.
func Verify(ctx context.Context, src, dst *Table, o VerifyOptions) (Verification, error) {
	if err := o.belong(src, dst); err != nil {
		return Verification{}, err
	}
	v, err := verify(ctx, src, dst, o)
	if err != nil || o.Job == "" || v.DestSnapshot == nil {
		return v, err
	}
	head, err := dst.lake.Branch(o.branch())
	if err != nil {
		return Verification{}, err
	}
	if now := snapshotText(&head.SnapshotID); *now != *v.DestSnapshot {
		v.Details = append(v.Details, fmt.Sprintf("these are the job's rows as its last snapshot has them; the destination has moved on to snapshot %s since, and what that changed is not compared (--scope table does)", *now))
	}
	return v, nil
}

// verify is Verify for tables that are those meant.
func verify(ctx context.Context, src, dst *Table, o VerifyOptions) (Verification, error) {
	switch o.Method {
	case "", MethodRowCount:
		return verifyCount(ctx, src, dst, o)
	case MethodPartitionHash:
		return verifyHash(ctx, src, dst, o)
	case MethodSample:
		return verifySample(ctx, src, dst, o)
	case MethodDiff:
		return verifyDiff(ctx, src, dst, o)
	case MethodAuto:
		v, err := verifyCount(ctx, src, dst, o)
		if err != nil || !v.Matches {
			return v, err
		}
		return verifyHash(ctx, src, dst, o)
	}
	return Verification{}, fmt.Errorf("verification method %q is not known; there are row_count, partition_hash, sample, diff and auto", o.Method)
}

// belong refuses tables that are not the checkpoint's.
func (o VerifyOptions) belong(src, dst *Table) error {
	if o.by == nil {
		return nil
	}
	const another = "the job's %s is table %s (%s), and table %q is another one (%s)"
	if then, now := o.by.Source, tableNow(src.lake, ""); !sameTable(then, now) {
		return fmt.Errorf(another, "source", plan.FormatPath(then.Identifier), tableKey(then.UUID, then.Location), src.Name(), tableKey(now.UUID, now.Location))
	}
	if then, now := o.by.Destination, tableNow(dst.lake, ""); o.Job != "" && !sameTable(then, now) {
		return fmt.Errorf(another+"; compare with the whole of it (--scope table)", "destination", plan.FormatPath(then.Identifier), tableKey(then.UUID, then.Location), dst.Name(), tableKey(now.UUID, now.Location))
	}
	return nil
}

// verifyCount compares numbers of rows: by metadata, and those of the source by reading them where the plan
// leaves out rows that do not fit.
func verifyCount(ctx context.Context, src, dst *Table, o VerifyOptions) (Verification, error) {
	if o.policy() == plan.PolicyReject {
		return verifyCountRead(ctx, src, dst, o)
	}
	want, err := src.lake.Count(ctx, o.Source.lake(), o.Filter, nil)
	if err != nil {
		return Verification{}, err
	}
	pin, only, err := o.destination(ctx, dst)
	if err != nil {
		return Verification{}, err
	}
	got, err := dst.lake.Count(ctx, pin, nil, only)
	if err != nil {
		return Verification{}, err
	}
	v := o.verification(MethodRowCount, want.Snapshot, got.Snapshot)
	v.Matches = want.Rows == got.Rows
	v.SourceCount, v.DestCount = &want.Rows, &got.Rows
	v.Details = []string{counted("source", src, want), counted("destination", dst, got)}
	return v, nil
}

// policy is what becomes of values that do not fit.
func (o VerifyOptions) policy() string {
	if o.Plan != nil {
		return cmp.Or(o.Reconcile.OnCastError, o.Plan.Settings.OnCastError)
	}
	return o.Reconcile.OnCastError
}

// verifyCountRead is verifyCount by reading the source through the plan.
func verifyCountRead(ctx context.Context, src, dst *Table, o VerifyOptions) (Verification, error) {
	c, err := newComparison(ctx, src, dst, o)
	if err != nil {
		return Verification{}, err
	}
	var want int64
	counter := observed(o.Observe)
	for batch, err := range c.sourceSide(ctx) {
		if err != nil {
			return Verification{}, err
		}
		want += batch.NumRows()
		counter(batch.NumRows())
		batch.Release()
	}
	pin, only, err := o.destination(ctx, dst)
	if err != nil {
		return Verification{}, err
	}
	got, err := dst.lake.Count(ctx, pin, nil, only)
	if err != nil {
		return Verification{}, err
	}
	v := o.verification(MethodRowCount, c.sourceAt, got.Snapshot)
	v.Matches = want == got.Rows
	v.SourceCount, v.DestCount = &want, &got.Rows
	v.Details = append(c.rejects(), fmt.Sprintf("source %s at snapshot %s: %s that fit", src.Name(), orNone(v.SourceSnapshot), plural(want, "row", "rows")), counted("destination", dst, got))
	return v, nil
}

func (o VerifyOptions) verification(method string, source, dest *int64) Verification {
	return Verification{
		Method: method, Scope: o.scope(), MismatchedPartitions: []string{}, Details: []string{},
		SourceSnapshot: snapshotText(source), DestSnapshot: snapshotText(dest),
	}
}

func counted(side string, t *Table, c lake.Count) string {
	s := fmt.Sprintf("%s %s at snapshot %s: %s in %s", side, t.lake.Name(), orNone(snapshotText(c.Snapshot)), plural(c.Rows, "row", "rows"), plural(c.Files, "file", "files"))
	if c.Scanned > 0 {
		s += fmt.Sprintf(", %s of them read", grouped(c.Scanned))
	}
	return s
}
