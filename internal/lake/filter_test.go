package lake

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/filter"
)

func condition(t testing.TB, text string) *filter.Expr {
	t.Helper()
	e, err := filter.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// where holds a filtered scan to a scan's promise, pruned and not.
func where(t *testing.T, tbl *Table, text string, want []string) {
	t.Helper()
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("%s, whole plan %t", text, whole), func(t *testing.T) {
			metamorphic(t, tbl, want, ScanOptions{Filter: condition(t, text), WholePlan: whole})
		})
	}
}

// TestFilterCuts: batches hold as many rows that pass as they should, and end where a scan can go on.
func TestFilterCuts(t *testing.T) {
	tbl, _ := threeFiles(t)
	where(t, tbl, "id IN (2, 5, 6, 8, 11, 19, 20)", lines(2, 5, 6, 8, 11, 19, 20))
	where(t, tbl, "p NOT LIKE 'x1%'", lines(2, 3, 4, 5, 6, 7, 8, 9, 20))
	where(t, tbl, "id > 18", lines(19, 20))
	where(t, tbl, "id > 20", nil)
	where(t, tbl, "FALSE", nil)
	where(t, tbl, "id IS NOT NULL OR id IS NULL", lines(upTo(20)...))
}

// TestFilterDeletes: case 23, a filter beside position deletes at the edges of row groups.
func TestFilterDeletes(t *testing.T) {
	tbl, paths := threeFiles(t)
	delta(t, tbl, nil, positionsOf(t, tbl, map[string][]int64{
		paths[0]: {0, 4, 5, 9}, paths[1]: {0}, paths[2]: {6, 7},
	}, paths[0], paths[1], paths[2]))
	where(t, tbl, "id <= 6 OR p = 'x9' OR id >= 18", lines(2, 3, 4, 9, 20))
}

// TestFilterEqualityDeletes: nothing is pruned by the library where a file of equality deletes may hold
// bounds of columns that are no keys.
func TestFilterEqualityDeletes(t *testing.T) {
	tbl, _ := threeFiles(t)
	schema := schemaOf(opt(1, "id", prim.Int64), opt(2, "p", prim.String))
	delta(t, tbl, nil, keysOf(t, tbl, arrowOf(t, schema, true), []int{2}, `[{"id":1000,"p":"x7"},{"id":1000,"p":"x19"}]`))
	where(t, tbl, "id < 9", lines(1, 2, 3, 4, 5, 6, 8))
	where(t, tbl, "p = 'x7' OR id = 20", lines(20))
}

// TestFilterReadsMore: a column that is not selected is read for the filter and not passed on.
func TestFilterReadsMore(t *testing.T) {
	tbl, _ := threeFiles(t)
	equal(t, "rows", scanned(t, tbl, ScanOptions{Filter: condition(t, "id < 3"), Select: []string{"p"}}), []string{`{"p":"x1"}`, `{"p":"x2"}`})
	equal(t, "rows", scanned(t, tbl, ScanOptions{Filter: condition(t, "id >= 12"), Limit: 3}), lines(12, 13, 14))
	equal(t, "rows", scanned(t, tbl, ScanOptions{Filter: condition(t, "p = 'x13'"), Select: []string{"p", "id"}}), []string{`{"id":13,"p":"x13"}`})
	equal(t, "rows", scanned(t, tbl, ScanOptions{Filter: condition(t, "id IN (3, 5, 14)"), Select: []string{}}), []string{`{}`, `{}`, `{}`})
	equal(t, "rows", scanned(t, tbl, ScanOptions{Select: []string{}}), slices.Repeat([]string{`{}`}, 20))
}

