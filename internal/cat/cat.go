// Package cat prints a stream for people: its header, its rows as a table, JSON lines or CSV, the
// marks of its record batches, and its seal. It is what ice-cat does.
package cat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/pkg/rows"
)

// Formats are the values of Options.Format, the default first.
var Formats = []string{"table", "jsonl", "csv", "header"}

// Options say what Print prints.
type Options struct {
	Format string // one of Formats; "" is the first
	Limit  int64  // stop after so many rows; 0 or less: all
	Marks  bool   // tell of each record batch: cursors, rows, end of a batch
	Width  int    // widest cell of a table, in columns of a terminal; 0: 48, less: as wide as it takes

	// Notes is where marks and seal go beside JSON lines and CSV, which hold nothing but rows; nil
	// leaves them out. The other formats have them in their place.
	Notes io.Writer
}

// A form prints rows in one format.
type form interface {
	batch(arrow.RecordBatch, int64) error // the first n rows
	flush() error                         // all that was held back
}

// Print prints a stream. It opens the spans and releases their record batches.
//
// The header format prints the header and the schema, and reads no rows. A stream that breaks is
// printed up to there, with a last line that says so, and its error returned. A limit breaks off
// the stream: its seal is then not known.
func Print(ctx context.Context, w io.Writer, in rows.Stream, o Options) (err error) {
	out := bufio.NewWriter(w)
	defer func() { err = errors.Join(err, out.Flush()) }()
	var f form
	notes := io.Writer(out)
	switch o.Format {
	case "header":
		return printHeader(out, in)
	case "", "table":
		f = newTable(out, in.Schema, o.Width)
	case "jsonl":
		f = &lines{out: out, schema: in.Schema}
		notes = o.Notes
	case "csv":
		f = &csv{out: out, schema: in.Schema}
		notes = o.Notes
	default:
		return fmt.Errorf("format %q is not known: use %s", o.Format, strings.Join(Formats, ", "))
	}
	if notes == nil {
		notes = io.Discard
	}
	return (&printer{form: f, out: out, notes: notes, o: o}).print(ctx, in)
}

// A printer is one stream being printed.
type printer struct {
	form
	out   *bufio.Writer
	notes io.Writer
	o     Options

	rows, records, batches int64
}

func (p *printer) print(ctx context.Context, in rows.Stream) error {
	var last rows.Cursor
	for span, err := range rows.Opened(ctx, in).Spans {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			span.Release()
			return p.broken(last, err)
		}
		more, err := p.span(span)
		last = span.To
		span.Release()
		if err != nil {
			return err
		}
		if !more {
			if err := p.flush(); err != nil {
				return err
			}
			return p.note("stopped after %d rows", p.rows)
		}
	}
	if err := p.flush(); err != nil {
		return err
	}
	seal, err := in.Seal()
	if err != nil {
		return p.broken(last, err)
	}
	return p.seal(seal, in.Header.Foreign)
}

// span prints a span, and says whether more rows are wanted.
func (p *printer) span(s rows.Span) (bool, error) {
	n, more := s.Batch.NumRows(), true
	if p.o.Limit > 0 && p.rows+n >= p.o.Limit {
		n, more = p.o.Limit-p.rows, false
	}
	if err := p.batch(s.Batch, n); err != nil {
		return false, err
	}
	p.rows += n
	if p.o.Marks {
		if err := p.flush(); err != nil {
			return false, err
		}
		if err := p.marks(s); err != nil {
			return false, err
		}
	}
	p.records++
	if s.EndsBatch {
		p.batches++
	}
	return more, nil
}

func (p *printer) marks(s rows.Span) error {
	text := fmt.Sprintf("record batch %d: %s to %s, %d rows", p.records, s.From, s.To, s.Rows)
	if s.Kept != nil {
		kept := 0
		for _, b := range s.Kept {
			kept += bits.OnesCount8(b)
		}
		text += fmt.Sprintf(", %d kept", kept)
	}
	if s.EndsBatch {
		text += fmt.Sprintf(", ends batch %d", p.batches)
	}
	return p.note("%s", escape(text))
}

func (p *printer) seal(s rows.Seal, foreign bool) error {
	what := "sealed"
	if foreign {
		what = "ended, without a seal"
	}
	text := fmt.Sprintf("%s: %d rows in %d record batches", what, s.Rows, s.Records)
	if s.Rejects > 0 {
		text += fmt.Sprintf(", %d of them rejected", s.Rejects)
	}
	if !foreign {
		text += fmt.Sprintf(", %d bytes read, up to %s", s.BytesRead, s.Last)
	}
	if err := p.note("%s", escape(text)); err != nil {
		return err
	}
	for _, w := range s.Warnings {
		if err := p.note("warning: %s", escape(w)); err != nil {
			return err
		}
	}
	return nil
}

// broken prints what came before the break, and where that was.
func (p *printer) broken(last rows.Cursor, cause error) error {
	err := p.flush()
	if err == nil {
		where := "before the first record batch"
		if p.records > 0 {
			where = fmt.Sprintf("after %d rows in %d record batches, at %s", p.rows, p.records, last)
		}
		err = p.note("broken %s: %s", escape(where), escape(cause.Error()))
	}
	return errors.Join(cause, err)
}

// note prints a line that is not of the rows.
func (p *printer) note(format string, args ...any) error {
	_, err := fmt.Fprintf(p.notes, "-- "+format+"\n", args...)
	return err
}
