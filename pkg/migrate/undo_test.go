package migrate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

func (j *job) undo(t *testing.T, o migrate.UndoOptions) (migrate.Undoing, error) {
	t.Helper()
	return migrate.Undo(t.Context(), ckpt.Open(j.checkpoint), j.to.open(t, j.dst), o)
}

func (j *job) redo(t *testing.T) (migrate.Undoing, error) {
	t.Helper()
	return migrate.Redo(t.Context(), ckpt.Open(j.checkpoint), j.to.open(t, j.dst), false)
}

// state is what an undo must bring back: the rows, the current snapshot and the columns.
func (s *store) state(t *testing.T, name string) string {
	t.Helper()
	tbl := s.load(t, name)
	id := int64(-1)
	if at := tbl.CurrentSnapshot(); at != nil {
		id = at.SnapshotID
	}
	text, err := json.Marshal(tbl.Schema().Fields())
	must(t, err)
	return fmt.Sprintf("snapshot %d, columns %s, rows %v", id, text, s.content(t, name))
}

// TestUndo: several batches with a column that was added, into empty and populated tables of each version, are
// taken back and put back; a dry run changes nothing (case 91); a resume after an undo is refused, and after a reset
// the job is made anew, exactly.
func TestUndo(t *testing.T) {
	for _, version := range []string{"1", "2", "3"} {
		for _, populated := range []bool{false, true} {
			for _, dropped := range []bool{false, true} {
				t.Run(fmt.Sprintf("v%s, populated %v, columns dropped %v", version, populated, dropped), func(t *testing.T) {
					from, to := newStore(t), newStore(t)
					from.create(t, "src", people())
					from.insert(t, "src", ids(0, 9)...)
					to.create(t, "dst", numbers(), catalog.WithProperties(iceberg.Properties{"format-version": version}))
					if populated {
						to.insert(t, "dst", `{"id":-1}`)
					}
					begun := to.state(t, "dst")
					j := newJob(from, to, 4)
					j.checkpoint, j.reconcile.MissingInDest = checkpointPath(t), plan.PolicyAutoAdd
					_, err := j.one(t.Context(), t)
					must(t, err)
					done, noted := to.state(t, "dst"), j.note(t)

					location := to.load(t, "dst").MetadataLocation()
					o := migrate.UndoOptions{DryRun: true, Schema: dropped}
					dry, err := j.undo(t, o)
					must(t, err)
					equal(t, "metadata after a dry run", to.load(t, "dst").MetadataLocation(), location)
					equal(t, "checkpoint after a dry run", j.note(t), noted)
					o.DryRun = false
					u, err := j.undo(t, o)
					must(t, err)
					dry.DryRun = false
					equal(t, "what the dry run said", dry, u)
					equal(t, "snapshots taken back", len(u.Snapshots), 3)
					equal(t, "columns", [][]string{u.Kept, u.Dropped}, map[bool][][]string{false: {{"name"}, {}}, true: {{}, {"name"}}}[dropped])
					now := to.state(t, "dst")
					if dropped && now != begun {
						t.Errorf("after the undo %s, before the job %s", now, begun)
					}
					if !dropped && strings.Split(now, ",")[0] != strings.Split(begun, ",")[0] {
						t.Errorf("after the undo %s, before the job %s", now, begun)
					}
					equal(t, "rows after the undo", len(to.content(t, "dst")), map[bool]int{false: 0, true: 1}[populated])
					equal(t, "state", j.note(t).State, ckpt.Undone)
					j.refused(t, one, "was undone", "ice-migrate redo", "ice-migrate reset")
					_, err = j.undo(t, o)
					wantError(t, err, "was undone already")
					status, err := migrate.StatusOf(t.Context(), ckpt.Open(j.checkpoint), j.note(t), to.open(t, "dst"))
					must(t, err)
					if !strings.Contains(status.Next, "redo puts it back while snapshot "+*u.From) {
						t.Errorf("next %q", status.Next)
					}

					_, err = j.redo(t)
					must(t, err)
					equal(t, "after the redo", to.state(t, "dst"), done)
					again := j.note(t)
					again.Updated = noted.Updated
					equal(t, "checkpoint after the redo", again, noted)
					_, err = j.redo(t)
					wantError(t, err, "was not undone")
					v, err := j.migrator(t).Verify(t.Context(), migrate.MethodPartitionHash)
					must(t, err)
					equal(t, "verified", v.Matches, true)

					_, err = j.undo(t, o)
					must(t, err)
					_, err = migrate.Reset(ckpt.Open(j.checkpoint), to.open(t, "dst"), nil, false)
					must(t, err)
					_, err = j.one(t.Context(), t)
					must(t, err)
					want := ids(0, 9)
					if populated {
						want = append(want, `{"id":-1}`)
					}
					slices.Sort(want)
					equal(t, "rows after reset and another run", to.content(t, "dst"), want)
				})
			}
		}
	}
}

