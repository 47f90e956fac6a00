package migrate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
)

// overwriteJob replaces partitions of a destination by name with the rows of source34, in batches of five.
func overwriteJob(t *testing.T, from *store) *job {
	t.Helper()
	to := newStore(t)
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "name", Transform: iceberg.IdentityTransform{}})
	to.create(t, "dst", people(), noRetries(), catalog.WithPartitionSpec(&spec))
	to.insert(t, "dst", `{"id":-1,"name":"n1"}`, `{"id":-2,"name":"other"}`, `{"id":-3,"name":null}`)
	j := newJob(from, to, 5)
	j.overwrite = true
	j.checkpoint = checkpointPath(t)
	return j
}

// replaced holds the destination to have the job's rows and those of partitions that it does not touch.
func (j *job) replaced(t *testing.T, want []string) {
	t.Helper()
	all := append([]string{`{"id":-2,"name":"other"}`, `{"id":-3,"name":null}`}, want...)
	slices.Sort(all)
	equal(t, "rows", j.to.content(t, j.dst), all)
	c := j.note(t)
	equal(t, "state", c.State, ckpt.Complete)
	equal(t, "batches", c.Batches, 1)
	equal(t, "rows inserted", c.Totals.RowsInserted, len(want))
	head := j.to.load(t, j.dst).CurrentSnapshot()
	equal(t, "operation", string(head.Summary.Operation), "overwrite")
	equal(t, "from", place(head.Summary.Properties["icepipe.cursor-from"]), "0/0/0")
}

// A job of many batches replaces what it touches in one commit, in both forms (case 18), and undo puts it back.
func TestOverwrite(t *testing.T) {
	from, want := source34(t)
	for _, f := range []form{one, three} {
		t.Run(f.name, func(t *testing.T) {
			j := overwriteJob(t, from)
			before := j.to.content(t, "dst")
			r, err := f.run(j, t.Context(), t)
			must(t, err)
			equal(t, "batches", r.Batches, 1)
			equal(t, "rows", r.RowsInserted, 34)
			j.replaced(t, want)
			store := ckpt.Open(j.checkpoint)
			_, err = migrate.Undo(t.Context(), store, j.to.open(t, "dst"), migrate.UndoOptions{})
			must(t, err)
			equal(t, "rows after undo", j.to.content(t, "dst"), before)
			_, err = migrate.Redo(t.Context(), store, j.to.open(t, "dst"), false)
			must(t, err)
			j.replaced(t, want)
		})
	}
}

// A job that stops before or in its commit goes on by the other form; what landed is not made twice.
func TestOverwriteResume(t *testing.T) {
	from, want := source34(t)
	for _, f := range []form{one, three} {
		for name, stop := range map[string]func(*job){
			"broken after 3": func(j *job) { j.spoil = brokenAfter(3, errPipe) },
			"commit lost":    func(j *job) { j.to.commit = failAt(0, false, j.to) },
			"answer lost":    func(j *job) { j.to.commit = failAt(0, true, j.to) },
		} {
			t.Run(name+", then "+f.name, func(t *testing.T) {
				j := overwriteJob(t, from)
				stop(j)
				first := other(f, []form{one, three})
				if j.spoil != nil {
					first = three
				}
				if _, err := first.run(j, t.Context(), t); !errors.Is(err, errPipe) && !errors.Is(err, errLost) {
					t.Fatalf("error %v", err)
				}
				j.reset()
				j.shortcut = true
				_, err := f.run(j, t.Context(), t)
				must(t, err)
				j.replaced(t, want)
			})
		}
	}
}

// What another writer put into a touched partition since the job began is a conflict, between two runs of it
// too; the user may accept it.
func TestOverwriteConflict(t *testing.T) {
	from, want := source34(t)
	for _, accept := range []bool{false, true} {
		t.Run(fmt.Sprintf("accepted %v", accept), func(t *testing.T) {
			j := overwriteJob(t, from)
			j.spoil = brokenAfter(3, errPipe)
			if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
				t.Fatal(err)
			}
			j.reset()
			j.to.insert(t, "dst", `{"id":-9,"name":"n2"}`)
			j.concurrent = accept
			_, err := j.one(t.Context(), t)
			if accept {
				must(t, err)
				j.replaced(t, want)
				return
			}
			wantError(t, err, "another writer changed a partition that the job replaces", "name=n2", "--overwrite-concurrent")
			_, err = j.three(t.Context(), t) // pending by now
			wantError(t, err, "another writer changed a partition", "--overwrite-concurrent")
			j.concurrent = true
			_, err = j.three(t.Context(), t)
			must(t, err)
			j.replaced(t, want)
		})
	}
}

// Without rows nothing changes (case 19).
func TestOverwriteEmpty(t *testing.T) {
	from := newStore(t)
	from.create(t, "src", people())
	j := overwriteJob(t, from)
	before := j.to.load(t, "dst").CurrentSnapshot().SnapshotID
	r, err := j.one(t.Context(), t)
	must(t, err)
	equal(t, "complete", r.Complete, true)
	equal(t, "head", j.to.load(t, "dst").CurrentSnapshot().SnapshotID, before)
}

// A table without partitions is replaced as a whole, and only where that is said; a dry run asks too, and so
// does a table whose only partition field is void.
func TestOverwriteWhole(t *testing.T) {
	from, want := source34(t)
	for _, void := range []bool{false, true} {
		t.Run(fmt.Sprintf("void %v", void), func(t *testing.T) {
			to := newStore(t)
			spec := *iceberg.UnpartitionedSpec
			if void {
				spec = iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "name", Transform: iceberg.VoidTransform{}})
			}
			to.create(t, "dst", people(), catalog.WithPartitionSpec(&spec))
			seed := newJob(from, to, 50)
			_, err := seed.one(t.Context(), t)
			must(t, err)
			j := newJob(from, to, 5)
			j.overwrite, j.newJob = true, true
			for _, run := range []func() error{
				func() error { _, err := j.one(t.Context(), t); return err },
				func() error { _, err := j.three(t.Context(), t); return err },
				func() error { _, err := j.migrator(t).DryRun(t.Context()); return err },
			} {
				wantError(t, run(), "has no partitions", "--yes")
			}
			j.yes = true
			_, err = j.one(t.Context(), t)
			must(t, err)
			equal(t, "rows", to.content(t, "dst"), want)
		})
	}
}

// A trial, and a spec that changed since the rows were staged, are refused.
func TestOverwriteRefused(t *testing.T) {
	from, _ := source34(t)
	j := overwriteJob(t, from)
	j.checkpoint, j.scan.Limit = "", 3
	_, err := j.one(t.Context(), t)
	wantError(t, err, "a trial (--limit)")

	j = overwriteJob(t, from)
	j.spoil = brokenAfter(3, errPipe)
	if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
		t.Fatal(err)
	}
	j.reset()
	tx := j.to.load(t, "dst").NewTransaction()
	must(t, tx.UpdateSpec(true).AddIdentity("id").Commit())
	_, err = tx.Commit(t.Context())
	must(t, err)
	_, err = j.one(t.Context(), t)
	wantError(t, err, "was written for partition spec 0")
}
