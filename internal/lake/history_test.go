package lake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

func snapshot(id int64, parent *int64, summary ...string) table.Snapshot {
	s := table.Snapshot{SnapshotID: id, ParentSnapshotID: parent, Summary: &table.Summary{Properties: map[string]string{}}}
	for _, p := range summary {
		k, v, _ := strings.Cut(p, "=")
		s.Summary.Properties[k] = v
	}
	return s
}

func at(id int64) *int64 { return &id }

// TestMarks: what a snapshot says of its batch is read back as it was written; what cannot be is an error that
// names the snapshot, and for other jobs none at all.
func TestMarks(t *testing.T) {
	m := Mark{Job: "j", Batch: 3, From: rows.Cursor{File: 1, RowGroup: 2, Row: 3, Path: "a b/c"}, To: rows.Cursor{File: 2}, Rows: 7, Settings: "s", Stream: "u"}
	s := snapshot(9, at(8))
	for k, v := range m.Properties() {
		s.Summary.Properties[k] = v
	}
	bare := table.Snapshot{SnapshotID: 1}
	for _, c := range []struct {
		name    string
		summary []string
		foreign bool
		fail    string
	}{
		{"of the reference", []string{MarkJob + "=j", MarkBatch + "=x"}, true, ""},
		{"batch", []string{MarkJob + "=j", MarkBatch + "=x", MarkTo + "=0/0/1", MarkFrom + "=0/0/0"}, false, "job j in snapshot 5"},
		{"no batch", []string{MarkJob + "=j", MarkTo + "=0/0/1", MarkFrom + "=0/0/0"}, false, "job j in snapshot 5"},
		{"huge batch", []string{MarkJob + "=j", MarkBatch + "=99999999999999999999", MarkTo + "=0/0/1", MarkFrom + "=0/0/0"}, false, "out of range"},
		{"rows", []string{MarkJob + "=j", MarkBatch + "=1", MarkTo + "=0/0/1", MarkFrom + "=0/0/0", MarkRows + "=many"}, false, "job j in snapshot 5"},
		{"negative rows", []string{MarkJob + "=j", MarkBatch + "=1", MarkTo + "=0/0/1", MarkFrom + "=0/0/0", MarkRows + "=-1"}, false, "-1"},
		{"negative batch", []string{MarkJob + "=j", MarkBatch + "=-1", MarkTo + "=0/0/1", MarkFrom + "=0/0/0"}, false, "-1"},
		{"cursor", []string{MarkJob + "=j", MarkBatch + "=1", MarkTo + "=0/0/-1", MarkFrom + "=0/0/0"}, false, "not a count"},
		{"no from", []string{MarkJob + "=j", MarkBatch + "=1", MarkTo + "=0/0/1"}, false, "want FILE/ROWGROUP/ROW"},
		{"backwards", []string{MarkJob + "=j", MarkBatch + "=1", MarkTo + "=0/0/1", MarkFrom + "=0/0/2"}, false, "before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := History{Snapshots: []table.Snapshot{s, snapshot(5, at(1), c.summary...), bare}, Whole: true}
			got, err := h.MarksOf("j")
			if other, err := h.MarksOf("another"); err != nil || len(other) > 0 {
				t.Errorf("of another job: %v, %v", other, err)
			}
			if c.fail != "" {
				fails(t, "marks", err, c.fail)
				return
			}
			if err != nil || len(got) != 2 || got[0].Foreign != c.foreign || got[0].same(m) {
				t.Fatalf("%v, %v", got, err)
			}
			want := m
			want.Snapshot, want.Parent = 9, at(8)
			if fmt.Sprint(*got[1].Parent) != "8" || !got[1].same(m) || got[1].Rows != 7 || got[1].From != m.From || got[1].Settings != "s" || got[1].Stream != "u" {
				t.Errorf("got %+v, want %+v", got[1], want)
			}
		})
	}
}

// TestReachesTo: an absence counts only in a history that is unbroken.
func TestReachesTo(t *testing.T) {
	whole := History{Snapshots: []table.Snapshot{snapshot(3, at(2)), snapshot(2, at(1)), snapshot(1, nil)}, Whole: true}
	cut := History{Snapshots: []table.Snapshot{snapshot(3, at(2))}} // as with snapshot-loading-mode=refs
	for _, c := range []struct {
		h    History
		to   *int64
		want bool
	}{
		{whole, nil, true}, {whole, at(1), true}, {whole, at(3), true}, {whole, at(4), false},
		{cut, nil, false}, {cut, at(3), true}, {cut, at(2), true}, {cut, at(1), false},
		{History{Whole: true}, nil, true}, {History{Whole: true}, at(1), false},
	} {
		if got := c.h.ReachesTo(c.to); got != c.want {
			t.Errorf("%d snapshots, to %v: %v", len(c.h.Snapshots), c.to, got)
		}
	}
}

