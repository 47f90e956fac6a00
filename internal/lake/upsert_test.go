package lake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/datafile"
)

// A place is where a row lives, and its row ID in format version 3.
type livePlace struct {
	path string
	at   uint64
	id   *int64
}

// placesByID are the places of the live rows of a snapshot, by their column id.
func placesByID(t testing.TB, tbl *Table, head *table.Snapshot) map[int64][]livePlace {
	t.Helper()
	out := map[int64][]livePlace{}
	if head == nil {
		return out
	}
	schema := tbl.Schema().ID
	scan, err := tbl.PlanScan(t.Context(), ScanOptions{Pin: Pin{Snapshot: &head.SnapshotID, SchemaID: &schema}, Select: []string{"id"}, lineage: tbl.Metadata().Version() >= 3})
	if err != nil {
		t.Fatal(err)
	}
	err = scan.eachLive(t.Context(), func(rows liveRows) error {
		ids := rows.batch.Column(0).(*array.Int64)
		for i, at := range rows.at {
			p := livePlace{path: rows.path, at: uint64(rows.before) + uint64(at)}
			if rows.batch.NumCols() > 1 && rows.batch.Column(1).IsValid(i) {
				id := rows.batch.Column(1).(*array.Int64).Value(i)
				p.id = &id
			}
			out[ids.Value(i)] = append(out[ids.Value(i)], p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// goneOf finds the rows of ids on whatever head it is asked for.
func goneOf(t testing.TB, tbl *Table, ids ...int64) func(context.Context, *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) {
	return func(_ context.Context, head *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) {
		out := map[string]*dv.RoaringPositionBitmap{}
		places := placesByID(t, tbl, head)
		for _, id := range ids {
			for _, p := range places[id] {
				if out[p.path] == nil {
					out[p.path] = dv.NewRoaringPositionBitmap()
				}
				out[p.path].Set(p.at)
			}
		}
		return out, nil
	}
}

// upsertOf is an upsert that takes the rows of ids out, with memory that is checked at the end of the test.
func upsertOf(t testing.TB, tbl *Table, mode DeleteMode, ids ...int64) *Upsert {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return &Upsert{Mode: mode, Job: "job", Resources: datafile.Resources{Jobs: 1}, Gone: goneOf(t, tbl, ids...), mem: mem}
}

// upserted commits rows in the place of those with their ids.
func upserted(t testing.TB, tbl *Table, n int64, mode DeleteMode, text string) Committed {
	t.Helper()
	var rows []struct{ ID int64 }
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	c, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(n), Files: written(t, tbl, text), Upsert: upsertOf(t, tbl, mode, ids...)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// modes are those of a format version.
func modes(version int) []DeleteMode {
	if version == 1 {
		return []DeleteMode{CopyOnWrite}
	}
	return []DeleteMode{CopyOnWrite, MergeOnRead}
}

// eachMode runs a test for each format version and mode.
func eachMode(t *testing.T, f func(t *testing.T, version string, mode DeleteMode)) {
	for version := 1; version <= 3; version++ {
		for _, mode := range modes(version) {
			t.Run(fmt.Sprintf("v%d, %s", version, mode), func(t *testing.T) { f(t, fmt.Sprintf("version=%d", version), mode) })
		}
	}
}

// entriesOf are the live entries of the head's manifests of a content.
func entriesOf(t testing.TB, tbl *Table, content iceberg.ManifestContent) (out []iceberg.ManifestEntry) {
	t.Helper()
	manifests, err := load(t, tbl).CurrentSnapshot().Manifests(mustFS(t, tbl))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifests {
		if m.ManifestContent() != content {
			continue
		}
		for e, err := range m.Entries(mustFS(t, tbl), true) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, e)
		}
	}
	return out
}

// summaryOf are some numbers of the head's summary, - where they are not there.
func summaryOf(t testing.TB, tbl *Table, names ...string) string {
	t.Helper()
	s := load(t, tbl).CurrentSnapshot().Summary
	out := []string{string(s.Operation)}
	for _, name := range names {
		v, ok := s.Properties[name]
		if !ok {
			v = "-"
		}
		out = append(out, name+"="+v)
	}
	return strings.Join(out, " ")
}

// Rows take the place of others, twice in the same file, in tables with and without partitions; the snapshot says
// what Java's library would.
func TestUpsert(t *testing.T) {
	eachMode(t, func(t *testing.T, version string, mode DeleteMode) {
		for _, spec := range []iceberg.PartitionSpec{unpartitioned(), identity(2, "p")} {
			tbl := newTable(t, idAndText(), spec, version)
			appended(t, tbl, 0, `[{"id":1,"p":"x"},{"id":2,"p":"x"},{"id":3,"p":"x"},{"id":4,"p":"y"}]`)
			before := rowIDsByID(t, tbl)
			upserted(t, tbl, 1, mode, `[{"id":2,"p":"x"},{"id":5,"p":"y"}]`)
			soundSummary(t, tbl, 0)
			upserted(t, tbl, 2, mode, `[{"id":3,"p":"y"},{"id":2,"p":null}]`)
			soundSummary(t, tbl, 0)
			equal(t, "rows", sorted(scanned(t, load(t, tbl), ScanOptions{})), []string{`{"id":1,"p":"x"}`, `{"id":2,"p":null}`, `{"id":3,"p":"y"}`, `{"id":4,"p":"y"}`, `{"id":5,"p":"y"}`})
			counts(t, load(t, tbl), 5)
			after := rowIDsByID(t, tbl)
			for _, id := range []int64{1, 4} {
				if before[id] != after[id] {
					t.Errorf("row %d had row ID and sequence number %v, and has %v", id, before[id], after[id])
				}
			}
			sameRowIDs(t, nil, after, len(before)/4*5)
		}
	})
}

// What a merge-on-read says of itself.
func TestUpsertDeleteFiles(t *testing.T) {
	for version, want := range []string{
		2: "overwrite added-data-files=1 added-records=2 added-delete-files=1 added-position-delete-files=1 added-position-deletes=1 added-dvs=- removed-delete-files=- removed-dvs=- total-delete-files=2 total-position-deletes=2 total-records=6 deleted-records=-",
		3: "overwrite added-data-files=1 added-records=2 added-delete-files=1 added-position-delete-files=- added-position-deletes=2 added-dvs=1 removed-delete-files=1 removed-dvs=1 total-delete-files=1 total-position-deletes=2 total-records=6 deleted-records=-",
	} {
		if version == 0 || want == "" {
			continue
		}
		tbl := newTable(t, idAndText(), unpartitioned(), fmt.Sprintf("version=%d", version))
		appended(t, tbl, 0, `[{"id":1,"p":"x"},{"id":2,"p":"x"},{"id":3,"p":"x"}]`)
		upserted(t, tbl, 1, MergeOnRead, `[{"id":2,"p":"y"}]`)
		upserted(t, tbl, 2, MergeOnRead, `[{"id":3,"p":"z"},{"id":4,"p":"z"}]`)
		got := summaryOf(t, tbl, "added-data-files", "added-records", "added-delete-files", "added-position-delete-files", "added-position-deletes", "added-dvs", "removed-delete-files", "removed-dvs", "total-delete-files", "total-position-deletes", "total-records", "deleted-records")
		equal(t, "summary", []string{got}, []string{want})
		for _, e := range entriesOf(t, tbl, iceberg.ManifestContentDeletes) {
			f := e.DataFile()
			path := entriesOf(t, tbl, iceberg.ManifestContentData)
			if ref := f.ReferencedDataFile(); ref == nil || !slices.ContainsFunc(path, func(e iceberg.ManifestEntry) bool { return e.DataFile().FilePath() == *ref }) {
				t.Errorf("v%d: delete file %q is for %v", version, f.FilePath(), ref)
			}
			if !tbl.Ours(f.FilePath()) {
				t.Errorf("v%d: %q is not ours by its name", version, f.FilePath())
			}
			if dvs := version == 3; dvs != (f.ContentOffset() != nil && f.ContentSizeInBytes() != nil && f.FileFormat() == iceberg.PuffinFile) {
				t.Errorf("v%d: %s at %v of %v", version, f.FileFormat(), f.ContentOffset(), f.ContentSizeInBytes())
			}
			if f.SortOrderID() != nil {
				t.Errorf("sort order %d", *f.SortOrderID())
			}
		}
	}
}

// What is to go is where it is said to be, or the commit fails, and is not tried again (case 79).
func TestUpsertRefused(t *testing.T) {
	eachMode(t, func(t *testing.T, version string, mode DeleteMode) {
		tbl := newTable(t, idAndText(), unpartitioned(), version)
		appended(t, tbl, 0, `[{"id":1,"p":"x"},{"id":2,"p":"x"}]`)
		base := tbl.CurrentSnapshot().SnapshotID
		path := entriesOf(t, tbl, iceberg.ManifestContentData)[0].DataFile().FilePath()
		for _, c := range []struct {
			path string
			at   uint64
			want string
		}{
			{"elsewhere.parquet", 0, `data file "elsewhere.parquet", which is not in snapshot`},
			{path, 2, "row 2 is to go of data file"},
			{path, 1 << 40, "which has 2 rows"},
		} {
			u := upsertOf(t, tbl, mode)
			asked := 0
			u.Gone = func(context.Context, *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) {
				asked++
				bits := dv.NewRoaringPositionBitmap()
				bits.Set(c.at)
				return map[string]*dv.RoaringPositionBitmap{c.path: bits}, nil
			}
			_, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(1), Files: written(t, tbl, `[{"id":1,"p":"y"}]`), Upsert: u})
			fails(t, "refused", err, c.want)
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		}
		u := upsertOf(t, tbl, mode)
		stop := errors.New("another writer was here")
		u.Gone = func(context.Context, *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) {
			return nil, Lasting(stop)
		}
		_, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(1), Files: written(t, tbl, `[{"id":1,"p":"y"}]`), Upsert: u})
		if !errors.Is(err, stop) {
			t.Errorf("error %v", err)
		}
		if load(t, tbl).CurrentSnapshot().SnapshotID != base {
			t.Error("something was committed")
		}
	})
	tbl := newTable(t, idAndText(), unpartitioned(), "version=1")
	_, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(1), Files: written(t, tbl, `[{"id":1,"p":"y"}]`), Upsert: upsertOf(t, tbl, MergeOnRead, 1)})
	fails(t, "position deletes in v1", err, "use --delete-mode copy-on-write, or upgrade")
}

// A commit of which no row goes is an append, also the first one of a table.
func TestUpsertOfNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, version string, mode DeleteMode) {
		tbl := newTable(t, idAndText(), unpartitioned(), version)
		upserted(t, tbl, 0, mode, `[{"id":1,"p":"x"}]`)
		upserted(t, tbl, 1, mode, `[{"id":2,"p":"x"}]`)
		equal(t, "summary", []string{summaryOf(t, tbl, "total-records", "total-delete-files", "deleted-records")}, []string{"append total-records=2 total-delete-files=0 deleted-records=-"})
		u := upsertOf(t, tbl, mode)
		u.Gone = func(context.Context, *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) {
			return map[string]*dv.RoaringPositionBitmap{"not there": dv.NewRoaringPositionBitmap(), "nor there": nil}, nil
		}
		if _, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(2), Files: written(t, tbl, `[{"id":3,"p":"x"}]`), Upsert: u}); err != nil {
			t.Fatal(err)
		}
		counts(t, load(t, tbl), 3)
	})
}
