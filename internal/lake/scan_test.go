package lake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/rows"
)

// ids are rows of idAndText with the given IDs.
func ids(from, to int) string {
	var lines []string
	for i := from; i <= to; i++ {
		lines = append(lines, fmt.Sprintf(`{"id":%d,"p":"x%d"}`, i, i))
	}
	return "[" + strings.Join(lines, ",") + "]"
}

// lines are what a scan gives of these rows.
func lines(ids ...int) []string {
	var out []string
	for _, i := range ids {
		out = append(out, fmt.Sprintf(`{"id":%d,"p":"x%d"}`, i, i))
	}
	return out
}

func upTo(n int) []int {
	var out []int
	for i := range n {
		out = append(out, i+1)
	}
	return out
}

// metamorphic holds a scan to its promise: the same rows in the same batches, whatever the size of record
// batches and wherever it starts.
func metamorphic(t *testing.T, tbl *Table, want []string, base ...ScanOptions) {
	t.Helper()
	if base == nil {
		base = []ScanOptions{{}}
	}
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, size := range []int64{1, 2, 7, 1000} {
		var cuts []rows.Cursor
		for _, record := range []int64{0, 1, 3} {
			what := fmt.Sprintf("batches of %d, record batches of %d", size, record)
			o := base[0]
			o.BatchRows, o.RecordRows, o.Memory = size, record, mem
			s, err := tbl.PlanScan(t.Context(), o)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			got, ends, err := all(t.Context(), s)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			equal(t, what, got, want)
			if len(ends) != len(want)/int(size) {
				t.Errorf("%s: %d batches end in %d rows", what, len(ends), len(want))
			}
			if cuts == nil {
				cuts = ends
			} else if !slices.Equal(cuts, ends) {
				t.Errorf("%s: batches end at %v, by default at %v", what, ends, cuts)
			}
			for i, end := range ends {
				o.From = &end
				s, err := tbl.PlanScan(t.Context(), o)
				if err != nil {
					t.Fatalf("%s, from %s: %v", what, end, err)
				}
				got, rest, err := all(t.Context(), s)
				if err != nil {
					t.Fatalf("%s, from %s: %v", what, end, err)
				}
				equal(t, fmt.Sprintf("%s, from %s", what, end), got, want[(i+1)*int(size):])
				if !slices.Equal(rest, ends[i+1:]) {
					t.Errorf("%s, from %s: batches end at %v, want %v", what, end, rest, ends[i+1:])
				}
			}
		}
	}
}

// threeFiles makes a table of three files with several row groups, IDs 1 to 20 in the order of the scan.
func threeFiles(t *testing.T, props ...string) (*Table, []string) {
	t.Helper()
	tbl := newTable(t, idAndText(), unpartitioned(), props...)
	var paths []string
	for _, groups := range [][]string{{ids(1, 5), ids(6, 8), ids(9, 10)}, {ids(11, 11)}, {ids(12, 18), ids(19, 20)}} {
		f := data(t, tbl, groups...)
		paths = append(paths, f.FilePath())
		tx := tbl.NewTransaction()
		if err := tx.AddFiles(t.Context(), []string{f.FilePath()}, nil, false); err != nil {
			t.Fatal(err)
		}
		loaded, err := tx.Commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tbl.Table = loaded
	}
	return tbl, paths
}

func TestScanCuts(t *testing.T) {
	for _, version := range []string{"version=1", "version=2"} {
		t.Run(version, func(t *testing.T) {
			tbl, _ := threeFiles(t, version)
			metamorphic(t, tbl, lines(upTo(20)...))
		})
	}
}

// TestScanOrder: files in the order of their data sequence number, then of their path, though the
// library gives the newest first; v1 tables have no sequence numbers.
func TestScanOrder(t *testing.T) {
	for version, want := range map[string][]int{"2": {3, 4, 1, 2}, "1": {1, 2, 3, 4}} {
		t.Run("v"+version, func(t *testing.T) {
			tbl := newTable(t, idAndText(), unpartitioned(), "version="+version)
			first, second := data(t, tbl, ids(1, 2)), data(t, tbl, ids(3, 4)) // by path
			for _, f := range []string{second.FilePath(), first.FilePath()} {
				tx := tbl.NewTransaction()
				if err := tx.AddFiles(t.Context(), []string{f}, nil, false); err != nil {
					t.Fatal(err)
				}
				loaded, err := tx.Commit(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				tbl.Table = loaded
			}
			equal(t, "rows", scanned(t, tbl, ScanOptions{}), lines(want...))
		})
	}
}

// TestScanLimit: a trial reads no more than it was asked for.
func TestScanLimit(t *testing.T) {
	tbl, _ := threeFiles(t)
	for limit := int64(1); limit <= 21; limit++ {
		got := scanned(t, tbl, ScanOptions{Limit: limit, BatchRows: 3})
		equal(t, fmt.Sprint("limit ", limit), got, lines(upTo(int(min(limit, 20)))...))
	}
}

// openFiles are the Parquet files that this process holds open.
func openFiles(t *testing.T) (out []string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasSuffix(to, ".parquet") {
			out = append(out, to)
		}
	}
	return out
}

