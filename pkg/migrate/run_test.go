package migrate_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// An empty source makes no snapshot, and the changes of the schema all the same (cases 19 and 82).
func TestEmptySource(t *testing.T) {
	for _, f := range []form{one, three} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rows deleted %v", f.name, deleted), func(t *testing.T) {
				from, to := newStore(t), newStore(t)
				from.create(t, "src", people())
				if deleted {
					from.insert(t, "src", ids(0, 3)...)
					_, err := from.load(t, "src").Delete(t.Context(), iceberg.AlwaysTrue{}, nil)
					must(t, err)
				}
				to.create(t, "dst", numbers())
				j := newJob(from, to, 2)
				j.checkpoint, j.reconcile.MissingInDest = checkpointPath(t), plan.PolicyAutoAdd
				r, err := f.run(j, t.Context(), t)
				must(t, err)
				equal(t, "complete", r.Complete, true)
				equal(t, "changes", r.SchemaChanges, []string{"added column name string"})
				equal(t, "snapshots", r.NewSnapshots, []string{})
				equal(t, "snapshots of the destination", len(to.load(t, "dst").Metadata().Snapshots()), 0)
				equal(t, "state", j.note(t).State, ckpt.Complete)
				j.refused(t, f, "completed migration")

				v, err := j.migrator(t).Verify(t.Context(), "row_count")
				must(t, err)
				equal(t, "matches", v.Matches, true)
			})
		}
	}
}

// A job of an empty source that died before it was complete is resumed, and refused with the cure once the
// source has rows.
func TestResumeEmptySource(t *testing.T) {
	for _, f := range []form{one, three} {
		from, to := newStore(t), newStore(t)
		from.create(t, "src", people())
		to.create(t, "dst", people())
		j := newJob(from, to, 2)
		j.checkpoint, j.shortcut = checkpointPath(t), true
		_, err := f.run(j, t.Context(), t)
		must(t, err)
		c := j.note(t)
		c.State = ckpt.Running
		must(t, ckpt.Open(j.checkpoint).Save(c))
		_, err = f.run(j, t.Context(), t)
		must(t, err)
		equal(t, "state", j.note(t).State, ckpt.Complete)

		must(t, ckpt.Open(j.checkpoint).Save(c))
		from.insert(t, "src", ids(0, 3)...)
		j.refused(t, f, j.checkpoint, "had no snapshot when the job began", "delete the file")
	}
}

// Events count up to the rows of the job, and the last one says that it is finished.
func TestObserve(t *testing.T) {
	from, _ := source34(t)
	for _, f := range []form{one, three} {
		to := newStore(t)
		to.create(t, "dst", people())
		j := newJob(from, to, 5)
		j.checkpoint = checkpointPath(t)
		var events []migrate.Event
		j.observe = func(e migrate.Event) { events = append(events, e) }
		_, err := f.run(j, t.Context(), t)
		must(t, err)
		last := events[len(events)-1]
		for i, e := range events[1:] {
			if e.Rows < events[i].Rows || e.Commits < events[i].Commits || e.Rows > e.Expected || events[i].Finished {
				t.Errorf("%s: events %+v", f.name, events)
				break
			}
		}
		if !last.Finished || last.Rows != 34 || last.Commits != 7 || last.Resumed || last.BytesWritten == 0 {
			t.Errorf("%s: last event %+v", f.name, last)
		}
	}
	j := begun(t)
	var last migrate.Event
	j.observe = func(e migrate.Event) { last = e }
	_, err := j.one(t.Context(), t)
	must(t, err)
	equal(t, "rows of a resumed job", last.Rows, 9)
	equal(t, "resumed", last.Resumed, true)
}

func TestVerify(t *testing.T) {
	from, _ := source34(t)
	to := newStore(t)
	to.create(t, "dst", people())
	j := newJob(from, to, 5)
	j.checkpoint = checkpointPath(t)
	m := j.migrator(t)
	_, err := m.Run(t.Context())
	must(t, err)
	from.insert(t, "src", ids(900, 1)...) // the job's snapshot is what counts
	for _, branch := range []string{"", "main"} {
		m = j.migrator(t)
		m.Write.Branch = branch
		v, err := m.Verify(t.Context(), "row_count")
		must(t, err)
		equal(t, "matches", v.Matches, true)
		equal(t, "counts", []int64{*v.SourceCount, *v.DestCount}, []int64{34, 34})
	}
	v, err := migrate.Verify(t.Context(), from.open(t, "src"), to.open(t, "dst"), migrate.VerifyOptions{})
	must(t, err)
	equal(t, "matches with a row more", v.Matches, false)
	var text bytes.Buffer
	must(t, v.WriteText(&text))
	if !strings.Contains(text.String(), "the tables differ") || !strings.Contains(text.String(), "35 rows") {
		t.Errorf("text %s", &text)
	}
	_, err = migrate.Verify(t.Context(), from.open(t, "src"), to.open(t, "dst"), migrate.VerifyOptions{Method: "guess"})
	wantError(t, err, `"guess"`, "row_count")

	empty := newStore(t)
	empty.create(t, "src", people())
	empty.create(t, "dst", people())
	v, err = migrate.Verify(t.Context(), empty.open(t, "src"), empty.open(t, "dst"), migrate.VerifyOptions{DestBranch: "main"})
	must(t, err)
	equal(t, "empty tables match", v.Matches, true)
}

