package migrate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"

	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// says holds a text to hold others.
func says(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in\n%s", w, text)
		}
	}
}

// A dry run says how rows are taken out, why so, who can read that and what it costs.
func TestUpsertPreview(t *testing.T) {
	for _, c := range []struct {
		version       int
		mode          string
		once          bool
		deletes, why  string
		readers, cost string
	}{
		{1, "", false, "copies", "format version 1 has no deletes", "every reader", "3 times; --commit once"},
		{2, migrate.DeleteCopyOnWrite, true, "copies", "--delete-mode copy-on-write", "every reader", "anew, once"},
		{2, "", false, "position deletes", "properties do not say", "position deletes of format version 2", "compacted"},
		{3, migrate.DeletePosition, false, "deletion vectors", "--delete-mode position", "deletion vectors of format version 3", "compacted"},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			j := upsertTo(t, c.version, c.mode, 2, ids(0, 6)...)
			j.once = c.once
			v, err := j.migrator(t).DryRun(t.Context())
			must(t, err)
			if v.Upsert == nil {
				t.Fatal("it says nothing of the upsert")
			}
			equal(t, "deletes", v.Upsert.Deletes, c.deletes)
			equal(t, "keys", v.Upsert.Keys, []string{"id"})
			says(t, v.Upsert.Why, c.why)
			says(t, v.Upsert.Readers, c.readers)
			says(t, v.Upsert.Cost, c.cost)
			var text, explained bytes.Buffer
			must(t, v.WriteText(&text))
			must(t, v.Explain(&explained))
			for _, out := range []string{text.String(), explained.String()} {
				says(t, out, "upsert keys", c.deletes+" (", c.readers, c.cost)
				equal(t, "times that it is said", strings.Count(out, "upsert keys"), 1)
			}
			made, err := json.Marshal(v)
			must(t, err)
			says(t, string(made), `"upsert":{"keys":["id"],"deletes":"`+c.deletes+`"`)
		})
	}
}

// A dry run of an overwrite says what is replaced, as far as that is known.
func TestOverwritePreview(t *testing.T) {
	for _, partitioned := range []bool{false, true} {
		from, to := newStore(t), newStore(t)
		from.create(t, "src", people())
		from.insert(t, "src", ids(0, 3)...)
		var options []catalog.CreateTableOpt
		want := "the whole table, which has no partitions: data files 1, with rows 4"
		if partitioned {
			spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "id_bucket", Transform: iceberg.BucketTransform{NumBuckets: 4}})
			options, want = append(options, catalog.WithPartitionSpec(&spec)), "the partitions, by id_bucket, that rows of the source lie in; which and how many is known only when the rows are read"
		}
		to.create(t, "dst", people(), options...)
		if !partitioned {
			to.insert(t, "dst", ids(0, 4)...)
		}
		j := newJob(from, to, 10)
		j.overwrite, j.yes = true, true
		v, err := j.migrator(t).DryRun(t.Context())
		must(t, err)
		says(t, v.Replaces, want)
		var text bytes.Buffer
		must(t, v.WriteText(&text))
		says(t, text.String(), want)
	}
}

// Keys are the identifier fields where none are named; columns that the source has not lose what they hold in rows that
// are updated, and a dry run and the receipt warn of that.
func TestUpsertKeysByDefault(t *testing.T) {
	for _, version := range []int{2, 3} {
		from, to := newStore(t), newStore(t)
		from.create(t, "src", people())
		from.insert(t, "src", row(1, "u1"), row(5, "i5"))
		schema := iceberg.NewSchemaWithIdentifiers(0, []int{1}, iceberg.NestedField{ID: 1, Name: "id", Type: prim.Int64, Required: true}, field(2, "name", prim.String), field(3, "note", prim.String),
			field(4, "at", &iceberg.StructType{FieldList: []iceberg.NestedField{field(5, "x", prim.Int64)}}))
		to.create(t, "dst", schema, catalog.WithProperties(iceberg.Properties{"format-version": strconv.Itoa(version)}))
		to.insert(t, "dst", `{"id":1,"name":"n1","note":"kept","at":{"x":1}}`, `{"id":2,"name":"n2","note":"kept","at":null}`)
		j := newJob(from, to, 10)
		j.reconcile.MissingInSource = plan.PolicyNull
		j.upsert = &migrate.UpsertOptions{}
		v, err := j.migrator(t).DryRun(t.Context())
		must(t, err)
		equal(t, "keys", v.Upsert.Keys, []string{"id"})
		lost := "the source has no note, at: rows that are updated lose what they have there"
		if !slices.Contains(v.Warnings, lost) {
			t.Errorf("warnings of the dry run: %q", v.Warnings)
		}
		var text bytes.Buffer
		must(t, v.WriteText(&text))
		says(t, text.String(), lost)
		r, err := j.one(t.Context(), t)
		must(t, err)
		if !slices.Contains(r.Warnings, lost) {
			t.Errorf("warnings of the receipt: %q", r.Warnings)
		}
		equal(t, "inserted, updated", []int64{r.RowsInserted, r.RowsUpdated}, []int64{1, 1})
		equal(t, "rows", j.to.live(t, "dst"), []string{`{"at":null,"id":1,"name":"u1","note":null}`, `{"at":null,"id":2,"name":"n2","note":"kept"}`, `{"at":null,"id":5,"name":"i5","note":null}`})
	}
}
