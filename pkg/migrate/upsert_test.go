package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// live is all rows of a table as the library's scan reads them, deletes applied, in order of their text.
func (s *store) live(t *testing.T, name string) []string {
	t.Helper()
	return liveAt(t, s.load(t, name), nil)
}

func liveAt(t *testing.T, tbl *table.Table, snapshot *int64) []string {
	t.Helper()
	out := []string{}
	if tbl.CurrentSnapshot() == nil {
		return out
	}
	var options []table.ScanOption
	if snapshot != nil {
		options = append(options, table.WithSnapshotID(*snapshot))
	}
	_, records, err := tbl.Scan(options...).ToArrowRecords(t.Context())
	must(t, err)
	for record, err := range records {
		must(t, err)
		if record.NumRows() > 0 {
			out = append(out, texts(t, record)...)
		}
		record.Release()
	}
	slices.Sort(out)
	return out
}

// row is a row of people.
func row(id int, name string) string { return fmt.Sprintf(`{"id":%d,"name":%q}`, id, name) }

// upsertTo is a job that upserts by id into a destination of a format version, with the rows 0 to 9 in two files.
func upsertTo(t *testing.T, version int, mode string, batchRows int64, source ...string) *job {
	t.Helper()
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	if len(source) > 0 {
		from.insert(t, "src", source...)
	}
	to.create(t, "dst", people(), catalog.WithProperties(iceberg.Properties{"format-version": strconv.Itoa(version), "commit.retry.num-retries": "0", "commit.retry.max-wait-ms": "0"}))
	to.insert(t, "dst", ids(0, 5)...)
	to.insert(t, "dst", ids(5, 5)...)
	j := newJob(from, to, batchRows)
	j.upsert = &migrate.UpsertOptions{Keys: []string{"id"}, DeleteMode: mode}
	return j
}

// modes are the ways to take rows out of a table of a format version.
var modes = map[int][]string{
	1: {migrate.DeleteAuto, migrate.DeleteCopyOnWrite},
	2: {migrate.DeleteAuto, migrate.DeleteCopyOnWrite, migrate.DeletePosition},
	3: {migrate.DeleteCopyOnWrite, migrate.DeletePosition},
}

// Rows that are there as they are stay, others take the place of theirs or are added; at every snapshot each key
// is there once (cases 1, 2, 4).
func TestUpsert(t *testing.T) {
	source := slices.Concat(ids(0, 2), []string{row(3, "new3"), row(7, "new7"), row(11, "new11")}, ids(12, 1))
	want := slices.Concat(ids(0, 3), []string{row(3, "new3")}, ids(4, 3), []string{row(7, "new7")}, ids(8, 2), []string{row(11, "new11")}, ids(12, 1))
	slices.Sort(want)
	for version, of := range modes {
		for _, mode := range of {
			for _, batch := range thin[int64](1, 2, 100) {
				for _, f := range []form{one, three} {
					t.Run(fmt.Sprintf("v%d %s, batches of %d, %s", version, mode, batch, f.name), func(t *testing.T) {
						j := upsertTo(t, version, mode, batch, source...)
						r, err := f.run(j, t.Context(), t)
						must(t, err)
						equal(t, "inserted, updated, unchanged, moved", []int64{r.RowsInserted, r.RowsUpdated, r.RowsUnchanged, r.RowsMoved}, []int64{2, 2, 2, 6})
						equal(t, "rows", j.to.live(t, "dst"), want)
						tbl := j.to.load(t, "dst")
						for _, s := range tbl.Metadata().Snapshots() {
							keysOnce(t, liveAt(t, tbl, &s.SnapshotID))
						}
						equal(t, "snapshots", len(tbl.Metadata().Snapshots()), 2+len(r.NewSnapshots))
					})
				}
			}
		}
	}
}

// keysOnce holds rows of people to have each id once.
func keysOnce(t *testing.T, rows []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range rows {
		id := r[:len(`{"id":`)+slices.Index([]byte(r[len(`{"id":`):]), ',')]
		if seen[id] {
			t.Errorf("%s is there twice: %s", id, rows)
		}
		seen[id] = true
	}
}