// TestResolve: a pin is a snapshot and the schema of its time; a branch and the current snapshot are read with
// the table's schema of now.
func TestResolve(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	if s, schema, err := tbl.Resolve(Pin{}); s != nil || schema.ID != 0 || err != nil {
		t.Errorf("of nothing: %v, %v, %v", s, schema, err)
	}
	_, _, err := tbl.Resolve(Pin{AsOf: "2020-01-01"})
	fails(t, "of nothing", err, "it has no snapshots")
	first := appended(t, tbl, 0, ids(1, 1))
	update := func(updates ...table.Update) {
		t.Helper()
		if _, _, err := tbl.Catalog.CommitTable(t.Context(), tbl.Identifier(), nil, updates); err != nil {
			t.Fatal(err)
		}
		if err := tbl.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	update(table.NewSetSnapshotRefUpdate("tag", first.Snapshot, table.TagRef, 0, 0, 0), table.NewSetSnapshotRefUpdate("branch", first.Snapshot, table.BranchRef, 0, 0, 0))
	tx := tbl.NewTransaction()
	if err := tx.UpdateSchema(true, false).AddColumn([]string{"new"}, prim.Int32, "", false, nil).Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tbl.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := appended(t, tbl, 1, `[{"id":2,"p":"x2","new":2}]`)
	old, none := 0, 7
	when := tbl.Metadata().SnapshotByID(first.Snapshot).TimestampMs
	for _, c := range []struct {
		pin    Pin
		want   int64
		schema int
		fail   string
	}{
		{pin: Pin{}, want: second.Snapshot, schema: 1},
		{pin: Pin{Ref: "main"}, want: second.Snapshot, schema: 1},
		{pin: Pin{Ref: "branch"}, want: first.Snapshot, schema: 1},
		{pin: Pin{Ref: "tag"}, want: first.Snapshot, schema: 0},
		{pin: Pin{Snapshot: &first.Snapshot}, want: first.Snapshot, schema: 0},
		{pin: Pin{Snapshot: &second.Snapshot, SchemaID: &old}, want: second.Snapshot, schema: 0},
		{pin: Pin{AsOf: fmt.Sprint(when)}, want: first.Snapshot, schema: 0},
		{pin: Pin{AsOf: "2999-01-01T00:00:00+02:00"}, want: second.Snapshot, schema: 1},
		{pin: Pin{AsOf: "1999-01-01 00:00:00"}, fail: "had no snapshot at 1999-01-01T00:00:00Z; it has 2 snapshots"},
		{pin: Pin{AsOf: "yesterday"}, fail: `time "yesterday": want`},
		{pin: Pin{Snapshot: at(5)}, fail: "has no snapshot 5"},
		{pin: Pin{Ref: "no"}, fail: `no branch or tag "no"`},
		{pin: Pin{Snapshot: &second.Snapshot, SchemaID: &none}, fail: "schema 7 is not in the table's metadata"},
	} {
		s, schema, err := tbl.Resolve(c.pin)
		if c.fail != "" {
			fails(t, fmt.Sprintf("%+v", c.pin), err, c.fail)
			continue
		}
		if err != nil || s.SnapshotID != c.want || schema.ID != c.schema {
			t.Errorf("%+v: snapshot %v, schema %v, %v; want %d and %d", c.pin, s, schema, err, c.want, c.schema)
		}
	}
	equal(t, "time travel", scanned(t, tbl, ScanOptions{Pin: Pin{Ref: "tag"}}), lines(1))
	equal(t, "with the old schema", scanned(t, tbl, ScanOptions{Pin: Pin{Snapshot: &second.Snapshot, SchemaID: &old}}), lines(1, 2))
	equal(t, "branch", scanned(t, tbl, ScanOptions{Pin: Pin{Ref: "branch"}}), []string{`{"id":1,"new":null,"p":"x1"}`})
	if _, err := tbl.Branch("tag"); err == nil {
		t.Error("a tag is taken for a branch")
	}
}
