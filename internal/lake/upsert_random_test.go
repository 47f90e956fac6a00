package lake

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// Whatever specs and deletes a table has had, an upsert takes out the rows that it is to, and no other, whatever
// mode the one before had; rows of v3 have a row ID of their own, and keep it where they were not changed.
func TestUpsertRandom(t *testing.T) {
	seeds := 2
	if testing.Short() {
		seeds = 1
	}
	met := map[string]bool{} // so that the test cannot lose its point
	for seed := range seeds {
		for version := 1; version <= 3; version++ {
			for _, upgraded := range []bool{false, true} {
				if version < 3 && upgraded || testing.Short() && (version == 1 || version == 3 && !upgraded) {
					continue
				}
				t.Run(fmt.Sprintf("seed %d, v%d, upgraded %v", seed, version, upgraded), func(t *testing.T) {
					upsertRandom(t, rand.New(rand.NewPCG(uint64(seed), 11)), version, upgraded, met)
				})
			}
		}
	}
	for _, what := range []string{
		"deleted-records", "removed-position-delete-files", "removed-dvs", "removed-equality-delete-files", markKeptRecords,
		"added-dvs", "added-position-delete-files", "a file all of whose rows went",
	} {
		if !met[what] && !testing.Short() {
			t.Errorf("no upsert had %s", what)
		}
	}
}

func upsertRandom(t *testing.T, random *rand.Rand, version int, upgraded bool, met map[string]bool) {
	first := version
	if upgraded {
		first = 2
	}
	schema := schemaOf(opt(1, "id", prim.Int64), opt(2, "p", prim.String), opt(3, "q", prim.Int64))
	tbl := newTable(t, schema, unpartitioned(), fmt.Sprintf("version=%d", first), "commit.manifest.min-count-to-merge=4")
	model := map[int64]row{}
	next, batch, slack := int64(0), int64(0), int64(0)
	values := []*string{nil, ptr(""), ptr("null"), ptr("a"), ptr("ab"), ptr("b")}
	someOf := func(id int64) row { return row{id, values[random.IntN(len(values))], int64(random.IntN(2))} }
	text := func(rows []row) string {
		out := "["
		for i, r := range rows {
			if i > 0 {
				out += ","
			}
			out += r.text()
		}
		return out + "]"
	}
	holds := func(what string) {
		t.Helper()
		var want []string
		for _, r := range model {
			want = append(want, r.text())
		}
		equal(t, what, sorted(scanned(t, load(t, tbl), ScanOptions{})), sorted(want))
	}
	for at, step := range steps() {
		var rows []row
		for range 8 {
			rows = append(rows, someOf(next))
			model[next] = rows[len(rows)-1]
			next++
		}
		appended(t, tbl, batch, text(rows))
		batch++
		if tbl.Metadata().Version() > 1 {
			slack += deleteSome(t, tbl, random, model)
		}
		changed(t, tbl, func(tx *table.Transaction) error { return step.to(tx.UpdateSpec(true)).Commit() })
		fresh := upgraded && at == 2 // the next commit gives rows their first IDs
		if fresh {
			changed(t, tbl, func(tx *table.Transaction) error { return tx.UpgradeFormatVersion(3) })
		}
		for range 2 {
			now := tbl.Metadata().Version()
			var ids map[int64][2]int64
			if !fresh {
				ids = rowIDsByID(t, tbl)
			}
			fresh = false
			var changes []row
			live := slices.Sorted(maps.Keys(model))
			for _, i := range random.Perm(len(live))[:1+random.IntN(min(6, len(live)))] {
				changes = append(changes, someOf(live[i]))
			}
			changes = append(changes, someOf(next))
			next++
			mode := modes(now)[random.IntN(len(modes(now)))]
			places := placesByID(t, tbl, tbl.CurrentSnapshot())
			left := map[string]int{}
			for id, at := range places {
				if len(at) != 1 {
					t.Fatalf("row %d is in %d places", id, len(at))
				}
				left[at[0].path]++
			}
			for _, r := range changes {
				if at := places[r.ID]; len(at) > 0 {
					if left[at[0].path]--; left[at[0].path] == 0 {
						met["a file all of whose rows went"] = true
					}
				}
				delete(ids, r.ID)
				model[r.ID] = r
			}
			upserted(t, tbl, batch, mode, text(changes))
			batch++
			what := fmt.Sprintf("after %s, %s", step.name, mode)
			holds(what)
			counts(t, load(t, tbl), len(model))
			for name := range load(t, tbl).CurrentSnapshot().Summary.Properties {
				met[name] = true
			}
			soundSummary(t, tbl, slack)
			soundDeletes(t, tbl)
			if now == 3 {
				sameRowIDs(t, ids, rowIDsByID(t, tbl), len(model))
			}
		}
	}
}

// soundDeletes holds the head's deletes against the rules of its format version.
func soundDeletes(t *testing.T, tbl *Table) {
	t.Helper()
	data := map[string]iceberg.DataFile{}
	for _, e := range entriesOf(t, tbl, iceberg.ManifestContentData) {
		data[e.DataFile().FilePath()] = e.DataFile()
	}
	vectors := map[string]bool{}
	for _, e := range entriesOf(t, tbl, iceberg.ManifestContentDeletes) {
		f := e.DataFile()
		of := dataFileOf(f)
		d, live := data[of]
		switch {
		case f.ContentType() != iceberg.EntryContentPosDeletes:
		case of != "" && !live:
			t.Errorf("%q is for %q, which is gone", f.FilePath(), of)
		case of != "" && tbl.place(d) != tbl.place(f):
			t.Errorf("%q is of partition %v, its data file of %v", f.FilePath(), f.Partition(), d.Partition())
		}
		if table.IsDeletionVector(f) {
			if vectors[of] || f.Count() > d.Count() {
				t.Errorf("deletion vector of %d of the %d rows of %q, another one %v", f.Count(), d.Count(), of, vectors[of])
			}
			vectors[of] = true
		}
	}
	for _, e := range entriesOf(t, tbl, iceberg.ManifestContentDeletes) {
		if f := e.DataFile(); !table.IsDeletionVector(f) && vectors[dataFileOf(f)] {
			t.Errorf("%q has position deletes beside its deletion vector", dataFileOf(f))
		}
	}
}
