package migrate_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// A checkpoint that is rebuilt says what the lost one said, but for what is in no mark, and its job goes
// on as if nothing had happened; whatever schema of the source it was begun with.
func TestRecover(t *testing.T) {
	for _, n := range thin(1, 2, 6) {
		t.Run(fmt.Sprintf("%d batches", n), func(t *testing.T) {
			j, want := stoppedAfter(t, n)
			lost := j.note(t)
			must(t, os.Remove(j.checkpoint))
			tx := j.from.load(t, "src").NewTransaction()
			must(t, tx.UpdateSchema(true, false).AddColumn([]string{"later"}, prim.Int64, "", false, nil).Commit())
			_, err := tx.Commit(t.Context())
			must(t, err)
			j.from.insert(t, "src", `{"id":900,"name":"later","later":1}`)
			s, err := j.migrator(t).Recover(t.Context(), "")
			must(t, err)
			equal(t, "status", []any{s.Job, s.Rows, s.Batches, *s.Found}, []any{lost.Job, 5 * n, n, n})
			made := j.note(t)
			made.Plan, lost.Plan = nil, nil // made anew by the run
			made.Created, made.Updated, lost.Created, lost.Updated = time.Time{}, time.Time{}, time.Time{}, time.Time{}
			equal(t, "checkpoint", made, lost)
			_, err = j.migrator(t).Recover(t.Context(), "")
			wantError(t, err, "is there already, of job "+lost.Job)
			f := []form{one, three}[n%2]
			j.shortcut = true
			_, err = f.run(j, t.Context(), t)
			must(t, err)
			j.finished(t, want, 7)
		})
	}
}

// Recover refuses what it cannot rebuild.
func TestRecoverRefused(t *testing.T) {
	j, want := stoppedAfter(t, 4)
	id := j.note(t).Job
	must(t, os.Remove(j.checkpoint))
	refused := func(texts ...string) {
		t.Helper()
		_, err := j.migrator(t).Recover(t.Context(), "")
		wantError(t, err, texts...)
		if _, err := os.Stat(j.checkpoint); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("checkpoint: %v", err)
		}
	}
	j.reconcile.MissingInSource = plan.PolicyNull
	refused("of a job with these settings, but of " + id + " (other settings); give the flags that the job was begun with")
	j.reconcile.MissingInSource = ""
	other := newStore(t)
	other.create(t, "src", people())
	mine := j.from
	j.from = other
	refused(id + " (of another source, UUID ")
	j.from = mine

	// The snapshots of the first batches expired: the way back is lost, the rows are there.
	tbl := j.to.load(t, "dst")
	head := tbl.CurrentSnapshot()
	tx := tbl.NewTransaction()
	must(t, tx.ExpireSnapshots(table.WithOlderThan(0), table.WithRetainLast(2), table.WithPostCommit(false)))
	_, err := tx.Commit(t.Context())
	must(t, err)
	refused("job "+id+": the snapshots of its batches before batch 2 have expired", "--accept-expired-history")
	j.expired = true
	s, err := j.migrator(t).Recover(t.Context(), id)
	must(t, err)
	c := j.note(t)
	equal(t, "made", []any{c.Batches, c.Totals.RowsMoved, *c.DestSnapshotBefore, c.LastSnapshot}, []any{4, 23, ckpt.UnknownSnapshot, fmt.Sprint(head.SnapshotID)})
	equal(t, "notes", s.Notes, []string{"the snapshots of batches 0 to 1 have expired: their rows are counted by the source's files, those among them that were deleted there"})
	j.expired, j.scan.BatchRows = false, 6
	j.refused(t, one, "delete the job's rows from it (dest_snapshot_before is unknown: it has expired)")
	j.scan.BatchRows = 5
	_, err = j.one(t.Context(), t)
	must(t, err)
	equal(t, "rows", j.to.rows(t, "dst"), want)
}

// The source snapshot of a job expired: it cannot be gone on with, and the refusal names the way back.
func TestRecoverExpiredSource(t *testing.T) {
	j, _ := stoppedAfter(t, 2)
	must(t, os.Remove(j.checkpoint))
	j.from.insert(t, "src", ids(900, 1)...)
	j.from.expire(t, "src")
	_, err := j.migrator(t).Recover(t.Context(), "")
	wantError(t, err, "its source snapshot ", " has expired, so that it cannot be gone on with (its dest_snapshot_before is none")
}

// Reset looks into the destination first, and says what becomes of the rows.
func TestReset(t *testing.T) {
	from, _ := source34(t)
	j := pending(t, from)
	store := func() *ckpt.Store { return ckpt.Open(j.checkpoint) }
	refused := func(dst *migrate.Table, texts ...string) {
		t.Helper()
		_, err := migrate.Reset(store(), dst, errLost, false)
		wantError(t, err, append(texts, j.checkpoint, "--force")...)
		j.note(t)
	}
	id := j.note(t).Job
	refused(j.to.open(t, "dst"), "2 batches of job "+id+" are in the destination: empty it (dest_snapshot_before is none")
	refused(nil, "cannot be told: "+errLost.Error())
	j.to.insert(t, "dst", theirs)
	j.to.expire(t, "dst")
	refused(j.to.open(t, "dst"), "snapshots of the destination have expired, so that batches of job "+id+" may be in it")
	unlock, err := store().Lock()
	must(t, err)
	if _, err = migrate.Reset(store(), j.to.open(t, "dst"), nil, true); !errors.Is(err, ckpt.ErrLocked) {
		t.Errorf("error %v", err)
	}
	must(t, unlock())

	file := j.note(t).Pending.Files[0].Path
	j.to.update(t, "dst", table.NewRemoveSnapshotRefUpdate("main"))
	f, err := migrate.Reset(store(), j.to.open(t, "dst"), nil, false)
	must(t, err)
	var text bytes.Buffer
	must(t, f.WriteText(&text))
	if !strings.Contains(text.String(), "job "+id+" is forgotten: the checkpoint, with 2 batches, is removed") || !strings.Contains(text.String(), "pending file "+file+" stays") {
		t.Errorf("text %s", &text)
	}
	if _, err := os.Stat(j.checkpoint); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("checkpoint: %v", err)
	}
	_, err = migrate.Reset(store(), nil, errLost, true)
	wantError(t, err, "is not there; there is nothing to reset")

	// A table that was dropped and made anew holds nothing of the job.
	k, _ := stoppedAfter(t, 1)
	must(t, k.to.DropTable(t.Context(), table.Identifier{"ns", "dst"}))
	k.to.create(t, "dst", people())
	_, err = migrate.Reset(ckpt.Open(k.checkpoint), k.to.open(t, "dst"), nil, false)
	must(t, err)
}