// TestUndoOfPart: a job that stopped, with a batch pending, is undone; redone it goes on.
func TestUndoOfPart(t *testing.T) {
	for _, lands := range []bool{false, true} {
		from, to := newStore(t), newStore(t)
		from.create(t, "src", people())
		from.insert(t, "src", ids(0, 9)...)
		to.create(t, "dst", people(), noRetries())
		to.insert(t, "dst", `{"id":-1,"name":"old"}`)
		begun := to.state(t, "dst")
		j := newJob(from, to, 4)
		j.checkpoint = checkpointPath(t)
		to.commit = failAt(1, lands, to)
		_, err := j.one(t.Context(), t)
		wantError(t, err, errLost.Error())
		j.reset()
		u, err := j.undo(t, migrate.UndoOptions{})
		must(t, err)
		equal(t, "snapshots", len(u.Snapshots), map[bool]int{false: 1, true: 2}[lands])
		equal(t, "pending files", len(u.Pending), 1)
		equal(t, "after the undo", to.state(t, "dst"), begun)
		_, err = j.redo(t)
		must(t, err)
		equal(t, "state", j.note(t).State, ckpt.Running)
		_, err = j.one(t.Context(), t)
		must(t, err)
		want := append(ids(0, 9), `{"id":-1,"name":"old"}`)
		slices.Sort(want)
		equal(t, "rows", to.content(t, "dst"), want)
	}
}

// TestUndoRefused: what an undo would destroy, or cannot know.
func TestUndoRefused(t *testing.T) {
	begin := func(t *testing.T) *job {
		from, to := newStore(t), newStore(t)
		from.create(t, "src", people())
		from.insert(t, "src", ids(0, 9)...)
		to.create(t, "dst", people())
		to.insert(t, "dst", `{"id":-1,"name":"old"}`)
		j := newJob(from, to, 4)
		j.checkpoint = checkpointPath(t)
		_, err := j.one(t.Context(), t)
		must(t, err)
		return j
	}
	expire := func(t *testing.T, j *job, keep int) {
		tx := j.to.load(t, "dst").NewTransaction()
		must(t, tx.ExpireSnapshots(table.WithOlderThan(0), table.WithRetainLast(keep)))
		_, err := tx.Commit(t.Context())
		must(t, err)
	}
	for _, tt := range []struct {
		name   string
		spoil  func(*testing.T, *job)
		want   func(*job) []string
		forced bool // --force goes on
	}{
		{"another writer appended", func(t *testing.T, j *job) { j.to.insert(t, "dst", `{"id":-2,"name":"new"}`) }, func(j *job) []string {
			return []string{"1 snapshot of other writers came after", fmt.Sprintf("%d (append at ", j.to.load(t, "dst").CurrentSnapshot().SnapshotID), "--force takes them back"}
		}, true},
		{"the snapshot before expired", func(t *testing.T, j *job) { expire(t, j, 2) }, func(*job) []string {
			return []string{"where the destination was before the job, has expired", "with another tool"}
		}, false},
		{"the branch was put elsewhere", func(t *testing.T, j *job) {
			tbl := j.to.load(t, "dst")
			_, _, err := j.to.Catalog.CommitTable(t.Context(), tbl.Identifier(), nil, []table.Update{table.NewRemoveSnapshotRefUpdate("main")})
			must(t, err)
			j.to.insert(t, "dst", `{"id":-3,"name":"anew"}`)
		}, func(*job) []string { return []string{`branch "main" was moved off snapshot`, "no longer holds it"} }, false},
		{"a checkpoint that does not know", func(t *testing.T, j *job) {
			c := j.note(t)
			unknown := ckpt.UnknownSnapshot
			c.DestSnapshotBefore = &unknown
			must(t, ckpt.Open(j.checkpoint).Save(c))
		}, func(*job) []string { return []string{"dest_snapshot_before is unknown"} }, false},
		{"another table", func(t *testing.T, j *job) {
			j.to.create(t, "other", people())
			j.dst = "other"
		}, func(*job) []string {
			return []string{"its destination is table ns.dst", `table "ns.other" is another one`}
		}, false},
		{"no checkpoint", func(t *testing.T, j *job) { must(t, ckpt.Open(j.checkpoint).Reset()) }, func(*job) []string {
			return []string{"is not there", "ice-migrate recover"}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := begin(t)
			tt.spoil(t, j)
			at := j.to.load(t, "dst").MetadataLocation()
			_, err := j.undo(t, migrate.UndoOptions{})
			wantError(t, err, tt.want(j)...)
			_, err = j.undo(t, migrate.UndoOptions{DryRun: true})
			wantError(t, err, tt.want(j)...)
			equal(t, "metadata", j.to.load(t, "dst").MetadataLocation(), at)
			_, err = j.undo(t, migrate.UndoOptions{Force: true})
			if !tt.forced {
				wantError(t, err, tt.want(j)...)
				return
			}
			must(t, err)
			equal(t, "rows", j.to.content(t, "dst"), []string{`{"id":-1,"name":"old"}`})
		})
	}
}

