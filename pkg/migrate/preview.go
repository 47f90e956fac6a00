package migrate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"icepipe/internal/lake"
	"icepipe/pkg/plan"
)

// An UpsertPreview is how a job is to upsert, and what comes of it.
type UpsertPreview struct {
	Keys    []string `json:"keys"`
	Deletes string   `json:"deletes"` // how rows are taken out: "copies", "position deletes", "deletion vectors"
	Why     string   `json:"why"`     // what decided that
	Readers string   `json:"readers"` // who can read what comes of it
	Cost    string   `json:"cost"`
}

// mode fills in what becomes of the destination's rows.
func (v *Preview) mode(ctx context.Context, dst *lake.Table, w WriteOptions) (err error) {
	if w.OverwritePartitions {
		v.Replaces, err = dst.Replaces(ctx, w.Branch)
		return err
	}
	if w.Upsert == nil {
		return nil
	}
	u := &UpsertPreview{Keys: w.Upsert.Keys}
	mode, why, err := dst.DeleteModeWhy(cmp.Or(w.Upsert.DeleteMode, DeleteAuto))
	if err != nil {
		return err
	}
	v.Upsert, u.Why = u, why
	switch {
	case mode == lake.CopyOnWrite:
		u.Deletes, u.Readers = "copies", "every reader of the table"
		u.Cost = "each batch writes all data files anew that rows lie in which it changes"
		if w.Once {
			u.Cost = "each data file that rows lie in which the job changes is written anew, once"
		} else if v.Commits > 1 {
			u.Cost += fmt.Sprintf(": with scattered keys all of them, %d times; --commit once writes each of them once", v.Commits)
		}
	case dst.Metadata().Version() == 2:
		u.Deletes = "position deletes"
		u.Readers = "readers that apply the position deletes of format version 2; those that take the data files alone, or do not know deletes, see replaced rows too"
		u.Cost = "little to write; readers apply the deletes until the table is compacted"
	default:
		u.Deletes = "deletion vectors"
		u.Readers = "readers that apply the deletion vectors of format version 3; those that take the data files alone, or know format version 2 alone, see replaced rows too, or refuse the table"
		u.Cost = "little to write; readers apply the vectors until the table is compacted"
	}
	return nil
}

// modeLines are names and texts of what becomes of the destination's rows.
func (v Preview) modeLines() (out [][2]string) {
	if v.Replaces != "" {
		out = append(out, [2]string{"replaces", v.Replaces})
	}
	if u := v.Upsert; u != nil {
		out = append(out, [2]string{"upsert keys", strings.Join(u.Keys, ", ")}, [2]string{"rows go by", u.Deletes + " (" + u.Why + ")"},
			[2]string{"read by", u.Readers}, [2]string{"costs", u.Cost})
	}
	return out
}

// emptied warns of columns in which an upsert puts null, or a default, in the place of what a row has.
func (o WriteOptions) emptied(p *plan.Plan) []string {
	if o.Upsert == nil {
		return nil
	}
	var names []string
	var look func([]plan.Column)
	look = func(columns []plan.Column) {
		for _, c := range columns {
			if c.Action == plan.NullFill || c.Action == plan.Default || c.Action == plan.Skip {
				names = append(names, plan.FormatPath(c.Path))
			}
			look(c.Fields)
		}
	}
	look(p.Columns)
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the source has no %s: rows that are updated lose what they have there", strings.Join(names, ", "))}
}

// Explain prints the plan for people, with those of its schema changes that are still to be made, and what becomes
// of the destination's rows where they are not left alone.
func (v Preview) Explain(w io.Writer) error {
	shown := *v.Plan
	shown.Changes, shown.Warnings = v.pending, v.Warnings
	if err := shown.Explain(w); err != nil {
		return err
	}
	lines := v.modeLines()
	if len(lines) == 0 {
		return nil
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintf(out, "%s\t%s\n", l[0], l[1])
	}
	return out.Flush()
}

// WriteText writes what a dry run found for people.
func (v Preview) WriteText(w io.Writer) error {
	if err := v.Explain(w); err != nil {
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(out)
	line("source", "%s at snapshot %s", plan.FormatPath(v.Source.Identifier), orNone(v.Source.SnapshotID))
	line("destination", "%s at snapshot %s", plan.FormatPath(v.Destination.Identifier), orNone(v.Destination.SnapshotID))
	made := plural(v.Commits, "commit", "commits") + " of " + plural(v.BatchRows, "row", "rows")
	if v.once {
		made = "one commit, staged by " + plural(v.BatchRows, "row", "rows")
	}
	line("to come", "%s, %s bytes in %s, %s", plural(v.Rows, "row", "rows"), grouped(v.Bytes), plural(v.Files, "file", "files"), made)
	if v.Resumes {
		line("resumes", "from cursor %s", v.Cursor)
	}
	for _, h := range v.Hints {
		line("hint", "%s", h)
	}
	line("written", "nothing: this was a dry run")
	return out.Flush()
}
