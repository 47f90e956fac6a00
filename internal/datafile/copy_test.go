package datafile

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/rows"
)

// copyConfig is a configuration that copies what can be copied, and refuses the rest.
func copyConfig(t *testing.T, s *iceberg.Schema, props iceberg.Properties) Config {
	cfg := config(t, s, props)
	cfg.Copy.Mode = CopyRequire
	return cfg
}

// localSource writes a record batch into a file on disk, which the kernel can copy from.
func localSource(t testing.TB, rb arrow.RecordBatch, groupRows int64, props ...parquet.WriterProperty) *Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.parquet")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	tbl := array.NewTableFromRecords(rb.Schema(), []arrow.RecordBatch{rb})
	defer tbl.Release()
	props = append(props, parquet.WithMaxRowGroupLength(groupRows), parquet.WithStoreDecimalAsInteger(true))
	if err := pqarrow.WriteTable(tbl, out, groupRows, parquet.NewWriterProperties(props...), pqarrow.DefaultWriterProps()); err != nil {
		t.Fatal(err)
	}
	return localOpened(t, path)
}

func localOpened(t testing.TB, path string) *Source {
	t.Helper()
	at, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := file.NewParquetReader(at, file.WithReadProps(parquet.NewReaderProperties(nil)))
	if err != nil {
		t.Fatal(err)
	}
	s := NewSource(path, r, at)
	t.Cleanup(func() {
		if n := s.refs.Load(); n != 1 {
			t.Errorf("%d hold the source, want the test alone", n)
		}
		s.Release()
	})
	return s
}

// columnsOf says which leaves of a file hold the top-level columns of a schema that the file was written by.
func columnsOf(s *iceberg.Schema) (flat []int, nested [][]int) {
	next := 0
	var count func(t iceberg.Type) int
	count = func(t iceberg.Type) int {
		n, ok := t.(iceberg.NestedType)
		if !ok {
			return 1
		}
		sum := 0
		for _, f := range n.Fields() {
			sum += count(f.Type)
		}
		return sum
	}
	for _, f := range s.Fields() {
		var leaves []int
		for range count(f.Type) {
			leaves = append(leaves, next)
			next++
		}
		if _, ok := f.Type.(iceberg.NestedType); ok {
			flat, nested = append(flat, rows.Opaque), append(nested, leaves)
			continue
		}
		flat, nested = append(flat, leaves[0]), append(nested, nil)
	}
	return flat, nested
}

// partOf is a whole row group of a file with columns in the order of the schema that it was written by.
func partOf(s *Source, schema *iceberg.Schema, group int) *rows.Part {
	flat, nested := columnsOf(schema)
	n := s.Reader.MetaData().RowGroup(group).NumRows()
	return &rows.Part{Path: s.Path, Ordinal: group, GroupRows: n, To: n, File: s, Leaves: flat, Nested: nested}
}

// copyAll takes all row groups of a source as one batch.
func copyAll(t *testing.T, w *Writer, s *Source, schema *iceberg.Schema) ([]iceberg.DataFile, Bytes, error) {
	t.Helper()
	for g := range s.Reader.NumRowGroups() {
		p := partOf(s, schema, g)
		if _, err := w.Takes(p); err != nil {
			w.Abort()
			return nil, Bytes{}, err
		}
		if err := w.Take(t.Context(), p); err != nil {
			w.Abort()
			return nil, Bytes{}, err
		}
	}
	end := w.End(t.Context())
	files, err := end.Wait()
	return files, end.Bytes(), err
}

// everyRow reads the columns of files, in order.
func everyRow(t *testing.T, files []iceberg.DataFile) map[string][]json.RawMessage {
	t.Helper()
	got := map[string][]json.RawMessage{}
	for _, f := range files {
		for c, vals := range readColumns(t, f) {
			got[c] = append(got[c], vals...)
		}
	}
	return got
}

