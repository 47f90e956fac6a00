package migrate

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"icepipe/internal/rowdiff"
	"icepipe/internal/rowform"
	"icepipe/pkg/plan"
)

// Differences are what a diff found.
type Differences struct {
	Keys    []string       `json:"keys"` // empty: rows were compared as a whole
	Missing int64          `json:"missing"`
	Extra   int64          `json:"extra"`
	Changed int64          `json:"changed"`
	Rows    []DifferingRow `json:"rows"` // the first of them
}

// A DifferingRow is a row in which the tables differ.
type DifferingRow struct {
	Kind    string   `json:"kind"`              // missing in the destination, extra there, or changed
	Columns []string `json:"columns,omitempty"` // of a changed row: those that differ
	Source  Row      `json:"source"`
	Dest    Row      `json:"dest"`
	Count   int64    `json:"count"` // rows that differ in this very way
}

// A Row is a row in the destination's columns. It is valid until the call that it is given to returns.
type Row struct {
	form []byte
	of   *rowform.Form
}

// Is reports whether there is a row.
func (r Row) Is() bool { return r.form != nil }

// MarshalJSON gives the row as an object, null where there is none.
func (r Row) MarshalJSON() ([]byte, error) {
	if !r.Is() {
		return []byte("null"), nil
	}
	text, err := rowText(r.of, r.form)
	return []byte(text), err
}

// Cells are the values of the row's columns as JSON.
func (r Row) Cells() ([]string, error) {
	cells, err := r.of.Cells(r.form)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(cells))
	for i, c := range cells {
		if out[i], err = rowform.JSON(c, r.of.Fields[i].Type); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Append appends the row's values to builders of the destination's columns.
func (r Row) Append(to []array.Builder) error {
	cells, err := r.of.Cells(r.form)
	if err != nil {
		return err
	}
	for i, c := range cells {
		if err := rowform.Build(to[i], c, r.of.Fields[i].Type); err != nil {
			return fmt.Errorf("column %q: %w", r.of.Fields[i].Name, err)
		}
	}
	return nil
}

// Columns are the names of the row's columns.
func (r Row) Columns() []string {
	out := make([]string, len(r.of.Fields))
	for i, f := range r.of.Fields {
		out[i] = f.Name
	}
	return out
}

// keep returns the row with bytes of its own.
func (r Row) keep() Row {
	if r.form != nil {
		r.form = append([]byte(nil), r.form...)
	}
	return r
}

// verifyDiff names the rows in which the tables differ.
func verifyDiff(ctx context.Context, src, dst *Table, o VerifyOptions) (Verification, error) {
	c, err := newComparison(ctx, src, dst, o)
	if err != nil {
		return Verification{}, err
	}
	d := &rowdiff.Diff{Form: c.form, Dir: o.Dir, Memory: o.Memory / 4}
	if d.Keys, err = c.keys(o.Keys); err != nil {
		return Verification{}, err
	}
	if d.Tolerance, err = c.tolerance(o.Tolerance); err != nil {
		return Verification{}, err
	}
	limit := o.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	found := &Differences{Keys: []string{}, Rows: []DifferingRow{}}
	for _, k := range d.Keys {
		found.Keys = append(found.Keys, c.form.Fields[k].Name)
	}
	counter := observed(o.Observe)
	wrong := map[string]int64{}
	placed := c.placedSide(wrong)
	first := true
	dest := func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		if first { // rows in the wrong partition are counted once
			first = false
			return counting(placed(ctx), counter)
		}
		return counting(c.destSide(ctx), counter)
	}
	source := func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return counting(c.sourceSide(ctx), counter)
	}
	totals, err := d.Run(ctx, source, dest, func(x rowdiff.Difference) error {
		row := DifferingRow{Kind: string(x.Kind), Source: Row{x.Source, c.form}, Dest: Row{x.Dest, c.form}, Count: x.Count}
		for _, i := range x.Columns {
			row.Columns = append(row.Columns, c.form.Fields[i].Name)
		}
		if int64(len(found.Rows)) < limit {
			kept := row
			kept.Source, kept.Dest = row.Source.keep(), row.Dest.keep()
			found.Rows = append(found.Rows, kept)
		}
		if o.Differing == nil {
			return nil
		}
		return o.Differing(row)
	})
	if err != nil {
		return Verification{}, err
	}
	v := o.verification(MethodDiff, c.sourceAt, c.destAt)
	v.Details = append(v.Details, c.rejects()...)
	v.SourceCount, v.DestCount, v.Differences = &totals.SourceRows, &totals.DestRows, found
	found.Missing, found.Extra, found.Changed = totals.Missing, totals.Extra, totals.Changed
	v.Matches = totals.Agree() && len(wrong) == 0
	v.Details = append(v.Details, fmt.Sprintf("%s missing, %s too many, %s changed, of %s and %s",
		plural(totals.Missing, "row", "rows"), grouped(totals.Extra), grouped(totals.Changed), grouped(totals.SourceRows), grouped(totals.DestRows)))
	v.Details = append(v.Details, misplaced(wrong)...)
	for _, row := range found.Rows {
		text, err := row.text()
		if err != nil {
			return Verification{}, err
		}
		v.Details = append(v.Details, text)
	}
	return v, nil
}

// text is the difference for people.
func (d DifferingRow) text() (string, error) {
	times := ""
	if d.Count > 1 {
		times = fmt.Sprintf(" (%s times)", grouped(d.Count))
	}
	switch {
	case !d.Dest.Is():
		row, err := d.Source.MarshalJSON()
		return fmt.Sprintf("missing%s: %s", times, row), err
	case !d.Source.Is():
		row, err := d.Dest.MarshalJSON()
		return fmt.Sprintf("too many%s: %s", times, row), err
	}
	b, err := d.Dest.Cells()
	if err != nil {
		return "", err
	}
	row, err := d.Source.MarshalJSON()
	s := fmt.Sprintf("changed%s: %s", times, row)
	for i, name := range d.Source.Columns() {
		if slices.Contains(d.Columns, name) {
			s += fmt.Sprintf("; %s is %s in the destination", plan.FormatPath([]string{name}), b[i])
		}
	}
	return s, err
}

// tolerance finds the columns of a tolerance.
func (c *comparison) tolerance(of map[string]float64) (map[int]float64, error) {
	if len(of) == 0 {
		return nil, nil
	}
	out := map[int]float64{}
	for name, most := range of {
		at, err := c.columns([]string{name})
		if err != nil {
			return nil, err
		}
		switch c.form.Fields[at[0]].Type.(type) {
		case iceberg.Float32Type, iceberg.Float64Type:
		default:
			return nil, fmt.Errorf("column %q is %s; a tolerance is for floats and doubles", name, c.form.Fields[at[0]].Type)
		}
		if !(most >= 0) {
			return nil, fmt.Errorf("tolerance %g of column %q: want 0 or more", most, name)
		}
		out[at[0]] = most
	}
	return out, nil
}

// observed returns what counts rows of both sides for an observer.
func observed(observe func(int64)) func(int64) {
	if observe == nil {
		return func(int64) {}
	}
	var mu sync.Mutex // both sides are read at the same time
	var n int64
	return func(k int64) {
		mu.Lock()
		defer mu.Unlock()
		n += k
		observe(n)
	}
}

// counting counts the rows that are read.
func counting(in iter.Seq2[arrow.RecordBatch, error], counter func(int64)) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range in {
			if err == nil {
				counter(batch.NumRows())
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}
