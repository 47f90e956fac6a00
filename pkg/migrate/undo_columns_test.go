package migrate_test

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// TestUndoKeepsNeededColumns: a column that another writer partitioned by since is not dropped, nor one that was
// there before the job could add it.
func TestUndoKeepsNeededColumns(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 3)...)
	to.create(t, "dst", numbers())
	j := newJob(from, to, 4)
	j.checkpoint, j.reconcile.MissingInDest = checkpointPath(t), plan.PolicyAutoAdd
	_, err := j.one(t.Context(), t)
	must(t, err)
	tx := to.load(t, "dst").NewTransaction()
	must(t, tx.UpdateSpec(true).AddIdentity("name").Commit())
	_, err = tx.Commit(t.Context())
	must(t, err)
	_, err = j.undo(t, migrate.UndoOptions{Schema: true})
	wantError(t, err, "column name", "partitions it")
	_, err = j.undo(t, migrate.UndoOptions{})
	must(t, err)

	c := j.note(t)
	c.SchemaChanges, c.State, c.Left = nil, ckpt.Complete, nil
	must(t, ckpt.Open(j.checkpoint).Save(c))
	u, err := j.undo(t, migrate.UndoOptions{Schema: true})
	must(t, err)
	equal(t, "columns", [][]string{u.Kept, u.Dropped}, [][]string{{}, {}})
}

// TestUndoTellsColumnsApart: a column that another writer made anew by the name of one that the job added, or
// renamed, or put fields into, is not the job's to drop; and a redo takes no column of others back.
func TestUndoTellsColumnsApart(t *testing.T) {
	for _, tt := range []struct {
		name          string
		change        func(*table.UpdateSchema)
		kept, dropped []string
		columns       []string // after the undo
	}{
		{"made anew", func(u *table.UpdateSchema) {
			u.DeleteColumn([]string{"name"}).AddColumn([]string{"name"}, iceberg.PrimitiveTypes.Int64, "", false, nil)
		}, []string{}, []string{}, []string{"id", "name"}},
		{"renamed", func(u *table.UpdateSchema) { u.RenameColumn([]string{"name"}, "other") }, []string{"other"}, []string{}, []string{"id", "other"}},
		{"gone", func(u *table.UpdateSchema) { u.DeleteColumn([]string{"name"}) }, []string{}, []string{}, []string{"id"}},
		{"another beside it", func(u *table.UpdateSchema) {
			u.AddColumn([]string{"more"}, iceberg.PrimitiveTypes.Int64, "", false, nil)
		}, []string{}, []string{"name"}, []string{"id", "more"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to, j := addingJob(t)
			_, err := j.one(t.Context(), t)
			must(t, err)
			to.evolve(t, "dst", tt.change)
			whole := to.state(t, "dst")
			u, err := j.undo(t, migrate.UndoOptions{Schema: true})
			must(t, err)
			equal(t, "columns kept and dropped", [][]string{u.Kept, u.Dropped}, [][]string{tt.kept, tt.dropped})
			equal(t, "columns", columnsOf(to.load(t, "dst")), tt.columns)
			_, err = j.redo(t)
			must(t, err)
			equal(t, "after the redo", to.state(t, "dst"), whole)
		})
	}
	to, j := addingJob(t)
	_, err := j.one(t.Context(), t)
	must(t, err)
	_, err = j.undo(t, migrate.UndoOptions{Schema: true})
	must(t, err)
	to.evolve(t, "dst", func(u *table.UpdateSchema) {
		u.AddColumn([]string{"more"}, iceberg.PrimitiveTypes.Int64, "", false, nil)
	})
	_, err = j.redo(t)
	wantError(t, err, "another writer has changed the columns", "ice-migrate reset")
	equal(t, "columns", columnsOf(to.load(t, "dst")), []string{"id", "more"})
}

// TestUndoRacesSchema: a column that another writer adds between the look and the commit of an undo is not lost.
func TestUndoRacesSchema(t *testing.T) {
	to, j := addingJob(t)
	_, err := j.one(t.Context(), t)
	must(t, err)
	m := &moving{Catalog: to.Catalog}
	m.around = func(commit func() error) error {
		if len(columnsOf(to.load(t, "dst"))) == 2 {
			to.evolve(t, "dst", func(u *table.UpdateSchema) {
				u.AddColumn([]string{"more"}, iceberg.PrimitiveTypes.Int64, "", false, nil)
			})
		}
		return commit()
	}
	loaded, err := m.LoadTable(t.Context(), table.Identifier{"ns", "dst"})
	must(t, err)
	_, err = migrate.Undo(t.Context(), ckpt.Open(j.checkpoint), migrate.FromLoaded(m, loaded, rows.Place{}), migrate.UndoOptions{Schema: true})
	wantError(t, err, "another writer has changed it meanwhile")
	equal(t, "columns", columnsOf(to.load(t, "dst")), []string{"id", "name", "more"})
	equal(t, "state", j.note(t).State, ckpt.Complete)
	_, err = j.undo(t, migrate.UndoOptions{Schema: true})
	must(t, err)
	equal(t, "columns", columnsOf(to.load(t, "dst")), []string{"id", "more"})
}

// addingJob is a job that adds the column name to a table of others' rows.
func addingJob(t *testing.T) (to *store, j *job) {
	t.Helper()
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 3)...)
	to.create(t, "dst", numbers(), catalog.WithProperties(iceberg.Properties{"commit.retry.num-retries": "4", "commit.retry.max-wait-ms": "0"}))
	to.insert(t, "dst", `{"id":-1}`)
	j = newJob(from, to, 4)
	j.checkpoint, j.reconcile.MissingInDest = checkpointPath(t), plan.PolicyAutoAdd
	return to, j
}

func columnsOf(tbl *table.Table) (names []string) {
	for _, f := range tbl.Schema().Fields() {
		names = append(names, f.Name)
	}
	return names
}
