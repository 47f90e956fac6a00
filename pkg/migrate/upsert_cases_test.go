package migrate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"

	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// An upsert right after the job gave the destination a column: the rows that are there are found, with null in the new
// column, no snapshot comes but the batches', and the mode stays what it is (cases 13 and 14). No equality delete is
// written (cases 20 and 26).
func TestUpsertAfterAutoAdd(t *testing.T) {
	wide := iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "name", prim.String), field(3, "city", prim.String))
	for version, of := range modes {
		for _, mode := range of {
			for _, f := range []form{one, three} {
				t.Run(fmt.Sprintf("v%d %s, %s", version, mode, f.name), func(t *testing.T) {
					j := upsertTo(t, version, mode, 2)
					j.from.create(t, "wide", wide)
					j.from.insert(t, "wide", `{"id":1,"name":"n1","city":null}`, `{"id":2,"name":"n2","city":"Oslo"}`, `{"id":20,"name":"n20","city":"Bonn"}`)
					j.src, j.reconcile.MissingInDest = "wide", plan.PolicyAutoAdd
					r, err := f.run(j, t.Context(), t)
					must(t, err)
					equal(t, "inserted, updated, unchanged", []int64{r.RowsInserted, r.RowsUpdated, r.RowsUnchanged}, []int64{1, 1, 1})
					want := []string{`{"city":"Oslo","id":2,"name":"n2"}`, `{"city":"Bonn","id":20,"name":"n20"}`}
					for _, i := range []int{0, 1, 3, 4, 5, 6, 7, 8, 9} {
						want = append(want, fmt.Sprintf(`{"city":null,"id":%d,"name":"n%d"}`, i, i))
					}
					slices.Sort(want)
					equal(t, "rows", j.to.live(t, "dst"), want)
					tbl := j.to.load(t, "dst")
					equal(t, "snapshots", len(tbl.Metadata().Snapshots()), 2+len(r.NewSnapshots))
					equal(t, "batches", len(r.NewSnapshots), 2)
					for _, s := range tbl.Metadata().Snapshots() {
						if n := s.Summary.Properties["total-equality-deletes"]; n != "0" && n != "" {
							t.Errorf("snapshot %d has %s equality deletes", s.SnapshotID, n)
						}
					}
				})
			}
		}
	}
}

// Keys of two columns, 100,000 of them, half of which are there, are one batch and one snapshot (case 8).
func TestUpsertOfManyKeys(t *testing.T) {
	const n = 100_000
	schema := iceberg.NewSchema(0, field(1, "a", prim.Int64), field(2, "b", prim.String), field(3, "v", prim.Int64))
	made := func(from, to, v int) (rows []string) {
		for i := from; i < to; i++ {
			rows = append(rows, fmt.Sprintf(`{"a":%d,"b":"b%d","v":%d}`, i/10, i%10, v))
		}
		return rows
	}
	from, to := newStore(t), newStore(t)
	from.create(t, "src", schema)
	from.insert(t, "src", made(n/2, n*3/2, 2)...)
	to.create(t, "dst", schema, catalog.WithProperties(iceberg.Properties{"format-version": "2"}))
	to.insert(t, "dst", made(0, n, 1)...)
	j := newJob(from, to, n)
	j.upsert = &migrate.UpsertOptions{Keys: []string{"a", "b"}}
	r, err := one.run(j, t.Context(), t)
	must(t, err)
	equal(t, "inserted, updated, snapshots", []int64{r.RowsInserted, r.RowsUpdated, int64(len(r.NewSnapshots))}, []int64{n / 2, n / 2, 1})
	want := slices.Concat(made(0, n/2, 1), made(n/2, n*3/2, 2))
	slices.Sort(want)
	if got := to.live(t, "dst"); !slices.Equal(got, want) {
		t.Errorf("%d rows, or other ones, want %d", len(got), len(want))
	}
}
