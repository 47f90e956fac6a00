package migrate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"

	"icepipe/pkg/filter"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// grouped makes a source of four row groups of five rows in two files.
func grouped(t *testing.T) (*store, []string) {
	t.Helper()
	from := newStore(t)
	from.create(t, "src", people(), catalog.WithProperties(iceberg.Properties{"write.parquet.row-group-limit": "5"}))
	from.insert(t, "src", ids(0, 10)...)
	from.insert(t, "src", ids(10, 10)...)
	to := newStore(t)
	to.create(t, "dst", people())
	j := newJob(from, to, 100)
	_, err := j.one(t.Context(), t)
	must(t, err)
	return from, to.content(t, "dst")
}

var copyModes = []string{"", migrate.CopyAuto, migrate.CopyRequire, migrate.CopyNever}

// Rows are the same whatever is copied, and the receipt says what was.
func TestCopyModes(t *testing.T) {
	from, want := grouped(t)
	for _, rows := range []int64{migrate.AutoBatchRows, 5, 7} {
		for _, mode := range copyModes {
			t.Run(fmt.Sprintf("%q by %d", mode, rows), func(t *testing.T) {
				to := newStore(t)
				to.create(t, "dst", people())
				j := newJob(from, to, rows)
				j.copy = mode
				r, err := j.one(t.Context(), t)
				if mode == migrate.CopyRequire && rows == 7 {
					wantError(t, err, "row group 1 cannot be copied: its rows go into more than one batch")
					return
				}
				must(t, err)
				equal(t, "rows", to.content(t, "dst"), want)
				switch {
				case mode == migrate.CopyNever && r.BytesCopied != 0, mode != migrate.CopyNever && r.BytesCopied == 0:
					t.Errorf("%d bytes were copied", r.BytesCopied)
				case mode == migrate.CopyRequire && r.BytesTranscoded+r.BytesEncoded > 0:
					t.Errorf("%d and %d bytes were not copied", r.BytesTranscoded, r.BytesEncoded)
				}
			})
		}
	}
}

// Whether columns are copied is no setting of a job: it is resumed with another mode, and as one of whole row groups.
func TestResumeWithAnotherCopy(t *testing.T) {
	from, want := grouped(t)
	for _, before := range copyModes {
		for _, after := range copyModes {
			to := newStore(t)
			to.create(t, "dst", people(), noRetries())
			j := newJob(from, to, 5)
			j.checkpoint, j.copy = checkpointPath(t), before
			to.commit = failAt(2, false, to)
			_, err := j.one(t.Context(), t)
			wantError(t, err, errLost.Error())
			to.commit, to.gone = nil, false
			j.copy = after
			_, err = j.one(t.Context(), t)
			must(t, err)
			j.finished(t, want, 4)
		}
	}
}

// A job of whole row groups is not resumed as one of so many rows a batch, and a resume follows row groups as it did.
func TestResumeFollowsRowGroups(t *testing.T) {
	from, want := grouped(t)
	to := newStore(t)
	to.create(t, "dst", people(), noRetries())
	j := newJob(from, to, migrate.AutoBatchRows)
	j.checkpoint = checkpointPath(t)
	to.commit = failAt(0, false, to)
	_, err := j.one(t.Context(), t)
	wantError(t, err, errLost.Error())
	to.commit, to.gone = nil, false
	j.scan.BatchRows = 50_000
	_, err = j.one(t.Context(), t)
	wantError(t, err, "batches:")
	j.scan.BatchRows = migrate.AutoBatchRows
	_, err = j.one(t.Context(), t)
	must(t, err)
	j.finished(t, want, 1)
}

