package migrate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
)

// notBegun holds a new job to be refused, and nothing to come of it.
func (j *job) notBegun(t *testing.T, texts ...string) {
	t.Helper()
	j.checkpoint = checkpointPath(t)
	at := j.to.load(t, j.dst).MetadataLocation()
	for _, f := range []form{one, three} {
		_, err := f.run(j, t.Context(), t)
		wantError(t, err, texts...)
	}
	_, err := j.migrator(t).DryRun(t.Context())
	wantError(t, err, texts...)
	equal(t, "metadata", j.to.load(t, j.dst).MetadataLocation(), at)
	if _, err := os.Stat(j.checkpoint); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("checkpoint: %v", err)
	}
}

// A new job with the settings of one that the branch holds batches of is refused, finished or not. With
// other settings, on another branch without them, or after a rollback it is not.
func TestRefusedSecondJob(t *testing.T) {
	j, _ := stoppedAfter(t, 2)
	first := j.note(t).Job
	j.notBegun(t, "branch \"main\" of table \"ns.dst\" holds 2 batches of job "+first+" (10 source rows of at most 39)", "ice-migrate recover --checkpoint FILE", "--new-job", "its dest_snapshot_before is none")
	j.to.insert(t, "dst", theirs)
	j.notBegun(t, "holds 2 batches of job "+first)

	j.scan.BatchRows = 6
	p, err := j.migrator(t).DryRun(t.Context())
	must(t, err)
	equal(t, "warnings", len(p.Warnings), 1)
	wantError(t, errors.New(p.Warnings[0]), "branch \"main\" of table \"ns.dst\" holds rows of the same source already: 2 batches of job "+first+" (10 source rows)", "rows of them that this job brings too will be there twice (its dest_snapshot_before is none")
	j.scan.BatchRows = 5
	j.newJob = true
	_, err = j.migrator(t).DryRun(t.Context())
	must(t, err)
	j.newJob = false
	j.to.rollBack(t, "dst")
	j.to.rollBack(t, "dst")
	j.notBegun(t, "holds 1 batch of job "+first+" (5 source rows of at most 39)")
	j.to.update(t, "dst", table.NewRemoveSnapshotRefUpdate("main"))
	_, err = j.one(t.Context(), t)
	must(t, err)
	j.notBegun(t, "holds 7 batches of job ", "(34 source rows of at most 39)")
}

// A job of other settings is told, before it writes and afterwards, that the branch holds rows of its source.
func TestWarnedOfSameSource(t *testing.T) {
	from, _ := source34(t)
	to := newStore(t)
	to.create(t, "dst", people())
	j := newJob(from, to, 5)
	var told []string
	j.begin = func(hints []string) { told = hints }
	run := func(warned bool) {
		t.Helper()
		told = nil
		r, err := j.one(t.Context(), t)
		must(t, err)
		equal(t, "warned before", len(told) > 0, warned)
		equal(t, "warned afterwards", len(r.Warnings) > 0, warned)
		if warned {
			equal(t, "told", told[0], r.Warnings[0])
		}
	}
	run(false)
	j.scan.BatchRows = 6
	run(true)
	j.newJob = true
	run(false)
	j.newJob = false

	other, _ := source34(t)
	j.from = other
	run(false)
	j.from, j.scan.BatchRows = from, 7
	run(true)
	r, err := j.one(t.Context(), t)
	wantError(t, err, "begun with the same settings")
	equal(t, "rows moved", r.RowsMoved, 0)
}

// A stream is written once, whatever the checkpoint; --again writes it once more, and --new-job does not.
func TestRefusedSecondStream(t *testing.T) {
	from, want := source34(t)
	to := newStore(t)
	to.create(t, "dst", people())
	j := newJob(from, to, 5)
	stream, err := j.stream(t.Context(), t)
	must(t, err)
	_, err = j.writeStream(t.Context(), t, stream)
	must(t, err)
	for _, j.newJob = range []bool{false, true} {
		_, err = j.writeStream(t.Context(), t, stream)
		wantError(t, err, "this stream (", "holds 7 batches of job ", " of it; to write what is missing give its job's checkpoint", "--again writes its rows once more")
	}
	equal(t, "rows", to.content(t, "dst"), want)
	j.newJob, j.again = false, true
	r, err := j.writeStream(t.Context(), t, stream)
	must(t, err)
	equal(t, "rows moved", r.RowsMoved, 34)
}

