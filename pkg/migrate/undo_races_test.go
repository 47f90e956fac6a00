package migrate_test

import (
	"context"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

// A moving catalog does something around the commits that move a branch.
type moving struct {
	catalog.Catalog
	around func(commit func() error) error
	gone   bool
}

func (m *moving) CommitTable(ctx context.Context, id table.Identifier, r []table.Requirement, u []table.Update) (meta table.Metadata, location string, err error) {
	err = m.around(func() error {
		meta, location, err = m.Catalog.CommitTable(ctx, id, r, u)
		return err
	})
	return meta, location, err
}

func (m *moving) LoadTable(ctx context.Context, id table.Identifier) (*table.Table, error) {
	if m.gone {
		return nil, errLost
	}
	return m.Catalog.LoadTable(ctx, id)
}

// TestUndoRaces: the answer of the catalog proves nothing, another writer may be first, and a process that dies
// between the commit and the note of it is told (cases 70 to 72).
func TestUndoRaces(t *testing.T) {
	for _, tt := range []struct {
		name   string
		around func(*moving, *testing.T, *job, func() error) error
		want   string // error of the undo, "" for none
		undone bool   // the batches are out of the table
		again  string // error of another undo, where the first failed
	}{
		{"the commit landed, the answer is lost", func(_ *moving, _ *testing.T, _ *job, commit func() error) error {
			commit()
			return errLost
		}, "", true, ""},
		{"it did not land at first", func() func(*moving, *testing.T, *job, func() error) error {
			n := 0
			return func(_ *moving, _ *testing.T, _ *job, commit func() error) error {
				if n++; n < 3 {
					return errLost
				}
				return commit()
			}
		}(), "", true, ""},
		{"another writer is first", func(_ *moving, t *testing.T, j *job, commit func() error) error {
			j.to.insert(t, "dst", `{"id":-2,"name":"new"}`)
			return commit()
		}, "another writer has moved it meanwhile", false, "1 snapshot of other writers"},
		{"the catalog is gone after it landed", func(m *moving, _ *testing.T, _ *job, commit func() error) error {
			commit()
			m.gone = true
			return errLost
		}, "cannot tell whether", true, ""},
		{"the catalog is gone before it landed", func(m *moving, _ *testing.T, _ *job, _ func() error) error {
			m.gone = true
			return errLost
		}, "cannot tell whether", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from, to := newStore(t), newStore(t)
			from.create(t, "src", people())
			from.insert(t, "src", ids(0, 9)...)
			to.create(t, "dst", people(), catalog.WithProperties(iceberg.Properties{"commit.retry.num-retries": "4", "commit.retry.max-wait-ms": "0"}))
			j := newJob(from, to, 4)
			j.checkpoint = checkpointPath(t)
			_, err := j.one(t.Context(), t)
			must(t, err)
			whole := to.state(t, "dst")
			m := &moving{Catalog: to.Catalog}
			m.around = func(commit func() error) error { return tt.around(m, t, j, commit) }
			loaded, err := m.LoadTable(t.Context(), table.Identifier{"ns", "dst"})
			must(t, err)
			_, err = migrate.Undo(t.Context(), ckpt.Open(j.checkpoint), migrate.FromLoaded(m, loaded, rows.Place{}), migrate.UndoOptions{})
			if tt.want == "" {
				must(t, err)
			} else {
				wantError(t, err, tt.want)
			}
			equal(t, "no current snapshot", to.load(t, "dst").CurrentSnapshot() == nil, tt.undone)
			if tt.want != "" && tt.undone {
				j.refused(t, one, "an undo of it was begun", "ice-migrate undo")
			}
			if tt.want != "" {
				_, err = j.undo(t, migrate.UndoOptions{})
				if tt.again != "" {
					wantError(t, err, tt.again)
					equal(t, "state", j.note(t).State, ckpt.Complete)
					return
				}
				must(t, err)
			}
			equal(t, "state", j.note(t).State, ckpt.Undone)
			_, err = j.redo(t)
			must(t, err)
			equal(t, "after the redo", to.state(t, "dst"), whole)
		})
	}
}

// TestUndoBelowAnother: an undo and a redo whose answers are lost, and on which another writer has appended
// before anybody could look, have happened.
func TestUndoBelowAnother(t *testing.T) {
	for _, populated := range []bool{false, true} {
		for _, redo := range []bool{false, true} {
			from, to := newStore(t), newStore(t)
			from.create(t, "src", people())
			from.insert(t, "src", ids(0, 3)...)
			to.create(t, "dst", people())
			if populated {
				to.insert(t, "dst", `{"id":-1,"name":"old"}`)
			}
			j := newJob(from, to, 4)
			j.checkpoint = checkpointPath(t)
			_, err := j.one(t.Context(), t)
			must(t, err)
			if redo {
				_, err := j.undo(t, migrate.UndoOptions{})
				must(t, err)
			}
			m := &moving{Catalog: to.Catalog, around: func(commit func() error) error {
				must(t, commit())
				to.insert(t, "dst", `{"id":-2,"name":"new"}`)
				return errLost
			}}
			loaded, err := m.LoadTable(t.Context(), table.Identifier{"ns", "dst"})
			must(t, err)
			dst := migrate.FromLoaded(m, loaded, rows.Place{})
			want := []string{`{"id":-2,"name":"new"}`}
			if populated {
				want = append(want, `{"id":-1,"name":"old"}`)
			}
			if redo {
				_, err = migrate.Redo(t.Context(), ckpt.Open(j.checkpoint), dst, false)
				want = append(want, ids(0, 3)...)
			} else {
				_, err = migrate.Undo(t.Context(), ckpt.Open(j.checkpoint), dst, migrate.UndoOptions{})
			}
			must(t, err)
			equal(t, "state", j.note(t).State, map[bool]string{false: ckpt.Undone, true: ckpt.Complete}[redo])
			slices.Sort(want)
			got := to.content(t, "dst")
			slices.Sort(got)
			equal(t, "rows", got, want)
		}
	}
}
