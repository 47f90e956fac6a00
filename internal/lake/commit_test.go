package lake

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
)

// TestAppendOnce: cases 70, 71, 72, 76. Whatever the catalog answers, a batch lands once or not at all, the
// error says which, and its files stay.
func TestAppendOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		commit  func(t *testing.T, tbl *Table) func(n int, land func() error) error
		load    func(n int) error
		props   []string
		lands   int
		unknown bool
		fail    string
		tries   int
		once    bool // it is tried but once
	}{
		{name: "at once", lands: 1, tries: 1},
		{name: "fails before, then lands", lands: 1, tries: 3, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error {
				if n < 3 {
					return errCatalog
				}
				return land()
			}
		}},
		{name: "fails after landing", lands: 1, tries: 1, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errors.Join(land(), errCatalog) }
		}},
		{name: "answers conflict after landing", lands: 1, tries: 1, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errors.Join(land(), table.ErrCommitFailed) }
		}},
		{name: "hangs after landing", lands: 1, tries: 1, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errors.Join(land(), errHang) }
		}},
		{name: "is too slow, then lands", lands: 1, tries: 2, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error {
				if n == 1 {
					return context.DeadlineExceeded
				}
				return land()
			}
		}},
		{name: "another writer is first, twice", lands: 1, tries: 3, commit: func(t *testing.T, tbl *Table) func(int, func() error) error {
			return func(n int, land func() error) error {
				if n < 3 {
					another(t, tbl)
				}
				return land()
			}
		}},
		{name: "lands, another writer follows, then an error", lands: 1, tries: 1, commit: func(t *testing.T, tbl *Table) func(int, func() error) error {
			return func(n int, land func() error) error {
				err := land()
				another(t, tbl)
				return errors.Join(err, errCatalog)
			}
		}},
		{name: "always fails", fail: "given up after 3 tries (the table's commit.retry.num-retries is 2)", props: []string{"commit.retry.num-retries=2"}, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errCatalog }
		}},
		{name: "no second try", fail: "given up after 1 tries", props: []string{"commit.retry.num-retries=0"}, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errCatalog }
		}},
		{name: "another writer is always first", fail: "another writer commits all the time: run again, or raise the table's commit.retry.num-retries", props: []string{"commit.retry.num-retries=1"}, commit: func(t *testing.T, tbl *Table) func(int, func() error) error {
			return func(n int, land func() error) error {
				another(t, tbl)
				return land()
			}
		}},
		{name: "a read-only database", once: true, fail: `the catalog's database cannot be written by this user: attempt to write a readonly database`, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(int, func() error) error { return errors.New("attempt to write a readonly database (8)") }
		}},
		{name: "a folder of another's", once: true, fail: `"/t/metadata/x.json" cannot be written by this user`, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(int, func() error) error {
				return &fs.PathError{Op: "open", Path: "/t/metadata/x.json", Err: syscall.EACCES}
			}
		}},
		{name: "denied, and landed", once: true, lands: 1, tries: 1, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errors.Join(land(), fs.ErrPermission) }
		}},
		{name: "no second try, but a look", lands: 1, tries: 1, props: []string{"commit.retry.num-retries=-5"}, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errors.Join(land(), errCatalog) }
		}},
		{name: "lands, and the catalog is away for a while", lands: 1, tries: 1, load: func(n int) error {
			if n < settleTries {
				return errCatalog
			}
			return nil
		}, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errors.Join(land(), errCatalog) }
		}},
		{name: "lands, and the catalog is gone", lands: 1, unknown: true, fail: "500", load: func(int) error { return errCatalog }, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errors.Join(land(), errCatalog) }
		}},
		{name: "does not land, and the catalog is gone", unknown: true, fail: "500", load: func(int) error { return errCatalog }, commit: func(*testing.T, *Table) func(int, func() error) error {
			return func(n int, land func() error) error { return errCatalog }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tbl := newTable(t, idAndText(), unpartitioned(), c.props...)
			appended(t, tbl, 0, ids(1, 1))
			base := tbl.CurrentSnapshot().SnapshotID
			f := &faulty{Catalog: tbl.Catalog, load: c.load}
			if c.commit != nil {
				f.commit = c.commit(t, tbl)
			}
			real := tbl.Catalog
			tbl.Catalog = f
			if strings.Contains(c.name, "hang") {
				tbl.CallTimeout = 2 * time.Second
			}
			commit := Commit{Branch: "main", Mark: markOf(1), Files: written(t, tbl, ids(2, 3))}
			got, err := tbl.Append(t.Context(), commit)
			tbl.Catalog = real
			if c.once && f.commits != 1 {
				t.Errorf("tried %d times", f.commits)
			}
			if n := landings(t, tbl, commit.Mark); n != c.lands {
				t.Errorf("the batch is in the table %d times", n)
			}
			for _, file := range commit.Files {
				if _, err := os.Stat(local(t, file.FilePath())); err != nil {
					t.Errorf("its file: %v", err)
				}
			}
			if errors.Is(err, ErrUnknownOutcome) != c.unknown {
				t.Errorf("error %v, unknown outcome %v", err, !c.unknown)
			}
			if c.fail != "" {
				fails(t, "append", err, c.fail)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			fresh := load(t, tbl)
			s := fresh.Metadata().SnapshotByID(got.Snapshot)
			if s == nil || s.Summary.Properties[MarkBatch] != "1" || got.Parent == nil || *got.Parent != *s.ParentSnapshotID || got.Tries != c.tries {
				t.Errorf("committed %+v, the snapshot is %v", got, s)
			}
			if c.tries == 1 && *got.Parent != base {
				t.Errorf("parent %d, want %d", *got.Parent, base)
			}
			if merged := fresh.Properties()["commit.manifest-merge.enabled"]; merged != "" {
				t.Errorf("the table now has commit.manifest-merge.enabled=%s", merged)
			}
			others := len(fresh.Metadata().Snapshots()) - 2
			counts(t, fresh, 3+others)
		})
	}
}
