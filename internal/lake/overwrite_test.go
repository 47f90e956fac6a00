package lake

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/datafile"
)

// overwritten commits rows as an overwrite of a job that began at the head.
func overwritten(t testing.TB, tbl *Table, n int64, text string) Committed {
	t.Helper()
	o := &Overwrite{Job: "job", Resources: datafile.Resources{Jobs: 1}}
	if head := tbl.CurrentSnapshot(); head != nil {
		o.Base = &head.SnapshotID
	}
	c, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(n), Files: written(t, tbl, text), Overwrite: o, Since: o.Base})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Case 61, 62: each of NULL, ”, "null" and ' ' is a partition of its own, and nothing but it is replaced.
func TestOverwriteValues(t *testing.T) {
	for version := 1; version <= 3; version++ {
		for _, p := range []string{"null", `""`, `"null"`, `" "`, `"x"`} {
			tbl := newTable(t, idAndText(), identity(2, "p"), fmt.Sprintf("version=%d", version))
			all := []string{"null", `""`, `"null"`, `" "`, `"x"`}
			var want []string
			for i, q := range all {
				appended(t, tbl, int64(i), fmt.Sprintf(`[{"id":%d,"p":%s}]`, i, q))
				if q != p {
					want = append(want, fmt.Sprintf(`{"id":%d,"p":%s}`, i, q))
				}
			}
			overwritten(t, tbl, 9, fmt.Sprintf(`[{"id":100,"p":%s},{"id":101,"p":%s}]`, p, p))
			want = append(want, fmt.Sprintf(`{"id":100,"p":%s}`, p), fmt.Sprintf(`{"id":101,"p":%s}`, p))
			equal(t, fmt.Sprintf("v%d, %s", version, p), sorted(scanned(t, load(t, tbl), ScanOptions{})), sorted(want))
			s := load(t, tbl).CurrentSnapshot().Summary
			summary := fmt.Sprint(s.Operation, s.Properties["deleted-data-files"], s.Properties["deleted-records"], s.Properties["added-records"], s.Properties["total-records"], s.Properties["total-data-files"], s.Properties["changed-partition-count"])
			equal(t, "summary", []string{summary}, []string{"overwrite112651"})
		}
	}
}

// Case 65: NaN, 0.0 and -0.0 are partitions of their own.
func TestOverwriteFloats(t *testing.T) {
	schema := schemaOf(opt(1, "id", prim.Int64), opt(2, "p", prim.Float64))
	for _, p := range []string{`"NaN"`, `-0.0`, `0.0`, `null`} {
		tbl := newTable(t, schema, identity(2, "p"))
		for i, q := range []string{`"NaN"`, `-0.0`, `0.0`, `null`} {
			appended(t, tbl, int64(i), fmt.Sprintf(`[{"id":%d,"p":%s}]`, i, q))
		}
		overwritten(t, tbl, 9, fmt.Sprintf(`[{"id":100,"p":%s}]`, p))
		rows := scanned(t, load(t, tbl), ScanOptions{Select: []string{"id"}})
		if len(rows) != 4 || !slices.Contains(rows, `{"id":100}`) {
			t.Errorf("%s: rows %s", p, rows)
		}
	}
}

// A commit of another writer in a touched partition since the job began is a conflict, one in another
// partition or before it is none; it is looked for at each try.
func TestOverwriteConflicts(t *testing.T) {
	for _, c := range []struct {
		name, foreign, want string
		concurrent          bool
	}{
		{"another partition", `[{"id":2,"p":"y"}]`, "", false},
		{"the same", `[{"id":2,"p":"x"}]`, `(append) added data file`, false},
		{"the same, accepted", `[{"id":2,"p":"x"}]`, "", true},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, late %v", c.name, late), func(t *testing.T) {
				tbl := newTable(t, idAndText(), identity(2, "p"))
				appended(t, tbl, 0, `[{"id":1,"p":"x"}]`)
				base := tbl.CurrentSnapshot().SnapshotID
				foreign := func() { appended(t, load(t, tbl), 1, c.foreign) }
				if !late {
					foreign()
					tbl = load(t, tbl)
				}
				files := written(t, tbl, `[{"id":9,"p":"x"}]`)
				if late {
					foreign() // the first try loses
				}
				_, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(5), Files: files, Since: &base, Overwrite: &Overwrite{Base: &base, Job: "job", Resources: datafile.Resources{Jobs: 1}, Concurrent: c.concurrent}})
				rows := scanned(t, load(t, tbl), ScanOptions{})
				if c.want != "" {
					fails(t, "conflict", err, c.want)
					if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "partition p=x") || len(rows) != 2 {
						t.Errorf("error %v, rows %s", err, rows)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				want := []string{`{"id":9,"p":"x"}`}
				if !c.concurrent {
					want = append([]string{`{"id":2,"p":"y"}`}, want...)
				}
				equal(t, "rows", sorted(rows), want)
			})
		}
	}
}

