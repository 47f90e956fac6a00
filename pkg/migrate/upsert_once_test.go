package migrate_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
)

// ways are how rows are taken out of a table of a format version, one of each kind.
var ways = []struct {
	version int
	mode    string
}{{1, migrate.DeleteCopyOnWrite}, {2, migrate.DeletePosition}, {2, migrate.DeleteCopyOnWrite}, {3, migrate.DeletePosition}, {3, migrate.DeleteCopyOnWrite}}

// scattered are changes that meet each other across batches: rows of the destination that are changed twice, or and
// back, new rows that are changed, ones that are there as they are before and after they are changed.
var scattered = []string{
	row(1, "u1"), row(20, "i20"), row(3, "n3"), row(4, "n4"), row(20, "again"), row(5, "u5"), row(1, "n1"), row(4, "u4"), row(21, "i21"),
	row(5, "last5"), row(20, "n20"), row(3, "n3"), row(8, "u8"), row(22, "i22"), row(9, "n9"),
}

func with(rows []string, changed ...string) []string {
	out := slices.Concat(rows, changed)
	slices.Sort(out)
	return out
}

// All batches land as one snapshot, and its rows are those that a commit of each batch leaves, whatever the rule for
// keys that the source holds more than once, the size of batches, and the way in which rows are taken out.
func TestUpsertOnce(t *testing.T) {
	n := ids(0, 10)
	keep := func(but ...int) []string {
		var out []string
		for i, r := range n {
			if !slices.Contains(but, i) {
				out = append(out, r)
			}
		}
		return out
	}
	last := with(keep(4, 5, 8), row(4, "u4"), row(5, "last5"), row(8, "u8"), row(20, "n20"), row(21, "i21"), row(22, "i22"))
	first := with(keep(1, 5, 8), row(1, "u1"), row(5, "u5"), row(8, "u8"), row(20, "i20"), row(21, "i21"), row(22, "i22"))
	for w, way := range ways {
		for b, batch := range thin[int64](1, 2, 7, 100) {
			for p, policy := range []string{"", migrate.DuplicateLast, migrate.DuplicateFirst, migrate.DuplicateError} {
				if batch != 2 && way.version > 1 && way.mode == migrate.DeleteCopyOnWrite {
					continue // as version 1 has it
				}
				want := [][]string{last, last, first, nil}[p]
				f := []form{one, three}[(w+b+p)%2]
				t.Run(fmt.Sprintf("v%d %s, batches of %d, %s, %s", way.version, way.mode, batch, policy, f.name), func(t *testing.T) {
					j := upsertTo(t, way.version, way.mode, batch, scattered...)
					j.upsert.Duplicates, j.checkpoint = policy, checkpointPath(t)
					before := j.to.load(t, "dst").MetadataLocation()
					j.once = true
					r, err := f.run(j, t.Context(), t)
					if want == nil || policy == "" && batch > 2 {
						wantError(t, err, "two rows of the source have key (id=")
						equal(t, "metadata", j.to.load(t, "dst").MetadataLocation(), before)
						return
					}
					must(t, err)
					equal(t, "rows", j.to.live(t, "dst"), want)
					j.sums(t, r, 1)
					updated := int64(3)
					if policy != migrate.DuplicateFirst && batch < 7 {
						updated = 4 // row 1 is changed, and changed back by another batch
					}
					equal(t, "inserted, updated", []int64{r.RowsInserted, r.RowsUpdated}, []int64{3, updated})
					tbl := j.to.load(t, "dst")
					for _, s := range tbl.Metadata().Snapshots() {
						keysOnce(t, liveAt(t, tbl, &s.SnapshotID))
					}
					if way.mode == migrate.DeleteCopyOnWrite {
						equal(t, "delete files", tbl.CurrentSnapshot().Summary.Properties["total-delete-files"], "0")
					}
					if way.version == 3 {
						rowIDsOnce(t, tbl)
					}
					if _, err := os.Stat(j.checkpoint + ".staged"); !errors.Is(err, os.ErrNotExist) {
						t.Errorf("the side file is there: %v", err)
					}

					if batch != 2 {
						return
					}
					batches := upsertTo(t, way.version, way.mode, batch, scattered...)
					batches.upsert.Duplicates = policy
					_, err = f.run(batches, t.Context(), t)
					must(t, err)
					equal(t, "rows of a commit a batch", batches.to.live(t, "dst"), want)
				})
			}
		}
	}
}

// sums holds the receipt of a finished job against its one snapshot and its checkpoint.
func (j *job) sums(t *testing.T, r migrate.Receipt, snapshots int) {
	t.Helper()
	equal(t, "complete", r.Complete, true)
	equal(t, "snapshots", len(r.NewSnapshots), snapshots)
	equal(t, "all counts", r.RowsInserted+r.RowsUpdated+r.RowsUnchanged+r.RowsSurplus+r.RowsRejected, r.RowsMoved)
	if j.checkpoint == "" {
		return
	}
	c := j.note(t)
	equal(t, "state", c.State, ckpt.Complete)
	equal(t, "rows moved in all", c.Totals.RowsMoved, int64(len(scattered)))
	equal(t, "all counts of the checkpoint", c.Totals.RowsInserted+c.Totals.RowsUpdated+c.Totals.RowsUnchanged+c.Totals.RowsSurplus+c.Totals.RowsRejected, c.Totals.RowsMoved)
	of := j.to.load(t, "dst").CurrentSnapshot().Summary.Properties
	for name, n := range map[string]int64{"inserted": c.Totals.RowsInserted, "updated": c.Totals.RowsUpdated, "unchanged": c.Totals.RowsUnchanged, "surplus": c.Totals.RowsSurplus} {
		equal(t, name+" by the snapshot", of["icepipe.rows-"+name], fmt.Sprint(n))
	}
}

// rowIDsOnce holds the rows of a table of format version 3 to have an ID each.
func rowIDsOnce(t *testing.T, tbl *table.Table) {
	t.Helper()
	seen := map[int64]bool{}
	eachRowID(t, tbl, tbl.CurrentSnapshot(), func(id int64, rowID *int64) {
		switch {
		case rowID == nil:
			t.Errorf("row %d has no row ID", id)
		case seen[*rowID]:
			t.Errorf("row ID %d is there twice", *rowID)
		default:
			seen[*rowID] = true
		}
	})
}
