package lake

import (
	"errors"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"

	"icepipe/pkg/plan"
)

// TestEvolve: columns are added at any depth and promoted in one commit, which is made once, whatever the
// catalog answers.
func TestEvolve(t *testing.T) {
	structOf := func(fields ...iceberg.NestedField) *iceberg.StructType {
		return &iceberg.StructType{FieldList: fields}
	}
	source := schemaOf(opt(1, "id", prim.Int64), opt(2, "s", structOf(opt(3, "a", prim.Int64), opt(4, "new", structOf(opt(5, "deep", prim.String))))),
		opt(6, "l", &iceberg.ListType{ElementID: 7, Element: structOf(opt(8, "x", prim.Int32), opt(9, "y", prim.Int32))}),
		opt(10, "a.b", prim.String), opt(11, "m", &iceberg.MapType{KeyID: 12, KeyType: prim.String, ValueID: 13, ValueType: prim.Date}))
	dest := schemaOf(opt(1, "id", prim.Int32), opt(2, "s", structOf(opt(3, "a", prim.Int32))),
		opt(4, "l", &iceberg.ListType{ElementID: 5, Element: structOf(opt(6, "x", prim.Int32))}))
	for _, c := range []struct {
		name   string
		commit func(n int, land func() error) error
		fail   string
	}{
		{"at once", nil, ""},
		{"fails after landing", func(n int, land func() error) error { return errors.Join(land(), errCatalog) }, ""},
		{"fails before", func(n int, land func() error) error {
			if n == 1 {
				return errCatalog
			}
			return land()
		}, ""},
		{"always fails", func(int, func() error) error { return errCatalog }, "given up after 3 tries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tbl := newTable(t, dest, unpartitioned(), "commit.retry.num-retries=2")
			p, err := plan.Build(source, tbl.Schema(), 2, plan.Options{MissingInDest: "auto_add", Coercions: []plan.Coercion{{Column: "id", Type: "long"}, {Column: "s.a", Type: "long"}}})
			if err != nil {
				t.Fatal(err)
			}
			f := &faulty{Catalog: tbl.Catalog, commit: c.commit}
			tbl.Catalog = f
			made, err := tbl.Evolve(t.Context(), p)
			if c.fail != "" {
				fails(t, "evolve", err, c.fail)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(made) != 6 {
				t.Errorf("made %s", made)
			}
			fresh := load(t, tbl)
			if n := len(fresh.Metadata().Schemas()); n != 2 {
				t.Errorf("%d schemas", n)
			}
			var got []string
			ids := map[int]bool{}
			walk(fresh.Schema().Fields(), fresh.Schema().Fields(), func(f, _ iceberg.NestedField) {
				got = append(got, f.Name)
				ids[f.ID] = true
			})
			slices.Sort(got)
			equal(t, "fields", got, []string{"a", "a.b", "deep", "element", "id", "key", "l", "m", "new", "s", "value", "x", "y"})
			if len(ids) != len(got) || fresh.Metadata().LastColumnID() != len(got) {
				t.Errorf("IDs %v, the last is %d", ids, fresh.Metadata().LastColumnID())
			}
			commits := f.commits
			if again, err := tbl.Evolve(t.Context(), p); err != nil || len(again) > 0 || f.commits != commits {
				t.Errorf("again: made %s, %v, %d commits", again, err, f.commits-commits)
			}
		})
	}
}

// A table whose last column ID is too low would give a new column the ID of another one.
func TestEvolveDamaged(t *testing.T) {
	e := &evolution{next: 4, version: 2}
	changes := []plan.Change{{Kind: plan.AddColumn, Path: []string{"new"}, Type: prim.Int64}}
	_, err := e.apply(schemaOf(opt(1, "id", prim.Int64), opt(5, "name", prim.String)), changes)
	fails(t, "apply", err, "last-column-id is 4, and there is a column with field ID 5")
}