// Which of the source's rows with one key counts is the same whatever the batch size; within-batch is as the
// reference has it (case 11).
func TestUpsertDuplicates(t *testing.T) {
	source := []string{row(1, "a"), row(20, "b"), row(1, "c"), row(20, "b"), row(1, "n1"), row(20, "d"), row(21, "e")}
	first := slices.Concat(ids(0, 1), []string{row(1, "a")}, ids(2, 8), []string{row(20, "b"), row(21, "e")})
	last := slices.Concat(ids(0, 10), []string{row(20, "d"), row(21, "e")})
	slices.Sort(first)
	slices.Sort(last)
	for _, version := range []int{1, 2, 3} {
		for _, batch := range thin[int64](1, 2, 7, 100) {
			for policy, want := range map[string][]string{migrate.DuplicateFirst: first, migrate.DuplicateLast: last, migrate.DuplicateError: nil, "": last} {
				t.Run(fmt.Sprintf("v%d, batches of %d, %s", version, batch, policy), func(t *testing.T) {
					j := upsertTo(t, version, "", batch, source...)
					j.upsert.Duplicates = policy
					r, err := j.one(t.Context(), t)
					if want == nil || policy == "" && batch > 2 {
						wantError(t, err, "two rows of the source have key (id=1)", "--on-duplicate-key")
						return
					}
					must(t, err)
					equal(t, "rows", j.to.live(t, "dst"), want)
					equal(t, "all counts", r.RowsInserted+r.RowsUpdated+r.RowsUnchanged+r.RowsSurplus, r.RowsMoved)
				})
			}
		}
	}
}

// A null in a key is refused, a value like others, or a row that is added (case 5).
func TestUpsertNullKeys(t *testing.T) {
	null := func(name string) string { return fmt.Sprintf(`{"id":null,"name":%q}`, name) }
	for policy, want := range map[string][]string{
		"":                     nil,
		migrate.NullKeysMatch:  {null("new")},
		migrate.NullKeysInsert: {null("new"), null("old")},
	} {
		t.Run("null keys "+policy, func(t *testing.T) {
			j := upsertTo(t, 2, "", 10, null("new"))
			j.to.insert(t, "dst", null("old"))
			j.upsert.NullKeys = policy
			_, err := j.one(t.Context(), t)
			if want == nil {
				wantError(t, err, "key (id=null)", "--null-keys match")
				return
			}
			must(t, err)
			all := slices.Concat(ids(0, 10), want)
			slices.Sort(all)
			equal(t, "rows", j.to.live(t, "dst"), all)
		})
	}
}

// What cannot be an upsert is refused before anything is written, in a dry run too.
func TestUpsertRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*job)
		says []string
	}{
		"no keys":     {func(j *job) { j.upsert.Keys = nil }, []string{"no identifier fields", "--upsert-keys"}},
		"a blank key": {func(j *job) { j.upsert.Keys = []string{"id", " "} }, []string{"blank"}},
		"a key twice": {func(j *job) { j.upsert.Keys = []string{"id", "id"} }, []string{`"id" is named twice`}},
		"no such key": {func(j *job) { j.upsert.Keys = []string{"nr"} }, []string{`"nr"`, "no such column"}},
		"a key of nothing": {func(j *job) {
			j.dst = "more"
			j.upsert.Keys = []string{"nr"}
			j.reconcile.MissingInSource = plan.PolicyNull
		}, []string{`"nr" comes from no source column`}},
		"skipped columns":  {func(j *job) { j.dst = "more"; j.reconcile.MissingInSource = plan.PolicySkip }, []string{"--on-missing-in-source skip"}},
		"positions in v1":  {func(j *job) { j.dst = "v1"; j.upsert.DeleteMode = migrate.DeletePosition }, []string{"format version 1"}},
		"duplicates there": {func(j *job) { j.to.insert(t, "dst", row(3, "again"), row(4, "again")) }, []string{"rows with the same key", "(id=3)", "(id=4)", "--update-all"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := upsertTo(t, 2, "", 10, ids(0, 3)...)
			j.to.create(t, "more", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "name", prim.String), field(3, "nr", prim.Int64)))
			j.to.create(t, "v1", people(), catalog.WithProperties(iceberg.Properties{"format-version": "1"}))
			c.set(j)
			before := j.to.load(t, j.dst).MetadataLocation()
			_, err := j.one(t.Context(), t)
			wantError(t, err, c.says...)
			equal(t, "metadata", j.to.load(t, j.dst).MetadataLocation(), before)
			if name == "duplicates there" {
				return // which only a reading of the keys finds
			}
			_, err = j.migrator(t).DryRun(t.Context())
			wantError(t, err, c.says...)
		})
	}
}

