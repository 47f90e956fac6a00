package lake

import (
	"fmt"
	"slices"
	"testing"
)

// Batches that follow row groups end behind one where the next would be cut, the same ones wherever the scan
// starts, and hold never more rows than they are said to.
func TestBatchesFollowRowGroups(t *testing.T) {
	tbl, _ := threeFiles(t) // row groups of 5, 3, 2, then 1, then 7 and 2 rows
	want := lines(upTo(20)...)
	for _, c := range []struct {
		rows int64
		ends string
	}{
		{2, "[0/0/2 0/0/4 0/1/1 0/1/3 0/2/2 2/0/1 2/0/3 2/0/5 2/0/7 2/1/2]"},
		{6, "[0/0/5 1/0/1 2/0/6]"},
		{7, "[0/0/5 1/0/1 2/0/7]"},
		{8, "[0/1/3 1/0/1 2/0/7]"},
		{10, "[0/2/2 2/1/2]"},
		{0, "[]"}, // they all fit
	} {
		o := ScanOptions{BatchRows: c.rows, Follow: true}
		s, err := tbl.PlanScan(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Header().Follow {
			t.Error("the header does not say that batches follow row groups")
		}
		got, ends, err := all(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprint("batches of ", c.rows), got, want)
		var texts []string
		for _, e := range ends {
			texts = append(texts, fmt.Sprintf("%d/%d/%d", e.File, e.RowGroup, e.Row))
		}
		if fmt.Sprint(texts) != c.ends {
			t.Errorf("batches of %d end at %v, want %s", c.rows, texts, c.ends)
		}
		for i, end := range ends {
			o := ScanOptions{BatchRows: s.Header().BatchRows, Follow: true, From: &end}
			s, err := tbl.PlanScan(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			_, rest, err := all(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(rest, ends[i+1:]) {
				t.Errorf("batches of %d from %s end at %v, want %v", c.rows, end, rest, ends[i+1:])
			}
		}
	}
}