// A destination that iceberg-ops was the last to migrate into may hold half a job of it. Marks that are
// older than a job of ours were dealt with when that was begun.
func TestRefusedAfterIcebergOps(t *testing.T) {
	from, _ := source34(t)
	to := newStore(t)
	to.create(t, "dst", people())
	to.insert(t, "dst", theirs)
	before := to.load(t, "dst").CurrentSnapshot().SnapshotID
	marks := iceberg.Properties{"iceberg-ops.migration-job": "8d7d9a3e-6e0f-4c39-a5b8-0d0f5ac1b0c1", "iceberg-ops.migration-batch": "0"}
	to.mark(t, "dst", theirs, marks)
	to.mark(t, "dst", theirs, iceberg.Properties{"iceberg-ops.migration-job": marks["iceberg-ops.migration-job"]}) // as its empty stamp
	last := to.load(t, "dst").CurrentSnapshot().SnapshotID
	j := newJob(from, to, 50)
	j.notBegun(t, fmt.Sprintf("was last migrated into by iceberg-ops (job 8d7d9a3e-6e0f-4c39-a5b8-0d0f5ac1b0c1, snapshot %d)", last), "finish it with iceberg-ops, or pass --new-job", fmt.Sprintf("(its dest_snapshot_before is snapshot %d)", before))
	_, err := j.migrator(t).Recover(t.Context(), "")
	wantError(t, err, "holds no batches of a job with these settings, but of 8d7d9a3e-6e0f-4c39-a5b8-0d0f5ac1b0c1 (of iceberg-ops)")

	j.newJob = true
	_, err = j.one(t.Context(), t)
	must(t, err)
	j.newJob = false
	j.checkpoint = checkpointPath(t)
	j.scan.BatchRows = 51
	_, err = j.one(t.Context(), t) // another job
	must(t, err)
}

// A table whose owner wants writes audited before they show gets none on main unless main is named; a
// branch, as an audit has it, does.
func TestRefusedUnaudited(t *testing.T) {
	for _, property := range []string{"write.wap.enabled", "wap.id"} {
		t.Run(property, func(t *testing.T) {
			value := map[string]string{"write.wap.enabled": "true", "wap.id": "night-7"}[property]
			from, want := source34(t)
			to := newStore(t)
			to.create(t, "dst", people(), catalog.WithProperties(iceberg.Properties{property: value}))
			j := newJob(from, to, 50)
			j.notBegun(t, `table "ns.dst" asks for writes to be audited before they show (table property `+property+"="+value+")", "--dst-branch")
			j.branch = "main"
			_, err := j.three(t.Context(), t)
			must(t, err)
			equal(t, "rows", to.content(t, "dst"), want)
			to.branch(t, "dst", "audit")
			head := to.load(t, "dst").CurrentSnapshot().SnapshotID
			j.branch, j.checkpoint, j.newJob = "audit", checkpointPath(t), true
			_, err = j.one(t.Context(), t)
			must(t, err)
			equal(t, "main", to.load(t, "dst").CurrentSnapshot().SnapshotID, head)
		})
	}
	to := newStore(t)
	to.create(t, "dst", people(), catalog.WithProperties(iceberg.Properties{"write.wap.enabled": "false"}))
	from, _ := source34(t)
	_, err := newJob(from, to, 50).one(t.Context(), t)
	must(t, err)
}

// A resume may say the time again that the job was begun with, or none; another one is refused.
func TestResumeAsOf(t *testing.T) {
	j, want := stoppedAfter(t, 2)
	pinned := j.from.load(t, "src").CurrentSnapshot()
	at := func(ms int64) migrate.Pin { return migrate.Pin{AsOf: strconv.FormatInt(ms, 10)} }
	for time.Now().UnixMilli() <= pinned.TimestampMs {
	}
	j.from.insert(t, "src", ids(900, 1)...)
	later := j.from.load(t, "src").CurrentSnapshot()
	j.scan.Pin = at(later.TimestampMs)
	j.refused(t, one, j.checkpoint, fmt.Sprintf("the job reads source snapshot %d, and that of \"%d\", which was asked for, is %d; leave the time out to resume", pinned.SnapshotID, later.TimestampMs, later.SnapshotID), "empty it (dest_snapshot_before is none")
	j.scan.Pin = at(1000)
	j.refused(t, one, "which one was current at \"1000\" cannot be told", "leave the time out to resume")
	j.scan.Pin = at(pinned.TimestampMs)
	_, err := j.one(t.Context(), t)
	must(t, err)
	j.finished(t, want, 7)
	equal(t, "a time that is none", migrate.Pin{AsOf: "yesterday"}.Check() != nil, true)
	must(t, at(5).Check())
}