// A key that is there more than once has all of its rows updated when that is asked for.
func TestUpsertUpdateAll(t *testing.T) {
	j := upsertTo(t, 3, "", 10, row(3, "new"), row(4, "n4"))
	j.to.insert(t, "dst", row(3, "again"), row(4, "n4"))
	j.upsert.UpdateAll = true
	r, err := j.one(t.Context(), t)
	must(t, err)
	equal(t, "inserted, updated, unchanged", []int64{r.RowsInserted, r.RowsUpdated, r.RowsUnchanged}, []int64{0, 2, 2})
	want := slices.Concat(ids(0, 3), []string{row(3, "new"), row(3, "new"), row(4, "n4"), row(4, "n4")}, ids(5, 5))
	slices.Sort(want)
	equal(t, "rows", j.to.live(t, "dst"), want)
}

// A job that stops anywhere goes on by the other form, and each change is made once; undo puts the destination
// back, and redo the changes.
func TestUpsertResume(t *testing.T) {
	source := slices.Concat([]string{row(1, "u1"), row(30, "i30"), row(8, "u8")}, ids(5, 2), []string{row(2, "u2"), row(31, "i31"), row(9, "u9")})
	want := slices.Concat(ids(0, 1), []string{row(1, "u1"), row(2, "u2")}, ids(3, 5), []string{row(8, "u8"), row(9, "u9"), row(30, "i30"), row(31, "i31")})
	slices.Sort(want)
	for _, mode := range []string{migrate.DeletePosition, migrate.DeleteCopyOnWrite} {
		for _, s := range stops {
			for _, first := range s.forms {
				for _, k := range thin(0, 1, 2) {
					t.Run(fmt.Sprintf("%s, %s after %d, %s first", mode, s.name, k, first.name), func(t *testing.T) {
						j := upsertTo(t, 2, mode, 3, source...)
						before := j.to.live(t, "dst")
						j.checkpoint = checkpointPath(t)
						f := first
						for runs := 0; ; runs++ {
							if runs > 8 {
								t.Fatal("no end")
							}
							ctx, cancel := context.WithCancel(t.Context())
							j.shortcut = runs%4 < 2
							s.set(j, k, cancel)
							_, err := f.run(j, ctx, t)
							cancel()
							j.reset()
							if err == nil {
								break
							}
							if !errors.Is(err, s.want) {
								t.Fatalf("run %d: error %v", runs, err)
							}
							keysOnce(t, j.to.live(t, "dst"))
							k = max(k, 1)
							f = other(f, s.forms)
						}
						equal(t, "rows", j.to.live(t, "dst"), want)
						c := j.note(t)
						equal(t, "inserted, updated, unchanged, moved", []int64{c.Totals.RowsInserted, c.Totals.RowsUpdated, c.Totals.RowsUnchanged, c.Totals.RowsMoved}, []int64{2, 4, 2, 8})
						store := ckpt.Open(j.checkpoint)
						_, err := migrate.Undo(t.Context(), store, j.to.open(t, "dst"), migrate.UndoOptions{})
						must(t, err)
						equal(t, "rows after undo", j.to.live(t, "dst"), before)
						_, err = migrate.Redo(t.Context(), store, j.to.open(t, "dst"), false)
						must(t, err)
						equal(t, "rows after redo", j.to.live(t, "dst"), want)
					})
				}
			}
		}
	}
}

// Which row of a key counts is a matter of the whole job, also of one that stops and goes on: the keys of the
// batches before are noted beside the checkpoint.
func TestUpsertDuplicatesResume(t *testing.T) {
	source := []string{row(1, "a"), row(20, "b"), row(1, "c"), row(2, "n2"), row(20, "d"), row(2, "late"), row(21, "e")}
	want := slices.Concat(ids(0, 1), []string{row(1, "a")}, ids(2, 8), []string{row(20, "b"), row(21, "e")})
	slices.Sort(want)
	for _, s := range stops {
		for _, first := range s.forms {
			for _, batch := range thin[int64](1, 2, 3) {
				t.Run(fmt.Sprintf("%s, batches of %d, %s first", s.name, batch, first.name), func(t *testing.T) {
					j := upsertTo(t, 2, "", batch, source...)
					j.upsert.Duplicates = migrate.DuplicateFirst
					j.checkpoint = checkpointPath(t)
					f := first
					for runs := 0; ; runs++ {
						if runs > 8 {
							t.Fatal("no end")
						}
						ctx, cancel := context.WithCancel(t.Context())
						s.set(j, 1+2*runs, cancel)
						_, err := f.run(j, ctx, t)
						cancel()
						j.reset()
						if err == nil {
							break
						}
						if !errors.Is(err, s.want) {
							t.Fatalf("run %d: error %v", runs, err)
						}
						f = other(f, s.forms)
					}
					equal(t, "rows", j.to.live(t, "dst"), want)
				})
			}
		}
	}
}
