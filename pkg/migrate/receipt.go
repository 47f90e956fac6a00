package migrate

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"icepipe/pkg/plan"
)

// A Receipt says what a run did. Counts are of this run, with the batches that it found in the
// destination and that no run had noted; what former runs noted is in the checkpoint and in the
// destination's snapshots, which carry the job's marks. RowsMoved are source rows: those inserted and
// those rejected. BytesRead is known at the end of a stream, so that it is 0 where a run failed.
type Receipt struct {
	Job                string   `json:"job"`
	Source             End      `json:"source"`
	Destination        End      `json:"destination"`
	DestSnapshotBefore *string  `json:"dest_snapshot_before"` // null: the destination had none
	RowsMoved          int64    `json:"rows_moved"`
	RowsInserted       int64    `json:"rows_inserted"`
	RowsUpdated        int64    `json:"rows_updated"`
	RowsUnchanged      int64    `json:"rows_unchanged"`
	RowsSurplus        int64    `json:"rows_surplus,omitempty"` // left out for another row with the same key
	RowsRejected       int64    `json:"rows_rejected"`
	Batches            int64    `json:"batches"`
	NewSnapshots       []string `json:"new_snapshots"`
	SchemaChanges      []string `json:"schema_changes"`
	BytesRead          int64    `json:"bytes_read"`
	BytesWritten       int64    `json:"bytes_written"`
	BytesCopied        int64    `json:"bytes_copied"`          // of column chunks that this run wrote: from the source's files as they were,
	BytesCopiedByStore int64    `json:"bytes_copied_by_store"` // of these, those that the store copied itself, which are not in BytesRead;
	BytesTranscoded    int64    `json:"bytes_transcoded"`      // decoded from them and encoded anew, a column at a time,
	BytesEncoded       int64    `json:"bytes_encoded"`         // and all others
	Warnings           []string `json:"warnings"`
	Resumed            bool     `json:"resumed"`
	Complete           bool     `json:"complete"`

	Verification *Verification `json:"verification,omitempty"`
}

// An End is one end of a migration.
type End struct {
	Identifier []string `json:"identifier"`
	UUID       string   `json:"uuid,omitempty"`
	SnapshotID *string  `json:"snapshot_id"` // of the destination: its head after the run
}

// receipt is of the run so far.
func (w *writer) receipt() Receipt {
	j := w.job
	r := Receipt{
		Job:                j.note.Job,
		Source:             End{Identifier: j.note.Source.Identifier, UUID: j.note.Source.UUID},
		Destination:        End{Identifier: j.note.Destination.Identifier, UUID: j.note.Destination.UUID},
		DestSnapshotBefore: j.note.DestSnapshotBefore,
		RowsMoved:          j.run.RowsMoved,
		RowsInserted:       j.run.RowsInserted,
		RowsUpdated:        j.run.RowsUpdated,
		RowsUnchanged:      j.run.RowsUnchanged,
		RowsSurplus:        j.run.RowsSurplus,
		RowsRejected:       j.run.RowsRejected,
		Batches:            j.batches,
		NewSnapshots:       []string{},
		SchemaChanges:      append([]string{}, w.changes...),
		BytesRead:          j.run.BytesRead,
		BytesWritten:       j.run.BytesWritten,
		BytesCopied:        j.written.Copied,
		BytesCopiedByStore: j.written.ByStore,
		BytesTranscoded:    j.written.Transcoded,
		BytesEncoded:       j.written.Encoded,
		Warnings:           append([]string{}, w.warnings...),
		Resumed:            j.resumed,
		Complete:           w.complete,
	}
	if id := j.note.Source.SnapshotID; id != "" {
		r.Source.SnapshotID = &id
	}
	if head, err := w.dst.Branch(w.options.Branch); err == nil && head != nil {
		r.Destination.SnapshotID = snapshotText(&head.SnapshotID)
	}
	for _, s := range j.snapshots {
		r.NewSnapshots = append(r.NewSnapshots, *snapshotText(&s))
	}
	return r
}

// WriteText writes the receipt for people.
func (r Receipt) WriteText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	state := "complete"
	if !r.Complete {
		state = "not complete"
	}
	if r.Resumed {
		state += ", resumed"
	}
	line("job", "%s (%s)", r.Job, state)
	line("source", "%s at snapshot %s", plan.FormatPath(r.Source.Identifier), orNone(r.Source.SnapshotID))
	line("destination", "%s at snapshot %s", plan.FormatPath(r.Destination.Identifier), orNone(r.Destination.SnapshotID))
	line("snapshot before", "%s", beforeText(r.DestSnapshotBefore))
	line("rows moved", "%s in %s", grouped(r.RowsMoved), plural(r.Batches, "batch", "batches"))
	if r.RowsUpdated+r.RowsUnchanged+r.RowsSurplus > 0 {
		line("rows inserted", "%s", grouped(r.RowsInserted))
		line("rows updated", "%s", grouped(r.RowsUpdated))
		line("rows unchanged", "%s", grouped(r.RowsUnchanged))
	}
	if r.RowsSurplus > 0 {
		line("rows left out", "%s, for another row with the same key", grouped(r.RowsSurplus))
	}
	if r.RowsRejected > 0 {
		line("rows rejected", "%s", grouped(r.RowsRejected))
	}
	line("bytes", "%s read, %s written", grouped(r.BytesRead), grouped(r.BytesWritten))
	if r.BytesCopied > 0 {
		by := ""
		if r.BytesCopiedByStore > 0 {
			by = fmt.Sprintf(" (%s by the store)", grouped(r.BytesCopiedByStore))
		}
		line("columns", "%s copied%s, %s taken anew, %s encoded", grouped(r.BytesCopied), by, grouped(r.BytesTranscoded), grouped(r.BytesEncoded))
	}
	for _, c := range r.SchemaChanges {
		line("schema change", "%s", c)
	}
	for _, s := range r.Warnings {
		line("warning", "%s", s)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if r.Verification != nil {
		return r.Verification.WriteText(w)
	}
	return nil
}

func orNone(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// grouped writes a count with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// snapshotText is a snapshot's ID as text, since it does not fit a JSON number everywhere.
func snapshotText(id *int64) *string {
	if id == nil {
		return nil
	}
	s := strconv.FormatInt(*id, 10)
	return &s
}
