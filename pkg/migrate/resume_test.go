package migrate_test

import (
	"context"
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

var (
	errPipe = errors.New("the pipe broke")
	errLost = errors.New("the catalog is gone")
)

// A stop ends a run after k batches of it, in a way of its own.
type stop struct {
	name  string
	forms []form
	set   func(j *job, k int, cancel func())
	want  error
}

var stops = []stop{
	{"interrupted", []form{one, three}, func(j *job, k int, cancel func()) {
		if k == 0 {
			j.observe = func(migrate.Event) { cancel() }
		}
		n := 0
		j.to.commit = func(_ context.Context, commit func() error) error {
			if n++; n == k {
				defer cancel()
			}
			return commit()
		}
	}, context.Canceled},
	{"stream broken", []form{three}, func(j *job, k int, _ func()) {
		if c, _ := ckpt.Open(j.checkpoint).Load(); c != nil && !j.shortcut {
			k += int(c.Batches) // which the stream brings once more
		}
		j.spoil = brokenAfter(k, errPipe)
	}, errPipe},
	{"commit lost", []form{one, three}, func(j *job, k int, _ func()) { j.to.commit = failAt(k, false, j.to) }, errLost},
	{"answer lost", []form{one, three}, func(j *job, k int, _ func()) { j.to.commit = failAt(k, true, j.to) }, errLost},
}

// failAt loses the catalog at the commit after k others, before or after it lands.
func failAt(k int, lands bool, s *store) func(context.Context, func() error) error {
	n := 0
	return func(_ context.Context, commit func() error) error {
		if n++; n <= k {
			return commit()
		}
		s.gone = true
		if lands {
			commit()
		}
		return errLost
	}
}

func (j *job) reset() {
	j.observe, j.spoil, j.to.commit, j.to.gone = nil, nil, nil, false
}

// source34 is a source of 34 rows in three files of three row groups, and the rows.
func source34(t *testing.T) (*store, []string) {
	t.Helper()
	from := newStore(t)
	deleted(t, from)
	var want []string
	for i := range 3 {
		want = append(want, ids(100*i, 13)...)
	}
	want = slices.DeleteFunc(want, func(s string) bool {
		return slices.ContainsFunc([]string{"0", "4", "5", "112", "200"}, func(id string) bool { return strings.HasPrefix(s, `{"id":`+id+",") })
	})
	slices.Sort(want)
	return from, want
}

// noRetries is a destination whose commits are tried once, and looked for without a pause.
func noRetries() catalog.CreateTableOpt {
	return catalog.WithProperties(iceberg.Properties{"commit.retry.num-retries": "0", "commit.retry.max-wait-ms": "0"})
}

// A job that stops after each k batches, in whatever way, and is resumed by the one form and the other in
// turn, has each row in the destination once.
func TestResume(t *testing.T) {
	from, want := source34(t)
	for _, s := range stops {
		for _, first := range s.forms {
			for _, k := range thin(1, 2, 3) {
				t.Run(fmt.Sprintf("%s after %d, %s first", s.name, k, first.name), func(t *testing.T) {
					to := newStore(t)
					to.create(t, "dst", people(), noRetries())
					j := newJob(from, to, 5)
					j.checkpoint = checkpointPath(t)
					f := first
					for runs := 0; ; runs++ {
						if runs > 8 {
							t.Fatal("no end")
						}
						ctx, cancel := context.WithCancel(t.Context())
						j.shortcut = runs%4 < 2
						s.set(j, k, cancel)
						r, err := f.run(j, ctx, t)
						cancel()
						j.reset()
						equal(t, "resumed", r.Resumed, runs > 0)
						if err == nil {
							break
						}
						if !errors.Is(err, s.want) {
							t.Fatalf("run %d: error %v", runs, err)
						}
						j.sound(t, want)
						f = other(f, s.forms)
					}
					j.finished(t, want, 7)
				})
			}
		}
	}
}

func other(f form, forms []form) form {
	for _, g := range forms {
		if g.name != f.name {
			return g
		}
	}
	return f
}

// sound holds the destination to have rows of want only, none twice.
func (j *job) sound(t *testing.T, want []string) {
	t.Helper()
	got := j.to.content(t, j.dst)
	for i, row := range got {
		if !slices.Contains(want, row) || i > 0 && got[i-1] == row {
			t.Errorf("row %s is in the destination, or twice", row)
		}
	}
}

// A checkpoint that is several batches behind is brought up by the marks in the destination.
func TestResumeFromAnOlderCheckpoint(t *testing.T) {
	from, want := source34(t)
	for _, behind := range thin(0, 1, 2, 3, 4, 5) {
		for _, f := range []form{one, three} {
			t.Run(fmt.Sprintf("as of batch %d, %s", behind, f.name), func(t *testing.T) {
				to := newStore(t)
				to.create(t, "dst", people())
				j := newJob(from, to, 5)
				j.checkpoint = checkpointPath(t)
				var copies [][]byte
				to.commit = func(_ context.Context, commit func() error) error {
					text, err := os.ReadFile(j.checkpoint)
					must(t, err)
					copies = append(copies, text)
					return commit()
				}
				j.spoil = brokenAfter(6, errPipe)
				if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
					t.Fatal(err)
				}
				j.reset()
				must(t, os.WriteFile(j.checkpoint, copies[behind], 0o600))
				equal(t, "batches in the older checkpoint", j.note(t).Batches, behind)
				j.shortcut = behind%2 == 0
				r, err := f.run(j, t.Context(), t)
				must(t, err)
				equal(t, "batches found or made", r.Batches, 7-behind)
				equal(t, "rows found or made", r.RowsMoved, 34-5*behind)
				equal(t, "resumed", r.Resumed, true)
				j.finished(t, want, 7)
			})
		}
	}
}

