package migrate_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/plan"
)

// evolve changes the schema of a table as another program would.
func (s *store) evolve(t *testing.T, name string, change func(*table.UpdateSchema)) {
	t.Helper()
	tx := s.load(t, name).NewTransaction()
	u := tx.UpdateSchema(true, true)
	change(u)
	must(t, u.Commit())
	_, err := tx.Commit(t.Context())
	must(t, err)
}

// A plan of a file makes its changes in a destination that does not have them yet.
func TestPlanMakesItsChanges(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "name", prim.String), field(3, "n", prim.Int32)))
	from.insert(t, "src", `{"id":1,"name":"a","n":5}`, `{"id":2,"name":null,"n":null}`)
	to.create(t, "dst", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "n", prim.Int32)))
	o := plan.Options{MissingInDest: plan.PolicyAutoAdd, Coercions: []plan.Coercion{{Column: "n", Type: "long"}}}
	made, err := plan.Build(from.load(t, "src").Schema(), to.load(t, "dst").Schema(), 2, o)
	must(t, err)
	text, err := made.MarshalJSON()
	must(t, err)
	j := newJob(from, to, 1)
	j.checkpoint = checkpointPath(t)
	m := j.migrator(t)
	m.Plan, err = plan.Parse(text)
	must(t, err)
	r, err := m.Run(t.Context())
	must(t, err)
	equal(t, "changes", r.SchemaChanges, []string{"column n is now long", "added column name string"})
	equal(t, "rows", to.content(t, "dst"), []string{`{"id":1,"n":5,"name":"a"}`, `{"id":2,"n":null,"name":null}`})
}

// What becomes of the destination's schema between two runs does not stop the job where the columns it
// writes are still there, and is refused before anything is changed where the plan would be another.
func TestResumeOnAnotherSchema(t *testing.T) {
	from := newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 9)...)
	begun := func(t *testing.T, dst *iceberg.Schema) *job {
		to := newStore(t)
		to.create(t, "dst", dst)
		j := newJob(from, to, 4)
		j.checkpoint = checkpointPath(t)
		j.reconcile.MissingInDest, j.reconcile.MissingInSource = plan.PolicyAutoAdd, plan.PolicyNull
		j.spoil = brokenAfter(1, errPipe)
		if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
			t.Fatalf("error %v", err)
		}
		j.reset()
		return j
	}
	for _, f := range []form{one, three} {
		t.Run("a column added, "+f.name, func(t *testing.T) {
			j := begun(t, numbers())
			j.to.evolve(t, "dst", func(u *table.UpdateSchema) { u.AddColumn([]string{"extra"}, prim.String, "", false, nil) })
			_, err := f.run(j, t.Context(), t)
			must(t, err)
			equal(t, "rows", len(j.to.content(t, "dst")), 9)
			equal(t, "state", j.note(t).State, ckpt.Complete)
		})
	}
	t.Run("a column renamed, one process", func(t *testing.T) {
		j := begun(t, people())
		j.to.evolve(t, "dst", func(u *table.UpdateSchema) {
			u.RenameColumn([]string{"name"}, "called")
		})
		_, err := j.one(t.Context(), t)
		must(t, err)
		var want []string
		for i := 4; i < 9; i++ {
			want = append(want, fmt.Sprintf(`{"called":"n%d","id":%d}`, i, i))
		}
		want = append(want, ids(0, 4)...)
		equal(t, "rows", j.to.content(t, "dst"), want)
	})
	t.Run("a column renamed, three programs", func(t *testing.T) {
		j := begun(t, people())
		j.to.evolve(t, "dst", func(u *table.UpdateSchema) { u.RenameColumn([]string{"name"}, "called") })
		before := j.to.load(t, "dst").MetadataLocation()
		_, err := j.three(t.Context(), t)
		wantError(t, err, j.checkpoint, `column "name"`, "ice-migrate", "dest_snapshot_before")
		equal(t, "metadata", j.to.load(t, "dst").MetadataLocation(), before)
		_, err = j.one(t.Context(), t)
		must(t, err)
		equal(t, "rows", len(j.to.content(t, "dst")), 9)
	})
}

// Names that two fields inside a struct exchanged between two runs are another plan, and refused by the
// pipe; ice-migrate goes on with the plan that it recorded.
func TestResumeOnExchangedNames(t *testing.T) {
	pair := func(first, second string) *iceberg.Schema {
		return iceberg.NewSchema(0, field(1, "who", &iceberg.StructType{FieldList: []iceberg.NestedField{field(2, first, prim.String), field(3, second, prim.String)}}))
	}
	from, to := newStore(t), newStore(t)
	from.create(t, "src", pair("a", "b"))
	from.insert(t, "src", `{"who":{"a":"a0","b":"b0"}}`, `{"who":{"a":"a1","b":"b1"}}`, `{"who":{"a":"a2","b":"b2"}}`)
	to.create(t, "dst", pair("a", "b"))
	j := newJob(from, to, 1)
	j.checkpoint, j.spoil = checkpointPath(t), brokenAfter(1, errPipe)
	if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
		t.Fatalf("error %v", err)
	}
	j.reset()
	for _, rename := range [][2]string{{"a", "c"}, {"b", "a"}, {"c", "b"}} {
		to.evolve(t, "dst", func(u *table.UpdateSchema) { u.RenameColumn([]string{"who", rename[0]}, rename[1]) })
	}
	j.refused(t, three, j.checkpoint, `column "who.b" would now come from source column who.b, and came from source column who.a`, "dest_snapshot_before")
	_, err := j.one(t.Context(), t)
	must(t, err)
	equal(t, "rows", to.content(t, "dst"), []string{`{"who":{"a":"a0","b":"b0"}}`, `{"who":{"a":"b1","b":"a1"}}`, `{"who":{"a":"b2","b":"a2"}}`})
}