// TestFilterSkips counts what is not read: files and row groups whose bounds exclude a range of the
// column that the rows are sorted by.
func TestFilterSkips(t *testing.T) {
	tbl, _ := threeFiles(t)
	bytes := func(o ScanOptions) (int64, Skipped, int64) {
		s, err := tbl.PlanScan(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := all(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		stream := s.Stream(t.Context())
		for span, err := range stream.Spans {
			if err != nil {
				t.Fatal(err)
			}
			span.Release()
		}
		seal, err := stream.Seal()
		if err != nil {
			t.Fatal(err)
		}
		return seal.BytesRead, s.Skipped(), s.Header().Expected.Rows
	}
	wholeBytes, none, _ := bytes(ScanOptions{})
	if none != (Skipped{}) {
		t.Errorf("without a filter %+v is skipped", none)
	}
	for _, c := range []struct {
		text     string
		want     Skipped
		expected int64
	}{
		{"id BETWEEN 6 AND 8", Skipped{Files: 2, RowGroups: 2}, 3},
		{"id = 11", Skipped{Files: 2}, 1},
		{"id > 18", Skipped{Files: 2, RowGroups: 1}, 2},
		{"id = 7 OR p = 'x19'", Skipped{Files: 1, RowGroups: 1}, 12},
		{"p LIKE 'x2%'", Skipped{Files: 1, RowGroups: 2}, 9},
		{"p IS NULL", Skipped{Files: 3}, 0},
		{"id != 5", Skipped{}, 20},
	} {
		read, skipped, expected := bytes(ScanOptions{Filter: condition(t, c.text)})
		if skipped != c.want || expected != c.expected {
			t.Errorf("%s: %+v is skipped and %d rows expected, want %+v and %d", c.text, skipped, expected, c.want, c.expected)
		}
		if less := c.want != (Skipped{}); (read < wholeBytes) != less {
			t.Errorf("%s: %d bytes are read of %d", c.text, read, wholeBytes)
		}
	}
}

// TestFilterSkipsManifests: those whose partitions exclude the filter are not read.
func TestFilterSkipsManifests(t *testing.T) {
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "k", Transform: iceberg.IdentityTransform{}})
	tbl := newTable(t, idAndText(), spec)
	for n := range int64(5) {
		appended(t, tbl, n, fmt.Sprintf(`[{"id":%d,"p":"a"},{"id":%d,"p":"b"}]`, 2*n, 2*n+1))
		tbl = load(t, tbl)
	}
	s, err := tbl.PlanScan(t.Context(), ScanOptions{Filter: condition(t, "id IN (4, 5, 8)")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Skipped(), (Skipped{Manifests: 3, Files: 7}); got != want {
		t.Errorf("%+v is skipped, want %+v", got, want)
	}
	where(t, tbl, "id >= 7", []string{`{"id":7,"p":"b"}`, `{"id":8,"p":"a"}`, `{"id":9,"p":"b"}`})
}

// TestFilterPromoted: case 43, bounds of before a promotion are four bytes for a long.
func TestFilterPromoted(t *testing.T) {
	schema := schemaOf(opt(1, "id", prim.Int32), opt(2, "p", prim.String))
	tbl := newTable(t, schema, unpartitioned())
	appended(t, tbl, 0, `[{"id":1,"p":"a"},{"id":null,"p":"b"}]`)
	tbl = load(t, tbl)
	tx := tbl.NewTransaction()
	if err := tx.UpdateSchema(true, false).UpdateColumn([]string{"id"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: prim.Int64, Valid: true}}).Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	tbl = load(t, tbl)
	appended(t, tbl, 1, `[{"id":1099511627776,"p":"c"}]`)
	tbl = load(t, tbl)
	where(t, tbl, "id > 1", []string{`{"id":1099511627776,"p":"c"}`})
	where(t, tbl, "id < 1099511627776", []string{`{"id":1,"p":"a"}`})
	where(t, tbl, "id IS NULL", []string{`{"id":null,"p":"b"}`})
	s, err := tbl.PlanScan(t.Context(), ScanOptions{Filter: condition(t, "id > 1")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Skipped(), (Skipped{Files: 1}); got != want {
		t.Errorf("%+v is skipped, want %+v", got, want)
	}
}

// TestFilterUnfit: a filter that does not fit the table is refused with its place in the text.
func TestFilterUnfit(t *testing.T) {
	tbl, _ := threeFiles(t)
	_, err := tbl.PlanScan(t.Context(), ScanOptions{Filter: condition(t, "id > 1 AND q = 2")})
	fails(t, "an unknown column", err, `row filter: there is no column "q"`)
	var unfit *FilterError
	if !errors.As(err, &unfit) || unfit.Caret() != "id > 1 AND q = 2\n           ^" {
		t.Errorf("the place is %q", unfit.Caret())
	}
}

// TestFilterHeader: the header has the canonical form, none for a filter that all rows pass.
func TestFilterHeader(t *testing.T) {
	tbl, _ := threeFiles(t)
	for text, want := range map[string]string{"NOT id <= 5": "id >= 6", "TRUE": "", "id = 1 OR NOT FALSE": "", "id = 0.5": "FALSE"} {
		s, err := tbl.PlanScan(t.Context(), ScanOptions{Filter: condition(t, text)})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Header().RowFilter; got != want {
			t.Errorf("%s: the header has %q, want %q", text, got, want)
		}
	}
}

// TestCountWhere: what passes is counted by the manifests where they tell, by reading where they do not.
func TestCountWhere(t *testing.T) {
	tbl, paths := threeFiles(t)
	delta(t, tbl, nil, positionsOf(t, tbl, map[string][]int64{paths[0]: {0, 9}, paths[2]: {8}}, paths[0], paths[2]))
	for _, c := range []struct {
		text                 string
		rows, files, scanned int64
	}{
		{"id > 11", 8, 1, 0},
		{"id >= 11", 9, 2, 0},
		{"id <= 12", 10, 3, 1},
		{"id = 3 OR p = 'x20'", 1, 2, 2},
		{"id IS NOT NULL", 17, 3, 0},
		{"id < 0", 0, 0, 0},
		{"TRUE", 17, 3, 0},
	} {
		got, err := tbl.Count(t.Context(), Pin{}, condition(t, c.text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Rows != c.rows || got.Files != c.files || got.Scanned != c.scanned {
			t.Errorf("%s: %d rows in %d files, %d of them read, want %d, %d, %d", c.text, got.Rows, got.Files, got.Scanned, c.rows, c.files, c.scanned)
		}
	}
	if open := openFiles(t); len(open) > 0 {
		t.Errorf("open files: %s", open)
	}
}