// What cannot be replaced is refused by name.
func TestOverwriteRefused(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	fails(t, "no partitions", tbl.Overwritable(t.Context(), "main", false), "--yes")
	if err := tbl.Overwritable(t.Context(), "main", true); err != nil {
		t.Error(err)
	}
	tbl = newTable(t, schemaOf(opt(1, "id", prim.Int64), opt(2, "p", prim.String), opt(3, "q", prim.String)), identity(2, "p"))
	appended(t, tbl, 0, `[{"id":1,"p":"x","q":"y"}]`)
	files := written(t, tbl, `[{"id":1,"p":"x","q":"y"}]`)
	changed(t, tbl, func(tx *table.Transaction) error {
		return tx.UpdateSpec(true).RemoveField("p").AddIdentity("q").Commit()
	})
	_, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(5), Files: files, Overwrite: &Overwrite{Job: "job"}})
	fails(t, "the spec changed", err, "what it was to replace is not known any more")
	changed(t, tbl, func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, false).DeleteColumn([]string{"p"}).Commit()
	})
	fails(t, "a lost column", tbl.Overwritable(t.Context(), "main", false), "a column that it partitions by was dropped")
}

// Rows are read and written with no memory left behind; a file that is damaged ends the commit.
func TestOverwriteDamaged(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	appended(t, tbl, 0, `[{"id":1,"p":"x"},{"id":2,"p":"y"}]`)
	changed(t, tbl, func(tx *table.Transaction) error { return tx.UpdateSpec(true).AddIdentity("p").Commit() })
	scan, err := tbl.PlanScan(t.Context(), ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(local(t, scan.FilePath(0)), 100); err != nil {
		t.Fatal(err)
	}
	base := tbl.CurrentSnapshot().SnapshotID
	_, err = tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(5), Files: written(t, tbl, `[{"id":3,"p":"x"}]`), Since: &base, Overwrite: &Overwrite{Base: &base, Job: "job", Resources: datafile.Resources{Jobs: 1}}})
	fails(t, "a damaged file", err, "files of older partition specs")
	if load(t, tbl).CurrentSnapshot().SnapshotID != base {
		t.Error("it was committed")
	}
}

// Rows that were moved since they lay in one file with others that were replaced are not of the job.
func TestOverwriteJobFiles(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	batch := Commit{Branch: "main", Mark: markOf(0), Files: written(t, tbl, `[{"id":1,"p":"x"},{"id":2,"p":"y"}]`)}
	batch.Mark.Job = "another"
	if _, err := tbl.Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	changed(t, tbl, func(tx *table.Transaction) error { return tx.UpdateSpec(true).AddIdentity("p").Commit() })
	c := overwritten(t, tbl, 0, `[{"id":3,"p":"x"}]`)
	equal(t, "rows", sorted(scanned(t, load(t, tbl), ScanOptions{})), []string{`{"id":2,"p":"y"}`, `{"id":3,"p":"x"}`})
	if kept := KeptBy(tbl.Metadata().SnapshotByID(c.Snapshot)); kept.Records != 1 || kept.files != 1 || kept.Bytes == 0 {
		t.Errorf("kept %+v", kept)
	}
	files, err := load(t, tbl).JobFiles(t.Context(), "main", "job", 1)
	if err != nil || len(files.Paths) != 1 {
		t.Fatalf("files %v: %v", files, err)
	}
	equal(t, "rows of the job", scanned(t, load(t, tbl), ScanOptions{Only: files.Paths}), []string{`{"id":3,"p":"x"}`})
}

// soundSummary holds the totals of the head's summary against its manifests. slack is how many bytes were counted
// too many before.
func soundSummary(t *testing.T, tbl *Table, slack int64) {
	t.Helper()
	fresh := load(t, tbl)
	manifests, err := fresh.CurrentSnapshot().Manifests(mustFS(t, tbl))
	if err != nil {
		t.Fatal(err)
	}
	files, records, size, deletes, gone := 0, int64(0), slack, 0, 0
	for _, m := range manifests {
		for e, err := range m.Entries(mustFS(t, tbl), false) {
			if err != nil {
				t.Fatal(err)
			}
			f := e.DataFile()
			switch {
			case e.Status() == iceberg.EntryStatusDELETED:
				if e.SnapshotID() == fresh.CurrentSnapshot().SnapshotID && f.ContentType() == iceberg.EntryContentData {
					gone++
				}
				continue
			case f.ContentType() == iceberg.EntryContentData:
				files, records = files+1, records+f.Count()
			default:
				deletes++
			}
			size += sizeOf(f)
		}
	}
	p := fresh.CurrentSnapshot().Summary.Properties
	deleted := p["deleted-data-files"]
	if deleted == "" {
		deleted = "0"
	}
	got := []string{p["total-data-files"], p["total-records"], p["total-files-size"], p["total-delete-files"], deleted, string(fresh.CurrentSnapshot().Summary.Operation)}
	equal(t, "totals", got, []string{fmt.Sprint(files), fmt.Sprint(records), fmt.Sprint(size), fmt.Sprint(deletes), fmt.Sprint(gone), "overwrite"})
}