// A column that the job adds to the destination is added once, wherever the first run ended.
func TestResumeAddsAColumnOnce(t *testing.T) {
	from := newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 9)...)
	for _, s := range stops {
		for k := range 2 {
			t.Run(fmt.Sprintf("%s after %d", s.name, k), func(t *testing.T) {
				to := newStore(t)
				to.create(t, "dst", numbers(), noRetries())
				j := newJob(from, to, 4)
				j.checkpoint = checkpointPath(t)
				j.reconcile.MissingInDest = plan.PolicyAutoAdd
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s.set(j, k, cancel)
				r, err := s.forms[0].run(j, ctx, t)
				if !errors.Is(err, s.want) {
					t.Fatalf("error %v", err)
				}
				equal(t, "changes", r.SchemaChanges, []string{"added column name string"})
				j.reset()
				r, err = other(s.forms[0], []form{one, three}).run(j, t.Context(), t)
				must(t, err)
				equal(t, "changes of the second run", r.SchemaChanges, []string{})
				equal(t, "changes of the job", j.note(t).SchemaChanges, []string{"added column name string"})
				equal(t, "schemas", len(to.load(t, "dst").Metadata().Schemas()), 2)
				j.finished(t, ids(0, 9), 3)
			})
		}
	}
}

// A commit that is given up leaves its files to the resume, and says so.
func TestGivenUp(t *testing.T) {
	from, want := source34(t)
	to := newStore(t)
	to.create(t, "dst", people(), noRetries())
	j := newJob(from, to, 5)
	j.checkpoint = checkpointPath(t)
	to.commit = func(context.Context, func() error) error { return table.ErrCommitFailed }
	_, err := j.one(t.Context(), t)
	wantError(t, err, "batch 0: commit, given up after 1 tries", "another writer commits all the time", "not committed; its files are kept, and a run with the checkpoint commits them")
	file := j.note(t).Pending.Files[0].Path
	_, err = j.three(t.Context(), t)
	wantError(t, err, j.checkpoint, "pending batch 0: commit, given up", "its files are kept")
	j.reset()
	_, err = j.one(t.Context(), t)
	must(t, err)
	j.finished(t, want, 7)
	equal(t, "file committed", slices.Contains(to.files(t, "dst"), file), true)

	j.checkpoint = ""
	to.commit = func(context.Context, func() error) error { return table.ErrCommitFailed }
	_, err = j.one(t.Context(), t)
	if err == nil || strings.Contains(err.Error(), "kept") {
		t.Errorf("without a checkpoint: error %v", err)
	}
}

// A stream that breaks while a commit fails is one error that says both.
func TestTwoFailures(t *testing.T) {
	from, _ := source34(t)
	to := newStore(t)
	to.create(t, "dst", people(), noRetries())
	j := newJob(from, to, 5)
	n := 0
	to.commit = func(_ context.Context, commit func() error) error {
		if n++; n == 2 {
			return errLost
		}
		return commit()
	}
	j.spoil = brokenAfter(2, errPipe)
	r, err := j.three(t.Context(), t)
	if !errors.Is(err, errPipe) || !errors.Is(err, errLost) {
		t.Errorf("error %v", err)
	}
	wantError(t, err, "batch 1: ", "; and "+errPipe.Error())
	equal(t, "batches in the receipt", r.Batches, 1)
	equal(t, "new snapshots in the receipt", len(r.NewSnapshots), 1)
}
