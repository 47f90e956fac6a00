// Package demo makes the tables that testdata/demo.sh and the scripts of the tests move, with nothing
// but Go. It is part of the repository's demonstration, not of icepipe.
package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/catalog/sql" // the kind "sql"
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite" // its driver
)

const (
	commits       = 3
	rowsPerCommit = 40_000
)

// Make makes src.db, src_wh, dst.db and dst_wh in dir: a SQLite catalog named src with a populated table
// sales.orders of 120,000 rows, and one named dst with two empty destinations that have other columns.
func Make(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	orders, err := create(ctx, dir, "src", table.Identifier{"sales", "orders"}, iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "order_id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "order_total", Type: iceberg.PrimitiveTypes.Float64},
		iceberg.NestedField{ID: 3, Name: "region", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 4, Name: "created", Type: iceberg.PrimitiveTypes.TimestampTz},
	))
	if err != nil {
		return err
	}
	for n := range commits {
		if orders, err = appendOrders(ctx, orders, n*rowsPerCommit); err != nil {
			return err
		}
	}
	for _, name := range []string{"orders", "orders_by_pipe"} {
		_, err := create(ctx, dir, "dst", table.Identifier{"warehouse", name}, iceberg.NewSchema(0,
			iceberg.NestedField{ID: 1, Name: "channel", Type: iceberg.PrimitiveTypes.String},
			iceberg.NestedField{ID: 2, Name: "order_id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
			iceberg.NestedField{ID: 3, Name: "created", Type: iceberg.PrimitiveTypes.TimestampTz},
			iceberg.NestedField{ID: 4, Name: "total_amount", Type: iceberg.PrimitiveTypes.Float64},
		))
		if err != nil {
			return err
		}
	}
	return nil
}

// create makes a table, and its catalog and namespace where they are not there.
func create(ctx context.Context, dir, side string, name table.Identifier, schema *iceberg.Schema) (*table.Table, error) {
	cat, err := catalog.Load(ctx, side, iceberg.Properties{
		"type":        "sql",
		"uri":         "file:" + filepath.Join(dir, side+".db"),
		"sql.driver":  "sqlite",
		"sql.dialect": "sqlite",
		"warehouse":   "file://" + filepath.Join(dir, side+"_wh"),
	})
	if err != nil {
		return nil, fmt.Errorf("open catalog %q: %w", side, err)
	}
	there, err := cat.CheckNamespaceExists(ctx, name[:1])
	if err != nil {
		return nil, fmt.Errorf("look for namespace %q: %w", name[0], err)
	}
	if !there {
		if err := cat.CreateNamespace(ctx, name[:1], nil); err != nil {
			return nil, fmt.Errorf("create namespace %q: %w", name[0], err)
		}
	}
	made, err := cat.CreateTable(ctx, name, schema)
	if err != nil {
		return nil, fmt.Errorf("create table %q: %w", name, err)
	}
	return made, nil
}

// appendOrders appends one commit of orders, numbered from first on.
func appendOrders(ctx context.Context, orders *table.Table, first int) (*table.Table, error) {
	schema, err := table.SchemaToArrowSchema(orders.Schema(), nil, true, false)
	if err != nil {
		return nil, fmt.Errorf("schema of %q: %w", orders.Identifier(), err)
	}
	rows := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer rows.Release()
	regions := []string{"eu", "us", "apac", "latam", "mea"}
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := first; i < first+rowsPerCommit; i++ {
		rows.Field(0).(*array.Int64Builder).Append(int64(i + 1))
		if i%20 == 7 {
			rows.Field(1).AppendNull()
		} else {
			rows.Field(1).(*array.Float64Builder).Append(float64(i*37%100_000) / 100)
		}
		rows.Field(2).(*array.StringBuilder).Append(regions[i%len(regions)])
		at, err := arrow.TimestampFromTime(start.Add(time.Duration(i)*41*time.Second), arrow.Microsecond)
		if err != nil {
			return nil, err
		}
		rows.Field(3).(*array.TimestampBuilder).Append(at)
	}
	batch := rows.NewRecordBatch()
	defer batch.Release()
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	after, err := orders.Append(ctx, reader, nil)
	if err != nil {
		return nil, fmt.Errorf("append to %q: %w", orders.Identifier(), err)
	}
	return after, nil
}
