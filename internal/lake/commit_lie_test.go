package lake

import (
	"testing"

	"github.com/apache/iceberg-go"
)

// A catalog that says that a commit landed which is not in the table is not believed: the commit is made again.
func TestAppendThatDidNotLand(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned(), "commit.retry.min-wait-ms=1", "commit.retry.max-wait-ms=1")
	f := &faulty{Catalog: tbl.Catalog, commit: func(n int, land func() error) error {
		if n == 1 {
			return nil
		}
		return land()
	}}
	tbl.Catalog = f
	mark := markOf(0)
	done, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: mark, Files: []iceberg.DataFile{data(t, tbl, ids(1, 3))}})
	if err != nil {
		t.Fatal(err)
	}
	if f.commits != 2 || landings(t, tbl, mark) != 1 || load(t, tbl).CurrentSnapshot().SnapshotID != done.Snapshot {
		t.Errorf("%d commits, %d landings, snapshot %d", f.commits, landings(t, tbl, mark), done.Snapshot)
	}
}
