package lake

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/catalogs"
	"icepipe/internal/datafile"
	"icepipe/pkg/rows"
)

var prim = iceberg.PrimitiveTypes

func opt(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

func schemaOf(fields ...iceberg.NestedField) *iceberg.Schema { return iceberg.NewSchema(0, fields...) }

// idAndText is the schema of most tables here.
func idAndText() *iceberg.Schema {
	return schemaOf(opt(1, "id", prim.Int64), opt(2, "p", prim.String))
}

// newCatalog makes a catalog in a folder of the test's own.
func newCatalog(t testing.TB) catalog.Catalog {
	t.Helper()
	c, err := catalogs.Temporary(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.(io.Closer).Close() })
	if err := c.CreateNamespace(t.Context(), table.Identifier{"n"}, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// newTable makes an empty table n.t in a catalog of its own. props are name=value; version=N is its
// format.
func newTable(t testing.TB, schema *iceberg.Schema, spec iceberg.PartitionSpec, props ...string) *Table {
	t.Helper()
	properties := iceberg.Properties{"format-version": "2", "commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"}
	for _, p := range props {
		name, value, _ := strings.Cut(p, "=")
		if name == "version" {
			name = "format-version"
		}
		properties[name] = value
	}
	c := newCatalog(t)
	made, err := c.CreateTable(t.Context(), table.Identifier{"n", "t"}, schema, catalog.WithPartitionSpec(&spec), catalog.WithProperties(properties))
	if err != nil {
		t.Fatal(err)
	}
	return &Table{Catalog: c, Table: made}
}

func unpartitioned() iceberg.PartitionSpec { return *iceberg.UnpartitionedSpec }

func identity(source int, name string) iceberg.PartitionSpec {
	return iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{source}, FieldID: 1000, Name: name, Transform: iceberg.IdentityTransform{}})
}

// load loads the table anew, as another program would.
func load(t testing.TB, tbl *Table) *Table {
	t.Helper()
	fresh, err := tbl.Catalog.LoadTable(t.Context(), tbl.Identifier())
	if err != nil {
		t.Fatal(err)
	}
	return &Table{Catalog: tbl.Catalog, Table: fresh}
}

// record makes a record batch of a schema from rows in JSON.
func record(t testing.TB, mem memory.Allocator, schema *arrow.Schema, text string) arrow.RecordBatch {
	t.Helper()
	batch, _, err := array.RecordFromJSON(orDefault(mem), schema, strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return batch
}

func arrowOf(t testing.TB, schema *iceberg.Schema, ids bool) *arrow.Schema {
	t.Helper()
	s, err := table.SchemaToArrowSchema(schema, nil, ids, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// written writes rows as data files of the table, without a commit.
func written(t testing.TB, tbl *Table, text string) []iceberg.DataFile {
	t.Helper()
	config, err := tbl.FileConfig(t.Context(), datafile.Resources{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	w, err := datafile.NewWriter(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	batch := record(t, memory.DefaultAllocator, arrowOf(t, tbl.Schema(), true), text)
	defer batch.Release()
	if err := w.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	files, err := w.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// appended commits rows as batch n of a job.
func appended(t testing.TB, tbl *Table, n int64, text string) Committed {
	t.Helper()
	c, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(n), Files: written(t, tbl, text)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func markOf(n int64) Mark {
	return Mark{Job: "job", Batch: n, From: rows.Cursor{File: n}, To: rows.Cursor{File: n + 1}, Rows: 1}
}

// parquetFile writes a Parquet file below the table, a row group for each of groups, and returns its
// path. The columns are as in schema, with field IDs only where schema has them.
func parquetFile(t testing.TB, tbl *Table, schema *arrow.Schema, props *parquet.WriterProperties, groups ...string) string {
	t.Helper()
	fs, err := tbl.FS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folder := tbl.Location() + "/data"
	before, _ := os.ReadDir(local(t, folder)) // names in the order in which they are made
	path := fmt.Sprintf("%s/%05d.parquet", folder, len(before))
	f, err := fs.(iceio.WriteFileIO).Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if props == nil {
		props = parquet.NewWriterProperties()
	}
	w, err := pqarrow.NewFileWriter(schema, f, props, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		batch := record(t, memory.DefaultAllocator, schema, g)
		w.NewBufferedRowGroup()
		if err := w.WriteBuffered(batch); err != nil {
			t.Fatal(err)
		}
		batch.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// local is the path on disk of a file of the table.
func local(t testing.TB, location string) string {
	t.Helper()
	path := strings.TrimPrefix(location, "file://")
	if !strings.HasPrefix(path, "/") {
		t.Fatalf("%q is not local", location)
	}
	return path
}

// all reads a scan to its end: each row as JSON, and the cursors at which batches end.
func all(ctx context.Context, s *Scan) (lines []string, ends []rows.Cursor, err error) {
	stream := s.Stream(ctx)
	at := stream.Header.First
	for span, err := range rows.Opened(ctx, stream).Spans {
		if err != nil {
			return lines, ends, err
		}
		if span.From != at && !(at == rows.Cursor{}) {
			return lines, ends, fmt.Errorf("span from %s after %s", span.From, at)
		}
		if span.Rows != span.Batch.NumRows() {
			return lines, ends, fmt.Errorf("%d rows in a span of %d", span.Batch.NumRows(), span.Rows)
		}
		at = span.To
		text, err := span.Batch.MarshalJSON()
		span.Release()
		if err != nil {
			return lines, ends, err
		}
		for _, line := range strings.Split(strings.Trim(string(text), "[]\n"), "\n") {
			lines = append(lines, strings.TrimPrefix(line, ","))
		}
		if span.EndsBatch {
			ends = append(ends, span.To)
		}
	}
	seal, err := stream.Seal()
	if err != nil {
		return lines, ends, err
	}
	if seal.Rows != int64(len(lines)) || seal.Last != at {
		return lines, ends, fmt.Errorf("the seal says %d rows to %s; there were %d to %s", seal.Rows, seal.Last, len(lines), at)
	}
	return lines, ends, nil
}

// scanned are the rows of a scan.
func scanned(t testing.TB, tbl *Table, o ScanOptions) []string {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	o.Memory = mem
	s, err := tbl.PlanScan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := all(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func sorted(lines []string) []string {
	out := slices.Clone(lines)
	slices.Sort(out)
	return out
}

// equal fails the test where two lists of lines differ.
func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, " "), strings.Join(want, " "))
	}
}

// fails holds an error against a part of its text.
func fails(t testing.TB, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got error %v, want one with %q", what, err, want)
	}
}

func mustFS(t testing.TB, tbl *Table) iceio.IO {
	t.Helper()
	fs, err := tbl.FS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func orDefault(mem memory.Allocator) memory.Allocator {
	if mem == nil {
		return memory.DefaultAllocator
	}
	return mem
}
