package migrate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// Rejects says where the rows go that do not fit the destination, where the plan's policy is to reject
// them (plan.PolicyReject). The zero value is for every other policy.
type Rejects struct {
	// File gets each rejected row whole, as the source has it, with reason and place: an Arrow stream if
	// its name ends in .arrow, .arrows or .ipc, else JSON lines. Entries at or behind the stream's first
	// cursor are removed from it, so that a resumed run leaves none twice, but not before the stream says
	// something else than they do. What is rejected is in the file, and synced, before the batch that it
	// belongs to ends.
	File string
	// Max is how many rows may be rejected in a run; one more is an error. 0: any number.
	Max int64
}

// A PlacedError is a value that does not fit, and where its row is.
type PlacedError struct {
	At    rows.Cursor
	Exact bool // the row is at At, not only behind it
	Err   *plan.ValueError
}

func (e *PlacedError) Error() string {
	where := "row %d of row group %d of file %q: %s"
	if !e.Exact {
		where = "a row behind row %d of row group %d of file %q: %s"
	}
	return fmt.Sprintf(where, e.At.Row, e.At.RowGroup, e.At.Path, e.Err.Reason())
}

func (e *PlacedError) Unwrap() error { return e.Err }

// A sorter projects the spans of one stream, and takes out the rows that do not fit.
type sorter struct {
	projector *plan.Projector
	rejects   Rejects
	job       string // see rejecter
	foreign   bool
	file      *rejectFile // nil until it is needed
	count     int64
	nulled    int64
	seen      int64 // rows of a foreign stream
	failed    bool  // the stream is not whole, whatever its source says
}

// rejecter tells the jobs apart whose rejected rows a file may hold: by the rows that they read, where these
// go, and how.
func rejecter(h rows.Header) string {
	key := func(t rows.Table) string { return cmp.Or(t.UUID, t.Location) }
	text, err := json.Marshal([]any{key(h.Source), h.Source.SnapshotID, h.Files, h.RowFilter, h.Select, key(*h.Destination), h.Reconciler})
	if err != nil {
		panic(err) // texts and numbers, and JSON that came out of JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// begin opens the reject file, before the first row is taken.
func (s *sorter) begin(in rows.Stream) error {
	if s.rejects.File == "" {
		return nil
	}
	var err error
	if s.file, err = openRejects(s.rejects.File, s.job, in.Schema, in.Header.First); err != nil {
		s.failed = true
	}
	return err
}

// close makes the last rejected rows safe. It is told whether the stream came to its end.
func (s *sorter) close(whole bool) error {
	if s.file == nil {
		return nil
	}
	err := s.file.close(whole)
	s.file, s.failed = nil, s.failed || err != nil
	return err
}

// place is that of a row of an opened span. A foreign stream has no files; its rows are counted.
func (s *sorter) place(span rows.Span, row int64) (rows.Cursor, bool) {
	if s.foreign {
		return rows.Cursor{Row: s.seen + row}, true
	}
	return span.Place(row)
}

// explain says where a value that does not fit is.
func (s *sorter) explain(span rows.Span, err error) error {
	bad := new(plan.ValueError)
	if !errors.As(err, &bad) {
		return fmt.Errorf("rows from cursor %s: %w", span.From, err)
	}
	at, exact := s.place(span, bad.Row)
	return &PlacedError{At: at, Exact: exact, Err: bad}
}

// opened projects an opened span. It takes the span over.
func (s *sorter) opened(span rows.Span) (rows.Span, error) {
	source := span.Batch
	defer source.Release()
	batch, outcome, err := s.projector.ProjectRows(source)
	if err != nil {
		return rows.Span{}, s.explain(span, err)
	}
	if err := s.reject(span, source, outcome); err != nil {
		batch.Release()
		return rows.Span{}, err
	}
	if gone := outcome.Rejects; len(gone) > 0 {
		places := make([]int64, len(gone))
		for i, e := range gone {
			places[i] = e.Row
		}
		span.Without(places)
	}
	s.seen += span.Rows
	s.nulled += outcome.Nulled
	span.Batch = batch
	return span, nil
}

// reject notes the rows that do not fit, and makes them safe where a batch ends.
func (s *sorter) reject(span rows.Span, source arrow.RecordBatch, o plan.Outcome) error {
	for _, e := range o.Rejects {
		s.count++
		at, exact := s.place(span, e.Row)
		bad := &PlacedError{At: at, Exact: exact, Err: e}
		if s.rejects.Max > 0 && s.count > s.rejects.Max {
			return fmt.Errorf("more than %d rows do not fit: %w", s.rejects.Max, bad)
		}
		if err := s.file.add(source, bad); err != nil {
			return err
		}
	}
	if span.EndsBatch && s.file != nil {
		return s.file.sync()
	}
	return nil
}

// warnings are what the seal says besides.
func (s *sorter) warnings() []string {
	var out []string
	if s.nulled > 0 {
		out = append(out, fmt.Sprintf("%d values did not fit, and null was written in their place", s.nulled))
	}
	if s.count > 0 {
		out = append(out, fmt.Sprintf("%d rows did not fit, and are in the reject file %q", s.count, s.rejects.File))
	}
	return out
}