// TestRedoRefused: a redo that would take back what others wrote since, and one whose snapshots are gone.
func TestRedoRefused(t *testing.T) {
	for _, expired := range []bool{false, true} {
		from, to := newStore(t), newStore(t)
		from.create(t, "src", people())
		from.insert(t, "src", ids(0, 9)...)
		to.create(t, "dst", people())
		to.insert(t, "dst", `{"id":-1,"name":"old"}`)
		j := newJob(from, to, 4)
		j.checkpoint = checkpointPath(t)
		_, err := j.one(t.Context(), t)
		must(t, err)
		u, err := j.undo(t, migrate.UndoOptions{})
		must(t, err)
		want := []string{"another writer has moved it since", "the undo left it at " + *u.To}
		if expired {
			tx := to.load(t, "dst").NewTransaction()
			must(t, tx.ExpireSnapshots(table.WithOlderThan(0), table.WithRetainLast(1)))
			_, err := tx.Commit(t.Context())
			must(t, err)
			want = []string{"snapshot " + *u.From, "has expired", "ice-migrate reset"}
		} else {
			to.insert(t, "dst", `{"id":-2,"name":"new"}`)
		}
		now := to.state(t, "dst")
		_, err = j.redo(t)
		wantError(t, err, want...)
		equal(t, "table", to.state(t, "dst"), now)
		equal(t, "state", j.note(t).State, ckpt.Undone)
	}
}

// TestUndoOfNothing: where another tool has rolled the job's batches back, an undo takes nothing of what others
// wrote since, forced or not.
func TestUndoOfNothing(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 3)...)
	to.create(t, "dst", people())
	to.insert(t, "dst", `{"id":-1,"name":"old"}`)
	before := to.load(t, "dst").CurrentSnapshot().SnapshotID
	j := newJob(from, to, 4)
	j.checkpoint = checkpointPath(t)
	_, err := j.one(t.Context(), t)
	must(t, err)
	tx := to.load(t, "dst").NewTransaction()
	must(t, tx.RollbackToSnapshot(before))
	_, err = tx.Commit(t.Context())
	must(t, err)
	to.insert(t, "dst", `{"id":-2,"name":"new"}`)
	now := to.state(t, "dst")
	u, err := j.undo(t, migrate.UndoOptions{Force: true})
	must(t, err)
	equal(t, "foreign snapshots", u.Others, []string{})
	equal(t, "table", to.state(t, "dst"), now)
	equal(t, "state", j.note(t).State, ckpt.Undone)
}

// TestUndoOnBranch: a job on another branch than main leaves main alone.
func TestUndoOnBranch(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 9)...)
	to.create(t, "dst", people(), catalog.WithProperties(iceberg.Properties{"format-version": "2"}))
	to.insert(t, "dst", `{"id":-1,"name":"old"}`)
	to.branch(t, "dst", "dev")
	j := newJob(from, to, 4)
	j.checkpoint, j.branch = checkpointPath(t), "dev"
	_, err := j.one(t.Context(), t)
	must(t, err)
	to.insert(t, "dst", `{"id":-2,"name":"new"}`)
	main := to.load(t, "dst").CurrentSnapshot().SnapshotID
	head := to.load(t, "dst").SnapshotByName("dev").SnapshotID
	u, err := j.undo(t, migrate.UndoOptions{})
	must(t, err)
	equal(t, "branch", fmt.Sprint(to.load(t, "dst").SnapshotByName("dev").SnapshotID), *u.To)
	equal(t, "main", to.load(t, "dst").CurrentSnapshot().SnapshotID, main)
	_, err = j.redo(t)
	must(t, err)
	equal(t, "branch", to.load(t, "dst").SnapshotByName("dev").SnapshotID, head)
	equal(t, "main", to.load(t, "dst").CurrentSnapshot().SnapshotID, main)
}

// TestUndoRemovesNothing: no file goes by an undo.
func TestUndoRemovesNothing(t *testing.T) {
	j := begun(t)
	files := dataFiles(t, j.to.load(t, "dst"))
	_, err := j.undo(t, migrate.UndoOptions{})
	must(t, err)
	equal(t, "files", dataFiles(t, j.to.load(t, "dst")), files)
	if _, err := os.Stat(j.checkpoint); errors.Is(err, os.ErrNotExist) {
		t.Error("the checkpoint is gone")
	}
}