// Where copying is required, what cannot be copied ends the run with the place and the reason, and what never can is
// refused before.
func TestCopyRequired(t *testing.T) {
	from, rows := grouped(t)
	t.Run("cast", func(t *testing.T) {
		to := newStore(t)
		to.create(t, "dst", iceberg.NewSchema(0, field(1, "id", prim.String)))
		j := newJob(from, to, 5)
		j.copy, j.reconcile = migrate.CopyRequire, plan.Options{MissingInDest: plan.PolicyIgnore}
		_, err := j.one(t.Context(), t)
		wantError(t, err, `row group 0 cannot be copied: column "id": its values are made`)
		if !slices.ContainsFunc(from.files(t, "src"), func(path string) bool { return strings.Contains(err.Error(), path) }) {
			t.Errorf("%v names no file", err)
		}
		equal(t, "snapshots", len(to.snaps(t, "dst")), 0)
		equal(t, "data files", len(dataFiles(t, to.load(t, "dst"))), 0)
		_, again := j.migrator(t).DryRun(t.Context())
		wantError(t, again, err.Error()[strings.Index(err.Error(), "row group 0"):])
	})
	t.Run("a column is added", func(t *testing.T) {
		to := newStore(t)
		to.create(t, "dst", iceberg.NewSchema(0, field(1, "id", prim.Int64)))
		j := newJob(from, to, migrate.AutoBatchRows)
		j.copy, j.reconcile = migrate.CopyRequire, plan.Options{MissingInDest: plan.PolicyAutoAdd}
		_, err := j.migrator(t).DryRun(t.Context())
		must(t, err)
		_, err = j.one(t.Context(), t)
		must(t, err)
		equal(t, "rows", to.content(t, "dst"), rows)
	})
	t.Run("deletes", func(t *testing.T) {
		from, _ := source34(t)
		to := newStore(t)
		to.create(t, "dst", people())
		j := newJob(from, to, migrate.AutoBatchRows)
		j.copy = migrate.CopyRequire
		_, err := j.one(t.Context(), t)
		wantError(t, err, "some of its rows are deleted, or do not pass the filter; --copy auto")
		_, err = j.migrator(t).DryRun(t.Context())
		wantError(t, err, "some of its rows are deleted, or do not pass the filter; --copy auto")
	})
	t.Run("upsert", func(t *testing.T) {
		to := newStore(t)
		to.create(t, "dst", people())
		j := newJob(from, to, 5)
		j.copy, j.upsert = migrate.CopyRequire, &migrate.UpsertOptions{Keys: []string{"id"}}
		_, err := j.one(t.Context(), t)
		wantError(t, err, "an upsert looks at every row")
		_, err = j.migrator(t).DryRun(t.Context())
		wantError(t, err, "an upsert looks at every row")
	})
	t.Run("stream", func(t *testing.T) {
		to := newStore(t)
		to.create(t, "dst", people())
		j := newJob(from, to, 5)
		j.copy = migrate.CopyRequire
		_, err := j.three(t.Context(), t)
		wantError(t, err, "a stream carries rows and no files")
	})
}

// TestMasked: rows that are deleted or do not pass a filter do not arrive, by either form in the same batches, and what
// arrives goes from pages to pages: row groups of which all rows pass are copied, of others the rest is taken.
func TestMasked(t *testing.T) {
	plain, _ := grouped(t)
	deleted, _ := grouped(t)
	changes := newStore(t)
	changes.create(t, "src", people())
	changes.insert(t, "src", row(6, "new"), row(9, "new"))
	change := newJob(changes, deleted, 100)
	change.dst, change.upsert = "src", &migrate.UpsertOptions{Keys: []string{"id"}, DeleteMode: migrate.DeletePosition}
	_, err := change.one(t.Context(), t)
	must(t, err)
	for _, c := range []struct {
		name   string
		from   *store
		filter string
		passes func(id int) bool
		copies bool // where batches are whole row groups
	}{
		{"whole row groups pass", plain, "id >= 10", func(id int) bool { return id >= 10 }, true},
		{"some of each", plain, "id NOT IN (3, 7, 12, 19)", func(id int) bool { return id != 3 && id != 7 && id != 12 && id != 19 }, false},
		{"one", plain, "id = 8", func(id int) bool { return id == 8 }, false},
		{"none", plain, "id = 8 AND name = 'n9'", func(int) bool { return false }, false},
		{"deleted", deleted, "", func(int) bool { return true }, true},
		{"deleted and not passing", deleted, "id < 7 OR id > 16", func(id int) bool { return id < 7 || id > 16 }, true},
	} {
		for _, batchRows := range []int64{migrate.AutoBatchRows, 100, 3} {
			t.Run(fmt.Sprintf("%s by %d", c.name, batchRows), func(t *testing.T) {
				var want []string
				for id := range 20 {
					switch {
					case !c.passes(id):
					case c.from == deleted && (id == 6 || id == 9):
						want = append(want, row(id, "new"))
					default:
						want = append(want, ids(id, 1)...)
					}
				}
				var batches []string
				for i, f := range []form{one, three} {
					to := newStore(t)
					to.create(t, "dst", people())
					j := newJob(c.from, to, batchRows)
					if c.filter != "" {
						var err error
						j.scan.Filter, err = filter.Parse(c.filter)
						must(t, err)
					}
					r, err := f.run(j, t.Context(), t)
					must(t, err)
					slices.Sort(want)
					equal(t, "rows", to.live(t, "dst"), append([]string{}, want...))
					var added []string
					for _, snap := range to.snaps(t, "dst") {
						added = append(added, snap.mark["added-records"]+" to "+snap.mark["icepipe.cursor"])
					}
					if i == 0 {
						batches = added
						if r.BytesEncoded > 0 || len(want) > 0 && r.BytesTranscoded+r.BytesCopied == 0 {
							t.Errorf("%d bytes were encoded of records", r.BytesEncoded)
						}
						if whole := batchRows == migrate.AutoBatchRows; whole && c.copies != (r.BytesCopied > 0) {
							t.Errorf("%d bytes were copied", r.BytesCopied)
						}
					}
					equal(t, "batches", added, batches)
				}
			})
		}
	}
}
