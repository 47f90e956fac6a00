package migrate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/filter"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// verifyBy verifies a job by its checkpoint, as ice-verify does.
func (j *job) verifyBy(t *testing.T, o migrate.VerifyOptions) (migrate.Verification, error) {
	t.Helper()
	must(t, o.By(j.note(t)))
	return migrate.Verify(t.Context(), j.from.open(t, j.src), j.to.open(t, j.dst), o)
}

var methods = []string{migrate.MethodRowCount, migrate.MethodPartitionHash, migrate.MethodSample, migrate.MethodDiff, migrate.MethodAuto}

// TestScopeJob: the rows of the job are compared, whatever else is in the destination, and at the source
// snapshot that the job was pinned to, whatever was written there since.
func TestScopeJob(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 9)...)
	to.create(t, "dst", people())
	to.insert(t, "dst", `{"id":-1,"name":"before"}`)
	j := newJob(from, to, 3)
	j.checkpoint = checkpointPath(t)
	other := 0
	to.commit = func(_ context.Context, commit func() error) error {
		if other++; other == 3 { // another writer's append between our batches
			to.commit = nil
			to.insert(t, "dst", `{"id":-2,"name":"between"}`)
		}
		return commit()
	}
	_, err := j.one(t.Context(), t)
	must(t, err)
	to.insert(t, "dst", `{"id":-3,"name":"after"}`)
	from.insert(t, "src", ids(9, 5)...)
	for _, method := range methods {
		v, err := j.verifyBy(t, migrate.VerifyOptions{Method: method})
		must(t, err)
		equal(t, method+" of the job agrees", v.Matches, true)
		equal(t, "counts", []int64{*v.SourceCount, *v.DestCount}, []int64{9, 9})
		equal(t, "scope", v.Scope, "job")
		v, err = j.verifyBy(t, migrate.VerifyOptions{Method: method, WholeTable: true})
		must(t, err)
		equal(t, method+" of the table agrees", v.Matches, false)
		equal(t, "counts", []int64{*v.SourceCount, *v.DestCount}, []int64{9, 12})
	}
	v, err := j.verifyBy(t, migrate.VerifyOptions{Method: migrate.MethodDiff, WholeTable: true, Keys: []string{"id"}})
	must(t, err)
	equal(t, "differences", named(v), []string{"extra -1", "extra -2", "extra -3"})
}

// TestScopeJobRefused: where the job's files are not told apart any more, that is said, and the whole table is
// never taken instead.
func TestScopeJobRefused(t *testing.T) {
	begin := func(t *testing.T) *job {
		from, to := newStore(t), newStore(t)
		from.create(t, "src", people())
		from.insert(t, "src", ids(0, 6)...)
		to.create(t, "dst", people())
		j := newJob(from, to, 3)
		j.checkpoint = checkpointPath(t)
		_, err := j.one(t.Context(), t)
		must(t, err)
		return j
	}
	for _, tt := range []struct {
		name  string
		spoil func(*testing.T, *job)
		want  []string
	}{
		{"a batch's file was rewritten before the next batch", func(t *testing.T, j *job) {
			must(t, ckpt.Open(j.checkpoint).Reset())
			j.from.create(t, "more", people())
			j.from.insert(t, "more", ids(10, 6)...)
			j.src = "more"
			n := 0
			j.to.commit = func(_ context.Context, commit func() error) error {
				if n++; n == 2 {
					j.to.commit = nil
					_, err := j.to.load(t, "dst").Delete(t.Context(), iceberg.EqualTo(iceberg.Reference("id"), int64(10)), nil) // copies the rest
					if err != nil {
						return err
					}
				}
				return commit()
			}
			_, err := j.one(t.Context(), t)
			must(t, err)
		}, []string{"added for the job, 1 are gone", "another writer replaced them", "--scope table"}},
		{"the job's first snapshot expired", func(t *testing.T, j *job) {
			tx := j.to.load(t, "dst").NewTransaction()
			must(t, tx.ExpireSnapshots(table.WithOlderThan(0), table.WithRetainLast(1)))
			_, err := tx.Commit(t.Context())
			must(t, err)
		}, []string{"have expired", "not told apart any more", "--scope table"}},
		{"another destination", func(t *testing.T, j *job) {
			j.to.create(t, "other", people())
			j.dst = "other"
		}, []string{"the job's destination is table ns.dst", `table "ns.other" is another one`}},
		{"another source", func(t *testing.T, j *job) {
			j.from.create(t, "other", people())
			j.src = "other"
		}, []string{"the job's source is table ns.src", `table "ns.other" is another one`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := begin(t)
			tt.spoil(t, j)
			for _, method := range methods {
				_, err := j.verifyBy(t, migrate.VerifyOptions{Method: method})
				wantError(t, err, tt.want...)
			}
		})
	}
}

