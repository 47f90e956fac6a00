package arrowipc

import (
	"fmt"
	"math/bits"

	"icepipe/pkg/rows"
)

// A tally follows a stream span by span, on both ends of the wire, and refuses what does not
// follow from what it saw before.
type tally struct {
	last      rows.Cursor
	rows      int64
	rejects   int64
	records   int64
	inBatch   int64
	batchRows int64 // 0 where batches are not bounded
}

func newTally(h rows.Header) *tally { return &tally{last: h.First, batchRows: h.BatchRows} }

// add takes the next span, whose record batch has n rows.
func (t *tally) add(s rows.Span, n int64) error {
	switch {
	case s.From.Compare(t.last) != 0:
		return fmt.Errorf("span starts at %s, the one before ends at %s", s.From, t.last)
	case s.To.Compare(s.From) < 0:
		return fmt.Errorf("span ends at %s, before its start %s", s.To, s.From)
	case s.Rows < 0:
		return fmt.Errorf("span of %d rows", s.Rows)
	}
	kept, err := keptRows(s)
	if err != nil {
		return err
	}
	if kept != n {
		return fmt.Errorf("span at %s keeps %d rows, its record batch has %d", s.From, kept, n)
	}
	if t.inBatch += s.Rows; t.batchRows > 0 && t.inBatch > t.batchRows {
		return fmt.Errorf("span at %s crosses the end of a batch of %d rows", s.From, t.batchRows)
	}
	if s.EndsBatch {
		t.inBatch = 0
	}
	t.last = s.To
	t.rows += s.Rows
	t.rejects += s.Rows - n
	t.records++
	return nil
}

// keptRows counts the rows that a span's bitmap leaves.
func keptRows(s rows.Span) (int64, error) {
	if s.Kept == nil {
		return s.Rows, nil
	}
	if want := s.Rows/8 + min(1, s.Rows%8); int64(len(s.Kept)) != want {
		return 0, fmt.Errorf("span at %s has a bitmap of %d bytes for %d rows", s.From, len(s.Kept), s.Rows)
	}
	var n int64
	for _, b := range s.Kept {
		n += int64(bits.OnesCount8(b))
	}
	if r := s.Rows % 8; r != 0 && s.Kept[len(s.Kept)-1]>>r != 0 {
		return 0, fmt.Errorf("span at %s has a bitmap with bits behind its %d rows", s.From, s.Rows)
	}
	return n, nil
}

// seal compares the totals of a seal with what was seen.
func (t *tally) seal(s rows.Seal) error {
	for _, c := range []struct {
		what      string
		said, saw int64
	}{
		{"rows", s.Rows, t.rows},
		{"rejects", s.Rejects, t.rejects},
		{"record batches", s.Records, t.records},
	} {
		if c.said != c.saw {
			return fmt.Errorf("seal says %d %s, the stream has %d", c.said, c.what, c.saw)
		}
	}
	if s.Last.Compare(t.last) != 0 {
		return fmt.Errorf("seal says that the stream ends at %s, it ends at %s", s.Last, t.last)
	}
	return nil
}
