//go:build interop

package interop

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/catalog/sql" // the kind "sql"
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite" // its driver

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

// flatName is the table of every catalog of TestFlatCost.
var flatName = table.Identifier{"lab", "flat"}

// flatCatalog opens the catalog of a name below dir until the test ends.
func flatCatalog(t *testing.T, dir, name string) catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(t.Context(), name, iceberg.Properties{
		"type": "sql", "uri": "file:" + filepath.Join(dir, name+".db"), "sql.driver": "sqlite", "sql.dialect": "sqlite",
		"warehouse": "file://" + filepath.Join(dir, name+"_wh"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if closer, ok := c.(io.Closer); ok {
		t.Cleanup(func() { closer.Close() })
	}
	return c
}

// flatTable makes a catalog with an empty table.
func flatTable(t *testing.T, dir, name string, version int) *table.Table {
	t.Helper()
	c := flatCatalog(t, dir, name)
	if err := c.CreateNamespace(t.Context(), flatName[:1], nil); err != nil {
		t.Fatal(err)
	}
	made, err := c.CreateTable(t.Context(), flatName, iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "amount", Type: iceberg.PrimitiveTypes.Float64},
	), catalog.WithProperties(iceberg.Properties{"format-version": fmt.Sprint(version)}))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// flatAppend appends rows numbered from first on, as one file.
func flatAppend(t *testing.T, to *table.Table, first, n int) *table.Table {
	t.Helper()
	schema, err := table.SchemaToArrowSchema(to.Schema(), nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := first; i < first+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("name of ", i))
		b.Field(2).(*array.Float64Builder).Append(float64(i*7919%100_003) / 100)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	after, err := to.Append(t.Context(), reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// flatMove moves src into a destination, and holds what it is told before: how to keep metadata small.
func flatMove(t *testing.T, dir, name, checkpoint string) migrate.Receipt {
	t.Helper()
	open := func(name string) *migrate.Table {
		table, err := migrate.Open(t.Context(), flatCatalog(t, dir, name), flatName, rows.Place{})
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	var said []string
	m := migrate.Migrator{
		Source: open("src"), Dest: open(name),
		Scan:  migrate.ScanOptions{BatchRows: flatRows},
		Write: migrate.WriteOptions{Checkpoint: ckpt.Open(checkpoint), Begin: func(hints []string) { said = hints }},
	}
	receipt, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"write.metadata.delete-after-commit.enabled=true", "write.metadata.previous-versions-max", "expire snapshots"} {
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("the hints do not name %s: %q", want, said)
		}
	}
	return receipt
}

// flatHead is the number of manifests at the head.
func flatHead(t *testing.T, dir, name string) int {
	t.Helper()
	loaded, err := flatCatalog(t, dir, name).LoadTable(t.Context(), flatName)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := loaded.FS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := loaded.CurrentSnapshot().Manifests(fs)
	if err != nil {
		t.Fatal(err)
	}
	return len(manifests)
}

func flatSize(t *testing.T, path string) int64 {
	t.Helper()
	at, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return at.Size()
}