// TestCopy: a file made of copied chunks holds the rows that its sources hold, of any type, nested or not, however
// pages and row groups are cut, and says of them what a file of the same rows says that was written anew, but
// for counts of NaN, which nobody knows. The kernel copies, or we do in blocks, or in a stream.
func TestCopy(t *testing.T) {
	const n = 240
	rb := batchOf(t, memory.DefaultAllocator, everything(), everythingRows(n))
	defer rb.Release()
	for name, props := range map[string][]parquet.WriterProperty{
		"default":             {},
		"no dictionary":       {parquet.WithDictionaryDefault(false)},
		"pages of version 2":  {parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithDataPageSize(300), parquet.WithCompression(compress.Codecs.Zstd)},
		"small pages":         {parquet.WithDataPageSize(200), parquet.WithBatchSize(17), parquet.WithCompression(compress.Codecs.Gzip)},
		"dictionary given up": {parquet.WithDictionaryPageSizeLimit(64), parquet.WithDataPageSize(100), parquet.WithBatchSize(10), parquet.WithCompression(compress.Codecs.Snappy)},
		"page index":          {parquet.WithPageIndexEnabled(true), parquet.WithBloomFilterEnabled(true)},
	} {
		for _, group := range []int64{n, 100, 7} {
			if group == 7 && (testing.Short() || name != "small pages") {
				continue
			}
			t.Run(fmt.Sprintf("%s, groups of %d", name, group), func(t *testing.T) {
				cfg := copyConfig(t, everything(), iceberg.Properties{propMetrics: "full"})
				for _, source := range []*Source{localSource(t, rb, group, props...), sourceOf(t, rb, group, append(props, parquet.WithStoreDecimalAsInteger(true))...)} {
					files, bytes, err := copyAll(t, newWriter(t, cfg), source, everything())
					if err != nil {
						t.Fatal(err)
					}
					if len(files) != 1 || bytes.Copied == 0 || bytes.Transcoded+bytes.Encoded > 0 {
						t.Errorf("%d files, %+v", len(files), bytes)
					}
					got := everyRow(t, files)
					for i, f := range rb.Schema().Fields() {
						sameColumn(t, f.Name, got[f.Name], jsonValues(t, rb.Column(i)))
					}
					rb.Retain()
					copiedMetrics(t, files, write(t, cfg, rb))
					checkFooter(t, everything(), files[0])
					checkLeftOut(t, files[0])
				}
			})
		}
	}
}

