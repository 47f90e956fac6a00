package rows

import "math/bits"

// Place returns the cursor before row i of the record batch of an opened span: the row's file, row group
// and number among the live rows of that row group, from 0. exact is false where the span does not know:
// a row filter took out rows between its cursors. Then the row lies somewhere between them, and the cursor
// is From.
func (s Span) Place(i int64) (at Cursor, exact bool) {
	at, first := s.To, int64(0)
	if s.From.File == s.To.File && s.From.RowGroup == s.To.RowGroup {
		first = s.From.Row
	}
	if s.To.Row-first != s.Rows { // else all live rows of the row group from first on
		return s.From, false
	}
	at.Row = first + s.row(i)
	return at, true
}

// row returns which of the span's rows became row i of its record batch.
func (s Span) row(i int64) int64 {
	if s.Kept == nil {
		return i
	}
	for k, b := range s.Kept {
		n := int64(bits.OnesCount8(b))
		if i >= n {
			i -= n
			continue
		}
		for ; ; b &= b - 1 { // the lowest bit off
			if i == 0 {
				return int64(k)*8 + int64(bits.TrailingZeros8(b))
			}
			i--
		}
	}
	return s.Rows
}

// Without takes rows out of the span's bitmap: those of its record batch at the places gone, which ascend.
// The record batch is the caller's to change.
func (s *Span) Without(gone []int64) {
	kept := make([]byte, (s.Rows+7)/8)
	if s.Kept != nil {
		copy(kept, s.Kept)
	} else {
		for i := range s.Rows {
			kept[i/8] |= 1 << (i % 8)
		}
	}
	for _, i := range gone {
		row := s.row(i)
		kept[row/8] &^= 1 << (row % 8)
	}
	s.Kept = kept
}
