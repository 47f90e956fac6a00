package lake

import (
	"errors"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

// TestAppendSearchesFirst: a batch that another process committed is not committed again, although
// nothing failed; and where the history cannot tell, nothing is sent.
func TestAppendSearchesFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(t *testing.T, tbl *Table, batch Mark) // what others do, after batch 0
		finds  bool
		fail   string
		none   bool // no commit is sent
	}{
		{name: "nothing"},
		{name: "another's rows", before: func(t *testing.T, tbl *Table, _ Mark) { another(t, tbl) }},
		{name: "the batch", finds: true, none: true, before: func(t *testing.T, tbl *Table, m Mark) {
			appendMark(t, tbl, m)
		}},
		{name: "the batch and the next, another's between", finds: true, none: true, before: func(t *testing.T, tbl *Table, m Mark) {
			appendMark(t, tbl, m)
			another(t, tbl)
			appendMark(t, tbl, markOf(2))
		}},
		{name: "the next alone", none: true, fail: "holds rows 2/0/0 to 3/0/0 of this job, and rows 1/0/0 to 2/0/0 were to be committed", before: func(t *testing.T, tbl *Table, m Mark) {
			appendMark(t, tbl, markOf(2))
		}},
		{name: "half of it", none: true, fail: "is cut in another way", before: func(t *testing.T, tbl *Table, m Mark) {
			m.To = rows.Cursor{File: 1, Row: 1}
			appendMark(t, tbl, m)
		}},
		{name: "another job's batch", before: func(t *testing.T, tbl *Table, m Mark) {
			m.Job = "another"
			appendMark(t, tbl, m)
		}},
		{name: "rolled back", none: true, fail: "it was rolled back meanwhile", before: func(t *testing.T, tbl *Table, m Mark) {
			parent := *tbl.CurrentSnapshot().ParentSnapshotID
			if _, _, err := tbl.Catalog.CommitTable(t.Context(), tbl.Identifier(), nil, []table.Update{table.NewSetSnapshotRefUpdate("main", parent, table.BranchRef, 0, 0, 0)}); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "emptied", none: true, fail: "it was rolled back meanwhile", before: func(t *testing.T, tbl *Table, m Mark) {
			if _, _, err := tbl.Catalog.CommitTable(t.Context(), tbl.Identifier(), nil, []table.Update{table.NewRemoveSnapshotRefUpdate("main")}); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "expired to the one before", before: func(t *testing.T, tbl *Table, m Mark) {
			another(t, tbl)
			expire(t, tbl)
		}},
		{name: "expired", none: true, fail: "have expired that came after the batch before", before: func(t *testing.T, tbl *Table, m Mark) {
			another(t, tbl)
			another(t, tbl)
			expire(t, tbl)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tbl := newTable(t, idAndText(), unpartitioned())
			another(t, tbl)
			tbl = load(t, tbl)
			first := appended(t, tbl, 0, ids(1, 1))
			batch := markOf(1)
			files := written(t, tbl, ids(2, 3))
			if c.before != nil {
				c.before(t, load(t, tbl), batch)
			}
			f := &faulty{Catalog: tbl.Catalog}
			tbl = load(t, tbl)
			tbl.Catalog = f
			got, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: batch, Files: files, Since: &first.Snapshot})
			if c.none && f.commits > 0 {
				t.Errorf("%d commits were sent", f.commits)
			}
			if c.fail != "" {
				fails(t, "append", err, c.fail)
				if errors.Is(err, ErrUnknownOutcome) != (c.name == "expired") {
					t.Errorf("unknown outcome: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tbl.Catalog = f.Catalog
			if n := landings(t, tbl, batch); n != 1 {
				t.Errorf("the batch is in the table %d times", n)
			}
			if s := load(t, tbl).Metadata().SnapshotByID(got.Snapshot); s == nil || s.Summary.Properties[MarkFrom] != batch.From.String() {
				t.Errorf("committed %+v", got)
			}
			if c.finds != (got.Tries == 0) {
				t.Errorf("%d tries", got.Tries)
			}
		})
	}
}

// appendMark commits a row as a batch of that mark, as another process does.
func appendMark(t *testing.T, tbl *Table, m Mark) {
	t.Helper()
	tbl = load(t, tbl)
	tx, err := tbl.NewTransactionOnBranchWithError("main")
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.NewRowDelta(iceberg.Properties(m.Properties())).AddRows(written(t, tbl, ids(50, 50))...).Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// expire leaves the head alone.
func expire(t *testing.T, tbl *Table) {
	t.Helper()
	tx := load(t, tbl).NewTransaction()
	if err := tx.ExpireSnapshots(table.WithRetainLast(1), table.WithOlderThan(0), table.WithPostCommit(false)); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestRetries: case 77. Conflicts have a bound of their own, unless the table's owner says how often.
func TestRetries(t *testing.T) {
	count := func(p iceberg.Properties, failed error) (n int) {
		r := newRetryBound(p).begin()
		for r.made = 1; ; r.made++ {
			wait, more := r.next(failed)
			if wait > r.max || wait < 0 {
				t.Errorf("waits %s", wait)
			}
			if !more {
				return r.made
			}
		}
	}
	for _, c := range []struct {
		name                string
		p                   iceberg.Properties
		failures, conflicts int
	}{
		{"unset", nil, 1 + commitRetries, 1 + conflictRetries},
		{"none", iceberg.Properties{"commit.retry.num-retries": "0"}, 1, 1},
		{"five", iceberg.Properties{"commit.retry.num-retries": "5"}, 6, 6},
		{"no number", iceberg.Properties{"commit.retry.num-retries": "many"}, 1 + commitRetries, 1 + conflictRetries},
		{"no time", iceberg.Properties{"commit.retry.total-timeout-ms": "0"}, 1, 1},
	} {
		if n := count(c.p, errCatalog); n != c.failures {
			t.Errorf("%s: %d tries of what fails, want %d", c.name, n, c.failures)
		}
		for _, conflict := range []error{table.ErrCommitFailed, errors.New(`requirement failed: branch "main" has changed: expected id 1, found 2`), errors.New("database is locked (5) (SQLITE_BUSY)")} {
			if n := count(c.p, conflict); n != c.conflicts {
				t.Errorf("%s: %d tries after conflicts, want %d", c.name, n, c.conflicts)
			}
		}
	}
	r := newRetryBound(nil).begin()
	for r.made = 1; r.made <= conflictRetries; r.made++ {
		if wait, more := r.next(table.ErrCommitFailed); wait > conflictMaxWait || !more {
			t.Fatalf("after %d conflicts: %s, %v", r.made, wait, more)
		}
	}
}
