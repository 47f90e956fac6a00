package lake

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// The library's own filters, which tests and users of pkg/migrate may use beside ours, find the functions that
// they need in internal/substrait.
func TestLibraryFilters(t *testing.T) {
	tbl := newTable(t, schemaOf(opt(1, "id", prim.Int64), opt(2, "p", prim.String), opt(3, "x", prim.Float64)), unpartitioned())
	appended(t, tbl, 0, `[{"id":1,"p":"ab","x":1.5},{"id":2,"p":"b","x":null},{"id":null,"p":null,"x":2.5}]`)
	tbl = load(t, tbl)
	id, p, x := iceberg.Reference("id"), iceberg.Reference("p"), iceberg.Reference("x")
	for _, c := range []struct {
		filter iceberg.BooleanExpression
		want   int64
	}{
		{iceberg.EqualTo(id, int64(1)), 1},
		{iceberg.NotEqualTo(p, "b"), 1},
		{iceberg.LessThan(x, 2.0), 1},
		{iceberg.LessThanEqual(id, int64(2)), 2},
		{iceberg.GreaterThan(p, "a"), 2},
		{iceberg.GreaterThanEqual(id, int64(2)), 1},
		{iceberg.IsNull(x), 1},
		{iceberg.NotNull(id), 2},
		{iceberg.IsNaN(x), 0},
		{iceberg.IsIn(id, int64(1), int64(2), int64(7)), 2},
		{iceberg.NewNot(iceberg.EqualTo(p, "b")), 1},
		{iceberg.NewAnd(iceberg.GreaterThan(id, int64(0)), iceberg.LessThan(id, int64(2))), 1},
		{iceberg.NewOr(iceberg.IsNull(id), iceberg.EqualTo(id, int64(2))), 2},
	} {
		_, batches, err := tbl.Scan(table.WithRowFilter(c.filter)).ToArrowRecords(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		n := int64(0)
		for batch, err := range batches {
			if err != nil {
				t.Errorf("%s: %v", c.filter, err)
				break
			}
			n += batch.NumRows()
			batch.Release()
		}
		if n != c.want {
			t.Errorf("%s: %d rows, want %d", c.filter, n, c.want)
		}
	}
}