func TestStatus(t *testing.T) {
	j := begun(t)
	s, err := migrate.StatusOf(t.Context(), ckpt.Open(j.checkpoint), j.note(t), j.to.open(t, "dst"))
	must(t, err)
	equal(t, "found", s.Found, 1)
	equal(t, "rows", s.Rows, 4)
	equal(t, "next", strings.HasPrefix(s.Next, "go on from cursor 0/0/4"), true)
	var text bytes.Buffer
	must(t, s.WriteText(&text))
	if !strings.Contains(text.String(), "1 snapshot of the job is in the destination") {
		t.Errorf("text %s", &text)
	}
	s, err = migrate.StatusOf(t.Context(), ckpt.Open(j.checkpoint), j.note(t), nil)
	must(t, err)
	equal(t, "found without a destination", s.Found, nil)
	equal(t, "next without a destination", s.Next, "unknown: the destination could not be looked at")
	text.Reset()
	must(t, s.WriteText(&text))
	if !strings.Contains(text.String(), "unknown how many snapshots") || !strings.Contains(text.String(), "(not complete)") || s.State != ckpt.Running {
		t.Errorf("text %s", &text)
	}

	j.to.rollBack(t, "dst")
	s, err = migrate.StatusOf(t.Context(), ckpt.Open(j.checkpoint), j.note(t), j.to.open(t, "dst"))
	must(t, err)
	equal(t, "found", s.Found, 0)
	if !strings.HasPrefix(s.Next, "refuse: ") || !strings.Contains(s.Next, "rolled back") {
		t.Errorf("next %q", s.Next)
	}

	must(t, j.to.DropTable(t.Context(), table.Identifier{"ns", "dst"}))
	j.to.create(t, "dst", people())
	s, err = migrate.StatusOf(t.Context(), ckpt.Open(j.checkpoint), j.note(t), j.to.open(t, "dst"))
	must(t, err)
	if !strings.HasPrefix(s.Next, "refuse: the destination was dropped and made anew (UUID ") {
		t.Errorf("next %q", s.Next)
	}

	from, _ := source34(t)
	p := pending(t, from)
	s, err = migrate.StatusOf(t.Context(), ckpt.Open(p.checkpoint), p.note(t), p.to.open(t, "dst"))
	must(t, err)
	equal(t, "pending files", len(s.Pending), 1)
	equal(t, "next", strings.HasPrefix(s.Next, "commit pending batch 2, 1 file, then go on from cursor "), true)
	_, err = p.one(t.Context(), t)
	must(t, err)
	s, err = migrate.StatusOf(t.Context(), ckpt.Open(p.checkpoint), p.note(t), p.to.open(t, "dst"))
	must(t, err)
	equal(t, "next", s.Next, "nothing: the migration is complete")
	equal(t, "found", s.Found, 7)
}

// A batch goes to a branch, and main stays as it was.
func TestBranch(t *testing.T) {
	j := begun(t)
	tbl := j.to.load(t, "dst")
	main := tbl.CurrentSnapshot().SnapshotID
	j.to.branch(t, "dst", "dev")
	j.branch, j.newJob = "dev", true
	for i, f := range []form{one, three} {
		j.checkpoint = checkpointPath(t)
		r, err := f.run(j, t.Context(), t)
		must(t, err)
		now := j.to.load(t, "dst")
		equal(t, "main", now.CurrentSnapshot().SnapshotID, main)
		equal(t, "dev", fmt.Sprint(now.SnapshotByName("dev").SnapshotID), *r.Destination.SnapshotID)
		m := j.migrator(t)
		v, err := m.Verify(t.Context(), "row_count")
		must(t, err)
		equal(t, "rows of the job in dev", *v.DestCount, 9)
		m.Compare.WholeTable = true
		v, err = m.Verify(t.Context(), "row_count")
		must(t, err)
		equal(t, "rows in dev", *v.DestCount, 5+9*(i+1))
	}
}

// Rows that a stage took out count as moved and rejected, not as inserted; a batch of which none is left
// makes no snapshot, and its range joins the next one's.
func TestRejects(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 9)...)
	to.create(t, "dst", people(), catalog.WithProperties(nil))
	j := newJob(from, to, 2)
	j.checkpoint = checkpointPath(t)
	gone := map[int]bool{1: true, 2: true, 3: true, 8: true}
	j.spoil = func(in rows.Stream) rows.Stream { return rejecting(t, in, gone) }
	r, err := j.three(t.Context(), t)
	must(t, err)
	var want []string
	for i, row := range ids(0, 9) {
		if !gone[i] {
			want = append(want, row)
		}
	}
	equal(t, "rows", to.content(t, "dst"), want)
	equal(t, "moved, inserted, rejected", []int64{r.RowsMoved, r.RowsInserted, r.RowsRejected}, []int64{9, 5, 4})
	equal(t, "batches", r.Batches, 3)
	totals := j.note(t).Totals
	equal(t, "totals", []int64{totals.RowsMoved, totals.RowsInserted, totals.RowsRejected}, []int64{9, 5, 4})
	snaps := to.snaps(t, "dst")
	equal(t, "range over a batch without rows", []string{place(snaps[1].mark["icepipe.cursor-from"]), place(snaps[1].mark["icepipe.cursor"])}, []string{"0/0/2", "0/0/6"})
}
