package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/migrate"
)

// betweenCommits calls f before the k-th commit of a job is sent.
func betweenCommits(j *job, k int, f func()) {
	n := 0
	j.to.commit = func(_ context.Context, commit func() error) error {
		if n++; n == k {
			again := j.to.commit
			j.to.commit = nil
			f()
			j.to.commit = again
		}
		return commit()
	}
}

// retried lets the destination's commits be tried again on another head.
func retried(t *testing.T, j *job) {
	t.Helper()
	tbl := j.to.load(t, "dst")
	_, _, err := j.to.Catalog.CommitTable(t.Context(), tbl.Identifier(), nil, []table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{"commit.retry.num-retries": "4"})})
	must(t, err)
}

// What another writer does between the sorting of a batch and its commit: rows that it adds beside stay, rows of
// the same keys are replaced and are never there twice (case 12), and where it changed a row that the source
// holds as it was, or made one whose row ID the batch has not taken over, the job stops and goes on when it is run
// again.
func TestUpsertMeetsOthers(t *testing.T) {
	source := []string{row(1, "n1"), row(2, "u2"), row(40, "i40"), row(3, "n3"), row(7, "u7"), row(41, "i41")}
	changed := slices.Concat(ids(0, 2), []string{row(2, "u2")}, ids(3, 4), []string{row(7, "u7")}, ids(8, 2), []string{row(40, "i40"), row(41, "i41")})
	added, old := []int{0, 40, 41}, []int{0, 2, 7} // keys of the first batch and of the second
	other := func(version int, mode string, rows func(k int) []string) func(*testing.T, *job, int) {
		return func(t *testing.T, j *job, k int) {
			from := newStore(t)
			from.create(t, "src", people())
			from.insert(t, "src", rows(k)...)
			theirs := newJob(from, j.to, 100)
			theirs.upsert = &migrate.UpsertOptions{Keys: []string{"id"}, DeleteMode: mode}
			_, err := theirs.one(t.Context(), t)
			must(t, err)
		}
	}
	for version, of := range modes {
		if testing.Short() && version < 3 {
			continue
		}
		for _, mode := range of {
			for name, c := range map[string]struct {
				do       func(*testing.T, *job, int)
				more     []string // beside changed
				conflict bool     // a row that the first batch left is another
				ids      bool     // a key that a batch adds or changes has a row of another ID, which it must get (specification, "Row Lineage")
			}{
				"an append beside":          {func(t *testing.T, j *job, _ int) { j.to.insert(t, "dst", row(50, "theirs")) }, []string{row(50, "theirs")}, false, false},
				"an insert of the same key": {func(t *testing.T, j *job, k int) { j.to.insert(t, "dst", row(added[k], "theirs"), row(51, "theirs")) }, []string{row(51, "theirs")}, false, true},
				"an upsert of the same key": {other(version, mode, func(k int) []string {
					return []string{row(added[k], "theirs"), row(old[k], "theirs"), row(52, "theirs")}
				}), []string{row(52, "theirs")}, false, true},
				"an update of an equal row": {other(version, mode, func(int) []string { return []string{row(1, "theirs")} }), nil, true, false},
			} {
				for _, k := range thin(1, 2) {
					t.Run(fmt.Sprintf("v%d %s, %s before commit %d", version, mode, name, k), func(t *testing.T) {
						j := upsertTo(t, version, mode, 3, source...)
						retried(t, j)
						j.checkpoint = checkpointPath(t)
						betweenCommits(j, k, func() { c.do(t, j, k) })
						_, err := j.one(t.Context(), t)
						j.reset()
						if c.conflict && k == 1 || c.ids && version == 3 {
							wantError(t, err, "another writer changed rows", "run again")
							_, err = j.three(t.Context(), t)
						}
						must(t, err)
						want := slices.Concat(changed, c.more)
						if c.conflict && k == 2 { // after the batch that looked at the row
							want[slices.Index(want, row(1, "n1"))] = row(1, "theirs")
						}
						slices.Sort(want)
						equal(t, "rows", j.to.live(t, "dst"), want)
						tbl := j.to.load(t, "dst")
						keysOnce(t, liveAt(t, tbl, nil))
						keepIDs(t, tbl)
					})
				}
			}
		}
	}
}

// A batch that landed on another head than it was noted as pending for is counted by its snapshot where the answer
// was lost: another writer had added the key, so that the batch updates what it was to insert.
func TestUpsertCountsWhatLanded(t *testing.T) {
	j := upsertTo(t, 2, "", 3, row(1, "n1"), row(2, "u2"), row(40, "i40"))
	retried(t, j)
	j.checkpoint = checkpointPath(t)
	n := 0
	j.to.commit = func(ctx context.Context, commit func() error) error {
		if n++; n == 1 {
			again := j.to.commit
			j.to.commit = nil
			j.to.insert(t, "dst", row(40, "theirs"))
			j.to.commit = again
			return commit()
		}
		return failAt(0, true, j.to)(ctx, commit)
	}
	_, err := j.one(t.Context(), t)
	if !errors.Is(err, errLost) || n != 2 {
		t.Fatalf("error %v after %d commits", err, n)
	}
	j.reset()
	_, err = j.three(t.Context(), t)
	must(t, err)
	c := j.note(t).Totals
	equal(t, "inserted, updated, unchanged, moved", []int64{c.RowsInserted, c.RowsUpdated, c.RowsUnchanged, c.RowsMoved}, []int64{0, 2, 1, 3})
}