// copiedMetrics compares what manifests say of a file that was copied and of one of the same rows, of which NaNs are
// counted.
func copiedMetrics(t *testing.T, got, want []iceberg.DataFile) {
	t.Helper()
	g, w := got[0], want[0]
	if len(g.NaNValueCounts()) > 0 {
		t.Errorf("NaN counts %v, of which nobody knows", g.NaNValueCounts())
	}
	for name, pair := range map[string][2]any{
		"rows":   {g.Count(), w.Count()},
		"values": {g.ValueCounts(), w.ValueCounts()},
		"nulls":  {g.NullValueCounts(), w.NullValueCounts()},
		"lower":  {g.LowerBoundValues(), w.LowerBoundValues()},
		"upper":  {g.UpperBoundValues(), w.UpperBoundValues()},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	if !slices.Equal(slices.Sorted(maps.Keys(g.ColumnSizes())), slices.Sorted(maps.Keys(w.ColumnSizes()))) {
		t.Errorf("sizes %v, want columns of %v", g.ColumnSizes(), w.ColumnSizes())
	}
}

// checkLeftOut holds that nothing of a footer points outside of the pages of the file.
func checkLeftOut(t *testing.T, f iceberg.DataFile) {
	t.Helper()
	r := openParquet(t, f)
	for g, group := range r.MetaData().RowGroups {
		for i, c := range group.Columns {
			if c.OffsetIndexOffset != nil || c.ColumnIndexOffset != nil || c.MetaData.BloomFilterOffset != nil || c.MetaData.IndexPageOffset != nil {
				t.Errorf("row group %d, column %d: an index or a bloom filter came along", g, i)
			}
			if d := c.MetaData.DictionaryPageOffset; d != nil && (*d < 4 || *d >= c.MetaData.DataPageOffset) {
				t.Errorf("row group %d, column %d: dictionary at %d, pages at %d", g, i, *d, c.MetaData.DataPageOffset)
			}
		}
	}
}

// TestCopyFits: columns keep what their source's file says of nulls, are copied beside others that are promoted
// or missing, and a file of another layout begins where it changes.
func TestCopyFits(t *testing.T) {
	from := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "i", prim.Int32), opt(3, "f", prim.Float32), opt(4, "s", prim.String),
		opt(5, "a", iceberg.DecimalTypeOf(9, 2)), opt(6, "b", iceberg.DecimalTypeOf(12, 2)))
	to := iceberg.NewSchema(0, opt(11, "id", prim.Int64), opt(12, "i", prim.Int64), opt(13, "f", prim.Float64), req(14, "t", prim.String),
		opt(15, "a", iceberg.DecimalTypeOf(14, 2)), opt(16, "b", iceberg.DecimalTypeOf(14, 2)),
		opt(17, "none", prim.Int32), opt(18, "l", &iceberg.ListType{ElementID: 19, Element: prim.String}))
	text := `[{"id":1,"i":-5,"f":1.5,"s":"x","a":"-1.25","b":"1.00"},{"id":2,"i":7,"f":-0.25,"s":"y","a":"3.50","b":null},{"id":3,"i":null,"f":null,"s":"z","a":null,"b":"9999999999.99"}]`
	want := batchOf(t, memory.DefaultAllocator, to, strings.ReplaceAll(text, `"s"`, `"t"`))
	defer want.Release()
	rb := batchOf(t, memory.DefaultAllocator, from, text)
	defer rb.Release()
	for _, promoted := range []bool{true, false} {
		cfg := config(t, to, iceberg.Properties{propMetrics: "full"})
		cfg.Copy = Copy{Mode: CopyAuto, Promoted: promoted}
		w := newWriter(t, cfg)
		source := localSource(t, rb, 3)
		p := partOf(source, from, 0)
		p.Leaves, p.Nested = append(p.Leaves, rows.Nulls, rows.Nulls), append(p.Nested, nil, nil)
		if ok, err := w.Takes(p); !ok {
			t.Fatal("not taken", err)
		}
		if err := w.Write(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.Take(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		end := w.End(t.Context())
		files, err := end.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 2 || files[0].Count() != 3 || files[1].Count() != 6 {
			t.Fatalf("%d files, want one of three rows and one of six", len(files))
		}
		if b := end.Bytes(); b.Copied == 0 || promoted != (b.Transcoded == 0) || b.Encoded == 0 {
			t.Errorf("%+v", b)
		}
		if kind := openParquet(t, files[1]).MetaData().Schema.Column(1).PhysicalType(); (kind == parquet.Types.Int32) != promoted {
			t.Errorf("column i is %s", kind)
		}
		if r := openParquet(t, files[1]).MetaData().Schema; r.Column(0).MaxDefinitionLevel() != 0 || r.Column(3).MaxDefinitionLevel() != 1 {
			t.Error("levels are not those of the source")
		}
		want.Retain()
		anew := write(t, config(t, to, iceberg.Properties{propMetrics: "full"}), want)[0]
		for name, pair := range map[string][2]any{
			"lower": {files[1].LowerBoundValues(), anew.LowerBoundValues()}, "upper": {files[1].UpperBoundValues(), anew.UpperBoundValues()},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
			}
		}
		got := everyRow(t, files[1:])
		for i, f := range want.Schema().Fields() {
			if promoted && (f.Name == "a" || f.Name == "f") {
				continue // the reader is one of Parquet, and shows the type of the file
			}
			vals := jsonValues(t, want.Column(i))
			sameColumn(t, f.Name, got[f.Name], append(vals, vals...))
		}
	}
}

// TestSmallRowGroups: those below a size are put together, as long as they have few rows of a batch.
func TestSmallRowGroups(t *testing.T) {
	s := iceberg.NewSchema(0, opt(1, "c", prim.Int32))
	rb := batchOf(t, memory.DefaultAllocator, s, `[{"c":1},{"c":2},{"c":3},{"c":4}]`)
	defer rb.Release()
	for _, least := range []int64{0, 2, 3} {
		cfg := config(t, s, nil)
		cfg.Copy = Copy{Mode: CopyAuto, Rows: least}
		files, bytes, err := copyAll(t, newWriter(t, cfg), localSource(t, rb, 2), s)
		if err != nil {
			t.Fatal(err)
		}
		groups := openParquet(t, files[0]).NumRowGroups()
		if copied := least <= 2; copied != (bytes.Copied > 0) || copied != (groups == 2) {
			t.Errorf("at least %d rows: %+v, %d row groups", least, bytes, groups)
		}
	}
}
