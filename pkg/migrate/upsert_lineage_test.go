package migrate_test

import (
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/lake"
)

// eachRowID calls f with the column id of each row at a snapshot and its row ID, nil for none.
func eachRowID(t *testing.T, tbl *table.Table, snapshot *table.Snapshot, f func(id int64, rowID *int64)) {
	t.Helper()
	scan, err := (&lake.Table{Table: tbl}).PlanPlaces(t.Context(), snapshot, lake.PlaceOptions{RowIDs: true})
	must(t, err)
	for i := range scan.Files() {
		must(t, scan.Read(t.Context(), i, nil, func(_ int, _ []int64, batch arrow.RecordBatch) error {
			ids, rowIDs := batch.Column(0).(*array.Int64), batch.Column(int(batch.NumCols())-2).(*array.Int64)
			for r := range ids.Len() {
				if rowIDs.IsNull(r) {
					f(ids.Value(r), nil)
					continue
				}
				rowID := rowIDs.Value(r)
				f(ids.Value(r), &rowID)
			}
			return nil
		}))
	}
}

// rowIDs are the row IDs at a snapshot, by the column id.
func (s *store) rowIDs(t *testing.T, name, snapshot string) map[int64]int64 {
	t.Helper()
	id, err := strconv.ParseInt(snapshot, 10, 64)
	must(t, err)
	tbl := s.load(t, name)
	out := map[int64]int64{}
	eachRowID(t, tbl, tbl.Metadata().SnapshotByID(id), func(id int64, rowID *int64) {
		if rowID != nil {
			out[id] = *rowID
		}
	})
	return out
}

// keepIDs checks that a key that two snapshots of a table have keeps its row ID from one to the next, that rows have
// different ones, and that there are any where rows have IDs.
func keepIDs(t *testing.T, tbl *table.Table) {
	t.Helper()
	if tbl.Metadata().Version() < 3 {
		return
	}
	was := map[int64]int64{}
	for _, s := range tbl.Metadata().Snapshots() {
		now, used := map[int64]int64{}, map[int64]bool{}
		eachRowID(t, tbl, &s, func(id int64, rowID *int64) {
			switch {
			case rowID == nil:
				t.Errorf("snapshot %d: the row of %d has no ID", s.SnapshotID, id)
				return
			case used[*rowID]:
				t.Errorf("snapshot %d: two rows have ID %d", s.SnapshotID, *rowID)
			}
			now[id], used[*rowID] = *rowID, true
			if old, ok := was[id]; ok && old != *rowID {
				t.Errorf("snapshot %d: the row of %d has ID %d, and had %d", s.SnapshotID, id, *rowID, old)
			}
		})
		was = now
	}
}

// The rows of a table that was upgraded from format version 2 get their IDs by the first commit in version 3, which
// may be a batch of the job: the batches behind it keep them (specification, "Row Lineage").
func TestUpsertKeepsIDsOfAnUpgrade(t *testing.T) {
	for _, mode := range modes[3] {
		t.Run(mode, func(t *testing.T) {
			j := upsertTo(t, 2, mode, 1, row(1, "u1"), row(2, "u2"), row(7, "u7"), row(3, "u3"))
			tx := j.to.load(t, "dst").NewTransaction()
			must(t, tx.UpgradeFormatVersion(3))
			_, err := tx.Commit(t.Context())
			must(t, err)
			r, err := one.run(j, t.Context(), t)
			must(t, err)
			equal(t, "updated", r.RowsUpdated, 4)
			first := j.to.rowIDs(t, "dst", r.NewSnapshots[0])
			last := j.to.rowIDs(t, "dst", r.NewSnapshots[3])
			equal(t, "rows with an ID after the first batch", len(first), 10)
			equal(t, "row IDs after the last batch", last, first)
		})
	}
}
