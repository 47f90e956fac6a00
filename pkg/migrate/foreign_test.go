package migrate_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/arrowipc"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// Cases 35 and 67: values of a stream of another program come into the unit and type of the destination before
// they are partitioned: the same instant in any unit, and the same text in any layout, is in one partition.
func TestForeignPartitions(t *testing.T) {
	schema := iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "at", prim.Timestamp), field(3, "name", prim.String))
	want := map[string][]string{}
	texts := []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, arrow.BinaryTypes.String}
	for i, unit := range []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond} {
		typ, text := &arrow.TimestampType{Unit: unit}, texts[i]
		for _, by := range []struct {
			column    string
			transform iceberg.Transform
		}{
			{"at", iceberg.DayTransform{}}, {"at", iceberg.HourTransform{}}, {"at", iceberg.YearTransform{}},
			{"name", iceberg.BucketTransform{NumBuckets: 16}}, {"name", iceberg.TruncateTransform{Width: 2}}, {"name", iceberg.IdentityTransform{}},
		} {
			t.Run(fmt.Sprintf("%s, %s, %s of %s", typ, text, by.transform, by.column), func(t *testing.T) {
				arrowSchema := arrow.NewSchema([]arrow.Field{
					{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "at", Type: typ, Nullable: true}, {Name: "name", Type: text, Nullable: true},
				}, nil)
				record := fromJSON(t, memory.DefaultAllocator, arrowSchema, []string{
					`{"id":0,"at":"1969-12-31 23:59:59","name":"größer"}`, `{"id":1,"at":"1970-01-01 00:00:00","name":""}`,
					`{"id":2,"at":"2024-02-29 12:00:01","name":"gr"}`, `{"id":3,"at":null,"name":null}`,
				})
				defer record.Release()
				var b bytes.Buffer
				w := ipc.NewWriter(&b, ipc.WithSchema(arrowSchema))
				must(t, w.Write(record))
				must(t, w.Close())
				in, err := arrowipc.Read(&b, arrowipc.WithUnsealedOK())
				must(t, err)

				to := newStore(t)
				to.create(t, "dst", schema, partitionedBy(t, schema, by.column, by.transform))
				dst := to.open(t, "dst")
				in, err = migrate.Reconcile(t.Context(), migrate.Cut(in, 10), dst, plan.Options{}, nil)
				must(t, err)
				_, err = migrate.Write(t.Context(), in, dst, migrate.WriteOptions{Jobs: 1})
				must(t, err)
				got := partitions(t, to, "dst")
				key := by.column + by.transform.String()
				if want[key] == nil {
					want[key] = got
				}
				equal(t, "partitions", got, want[key])
			})
		}
	}
	for key, parts := range map[string][]string{
		"atday":           {"<nil> 1", "iceberg.Date -1 1", "iceberg.Date 0 1", "iceberg.Date 19782 1"},
		"athour":          {"<nil> 1", "int32 -1 1", "int32 0 1", "int32 474780 1"},
		"nametruncate[2]": {"<nil> 1", "string  1", "string gr 2"},
	} {
		equal(t, key, want[key], parts)
	}
}

// partitions are the partition values of a table's data files, and the rows in each.
func partitions(t *testing.T, s *store, name string) []string {
	t.Helper()
	tbl := s.load(t, name)
	tasks, err := tbl.Scan().PlanFiles(t.Context())
	must(t, err)
	var out []string
	for _, task := range tasks {
		value := task.File.Partition()[1000]
		if value == nil {
			out = append(out, fmt.Sprintf("%v %d", value, task.File.Count()))
			continue
		}
		out = append(out, fmt.Sprintf("%T %v %d", value, value, task.File.Count()))
	}
	slices.Sort(out)
	return out
}