// TestScanPromises: a span that nobody opens counts all the same, and opens to its rows at most.
func TestScanPromises(t *testing.T) {
	tbl, _ := threeFiles(t)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	s, err := tbl.PlanScan(t.Context(), ScanOptions{BatchRows: 8, Memory: mem})
	if err != nil {
		t.Fatal(err)
	}
	stream := s.Stream(t.Context())
	var got []string
	for span, err := range stream.Spans {
		if err != nil {
			t.Fatal(err)
		}
		kind := "opened"
		if span.Part != nil {
			kind = fmt.Sprintf("group %d from %d of %d", span.Part.Ordinal, span.Part.From, span.Part.GroupRows)
		}
		got = append(got, fmt.Sprintf("%s, %d rows, ends %v", kind, span.Rows, span.EndsBatch))
		span.Release()
	}
	equal(t, "spans", got, []string{
		"group 0 from 0 of 5, 5 rows, ends false", "group 1 from 0 of 3, 3 rows, ends true", "group 2 from 0 of 2, 2 rows, ends false",
		"group 0 from 0 of 1, 1 rows, ends false", "group 0 from 0 of 7, 5 rows, ends true", "group 0 from 5 of 7, 2 rows, ends false", "group 1 from 0 of 2, 2 rows, ends false",
	})
	if seal, err := stream.Seal(); err != nil || seal.Rows != 20 {
		t.Errorf("seal %+v, %v", seal, err)
	}
	if open := openFiles(t); len(open) > 0 {
		t.Errorf("open files: %s", open)
	}
}

// TestScanBreaksOff: a consumer may stop after any span, or a context end: nothing is held, no seal is given.
func TestScanBreaksOff(t *testing.T) {
	tbl, _ := threeFiles(t)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, open := range []bool{true, false} {
		for stop := 1; ; stop++ {
			s, err := tbl.PlanScan(t.Context(), ScanOptions{BatchRows: 3, RecordRows: 2, Memory: mem})
			if err != nil {
				t.Fatal(err)
			}
			stream := s.Stream(t.Context())
			if open {
				stream = rows.Opened(t.Context(), stream)
			}
			n := 0
			for span, err := range stream.Spans {
				if err != nil {
					t.Fatal(err)
				}
				span.Release()
				if n++; n == stop {
					break
				}
			}
			if n < stop {
				break
			}
			if _, err := stream.Seal(); !errors.Is(err, rows.ErrUnsealed) {
				t.Errorf("stopped after %d spans: seal error %v", n, err)
			}
			if files := openFiles(t); len(files) > 0 {
				t.Fatalf("stopped after %d spans, open files: %s", stop, files)
			}
		}
	}
	for stop := range 12 {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := tbl.PlanScan(ctx, ScanOptions{BatchRows: 3, RecordRows: 2, Memory: mem})
		if err != nil {
			t.Fatal(err)
		}
		stream := rows.Opened(ctx, s.Stream(ctx))
		n := 0
		var last error
		for span, err := range stream.Spans {
			if last = err; err != nil {
				break
			}
			span.Release()
			if n++; n > stop {
				cancel()
			}
		}
		if _, err := stream.Seal(); !errors.Is(last, context.Canceled) || !errors.Is(err, rows.ErrUnsealed) {
			t.Errorf("cancelled after %d spans: %v, seal %v", stop, last, err)
		}
		cancel()
	}
	if files := openFiles(t); len(files) > 0 {
		t.Errorf("open files: %s", files)
	}
}

// TestScanStarts: a cursor that is not in the snapshot is refused.
func TestScanStarts(t *testing.T) {
	tbl, paths := threeFiles(t)
	for _, c := range []struct {
		at   rows.Cursor
		want string
	}{
		{rows.Cursor{File: 3}, "3 data files"},
		{rows.Cursor{File: -1}, "3 data files"},
		{rows.Cursor{File: 1, Row: 1, Path: paths[0]}, "where file 1 is"},
		{rows.Cursor{File: 0, RowGroup: 3}, "behind the end"},
		{rows.Cursor{File: 0, RowGroup: 1, Row: 4}, "behind the end"},
	} {
		_, err := tbl.PlanScan(t.Context(), ScanOptions{From: &c.at})
		fails(t, c.at.String(), err, c.want)
	}
	end := rows.Cursor{File: 2, RowGroup: 1, Row: 2, Path: paths[2]}
	if got := scanned(t, tbl, ScanOptions{From: &end}); len(got) > 0 {
		t.Errorf("behind the end: %s", got)
	}
}

// TestScanOfNothing: case 82. A table without a snapshot is an empty stream with a seal.
func TestScanOfNothing(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	if got := scanned(t, tbl, ScanOptions{}); len(got) > 0 {
		t.Errorf("rows: %s", got)
	}
	c, err := tbl.Count(t.Context(), Pin{}, nil, nil)
	if err != nil || c.Rows != 0 || c.Snapshot != nil {
		t.Errorf("count %+v, %v", c, err)
	}
}
