package migrate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/migratetest"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// A table of orders in one catalog is moved into a table of other columns in another one. The
// destination exists already; region is added to it.
func Example() {
	ctx := context.Background()
	work, err := os.MkdirTemp("", "icepipe")
	check(err)
	defer os.RemoveAll(work)

	// Source: a catalog with a populated sales.orders table.
	source := newCatalog(filepath.Join(work, "src"))
	orders := newTable(ctx, source, table.Identifier{"sales", "orders"},
		field(1, "order_id", iceberg.PrimitiveTypes.Int64),
		field(2, "order_total", iceberg.PrimitiveTypes.Float64),
		field(3, "region", iceberg.PrimitiveTypes.String))
	fill(ctx, orders)

	// Destination: a second catalog.
	destination := newCatalog(filepath.Join(work, "dst"))
	newTable(ctx, destination, table.Identifier{"warehouse", "orders"},
		field(1, "order_id", iceberg.PrimitiveTypes.Int64),
		field(2, "total_amount", iceberg.PrimitiveTypes.Float64),
		field(3, "channel", iceberg.PrimitiveTypes.String))

	src, err := migrate.Open(ctx, source, table.Identifier{"sales", "orders"}, rows.Place{})
	check(err)
	dst, err := migrate.Open(ctx, destination, table.Identifier{"warehouse", "orders"}, rows.Place{})
	check(err)
	migrator := migrate.Migrator{
		Source: src,
		Dest:   dst,
		Scan:   migrate.ScanOptions{BatchRows: 50_000},
		Reconcile: plan.Options{
			Mapping:         []plan.Rename{{From: "order_total", To: "total_amount"}},
			MissingInSource: plan.PolicyNull,    // channel has no source column
			MissingInDest:   plan.PolicyAutoAdd, // region is added to the destination
		},
		Write: migrate.WriteOptions{Checkpoint: ckpt.Open(filepath.Join(work, "orders.checkpoint.json"))},
	}
	receipt, err := migrator.Run(ctx)
	check(err)
	fmt.Printf("moved %d rows in %d snapshots\n", receipt.RowsMoved, len(receipt.NewSnapshots))
	fmt.Println("changes of the destination's schema:", receipt.SchemaChanges)

	verification, err := migrator.Verify(ctx, "row_count")
	check(err)
	fmt.Println("the tables agree:", verification.Matches)

	// Output:
	// moved 3 rows in 1 snapshots
	// changes of the destination's schema: [added column region string]
	// the tables agree: true
}

func field(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

func newCatalog(dir string) catalog.Catalog {
	check(os.Mkdir(dir, 0o777))
	c, err := migratetest.Catalog(dir)
	check(err)
	return c
}

func newTable(ctx context.Context, c catalog.Catalog, name table.Identifier, fields ...iceberg.NestedField) *table.Table {
	check(c.CreateNamespace(ctx, name[:1], nil))
	t, err := c.CreateTable(ctx, name, iceberg.NewSchema(0, fields...))
	check(err)
	return t
}

func fill(ctx context.Context, t *table.Table) {
	schema, err := table.SchemaToArrowSchema(t.Schema(), nil, true, false)
	check(err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	b.Field(1).(*array.Float64Builder).AppendValues([]float64{9.5, 20, 7.25}, nil)
	b.Field(2).(*array.StringBuilder).AppendValues([]string{"eu", "us", "eu"}, nil)
	records, err := array.NewRecordReader(schema, []arrow.RecordBatch{b.NewRecordBatch()})
	check(err)
	defer records.Release()
	_, err = t.Append(ctx, records, nil)
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
