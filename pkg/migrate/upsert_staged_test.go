package migrate_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
)

// afterScattered are the rows of upsertTo's destination when scattered is upserted and the last row of a key wins.
var afterScattered = with(slices.Concat(ids(0, 4), ids(6, 2), ids(9, 1)), row(4, "u4"), row(5, "last5"), row(8, "u8"), row(20, "n20"), row(21, "i21"), row(22, "i22"))

// onceUpsert is a job of scattered in batches of three, of which no two rows have one key.
func onceUpsert(t *testing.T, version int, mode string) *job {
	t.Helper()
	j := upsertTo(t, version, mode, 3, scattered...)
	j.once, j.checkpoint = true, checkpointPath(t)
	return j
}

// broken runs the three programs until the stream breaks after k batches.
func (j *job) broken(t *testing.T, k int) {
	t.Helper()
	j.spoil = brokenAfter(k, errPipe)
	if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
		t.Fatalf("error %v", err)
	}
	j.reset()
}

// A job that stops after k batches, or at its commit, goes on by either form, and leaves the rows of one that does not
// stop; until it lands readers see nothing of it.
func TestUpsertOnceResume(t *testing.T) {
	for w, way := range ways {
		for _, k := range thin(0, 1, 2, 3, 4) {
			for _, policy := range [][]string{{""}, {"", migrate.DuplicateFirst}}[k%2] {
				f := []form{one, three}[(w+k)%2]
				t.Run(fmt.Sprintf("v%d %s, %s, broken after %d, then %s", way.version, way.mode, policy, k, f.name), func(t *testing.T) {
					j := onceUpsert(t, way.version, way.mode)
					j.upsert.Duplicates = policy
					before := j.to.load(t, "dst").CurrentSnapshot().SnapshotID
					j.broken(t, k)
					if k > 2 { // and once more
						j.shortcut = true
						j.broken(t, 1)
					}
					equal(t, "head", j.to.load(t, "dst").CurrentSnapshot().SnapshotID, before)
					j.shortcut = k%2 == 0
					r, err := f.run(j, t.Context(), t)
					must(t, err)
					want := afterScattered
					if policy != "" {
						want = with(slices.Concat(ids(0, 1), ids(2, 3), ids(6, 2), ids(9, 1)), row(1, "u1"), row(5, "u5"), row(8, "u8"), row(20, "i20"), row(21, "i21"), row(22, "i22"))
					}
					equal(t, "rows", j.to.live(t, "dst"), want)
					j.sums(t, r, 1)
				})
			}
		}
	}
	for _, lands := range []bool{false, true} {
		for i, way := range ways {
			f := []form{one, three}[i%2]
			t.Run(fmt.Sprintf("v%d %s, commit lost, landed %v, then %s", way.version, way.mode, lands, f.name), func(t *testing.T) {
				j := onceUpsert(t, way.version, way.mode)
				j.to.commit = failAt(0, lands, j.to)
				if _, err := j.one(t.Context(), t); !errors.Is(err, errLost) {
					t.Fatalf("error %v", err)
				}
				j.reset()
				status, err := migrate.StatusOf(t.Context(), ckpt.Open(j.checkpoint), j.note(t), j.to.open(t, "dst"))
				must(t, err)
				says := "land the 5 staged batches"
				if lands {
					says = "note 1 batch that landed"
				}
				if !strings.Contains(status.Next, says) {
					t.Errorf("next is %q, want %q", status.Next, says)
				}
				staged := j.stagedFiles(t)
				j.shortcut = true
				r, err := f.run(j, t.Context(), t)
				must(t, err)
				equal(t, "rows", j.to.live(t, "dst"), afterScattered)
				j.sums(t, r, 1)
				for _, path := range j.to.files(t, "dst") { // none is written again that is noted
					if strings.Contains(path, "icepipe-") && way.mode == migrate.DeletePosition && !slices.Contains(staged, path) {
						t.Errorf("%s was not staged", path)
					}
				}
				_, err = migrate.Undo(t.Context(), ckpt.Open(j.checkpoint), j.to.open(t, "dst"), migrate.UndoOptions{})
				must(t, err)
				equal(t, "rows after undo", j.to.live(t, "dst"), ids(0, 10))
			})
		}
	}
}

