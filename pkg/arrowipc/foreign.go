package arrowipc

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"icepipe/pkg/rows"
)

// A foreign is the stream of another program being read.
type foreign struct {
	src   *source
	dec   *decoder
	plain *arrow.Schema
	tally *tally
	ended bool // the end marker was read, and the end of the input behind it
	whole bool
}

func readForeign(src *source, m *message) (rows.Stream, error) {
	dec, err := newDecoder(src, m)
	if err != nil {
		return rows.Stream{}, m.wrong(err)
	}
	plain, err := plainSchema(dec.schema)
	if err != nil {
		return rows.Stream{}, err
	}
	header := rows.Header{Protocol: rows.Protocol, Foreign: true}
	s := &foreign{src: src, dec: dec, plain: plain, tally: newTally(header)}
	dec.feed.pull = s.pull
	return rows.Stream{Header: header, Schema: plain, Spans: s.spans, Seal: s.seal}, nil
}

// pull reads a message for the decoder, nil at the end marker.
func (s *foreign) pull() (*message, error) {
	if s.ended {
		return nil, nil
	}
	m, err := s.src.next()
	if err != nil {
		return nil, err
	}
	if m == nil {
		s.ended = true
		return nil, s.src.end()
	}
	if marked(m.pairs) {
		return nil, m.wrong(errors.New("stream of icepipe without its header: the schema is damaged, or was written anew by another program"))
	}
	if err = s.src.readBody(m); err != nil {
		m.release()
		return nil, err
	}
	if err = s.dec.check(m); err != nil {
		m.release()
		return nil, m.wrong(err)
	}
	return m, nil
}

func (s *foreign) spans(yield func(rows.Span, error) bool) {
	defer s.dec.release()
	for {
		number, at := s.src.number, s.src.offset
		span, err := s.span()
		if errors.Is(err, errEnded) && s.ended {
			s.whole = true
			return
		}
		if err != nil {
			if !errors.Is(err, s.dec.feed.err) || s.dec.feed.err == nil {
				err = (&message{number: number, at: at}).wrong(err)
			}
			yield(rows.Span{}, err)
			return
		}
		if !yield(span, nil) {
			return
		}
	}
}

// span decodes the next record batch.
func (s *foreign) span() (rows.Span, error) {
	got, err := s.dec.next()
	if err != nil {
		return rows.Span{}, err
	}
	defer got.Release()
	batch, err := s.decoded(got)
	if err != nil {
		return rows.Span{}, err
	}
	n := batch.NumRows()
	span := rows.Span{From: s.tally.last, To: s.tally.last.Advance(n), Rows: n, Batch: batch}
	if err := s.tally.add(span, n); err != nil {
		span.Release()
		return rows.Span{}, err
	}
	return span, nil
}

// decoded returns the record batch with its columns made plain.
func (s *foreign) decoded(got arrow.RecordBatch) (_ arrow.RecordBatch, err error) {
	p := plainer{mem: s.src.mem, left: s.src.limits.Body}
	cols := make([]arrow.Array, 0, got.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
		if p := recover(); p != nil {
			err = fmt.Errorf("record batch: %v", p)
		}
	}()
	for i, col := range got.Columns() {
		f := s.plain.Field(i)
		made, err := p.column(col, f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		cols = append(cols, made)
	}
	return array.NewRecordBatch(s.plain, cols, got.NumRows()), nil
}

func (s *foreign) seal() (rows.Seal, error) {
	if !s.whole {
		return rows.Seal{}, rows.ErrUnsealed
	}
	return rows.Seal{Rows: s.tally.rows, BytesRead: s.src.offset, Records: s.tally.records, Last: s.tally.last}, nil
}
