package catalogs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/catalogs"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

// documented are the properties of docs/PROPERTIES.md, and whether each is honoured, ignored or refused.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/PROPERTIES.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\w+) \\|").FindAllStringSubmatch(string(text), -1) {
		if out[m[1]] != "" {
			t.Errorf("%s is there twice", m[1])
		}
		out[m[1]] = m[2]
	}
	return out
}

// TestTableProperties sets each property of docs/PROPERTIES.md on a destination, and looks at what comes of it where all
// rows are written anew.
func TestTableProperties(t *testing.T) {
	b := newBench(t)
	in := documented(t)
	if len(in) < 40 {
		t.Fatalf("%d properties are documented", len(in))
	}
	for name, what := range in {
		t.Run(name, func(t *testing.T) {
			look := looks[name]
			switch {
			case what == "honoured" && look != nil, what == "refused" && look != nil, what == "ignored" && look != nil:
				look(t, b)
			case what == "ignored" && ignoredValues[name] != "":
				if testing.Short() {
					return // what nothing looks at races with nothing
				}
				b.same(t, strings.Replace(name, "NAME", "id", 1), ignoredValues[name])
			default:
				t.Errorf("it is %q in the document, and nothing here tries it", what)
			}
		})
	}
	for name := range looks {
		if in[name] == "" {
			t.Errorf("%s is tried, and is not documented", name)
		}
	}
	for name := range ignoredValues {
		if in[name] == "" {
			t.Errorf("%s is tried, and is not documented", name)
		}
	}
}

// A bench has a source, and makes destinations.
type bench struct {
	catalog catalog.Catalog
	dir     string
	made    int
}

const benchRows = 20000

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir()}
	var err error
	if b.catalog, err = catalogs.Temporary(b.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.catalog.(catalog.Closer).Close() })
	if err := b.catalog.CreateNamespace(t.Context(), table.Identifier{"n"}, nil); err != nil {
		t.Fatal(err)
	}
	src, err := b.catalog.CreateTable(t.Context(), table.Identifier{"n", "src"}, benchSchema())
	if err != nil {
		t.Fatal(err)
	}
	schema, err := table.SchemaToArrowSchema(src.Schema(), nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range benchRows {
		builder.Field(0).(*array.Int64Builder).Append(random.Int64())
		builder.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("a text of row %d", i))
		builder.Field(2).(*array.StringBuilder).Append([]string{"eu", "us"}[i%2])
	}
	records, err := array.NewRecordReader(schema, []arrow.RecordBatch{builder.NewRecordBatch()})
	if err != nil {
		t.Fatal(err)
	}
	defer records.Release()
	if _, err := src.Append(t.Context(), records, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func benchSchema() *iceberg.Schema {
	return iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "text", Type: iceberg.PrimitiveTypes.String}, iceberg.NestedField{ID: 3, Name: "part", Type: iceberg.PrimitiveTypes.String})
}

// A moved is a destination that rows were moved to.
type moved struct {
	table   *table.Table
	entries []iceberg.DataFile
	dir     string // of the table
	commits int    // that were tried
}

// An order is what is wanted of a destination.
type order struct {
	props       iceberg.Properties
	partitioned bool
	batches     int
	fail        int // so many commits fail
}

// flaky is a catalog whose first commits fail, without a trace of them.
type flaky struct {
	catalog.Catalog
	fail, tried int
}

func (f *flaky) CommitTable(ctx context.Context, id table.Identifier, r []table.Requirement, u []table.Update) (table.Metadata, string, error) {
	if f.tried++; f.tried <= f.fail {
		return nil, "", errors.New("the server is out of order")
	}
	return f.Catalog.CommitTable(ctx, id, r, u)
}

// make makes a destination and opens it as a command does.
func (b *bench) make(t *testing.T, o order) (opened, source *catalogs.Opened) {
	t.Helper()
	b.made++
	id := table.Identifier{"n", fmt.Sprintf("dst%d", b.made)}
	options := []catalog.CreateTableOpt{catalog.WithProperties(o.props)}
	if o.partitioned {
		spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{3}, FieldID: 1000, Name: "part", Transform: iceberg.IdentityTransform{}})
		options = append(options, catalog.WithPartitionSpec(&spec))
	}
	if _, err := b.catalog.CreateTable(t.Context(), id, benchSchema(), options...); err != nil {
		t.Fatal(err)
	}
	open := func(id table.Identifier, mode catalogs.Mode) *catalogs.Opened {
		place := rows.Place{Kind: "sqlite", Name: catalogs.TemporaryName, DBPath: filepath.Join(b.dir, "catalog.db")}
		o, err := catalogs.Open(t.Context(), catalogs.Ref{Place: place, Identifier: id}, mode)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { o.Close() })
		return o
	}
	return open(id, catalogs.ReadWrite), open(table.Identifier{"n", "src"}, catalogs.ReadOnly)
}

