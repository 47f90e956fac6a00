package migrate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"

	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// A shape is a source, the destination for it, and how its columns are brought there.
type shape struct {
	name      string
	source    func(*testing.T, *store)
	dest      func(*testing.T, *store)
	reconcile plan.Options
	rows      int64
	rowGroups int // of each of three files, 0 for one of one file
}

func shapes() []shape {
	nested := func(first int) *iceberg.Schema {
		return iceberg.NewSchema(0, field(1, "id", prim.Int64),
			field(2, "who", &iceberg.StructType{FieldList: []iceberg.NestedField{field(first, "a", prim.Int32), field(7-first, "b", prim.String)}}),
			field(5, "tags", &iceberg.ListType{ElementID: 6, Element: prim.String}),
			field(7, "counts", &iceberg.MapType{KeyID: 8, KeyType: prim.String, ValueID: 9, ValueType: prim.Int64}))
	}
	flat := func(t *testing.T, s *store) {
		s.create(t, "src", people())
		s.insert(t, "src", ids(0, 20)...)
	}
	plain := func(t *testing.T, s *store) { s.create(t, "dst", people()) }
	return []shape{
		{"flat", flat, plain, plan.Options{}, 20, 0},
		{"nested", func(t *testing.T, s *store) {
			s.create(t, "src", nested(3))
			var objects []string
			for i := range 11 {
				objects = append(objects, fmt.Sprintf(`{"id":%d,"who":{"a":%d,"b":"x%d"},"tags":["t%d",null],"counts":[{"key":"k","value":%d}]}`, i, i, i, i, i))
			}
			s.insert(t, "src", append(objects, `{"id":11,"who":null,"tags":null,"counts":null}`, `{"id":12,"who":{"a":null,"b":null},"tags":[],"counts":[]}`)...)
		}, func(t *testing.T, s *store) { s.create(t, "dst", nested(4)) }, plan.Options{}, 13, 0},
		{"partitioned destination, column added", flat, func(t *testing.T, s *store) {
			s.create(t, "dst", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "extra", prim.Date)),
				catalog.WithPartitionSpec(new(iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "bucket", Transform: iceberg.BucketTransform{NumBuckets: 3}}))))
		}, plan.Options{MissingInSource: plan.PolicyNull, MissingInDest: plan.PolicyAutoAdd}, 20, 0},
		{"position deletes, files and row groups", deleted, plain, plan.Options{}, 34, 3},
	}
}

// deleted makes a source of three files of several row groups, with rows deleted at the edges of both.
func deleted(t *testing.T, s *store) {
	s.create(t, "src", people(), catalog.WithProperties(iceberg.Properties{
		"format-version": "2", "write.delete.mode": "merge-on-read", "write.parquet.row-group-limit": "5"}))
	for i := range 3 {
		s.insert(t, "src", ids(100*i, 13)...)
	}
	gone := iceberg.IsIn(iceberg.Reference("id"), int64(0), 4, 5, 112, 200)
	_, err := s.load(t, "src").Delete(t.Context(), gone, nil)
	must(t, err)
}

// One process and three: the commits have the same cursors and the same rows, and the receipts differ in
// IDs, times and bytes written alone.
func TestOneProcessAndThree(t *testing.T) {
	for _, shape := range shapes() {
		for _, batchRows := range thin[int64](1, 3, 1000) {
			t.Run(fmt.Sprintf("%s by %d", shape.name, batchRows), func(t *testing.T) {
				from := newStore(t)
				shape.source(t, from)
				var commits [2][]snap
				var receipts [2]migrate.Receipt
				for i, f := range []form{one, three} {
					to := newStore(t)
					shape.dest(t, to)
					j := newJob(from, to, batchRows)
					j.reconcile, j.checkpoint = shape.reconcile, checkpointPath(t)
					r, err := f.run(j, t.Context(), t)
					if err != nil {
						t.Fatalf("%s: %v", f.name, err)
					}
					commits[i], receipts[i] = to.snaps(t, "dst"), r
				}
				if last := commits[0][len(commits[0])-1].mark["icepipe.cursor"]; shape.rowGroups > 0 {
					equal(t, "files and row groups", place(last), fmt.Sprintf("2/%d/%s", shape.rowGroups-1, place(last)[4:]))
				}
				want := (shape.rows + batchRows - 1) / batchRows
				equal(t, "commits", int64(len(commits[0])), want)
				equal(t, "marks and rows", told(commits[1]), told(commits[0]))
				equal(t, "rows moved", receipts[0].RowsMoved, shape.rows)
				equal(t, "receipt", without(receipts[1]), without(receipts[0]))
				if r := receipts[0]; r.BytesRead == 0 || r.BytesWritten == 0 || receipts[1].BytesWritten == 0 || !r.Complete {
					t.Errorf("receipt %+v", r)
				}
			})
		}
	}
}

// told is what commits of two forms have in common.
func told(snaps []snap) []string {
	var out []string
	for _, s := range snaps {
		var marks []string
		for _, key := range []string{"iceberg-ops.migration-batch", "icepipe.cursor-from", "icepipe.cursor", "icepipe.source-rows", "icepipe.source-uuid", "icepipe.source-snapshot-id", "added-records", "engine-name"} {
			marks = append(marks, key+"="+s.mark[key])
		}
		out = append(out, fmt.Sprintf("%v %v\n", marks, s.rows))
	}
	return out
}

// without takes the IDs and sizes out of a receipt that differ between two runs.
func without(r migrate.Receipt) migrate.Receipt {
	r.Job, r.Destination.UUID, r.Destination.SnapshotID = "", "", nil
	id := "the source's"
	r.Source.SnapshotID = &id
	r.NewSnapshots = slices.Repeat([]string{"new"}, len(r.NewSnapshots))
	r.BytesWritten, r.BytesCopied, r.BytesCopiedByStore, r.BytesTranscoded, r.BytesEncoded = 0, 0, 0, 0, 0
	return r
}
