package rows_test

import (
	"testing"

	"icepipe/pkg/rows"
)

func TestPlace(t *testing.T) {
	at := func(group int, row int64) rows.Cursor {
		return rows.Cursor{File: 2, RowGroup: group, Row: row, Path: "f"}
	}
	for name, c := range map[string]struct {
		span  rows.Span
		row   int64
		want  rows.Cursor
		exact bool
	}{
		"in the middle of a row group": {rows.Span{From: at(1, 100), To: at(1, 120), Rows: 20}, 7, at(1, 107), true},
		"the first of a row group":     {rows.Span{From: at(0, 50), To: at(1, 20), Rows: 20}, 7, at(1, 7), true},
		"the first of a file":          {rows.Span{From: rows.Cursor{File: 1, Row: 9}, To: at(0, 20), Rows: 20}, 0, at(0, 0), true},
		"after rejects":                {rows.Span{From: at(1, 100), To: at(1, 112), Rows: 12, Kept: []byte{0b10100110, 0b1010}}, 5, at(1, 111), true},
		"a filter took rows out":       {rows.Span{From: at(1, 100), To: at(1, 120), Rows: 19}, 7, at(1, 100), false},
		"a filter, over row groups":    {rows.Span{From: at(0, 100), To: at(1, 20), Rows: 19}, 7, at(0, 100), false},
	} {
		if got, exact := c.span.Place(c.row); got != c.want || exact != c.exact {
			t.Errorf("%s: %s (exact: %v), want %s", name, got, exact, c.want)
		}
	}
}

func TestWithout(t *testing.T) {
	s := rows.Span{Rows: 11}
	s.Without([]int64{0, 8, 10})
	if s.Kept[0] != 0b11111110 || s.Kept[1] != 0b010 {
		t.Errorf("%08b", s.Kept)
	}
	s.Without([]int64{1, 7}) // of those that are left
	if s.Kept[0] != 0b11111010 || s.Kept[1] != 0b000 {
		t.Errorf("%08b", s.Kept)
	}
}