// move moves the source's rows.
func (b *bench) move(t *testing.T, o order) (moved, error) {
	t.Helper()
	opened, source := b.make(t, o)
	f := &flaky{Catalog: opened.Catalog, fail: o.fail}
	dst := migrate.FromLoaded(f, opened.Table, opened.Ref.Place)
	m := migrate.Migrator{Source: migrate.FromLoaded(source.Catalog, source.Table, source.Ref.Place), Dest: dst,
		Scan: migrate.ScanOptions{BatchRows: int64(benchRows / max(o.batches, 1))}, Write: migrate.WriteOptions{Copy: migrate.CopyNever, Jobs: 1}}
	if _, err := m.Run(t.Context()); err != nil {
		return moved{commits: f.tried}, err
	}
	now, err := opened.Catalog.LoadTable(t.Context(), opened.Ref.Identifier)
	if err != nil {
		t.Fatal(err)
	}
	out := moved{table: now, commits: f.tried, dir: strings.TrimPrefix(now.Location(), "file://")}
	tasks, err := now.Scan().PlanFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for _, task := range tasks {
		if task.Start == 0 {
			out.entries = append(out.entries, task.File)
			n += task.File.Count()
		}
	}
	if n != benchRows {
		t.Errorf("%d rows arrived", n)
	}
	return out, nil
}

// with moves the rows with properties of key and value.
func (b *bench) with(t *testing.T, o order, props ...string) moved {
	t.Helper()
	o.props = iceberg.Properties{}
	for i := 0; i < len(props); i += 2 {
		o.props[props[i]] = props[i+1]
	}
	m, err := b.move(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// same holds a destination with a property against one without.
func (b *bench) same(t *testing.T, key, value string) {
	t.Helper()
	o := order{partitioned: true, batches: 2}
	if got, want := b.with(t, o, key, value).shape(t), b.with(t, o).shape(t); got != want {
		t.Errorf("%s=%s makes\n%s\nand without it there is\n%s", key, value, got, want)
	}
}

// shape is what a destination is made of, less names and sizes.
func (m moved) shape(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, e := range m.entries {
		r := m.open(t, e)
		folder := filepath.Base(filepath.Dir(e.FilePath()))
		chunk, err := r.MetaData().RowGroup(0).ColumnChunk(0)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s, %d rows in %d row groups, %s, bloom filter at %d, %d bounds",
			folder, e.FileFormat(), e.Count(), r.NumRowGroups(), chunk.Compression(), chunk.BloomFilterOffset(), len(e.LowerBoundValues())))
		r.Close()
	}
	slices.Sort(lines)
	lines = append(lines, fmt.Sprintf("%d snapshots, %d manifests, metadata %s", len(m.table.Metadata().Snapshots()), len(m.manifests(t)), filepath.Base(filepath.Dir(m.table.MetadataLocation()))))
	return strings.Join(lines, "\n")
}

// open opens a data file.
func (m moved) open(t *testing.T, e iceberg.DataFile) *file.Reader {
	t.Helper()
	r, err := file.OpenParquetFile(strings.TrimPrefix(e.FilePath(), "file://"), false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pages are the data pages of a column in the first row group of the first file, and how many of them use a dictionary.
func (m moved) pages(t *testing.T, column int) (n, dictionary int) {
	t.Helper()
	r := m.open(t, m.entries[0])
	defer r.Close()
	pages, err := r.RowGroup(0).GetColumnPageReader(column)
	if err != nil {
		t.Fatal(err)
	}
	for pages.Next() {
		if _, ok := pages.Page().(*file.DictionaryPage); ok {
			continue
		}
		if n++; parquet.Encoding(pages.Page().Encoding()) != parquet.Encodings.Plain {
			dictionary++
		}
	}
	if err := pages.Err(); err != nil {
		t.Fatal(err)
	}
	return n, dictionary
}

// manifests are those of the last snapshot.
func (m moved) manifests(t *testing.T) []iceberg.ManifestFile {
	t.Helper()
	files, err := m.table.FS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := m.table.CurrentSnapshot().Manifests(files)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// names are the files in a folder and below whose names end so.
func names(t *testing.T, dir, end string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, end) {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
