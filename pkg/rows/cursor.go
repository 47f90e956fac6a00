package rows

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A Cursor is a place between two rows of a source snapshot: after Row live rows of row group
// RowGroup of data file File. Rows are counted after deletes and before the row filter.
//
// Cursors of one snapshot are totally ordered by File, RowGroup and Row. Path tells people which
// file is meant; it takes no part in the order. The zero Cursor is the start of the source.
type Cursor struct {
	File     int64  `json:"file"`      // ordinal of the data file in the scan's order, from 0
	RowGroup int    `json:"row_group"` // ordinal of the row group in the file, from 0
	Row      int64  `json:"row"`       // live rows taken from the row group
	Path     string `json:"path,omitempty"`
}

// Compare returns -1, 0 or +1 as c lies before, at or after d.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.File, d.File), cmp.Compare(c.RowGroup, d.RowGroup), cmp.Compare(c.Row, d.Row))
}

// Advance returns the cursor n live rows further in the same row group.
func (c Cursor) Advance(n int64) Cursor {
	c.Row += n
	return c
}

// String returns FILE/ROWGROUP/ROW, and the path after a space where it is known.
func (c Cursor) String() string {
	s := fmt.Sprintf("%d/%d/%d", c.File, c.RowGroup, c.Row)
	if c.Path != "" {
		s += " " + c.Path
	}
	return s
}

// ParseCursor is the inverse of String.
func ParseCursor(s string) (Cursor, error) {
	place, path, _ := strings.Cut(s, " ")
	parts := strings.Split(place, "/")
	if len(parts) != 3 {
		return Cursor{}, fmt.Errorf("cursor %q: want FILE/ROWGROUP/ROW", s)
	}
	var n [3]int64
	for i, p := range parts {
		v, err := strconv.ParseInt(p, 10, 64)
		if err != nil || v < 0 || (i == 1 && v > 1<<31-1) {
			return Cursor{}, fmt.Errorf("cursor %q: %q is not a count", s, p)
		}
		n[i] = v
	}
	return Cursor{File: n[0], RowGroup: int(n[1]), Row: n[2], Path: path}, nil
}