// What another writer commits between the staging and the landing is met as by a batch of its own: what it adds
// beside stays, rows of the same keys are replaced, and where it changed a row that the source holds as it was, or
// made one whose row ID must be taken over, nothing lands, and the next run stages anew.
func TestUpsertOnceMeetsOthers(t *testing.T) {
	upsert := func(mode string, rows ...string) func(*testing.T, *job) {
		return func(t *testing.T, j *job) {
			from := newStore(t)
			from.create(t, "src", people())
			from.insert(t, "src", rows...)
			theirs := newJob(from, j.to, 100)
			theirs.upsert = &migrate.UpsertOptions{Keys: []string{"id"}, DeleteMode: mode}
			_, err := theirs.one(t.Context(), t)
			must(t, err)
		}
	}
	for w, way := range ways {
		if testing.Short() && way.version < 3 {
			continue
		}
		copies := migrate.DeleteCopyOnWrite
		for name, c := range map[string]struct {
			do       func(*testing.T, *job)
			more     []string
			conflict bool
			ids      bool // a key that the job adds has a row of another ID, which it must get
		}{
			"an append beside":           {func(t *testing.T, j *job) { j.to.insert(t, "dst", row(50, "theirs")) }, []string{row(50, "theirs")}, false, false},
			"an insert of the same keys": {func(t *testing.T, j *job) { j.to.insert(t, "dst", row(20, "theirs"), row(22, "theirs")) }, nil, false, true},
			"an upsert of the same keys": {upsert(way.mode, row(20, "theirs"), row(5, "theirs"), row(51, "theirs")), []string{row(51, "theirs")}, false, true},
			"copies of all files":        {upsert(copies, row(0, "n0"), row(4, "theirs"), row(8, "theirs"), row(52, "theirs")), []string{row(52, "theirs")}, false, false},
			"an update of an equal row":  {upsert(way.mode, row(3, "theirs")), nil, true, false},
			"one more of an equal row":   {func(t *testing.T, j *job) { j.to.insert(t, "dst", row(9, "theirs")) }, nil, true, false},
		} {
			for i, when := range []string{"before the commit", "while it rests"} {
				if i == 1 && w%2 == 0 {
					continue
				}
				t.Run(fmt.Sprintf("v%d %s, %s %s", way.version, way.mode, name, when), func(t *testing.T) {
					j := onceUpsert(t, way.version, way.mode)
					retried(t, j)
					f := []form{one, three}[(w+i)%2]
					var r migrate.Receipt
					var err error
					if i == 0 {
						betweenCommits(j, 1, func() { c.do(t, j) })
					} else {
						j.broken(t, 4)
						c.do(t, j)
						j.shortcut = true
					}
					r, err = f.run(j, t.Context(), t)
					j.reset()
					if c.conflict && name == "one more of an equal row" {
						wantError(t, err, "another writer changed rows", "run again")
						_, err = f.run(j, t.Context(), t) // which the destination's owner has to mend
						wantError(t, err, "holds rows with the same key: (id=9)")
						return
					}
					if c.conflict || c.ids && way.version == 3 {
						wantError(t, err, "another writer changed rows", "run again")
						equal(t, "staged", len(j.stagedFiles(t)), 0)
						equal(t, "pending", j.note(t).Pending, nil)
						r, err = other(f, []form{one, three}).run(j, t.Context(), t)
					}
					must(t, err)
					equal(t, "rows", j.to.live(t, "dst"), with(afterScattered, c.more...))
					j.sums(t, r, 1)
					keepIDs(t, j.to.load(t, "dst"))
				})
			}
		}
	}
}

// Batches that were compared with what nobody can look at any more are staged again.
func TestUpsertOnceStale(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*testing.T, *job)
		says string
	}{
		"a file is gone": {func(t *testing.T, j *job) {
			must(t, os.Remove(strings.TrimPrefix(j.stagedFiles(t)[1], "file://")))
		}, "the staged batches from batch 1 on are written again"},
		"the base has expired": {func(t *testing.T, j *job) {
			base := j.to.load(t, "dst").CurrentSnapshot().SnapshotID
			j.to.insert(t, "dst", row(60, "theirs"))
			_, _, err := j.to.Catalog.CommitTable(t.Context(), table.Identifier{"ns", "dst"}, nil, []table.Update{table.NewRemoveSnapshotsUpdate([]int64{base}, false)})
			must(t, err)
		}, "which it was compared with, has expired"},
		"the schema has changed": {func(t *testing.T, j *job) {
			tx := j.to.load(t, "dst").NewTransaction()
			must(t, tx.UpdateSchema(true, false).AddColumn([]string{"more"}, prim.Int64, "", false, nil).Commit())
			_, err := tx.Commit(t.Context())
			must(t, err)
			j.reconcile.MissingInSource = "null"
		}, "has changed since batch 0 was compared with it"},
	} {
		for _, f := range []form{one, three} {
			t.Run(name+", "+f.name, func(t *testing.T) {
				j := onceUpsert(t, 2, "")
				j.reconcile.MissingInSource = "null"
				j.broken(t, 4)
				c.do(t, j)
				r, err := f.run(j, t.Context(), t)
				must(t, err)
				if len(r.Warnings) == 0 || !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, c.says) }) {
					t.Errorf("warnings %q, want one that says %q", r.Warnings, c.says)
				}
				j.sums(t, r, 1)
				got := j.to.live(t, "dst")
				for i := range got {
					got[i] = strings.Replace(got[i], `,"more":null`, "", 1)
				}
				want := afterScattered
				if slices.Contains(got, row(60, "theirs")) {
					want = with(want, row(60, "theirs"))
				}
				equal(t, "rows", got, want)
			})
		}
	}
}
