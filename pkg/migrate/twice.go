package migrate

import (
	"fmt"
	"slices"
	"strconv"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/rows"
)

// first refuses to begin a job whose rows the branch holds already, as far as its marks tell, wholly or in
// part: rows of this very stream, of a job with the same settings, or perhaps of one of iceberg-ops.
//
// Whether such a job was finished its marks do not say: no commit knows that it is the last one, and
// rows at the end of which none was left to write leave no mark. Either way its rows would be there twice,
// so either way the user decides.
func first(h rows.Header, now ckpt.Settings, dst *lake.Table, o WriteOptions) error {
	if (h.First != rows.Cursor{}) {
		return fmt.Errorf("the stream starts at cursor %s, and without a checkpoint of that job the rows before it would be missing", h.First)
	}
	history, err := dst.History(o.Branch)
	if err != nil {
		return err
	}
	traces := history.Traces()
	slices.Reverse(traces) // the newest first
	where := fmt.Sprintf("branch %q of table %q", o.Branch, dst.Name())
	if !o.Again && h.Stream != "" {
		for _, t := range traces {
			if slices.Contains(t.Streams, h.Stream) {
				return fmt.Errorf("this stream (%s) was written before: %s holds %s of it; to write what is missing give its job's checkpoint, or make that anew with ice-migrate recover; --again writes its rows once more%s",
					h.Stream, where, heldText(t, h), beforeHint(t))
			}
		}
	}
	if !o.alone(h) {
		return nil
	}
	if t := begunAlike(traces, now.Digest()); t != nil {
		return fmt.Errorf("%s holds %s, begun with the same settings; make its checkpoint anew with ice-migrate recover --checkpoint FILE and the same flags, and a run goes on after them; --new-job writes their rows once more%s",
			where, heldText(*t, h), beforeHint(*t))
	}
	if len(traces) > 0 && traces[0].Foreign {
		return fmt.Errorf("%s was last migrated into by iceberg-ops (job %s, snapshot %d), and nothing in the table tells whether that job is done; finish it with iceberg-ops, or pass --new-job to begin another%s",
			where, traces[0].Job, traces[0].Last, beforeHint(traces[0]))
	}
	return nil
}

// alone reports whether no other job with the same settings may have written, or write beside this one.
func (o WriteOptions) alone(h rows.Header) bool { return !o.NewJob && !o.Again && !h.Foreign }

// begunAlike is the first of the jobs whose settings have a digest; nil for none.
func begunAlike(traces []lake.Trace, digest string) *lake.Trace {
	at := slices.IndexFunc(traces, func(t lake.Trace) bool { return !t.Foreign && t.Settings == digest })
	if at < 0 {
		return nil
	}
	return &traces[at]
}

// beside warns of rows of the same source that other jobs appended to the branch: which of them a new job brings
// once more, under another filter, of another snapshot or in other batches, their marks do not say.
func beside(h rows.Header, dst *lake.Table, o WriteOptions) ([]string, error) {
	if o.mode() != appends || h.Source.UUID == "" || !o.alone(h) {
		return nil, nil
	}
	history, err := dst.History(o.Branch)
	if err != nil {
		return nil, err
	}
	traces := slices.DeleteFunc(history.Traces(), func(t lake.Trace) bool { return t.Foreign || t.SourceUUID != h.Source.UUID })
	if len(traces) == 0 {
		return nil, nil
	}
	last, others := traces[len(traces)-1], ""
	if n := len(traces) - 1; n > 0 {
		others = ", and " + plural(int64(n), "older job", "older jobs")
	}
	return []string{fmt.Sprintf("branch %q of table %q holds rows of the same source already: %s, of its snapshot %s%s; rows of them that this job brings too will be there twice%s",
		o.Branch, dst.Name(), heldText(last, rows.Header{}), orNone(&last.SourceSnapshot), others, beforeHint(last))}, nil
}

// rival refuses to go on with a job of which nothing landed where another with the same settings has written since.
func (j *job) rival(h rows.Header) error {
	if !j.alone || j.note.Batches > 0 {
		return nil
	}
	history, err := j.dst.History(j.branch)
	if err != nil {
		return err
	}
	traces := history.Traces()
	if slices.ContainsFunc(traces, func(t lake.Trace) bool { return t.Job == j.note.Job }) {
		return nil
	}
	if t := begunAlike(traces, j.settings); t != nil {
		return fmt.Errorf("branch %q of table %q holds %s, begun with the same settings, and nothing of this job; delete the checkpoint, or pass --new-job to write the rows once more", j.branch, j.dst.Name(), heldText(*t, h))
	}
	return nil
}

// heldText says what is there of a job.
func heldText(t lake.Trace, h rows.Header) string {
	s := fmt.Sprintf("%s of job %s (%s", plural(int64(len(t.Marks)), "batch", "batches"), t.Job, plural(t.Rows(), "source row", "source rows"))
	if !h.Trial && h.Expected.Rows > 0 {
		s += " of at most " + grouped(h.Expected.Rows)
	}
	return s + ")"
}

// beforeHint names the snapshot to roll back to, as far as the history goes back.
func beforeHint(t lake.Trace) string {
	if t.Before == nil {
		return " (its dest_snapshot_before is none: the table had no snapshot)"
	}
	return " (its dest_snapshot_before is snapshot " + strconv.FormatInt(*t.Before, 10) + ")"
}

// plural is a count with its noun.
func plural(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + more
}

// audited refuses to write to the main branch of a table whose properties ask for writes to be staged
// and audited first, unless the user names that branch.
func audited(dst *lake.Table, asked string) error {
	property := dst.Audited()
	if asked != "" || property == "" {
		return nil
	}
	return fmt.Errorf("table %q asks for writes to be audited before they show (table property %s): name the branch to write to with --dst-branch (--branch of ice-write), main itself where that is meant", dst.Name(), property)
}
