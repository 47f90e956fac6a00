package rows_test

import (
	"math"
	"testing"

	"icepipe/pkg/rows"
)

func TestCursorOrder(t *testing.T) {
	ordered := []rows.Cursor{
		{}, {Row: 1, Path: "z"}, {Row: 5}, {RowGroup: 1, Path: "a"}, {RowGroup: 1, Row: 1}, {RowGroup: 2},
		{File: 1}, {File: 1, RowGroup: 1}, {File: 2, Row: math.MaxInt64}, {File: math.MaxInt64},
	}
	for i, c := range ordered {
		for k, d := range ordered {
			want := 0
			if i < k {
				want = -1
			} else if i > k {
				want = 1
			}
			if got := c.Compare(d); got != want {
				t.Errorf("%s against %s: %d, want %d", c, d, got, want)
			}
		}
	}
	if c := (rows.Cursor{File: 1, RowGroup: 2, Row: 3, Path: "p"}).Advance(4); c != (rows.Cursor{File: 1, RowGroup: 2, Row: 7, Path: "p"}) {
		t.Errorf("advanced to %s", c)
	}
}

func TestParseCursor(t *testing.T) {
	for text, want := range map[string]rows.Cursor{
		"0/0/0":                        {},
		"1/2/3":                        {File: 1, RowGroup: 2, Row: 3},
		"1/2/3 s3://b/a b/c d.parquet": {File: 1, RowGroup: 2, Row: 3, Path: "s3://b/a b/c d.parquet"},
		"9223372036854775807/2147483647/9223372036854775807": {File: math.MaxInt64, RowGroup: math.MaxInt32, Row: math.MaxInt64},
	} {
		got, err := rows.ParseCursor(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%q is written %q", text, got)
		}
	}
	for _, text := range []string{"", "1", "1/2", "1/2/3/4", "a/2/3", "1//3", "-1/0/0", "0/-1/0", "0/0/-1", " 1/2/3", "1/2/ 3",
		"9223372036854775808/0/0", "0/2147483648/0", "0x1/0/0", "1/2/3\tpath"} {
		if c, err := rows.ParseCursor(text); err == nil {
			t.Errorf("%q is taken for %s", text, c)
		}
	}
}

// What is taken for a cursor is written as another text for the same one.
func FuzzCursor(f *testing.F) {
	f.Add("0/0/0")
	f.Add("1/2/3 file:///a b/c.parquet")
	f.Add("+1/02/3 ")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := rows.ParseCursor(text)
		if err != nil {
			return
		}
		again, err := rows.ParseCursor(c.String())
		if err != nil || again != c {
			t.Errorf("%q: %s, and again %s (%v)", text, c, again, err)
		}
		if c.File < 0 || c.RowGroup < 0 || c.Row < 0 {
			t.Errorf("%q: negative count in %s", text, c)
		}
	})
}