// A v1 table without a UUID is told by its location.
func TestRefusedWithoutUUID(t *testing.T) {
	j, _ := stoppedAfter(t, 2)
	c := j.note(t)
	c.Destination.UUID = ""
	settings := map[string]any{}
	for name, v := range c.Settings {
		settings[name] = v
	}
	now, err := ckpt.NewSettings(settings)
	must(t, err)
	c.Settings = now
	c.Destination.Location += "-old"
	must(t, ckpt.Open(j.checkpoint).Save(c))
	j.refused(t, one, "the destination was dropped and made anew (location ", "-old then, uuid ")
}

// The checkpoint of a job whose source is empty is pinned to that, for its verification too.
func TestVerifyEmptySource(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	to.create(t, "dst", people())
	j := newJob(from, to, 5)
	j.checkpoint = checkpointPath(t)
	_, err := j.one(t.Context(), t)
	must(t, err)
	from.insert(t, "src", ids(0, 3)...)
	v, err := j.migrator(t).Verify(t.Context(), "row_count")
	must(t, err)
	equal(t, "verification", []any{v.Matches, *v.SourceCount, v.SourceSnapshot}, []any{true, 0, nil})
}

// What a checkpoint of another kind says of the way back is said in its refusal.
func TestForeignCheckpoints(t *testing.T) {
	j, _ := stoppedAfter(t, 1)
	text, err := os.ReadFile(j.checkpoint)
	must(t, err)
	var members map[string]any
	must(t, json.Unmarshal(text, &members))
	for name, test := range map[string]struct {
		change func(map[string]any)
		texts  []string
	}{
		"iceberg-ops": {func(m map[string]any) {
			delete(m, "format")
			m["dest_snapshot_before"] = 4711
		}, []string{"not a checkpoint of icepipe, it looks like one of iceberg-ops: finish that job with iceberg-ops", "its dest_snapshot_before is 4711"}},
		"a later version": {func(m map[string]any) { m["version"], m["dest_snapshot_before"] = 99, "4712" },
			[]string{"unknown version 99", "go on with the icepipe that wrote it", "its dest_snapshot_before is 4712"}},
		"edited by hand": {func(m map[string]any) { m["settings_digest"], m["dest_snapshot_before"] = "0", "4713" },
			[]string{"corrupt", "ice-migrate recover", "its dest_snapshot_before is 4713"}},
		"none before": {func(m map[string]any) { m["settings_digest"] = "0" }, []string{"corrupt", "its dest_snapshot_before is none: the table had no snapshot"}},
	} {
		t.Run(name, func(t *testing.T) {
			changed := map[string]any{}
			for k, v := range members {
				changed[k] = v
			}
			test.change(changed)
			text, err := json.Marshal(changed)
			must(t, err)
			must(t, os.WriteFile(j.checkpoint, text, 0o600))
			for _, f := range []form{one, three} {
				j.refused(t, f, append(test.texts, j.checkpoint)...)
			}
		})
	}
}

// Of two jobs with the same settings that begin at the same time one writes, and the other is refused by the head that
// its first commit meets, and when it is resumed; --new-job writes the rows once more.
func TestTwoAtOnce(t *testing.T) {
	from, want := source34(t)
	for _, once := range []bool{false, true} {
		for _, f := range []form{one, three} {
			t.Run(fmt.Sprintf("%s, once %v", f.name, once), func(t *testing.T) {
				to := newStore(t)
				to.create(t, "dst", people())
				j, other := newJob(from, to, 10), newJob(from, to, 10)
				j.once, other.once = once, once
				j.checkpoint, other.checkpoint = checkpointPath(t), checkpointPath(t)
				retried(t, j)
				betweenCommits(j, 1, func() {
					_, err := other.one(t.Context(), t)
					must(t, err)
				})
				_, err := f.run(j, t.Context(), t)
				wantError(t, err, "was begun with the same settings at the same time", "--new-job")
				j.reset()
				equal(t, "rows", to.live(t, "dst"), slices.Sorted(slices.Values(want)))
				_, err = f.run(j, t.Context(), t)
				wantError(t, err, "begun with the same settings, and nothing of this job")
				equal(t, "rows", to.live(t, "dst"), slices.Sorted(slices.Values(want)))
				j.newJob = true
				_, err = f.run(j, t.Context(), t)
				must(t, err)
				equal(t, "rows", len(to.live(t, "dst")), 2*len(want))
			})
		}
	}
}
