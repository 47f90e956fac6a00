package lake

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/datafile"
)

// filesBelow are the names of the files in a table's data folder that hold a text.
func filesBelow(t *testing.T, tbl *Table, part string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(local(t, tbl.Location()), "data"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.Contains(e.Name(), part) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each try asks anew what is to go, on its own head; what was written for an earlier one is taken again where
// nothing has changed about it, and written anew where another writer has moved the rows.
func TestUpsertOnAnotherHead(t *testing.T) {
	eachMode(t, func(t *testing.T, version string, mode DeleteMode) {
		for _, moved := range []bool{false, true} {
			tbl := newTable(t, idAndText(), unpartitioned(), version)
			appended(t, tbl, 0, `[{"id":1,"p":"x"},{"id":2,"p":"x"}]`)
			u := upsertOf(t, tbl, mode)
			var heads []int64
			u.Gone = func(ctx context.Context, head *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) {
				heads = append(heads, head.SnapshotID)
				return goneOf(t, tbl, 1)(ctx, head)
			}
			tbl.Catalog = &faulty{Catalog: tbl.Catalog, commit: func(n int, land func() error) error {
				if n > 1 {
					return land()
				}
				if other := load(t, tbl); moved {
					other.Catalog = other.Catalog.(*faulty).Catalog
					c := Commit{Branch: "main", Mark: markOf(7), Files: written(t, other, `[{"id":2,"p":"moved"}]`), Upsert: upsertOf(t, other, CopyOnWrite, 2)}
					c.Mark.Job = "another"
					if _, err := other.Append(t.Context(), c); err != nil {
						t.Fatal(err)
					}
				} else {
					another(t, tbl)
				}
				return land()
			}}
			c, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(1), Files: written(t, tbl, `[{"id":1,"p":"y"}]`), Upsert: u})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{`{"id":1,"p":"y"}`, `{"id":2,"p":"x"}`, lines(100)[0]}
			wrote := 1
			if moved {
				want = []string{`{"id":1,"p":"y"}`, `{"id":2,"p":"moved"}`}
				wrote = 2
			}
			equal(t, "rows", sorted(scanned(t, load(t, tbl), ScanOptions{})), sorted(want))
			if c.Tries != 2 || len(heads) != 2 || heads[0] == heads[1] {
				t.Errorf("%d tries, asked on %v", c.Tries, heads)
			}
			part := deletesSuffix
			if mode == CopyOnWrite { // one copy by the first try, one by the other writer, and none of a file of which nothing is left
				part = short(keptJob("job"))
			}
			if got := filesBelow(t, tbl, part); len(got) != wrote {
				t.Errorf("moved %v: files %q, want %d", moved, got, wrote)
			}
		}
	})
}

// writtenAs writes rows of a configuration's schema.
func writtenAs(t *testing.T, config datafile.Config, text string) []iceberg.DataFile {
	t.Helper()
	w, err := datafile.NewWriter(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	batch := record(t, memory.DefaultAllocator, arrowOf(t, config.Schema, true), text)
	defer batch.Release()
	if err := w.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	files, err := w.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Rows that take the place of others have their row IDs where the caller says so, and new ones get IDs of their own.
func TestUpsertLineage(t *testing.T) {
	for _, mode := range modes(3) {
		tbl := newTable(t, idAndText(), identity(2, "p"), "version=3")
		appended(t, tbl, 0, `[{"id":1,"p":"x"},{"id":2,"p":"x"},{"id":3,"p":"x"}]`)
		first := rowIDsByID(t, tbl)
		at := placesByID(t, tbl, tbl.CurrentSnapshot())
		config, err := tbl.FileConfigLineage(t.Context(), datafile.Resources{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		files := writtenAs(t, config, fmt.Sprintf(`[
			{"id":3,"p":"y","_row_id":%d,"_last_updated_sequence_number":null},{"id":4,"p":"y","_row_id":null,"_last_updated_sequence_number":null},
			{"id":1,"p":"x","_row_id":%d,"_last_updated_sequence_number":null}]`, *at[3][0].id, *at[1][0].id))
		if _, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(1), Files: files, Upsert: upsertOf(t, tbl, mode, 1, 3)}); err != nil {
			t.Fatal(err)
		}
		ids := rowIDsByID(t, tbl)
		sameRowIDs(t, nil, ids, 4)
		sequence := tbl.CurrentSnapshot().SequenceNumber
		for id, was := range first {
			want := [2]int64{was[0], sequence}
			if id == 2 {
				want = was
			}
			if ids[id] != want {
				t.Errorf("%s: row %d has row ID and sequence number %v, want %v", mode, id, ids[id], want)
			}
		}
		if new := ids[4]; new[0] < 3 || new[1] != sequence || tbl.Metadata().NextRowID() <= new[0] {
			t.Errorf("%s: the new row has %v, the next row ID is %d", mode, new, tbl.Metadata().NextRowID())
		}
	}
	tbl := newTable(t, idAndText(), unpartitioned())
	_, err := tbl.FileConfigLineage(t.Context(), datafile.Resources{Jobs: 1})
	fails(t, "row IDs in v2", err, "has format version 2, whose rows have no IDs")
}

// Delete files are of the partition of their data file, for values of every type, and name that file; they still
// do after their manifests were merged.
func TestUpsertPartitions(t *testing.T) {
	for version := 2; version <= 3; version++ {
		tbl, files := everyPartition(t, version)
		appendedFiles(t, tbl, 0, files)
		last := files
		for n := int64(1); n < 8; n++ {
			gone := map[string]*dv.RoaringPositionBitmap{}
			for _, f := range last {
				gone[f.FilePath()] = dv.NewRoaringPositionBitmap()
				gone[f.FilePath()].Set(0)
			}
			u := upsertOf(t, tbl, MergeOnRead)
			u.Gone = func(context.Context, *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) { return gone, nil }
			last = written(t, tbl, fmt.Sprintf(`[{"c0":null,"c1":%d}]`, n))
			if _, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(n), Files: last, Upsert: u}); err != nil {
				t.Fatal(err)
			}
		}
		counts(t, load(t, tbl), 1)
		soundDeletes(t, tbl)
		entries := entriesOf(t, tbl, iceberg.ManifestContentDeletes)
		merged := 0
		for _, e := range entries {
			if ref := e.DataFile().ReferencedDataFile(); ref == nil || *ref == "" {
				t.Errorf("v%d: delete file %q names no data file", version, e.DataFile().FilePath())
			}
			if e.Status() == iceberg.EntryStatusEXISTING {
				merged++
			}
		}
		if len(entries) != 8 || merged == 0 {
			t.Errorf("v%d: %d delete files, %d of them in merged manifests", version, len(entries), merged)
		}
	}
}

func appendedFiles(t *testing.T, tbl *Table, n int64, files []iceberg.DataFile) {
	t.Helper()
	if _, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(n), Files: files}); err != nil {
		t.Fatal(err)
	}
}
