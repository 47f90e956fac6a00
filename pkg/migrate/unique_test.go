package migrate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"

	"icepipe/pkg/filter"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// With --on-duplicate-key error nothing is written of a source that holds a key twice, by no form and with no size
// of batches; the dry run finds it too.
func TestDuplicateKeysCommitNothing(t *testing.T) {
	source := []string{row(1, "u1"), row(2, "u2"), row(20, "i20"), row(21, "i21"), row(22, "i22"), row(1, "again")}
	for name, c := range map[string]struct {
		form form
		once bool
		says []string
	}{
		"one process":          {one, false, []string{"two rows of the source have key (id=1)", "--on-duplicate-key first or last"}},
		"one process, once":    {one, true, []string{"two rows of the source have key (id=1)"}},
		"three programs":       {three, false, []string{"a stream is read but once", "--commit once", "ice-migrate"}},
		"three programs, once": {three, true, []string{"two rows of the source have key (id=1)"}},
		"a dry run":            {form{"", dry}, false, []string{"two rows of the source have key (id=1)"}},
		"a dry run, with once": {form{"", dry}, true, []string{"two rows of the source have key (id=1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := upsertTo(t, 2, "", 2, source...)
			j.upsert.Duplicates, j.once, j.checkpoint = migrate.DuplicateError, c.once, checkpointPath(t)
			before := j.to.load(t, "dst").MetadataLocation()
			files := dataFiles(t, j.to.load(t, "dst"))
			_, err := c.form.run(j, t.Context(), t)
			wantError(t, err, c.says...)
			equal(t, "metadata", j.to.load(t, "dst").MetadataLocation(), before)
			if !c.once {
				equal(t, "files", dataFiles(t, j.to.load(t, "dst")), files)
				if _, err := os.Stat(j.checkpoint); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("there is a checkpoint: %v", err)
				}
			}
		})
	}
}

// dry is a dry run as a form.
func dry(j *job, ctx context.Context, t *testing.T) (migrate.Receipt, error) {
	_, err := j.migrator(t).DryRun(ctx)
	return migrate.Receipt{}, err
}

// The keys that count are those of the rows that are moved: by the job's filter, plan and rule for nulls, without
// rows that are rejected.
func TestDuplicateKeysOfTheJob(t *testing.T) {
	texts := func(t *testing.T, rows ...string) *job {
		from, to := newStore(t), newStore(t)
		from.create(t, "src", iceberg.NewSchema(0, field(1, "nr", prim.String), field(2, "label", prim.String), field(3, "n", prim.String)))
		from.insert(t, "src", rows...)
		to.create(t, "dst", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "name", prim.String), field(3, "n", prim.Int64)), catalog.WithProperties(iceberg.Properties{"format-version": "2"}))
		j := newJob(from, to, 1)
		j.reconcile = plan.Options{Mapping: []plan.Rename{{From: "nr", To: "id"}, {From: "label", To: "name"}}}
		j.upsert = &migrate.UpsertOptions{Keys: []string{"id"}, Duplicates: migrate.DuplicateError}
		return j
	}
	t.Run("the values that are written count", func(t *testing.T) {
		j := texts(t, `{"nr":"7","label":"a","n":"1"}`, `{"nr":"8","label":"b","n":"1"}`, `{"nr":"07","label":"c","n":"1"}`)
		_, err := j.one(t.Context(), t)
		wantError(t, err, "two rows of the source have key (id=7)")
		equal(t, "rows", j.to.live(t, "dst"), []string{})
	})
	t.Run("rows that are rejected do not", func(t *testing.T) {
		j := texts(t, `{"nr":"7","label":"a","n":"x"}`, `{"nr":"8","label":"b","n":"1"}`, `{"nr":"7","label":"c","n":"1"}`)
		j.reconcile.OnCastError = plan.PolicyReject
		j.rejects.File = filepath.Join(t.TempDir(), "rejects.jsonl")
		r, err := j.one(t.Context(), t)
		must(t, err)
		equal(t, "inserted, rejected", []int64{r.RowsInserted, r.RowsRejected}, []int64{2, 1})
	})
	t.Run("rows that the filter leaves out do not", func(t *testing.T) {
		j := texts(t, `{"nr":"7","label":"a","n":"1"}`, `{"nr":"7","label":"b","n":"1"}`)
		var err error
		j.scan.Filter, err = filter.Parse("label = 'b'")
		must(t, err)
		r, err := j.one(t.Context(), t)
		must(t, err)
		equal(t, "inserted", r.RowsInserted, 1)
	})
	for policy, says := range map[string]string{"": "key (id=null)", migrate.NullKeysMatch: "two rows of the source have key (id=null)", migrate.NullKeysInsert: ""} {
		t.Run("nulls, "+policy, func(t *testing.T) {
			j := texts(t, `{"nr":null,"label":"a","n":"1"}`, `{"nr":"8","label":"b","n":"1"}`, `{"nr":null,"label":"c","n":"1"}`)
			j.upsert.NullKeys = policy
			_, err := j.one(t.Context(), t)
			if says == "" {
				must(t, err)
				return
			}
			wantError(t, err, says)
			equal(t, "rows", j.to.live(t, "dst"), []string{})
		})
	}
}

// A job whose keys ice-migrate has looked through is gone on with by the pipe, which could not begin it.
func TestUniqueKeysResumed(t *testing.T) {
	source := slices.Concat(ids(0, 2), []string{row(3, "u3"), row(20, "i20"), row(21, "i21")})
	j := upsertTo(t, 2, "", 2, source...)
	j.upsert.Duplicates, j.checkpoint = migrate.DuplicateError, checkpointPath(t)
	j.to.commit = failAt(1, false, j.to)
	if _, err := j.one(t.Context(), t); !errors.Is(err, errLost) {
		t.Fatalf("error %v", err)
	}
	j.reset()
	_, err := j.three(t.Context(), t)
	must(t, err)
	equal(t, "rows", j.to.live(t, "dst"), with(slices.Concat(ids(0, 3), ids(4, 6)), row(3, "u3"), row(20, "i20"), row(21, "i21")))
}