// TestVerifyByPlan: a rename, a promotion, a column filled with null, one with its default, and a row filter are
// what the source is read through.
func TestVerifyByPlan(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", iceberg.NewSchema(0, field(1, "id", prim.Int32), field(2, "total", prim.Float32)))
	from.insert(t, "src", `{"id":1,"total":0.1}`, `{"id":2,"total":null}`, `{"id":3,"total":7}`, `{"id":null,"total":8}`)
	filled := field(4, "kind", prim.String)
	filled.WriteDefault = "web"
	to.create(t, "dst", iceberg.NewSchema(0, field(1, "amount", prim.Float64), field(2, "id", prim.Int64), field(3, "note", prim.String), filled),
		catalog.WithProperties(iceberg.Properties{"format-version": "3"}))
	j := newJob(from, to, 2)
	j.checkpoint = checkpointPath(t)
	where, err := filter.Parse("id < 3")
	must(t, err)
	j.scan.Filter = where
	rename, err := plan.ParseRename("total:amount")
	must(t, err)
	j.reconcile = plan.Options{Mapping: []plan.Rename{rename}, MissingInSource: plan.PolicyNull}
	_, err = j.one(t.Context(), t)
	must(t, err)
	for _, method := range methods {
		v, err := j.verifyBy(t, migrate.VerifyOptions{Method: method})
		must(t, err)
		equal(t, method+" agrees", v.Matches, true)
		equal(t, "counts", []int64{*v.SourceCount, *v.DestCount}, []int64{2, 2})
	}
	v, err := j.verifyBy(t, migrate.VerifyOptions{Method: migrate.MethodDiff, Keys: []string{"id"}})
	must(t, err)
	equal(t, "differences", named(v), []string{})
	// A column that the destination got since is null in every row.
	tx := to.load(t, "dst").NewTransaction()
	must(t, tx.UpdateSchema(true, false).AddColumn([]string{"later"}, prim.String, "", false, nil).Commit())
	_, err = tx.Commit(t.Context())
	must(t, err)
	for _, method := range methods {
		v, err := j.verifyBy(t, migrate.VerifyOptions{Method: method})
		must(t, err)
		equal(t, method+" agrees after a column was added", v.Matches, true)
	}
}

// TestVerifyRejects: rows that the plan rejects are no difference, and are counted.
func TestVerifyRejects(t *testing.T) {
	s := newStore(t)
	s.create(t, "src", iceberg.NewSchema(0, field(1, "id", prim.String), field(2, "name", prim.String)))
	s.insert(t, "src", `{"id":"1","name":"n1"}`, `{"id":"x","name":"n2"}`, `{"id":"3","name":"n3"}`)
	s.create(t, "dst", people())
	s.insert(t, "dst", `{"id":3,"name":"n3"}`, `{"id":1,"name":"n1"}`)
	cast, err := plan.ParseCoercion("id:long")
	must(t, err)
	o := migrate.VerifyOptions{Reconcile: plan.Options{Coercions: []plan.Coercion{cast}, OnCastError: plan.PolicyReject}}
	for _, o.Method = range methods {
		v := verify(t, s.open(t, "src"), s.open(t, "dst"), o)
		equal(t, o.Method+" agrees", v.Matches, true)
		equal(t, "counts", []int64{*v.SourceCount, *v.DestCount}, []int64{2, 2})
		if text := strings.Join(v.Details, "\n"); !strings.Contains(text, "1 row of the source left out: the plan rejects them") {
			t.Errorf("%s: details %s", o.Method, text)
		}
	}
	o.Reconcile.OnCastError = plan.PolicyError
	_, err = migrate.Verify(t.Context(), s.open(t, "src"), s.open(t, "dst"), migrate.VerifyOptions{Method: migrate.MethodDiff, Reconcile: o.Reconcile})
	wantError(t, err, `"x"`)
}
