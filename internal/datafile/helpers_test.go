package datafile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/localdisk"
)

var prim = iceberg.PrimitiveTypes

func opt(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

func req(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t, Required: true}
}

func by(source, id int, name string, tr iceberg.Transform) iceberg.PartitionField {
	return iceberg.PartitionField{SourceIDs: []int{source}, FieldID: id, Name: name, Transform: tr}
}

func spec(fields ...iceberg.PartitionField) iceberg.PartitionSpec {
	return iceberg.NewPartitionSpecID(7, fields...)
}

// config is that of an unpartitioned table in a folder of the test's own.
func config(t *testing.T, s *iceberg.Schema, props iceberg.Properties) Config {
	t.Helper()
	return Config{Schema: s, Spec: *iceberg.UnpartitionedSpec, Version: 2, Location: t.TempDir(), Properties: props, Resources: Resources{Jobs: 3}}
}

// batchOf makes a record batch of a schema from JSON, one row a line or an array of rows.
func batchOf(t *testing.T, mem memory.Allocator, s *iceberg.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	sc, err := table.SchemaToArrowSchema(s, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	// The builder refuses nulls of non-nullable fields nowhere, which suits the tests of CheckValues.
	rb, _, err := array.RecordFromJSON(mem, sc, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return rb
}

func newWriter(t *testing.T, cfg Config) *Writer {
	t.Helper()
	w, err := NewWriter(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// write writes record batches, which it releases, as one batch.
func write(t *testing.T, cfg Config, batches ...arrow.RecordBatch) []iceberg.DataFile {
	t.Helper()
	w := newWriter(t, cfg)
	for _, rb := range batches {
		err := w.Write(context.Background(), rb)
		rb.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := w.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := Verify(context.Background(), nil, f); err != nil {
			t.Error(err)
		}
	}
	return files
}

// readColumns gives each column of a file as JSON, as the library's reader sees it.
func readColumns(t *testing.T, f iceberg.DataFile) map[string][]json.RawMessage {
	t.Helper()
	path, _ := localdisk.Path(f.FilePath())
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	tbl, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer tbl.Release()
	out := map[string][]json.RawMessage{}
	for i := range int(tbl.NumCols()) {
		c := tbl.Column(i)
		for _, chunk := range c.Data().Chunks() {
			out[c.Name()] = append(out[c.Name()], jsonValues(t, chunk)...)
		}
	}
	return out
}

func jsonValues(t *testing.T, arr arrow.Array) []json.RawMessage {
	t.Helper()
	text, err := json.Marshal(arr)
	if err != nil {
		t.Fatal(err)
	}
	var vals []json.RawMessage
	if err := json.Unmarshal(text, &vals); err != nil {
		t.Fatal(err)
	}
	return vals
}

// sameColumn compares what was read with what was written.
func sameColumn(t *testing.T, name string, got, want []json.RawMessage) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("column %q: %d values, want %d", name, len(got), len(want))
		return
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("column %q, row %d: %s, want %s", name, i, got[i], want[i])
			return
		}
	}
}

// texts gives a text column of a file, "<nil>" for null.
func texts(t *testing.T, f iceberg.DataFile, column string) string {
	t.Helper()
	var b strings.Builder
	for i, v := range readColumns(t, f)[column] {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.Write(v)
	}
	return b.String()
}

func openParquet(t *testing.T, f iceberg.DataFile) *file.Reader {
	t.Helper()
	path, _ := localdisk.Path(f.FilePath())
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// manifest writes the files into a manifest and reads it again, as a commit does.
func manifest(t *testing.T, cfg Config, files []iceberg.DataFile) []iceberg.DataFile {
	t.Helper()
	var b bytes.Buffer
	w, err := iceberg.NewManifestWriter(cfg.Version, &b, cfg.Spec, cfg.Schema, 1)
	if err != nil {
		t.Fatal(err)
	}
	id := int64(1)
	for _, f := range files {
		if err := w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &id, nil, nil, f)); err != nil {
			t.Fatalf("%v: %v", f.Partition(), err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mf, err := w.ToManifestFile("m.avro", int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := iceberg.ReadManifest(mf, &b, true)
	if err != nil {
		t.Fatal(err)
	}
	var out []iceberg.DataFile
	for _, e := range entries {
		out = append(out, e.DataFile())
	}
	return out
}

func str(v any) string { return fmt.Sprintf("%T(%v)", v, v) }