// A partition has one key whether its file was just written, comes from a checkpoint's note or from a manifest,
// for every type and transform: else what a job touches would be missed.
func TestOverwriteKeys(t *testing.T) {
	for version := 1; version <= 3; version++ {
		tbl, files := everyPartition(t, version)
		touched, err := tbl.touched(files)
		if err != nil {
			t.Fatal(err)
		}
		if len(touched.keys) != len(files) {
			t.Errorf("v%d: %d partitions of %d files", version, len(touched.keys), len(files))
		}
		for _, f := range files {
			text, err := tbl.EncodeFile(f)
			if err != nil {
				t.Fatal(err)
			}
			noted, err := tbl.DecodeFile(text, int(f.SpecID()))
			if err != nil {
				t.Fatal(err)
			}
			if is, err := touched.of(noted); err != nil || is != wholly {
				t.Errorf("v%d: the noted file of %v has partition %v: %v", version, f.Partition(), noted.Partition(), err)
			}
		}
		if _, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(0), Files: files}); err != nil {
			t.Fatal(err)
		}
		for entry, err := range load(t, tbl).liveFiles(t.Context(), tbl.CurrentSnapshot(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if is, err := touched.of(entry.DataFile()); err != nil || is != wholly {
				t.Errorf("v%d: the manifest's file has partition %v: %v", version, entry.DataFile().Partition(), err)
			}
		}
	}
}

// The first commit after an upgrade to format version 3 gives all rows row IDs; an overwrite does too, those
// that it moves included (specification, "Row Lineage for Upgraded Tables").
func TestOverwriteUpgraded(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	appended(t, tbl, 0, `[{"id":1,"p":"x"},{"id":2,"p":"y"}]`)
	appended(t, tbl, 1, `[{"id":3,"p":"y"},{"id":4,"p":"z"}]`)
	appended(t, tbl, 2, `[{"id":5,"p":"x"}]`)
	changed(t, tbl, func(tx *table.Transaction) error { return tx.UpdateSpec(true).AddIdentity("p").Commit() })
	changed(t, tbl, func(tx *table.Transaction) error { return tx.UpgradeFormatVersion(3) })
	overwritten(t, tbl, 3, `[{"id":6,"p":"x"},{"id":7,"p":"x"}]`)
	equal(t, "rows", sorted(scanned(t, load(t, tbl), ScanOptions{})), []string{`{"id":2,"p":"y"}`, `{"id":3,"p":"y"}`, `{"id":4,"p":"z"}`, `{"id":6,"p":"x"}`, `{"id":7,"p":"x"}`})
	ids := rowIDsByID(t, tbl)
	sameRowIDs(t, nil, ids, 5)
	overwritten(t, tbl, 4, `[{"id":8,"p":"z"}]`)
	after := rowIDsByID(t, tbl)
	sameRowIDs(t, ids, after, 5)
	if next := load(t, tbl).Metadata().NextRowID(); len(after) > 0 && slices.ContainsFunc(slices.Collect(maps.Values(after)), func(v [2]int64) bool { return v[0] >= next }) {
		t.Errorf("row IDs %v, the next one is %d", after, next)
	}
}

// Case 61: a partition ” that stays is found by a filter after its manifest was written anew.
func TestOverwriteKeepsEmptyText(t *testing.T) {
	for version := 1; version <= 3; version++ {
		tbl := newTable(t, idAndText(), identity(2, "p"), fmt.Sprintf("version=%d", version))
		appended(t, tbl, 0, `[{"id":1,"p":""},{"id":2,"p":"x"},{"id":3,"p":null}]`)
		overwritten(t, tbl, 1, `[{"id":4,"p":"x"}]`)
		equal(t, "rows of ''", scanned(t, load(t, tbl), ScanOptions{Filter: condition(t, "p = ''")}), []string{`{"id":1,"p":""}`})
		equal(t, "rows of x", scanned(t, load(t, tbl), ScanOptions{Filter: condition(t, "p = 'x'")}), []string{`{"id":4,"p":"x"}`})
	}
}
