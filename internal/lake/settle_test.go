package lake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// TestAppendAfterExpiry: where the history does not reach back to the attempt's head, the batch's files
// are looked for in the manifests; where they are not there either, nobody can tell.
func TestAppendAfterExpiry(t *testing.T) {
	for _, c := range []struct {
		name  string
		lands bool
	}{{"landed", true}, {"lost", false}} {
		t.Run(c.name, func(t *testing.T) {
			tbl := newTable(t, idAndText(), unpartitioned())
			appended(t, tbl, 0, ids(1, 1))
			real := tbl.Catalog
			tbl.Catalog = &faulty{Catalog: real, commit: func(n int, land func() error) error {
				var err error
				if c.lands {
					err = land()
				}
				another(t, tbl)
				another(t, tbl)
				other := load(t, &Table{Catalog: real, Table: tbl.Table})
				tx := other.NewTransaction()
				if e := tx.ExpireSnapshots(table.WithRetainLast(1), table.WithOlderThan(0), table.WithPostCommit(false)); e != nil {
					t.Fatal(e)
				}
				if _, e := tx.Commit(t.Context()); e != nil {
					t.Fatal(e)
				}
				return errors.Join(err, errCatalog)
			}}
			commit := Commit{Branch: "main", Mark: markOf(1), Files: written(t, tbl, ids(2, 3))}
			got, err := tbl.Append(t.Context(), commit)
			if c.lands {
				if err != nil || got.Snapshot == 0 {
					t.Errorf("committed %+v, %v", got, err)
				}
				return
			}
			if !errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("error %v", err)
			}
			fails(t, "append", err, "have expired")
		})
	}
}

// TestAppendRefuses: what cannot be committed never reaches the catalog.
func TestAppendRefuses(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	f := &faulty{Catalog: tbl.Catalog}
	tbl.Catalog = f
	_, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(0)})
	fails(t, "no files", err, "no files")
	_, err = tbl.Append(t.Context(), Commit{Branch: "nope", Mark: markOf(0), Files: written(t, tbl, ids(1, 1))})
	fails(t, "no branch", err, `no branch "nope"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tbl.Append(ctx, Commit{Branch: "main", Mark: markOf(0), Files: written(t, tbl, ids(1, 1))})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("cancelled: %v", err)
	}
	if n := landings(t, tbl, markOf(0)); n != 0 {
		t.Errorf("%d landings", n)
	}
}

// TestAppendConcurrently: case 77. Four writers, one table: each batch lands once.
func TestAppendConcurrently(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned(), "commit.retry.num-retries=50")
	var wait sync.WaitGroup
	for w := range 4 {
		mine := load(t, tbl)
		wait.Go(func() {
			for n := range 3 {
				mark := markOf(int64(n))
				mark.Job = fmt.Sprint("job ", w)
				if _, err := mine.Append(t.Context(), Commit{Branch: "main", Mark: mark, Files: written(t, mine, ids(w*10+n, w*10+n))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	fresh := load(t, tbl)
	if n := len(fresh.Metadata().Snapshots()); n != 12 {
		t.Errorf("%d snapshots", n)
	}
	got := sorted(scanned(t, fresh, ScanOptions{}))
	want := sorted(lines(0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32))
	equal(t, "rows", got, want)
}

// TestAppendToBranch: the head of the branch moves, main does not.
func TestAppendToBranch(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	first := appended(t, tbl, 0, ids(1, 1))
	if _, _, err := tbl.Catalog.CommitTable(t.Context(), tbl.Identifier(), nil, []table.Update{table.NewSetSnapshotRefUpdate("b", first.Snapshot, table.BranchRef, 0, 0, 0)}); err != nil {
		t.Fatal(err)
	}
	if err := tbl.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := tbl.Append(t.Context(), Commit{Branch: "b", Mark: markOf(1), Files: written(t, tbl, ids(2, 2))})
	if err != nil {
		t.Fatal(err)
	}
	if head, err := tbl.Branch("b"); err != nil || head.SnapshotID != c.Snapshot {
		t.Errorf("head of b: %v, %v", head, err)
	}
	equal(t, "main", scanned(t, tbl, ScanOptions{}), lines(1))
	equal(t, "b", scanned(t, tbl, ScanOptions{Pin: Pin{Ref: "b"}}), lines(1, 2))
}

// TestRetryBound: the loop ends and waits a sensible time, whatever the table's properties hold.
func TestRetryBound(t *testing.T) {
	for _, v := range []string{"", "0", "-1", "-9223372036854775808", "9223372036854775807", "1", "x", "86400000"} {
		for _, w := range []string{"", "0", "-7", "9223372036854775807", "10"} {
			p := iceberg.Properties{}
			if v != "" {
				p["commit.retry.num-retries"], p["commit.retry.min-wait-ms"], p["commit.retry.total-timeout-ms"] = v, v, v
			}
			if w != "" {
				p["commit.retry.max-wait-ms"] = w
			}
			b := newRetryBound(p)
			if b.retries < 0 || b.total < 0 || b.total > longestWait {
				t.Errorf("%v: %+v", p, b)
			}
			for _, try := range []int{1, 2, 30, 1 << 30} {
				if d := b.wait(try); d < 0 || d > b.max || d > longestWait {
					t.Errorf("%v, try %d: wait %s", p, try, d)
				}
			}
		}
	}
	if d := newRetryBound(iceberg.Properties{"commit.retry.min-wait-ms": "0"}).wait(3); d != 0 {
		t.Errorf("no wait asked for: %s", d)
	}
}

// TestReloadOfAnother: a table that was dropped and made anew is not the table, and not asked for again.
func TestReloadOfAnother(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	f := &faulty{Catalog: tbl.Catalog, commit: func(n int, land func() error) error {
		if err := tbl.Catalog.(*faulty).Catalog.DropTable(t.Context(), tbl.Identifier()); err != nil {
			t.Fatal(err)
		}
		if _, err := tbl.Catalog.(*faulty).Catalog.CreateTable(t.Context(), tbl.Identifier(), idAndText()); err != nil {
			t.Fatal(err)
		}
		return errCatalog
	}}
	tbl.Catalog = f
	_, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(0), Files: written(t, tbl, ids(1, 1))})
	fails(t, "append", err, "was dropped and made anew")
	if !errors.Is(err, ErrUnknownOutcome) || f.loads != 1 {
		t.Errorf("%d loads, error %v", f.loads, err)
	}
}
