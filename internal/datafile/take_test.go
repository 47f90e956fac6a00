package datafile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
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

// flat is the part of everything that has no nesting, with floats of all kinds.
func flat() *iceberg.Schema {
	return iceberg.NewSchema(4, everything().Fields()[:16]...)
}

// flatBatch is n rows of flat, with nulls in stretches and singly.
func flatBatch(t *testing.T, n int) arrow.RecordBatch {
	t.Helper()
	rb := batchOf(t, memory.DefaultAllocator, everything(), everythingRows(n))
	defer rb.Release()
	columns := rb.Columns()[:16]
	return array.NewRecordBatch(arrow.NewSchema(rb.Schema().Fields()[:16], nil), columns, rb.NumRows())
}

// sourceOf writes a record batch into a Parquet file by the library's own writer, as another program would.
func sourceOf(t *testing.T, rb arrow.RecordBatch, groupRows int64, props ...parquet.WriterProperty) *Source {
	t.Helper()
	var b bytes.Buffer
	props = append(props, parquet.WithMaxRowGroupLength(groupRows))
	tbl := array.NewTableFromRecords(rb.Schema(), []arrow.RecordBatch{rb})
	defer tbl.Release()
	if err := pqarrow.WriteTable(tbl, &b, groupRows, parquet.NewWriterProperties(props...), pqarrow.DefaultWriterProps()); err != nil {
		t.Fatal(err)
	}
	return opened(t, b.Bytes())
}

func opened(t testing.TB, text []byte) *Source {
	t.Helper()
	at := bytes.NewReader(text)
	r, err := file.NewParquetReader(at, file.WithReadProps(parquet.NewReaderProperties(nil)))
	if err != nil {
		t.Fatal(err)
	}
	s := NewSource("source.parquet", r, at)
	t.Cleanup(func() {
		if n := s.refs.Load(); n != 1 {
			t.Errorf("%d hold the source, want the test alone", n)
		}
		s.Release()
	})
	return s
}

// leavesInOrder takes the n-th leaf for the n-th column.
func leavesInOrder(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// takeAll takes the rows of a source in batches that end after so many rows, and returns the files of each. A
// batch is begun before the one before it is waited for.
func takeAll(t *testing.T, w *Writer, s *Source, leaves []int, batchRows int64) ([][]iceberg.DataFile, error) {
	t.Helper()
	return takeMasked(t, w, s, leaves, batchRows, nil)
}

// takeMasked is takeAll for the rows of the source that keep has; nil: all.
func takeMasked(t *testing.T, w *Writer, s *Source, leaves []int, batchRows int64, keep func(row int64) bool) ([][]iceberg.DataFile, error) {
	t.Helper()
	var out [][]iceberg.DataFile
	var last *Pending
	wait := func(next *Pending) error {
		p := last
		last = next
		if p == nil {
			return nil
		}
		files, err := p.Wait()
		if err == nil && len(files) > 0 {
			out = append(out, files)
		}
		return err
	}
	room := batchRows
	ctx := context.Background()
	before := int64(0)
	for g := range s.Reader.NumRowGroups() {
		total := s.Reader.MetaData().RowGroup(g).NumRows()
		mask := maskOf(before, total, keep)
		before += total
		for from := int64(0); mask.Count(from, total) > 0; {
			to, n := mask.Behind(from, total, room)
			part := &rows.Part{Path: s.Path, Ordinal: g, GroupRows: total, From: from, To: to, Mask: mask, File: s, Leaves: leaves}
			if ok, err := w.Takes(part); !ok {
				t.Fatalf("row group %d is not taken: %v", g, err)
			}
			if err := w.Take(ctx, part); err != nil {
				w.Abort()
				_ = wait(nil)
				return out, err
			}
			from = to
			if room -= n; room == 0 {
				room = batchRows
				if err := wait(w.End(ctx)); err != nil {
					w.Abort()
					_ = wait(nil)
					return out, err
				}
			}
		}
	}
	if err := wait(w.End(ctx)); err != nil {
		_ = wait(nil)
		return out, err
	}
	return out, wait(nil)
}

// TestTake: rows that are taken from the pages of a file are the rows that were put into it, whatever
// wrote it, and are described as the same rows written from record batches.
func TestTake(t *testing.T) {
	const n = 240
	rb := flatBatch(t, n)
	defer rb.Release()
	want := map[string][]json.RawMessage{}
	for i, f := range rb.Schema().Fields() {
		want[f.Name] = jsonValues(t, rb.Column(i))
	}
	for name, props := range map[string][]parquet.WriterProperty{
		"default":              {},
		"no dictionary":        {parquet.WithDictionaryDefault(false)},
		"pages of version 2":   {parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithDataPageSize(300)},
		"small pages":          {parquet.WithDataPageSize(200), parquet.WithBatchSize(17), parquet.WithCompression(compress.Codecs.Zstd)},
		"dictionary given up":  {parquet.WithDictionaryPageSizeLimit(64), parquet.WithDataPageSize(100), parquet.WithBatchSize(10)},
		"decimals as integers": {parquet.WithStoreDecimalAsInteger(true), parquet.WithCompression(compress.Codecs.Snappy)},
		"delta":                {parquet.WithDictionaryDefault(false), parquet.WithEncodingFor("s", parquet.Encodings.DeltaByteArray), parquet.WithEncodingFor("i", parquet.Encodings.DeltaBinaryPacked), parquet.WithEncodingFor("d", parquet.Encodings.ByteStreamSplit)},
	} {
		for _, cut := range []struct{ group, batch int64 }{{n, n}, {100, 70}, {30, 80}, {1, 60}, {n, 8}} {
			if cut.batch == 8 && name != "small pages" {
				continue // thirty files
			}
			if testing.Short() && cut.batch < 80 {
				continue
			}
			t.Run(fmt.Sprintf("%s, groups of %d, batches of %d", name, cut.group, cut.batch), func(t *testing.T) {
				cfg := config(t, flat(), iceberg.Properties{propMetrics: "full"})
				source := sourceOf(t, rb, cut.group, props...)
				taken, err := takeAll(t, newWriter(t, cfg), source, leavesInOrder(16), cut.batch)
				if err != nil {
					t.Fatal(err)
				}
				got := map[string][]json.RawMessage{}
				at := int64(0)
				for _, files := range taken {
					count := int64(0)
					for _, f := range files {
						for c, vals := range readColumns(t, f) {
							got[c] = append(got[c], vals...)
						}
						count += f.Count()
					}
					if cut.batch > 8 {
						part := rb.NewSlice(at, at+count)
						sameMetrics(t, files, write(t, cfg, part))
					}
					at += count
				}
				for c := range want {
					sameColumn(t, c, got[c], want[c])
				}
			})
		}
	}
}

// sameMetrics compares what manifests say of two lists of files.
func sameMetrics(t *testing.T, got, want []iceberg.DataFile) {
	t.Helper()
	if len(got) != 1 || len(want) != 1 {
		t.Fatalf("%d files, want %d", len(got), len(want))
	}
	g, w := got[0], want[0]
	for name, pair := range map[string][2]any{
		"rows":   {g.Count(), w.Count()},
		"values": {g.ValueCounts(), w.ValueCounts()},
		"nulls":  {g.NullValueCounts(), w.NullValueCounts()},
		"NaNs":   {g.NaNValueCounts(), w.NaNValueCounts()},
		"lower":  {g.LowerBoundValues(), w.LowerBoundValues()},
		"upper":  {g.UpperBoundValues(), w.UpperBoundValues()},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
}

// TestTakePromoted: values come as the wider type that the table has by now, and a column that the file does
// not have is null.
func TestTakePromoted(t *testing.T) {
	from := iceberg.NewSchema(0, req(1, "i", prim.Int32), opt(2, "f", prim.Float32), opt(3, "a", iceberg.DecimalTypeOf(9, 2)),
		opt(4, "b", iceberg.DecimalTypeOf(9, 2)), opt(5, "c", iceberg.DecimalTypeOf(18, 2)), opt(6, "d", iceberg.DecimalTypeOf(20, 2)), opt(7, "e", iceberg.DecimalTypeOf(9, 2)))
	to := iceberg.NewSchema(0, opt(1, "i", prim.Int64), opt(9, "none", prim.String), opt(2, "f", prim.Float64), req(3, "a", iceberg.DecimalTypeOf(18, 2)),
		opt(4, "b", iceberg.DecimalTypeOf(38, 2)), opt(5, "c", iceberg.DecimalTypeOf(30, 2)), opt(6, "d", iceberg.DecimalTypeOf(38, 2)), opt(7, "e", iceberg.DecimalTypeOf(9, 2)))
	rows := `[{"i":-2147483648,"f":1.5,"a":"-9999999.99","b":"-9999999.99","c":"9999999999999999.99","d":"-999999999999999999.99","e":"0.01"},
		{"i":2147483647,"f":null,"a":"9999999.99","b":null,"c":"-0.01","d":"999999999999999999.99","e":null},
		{"i":0,"f":-0.25,"a":"0","b":"0.01","c":null,"d":null,"e":"-9999999.99"}]`
	want := batchOf(t, memory.DefaultAllocator, to, rows)
	defer want.Release()
	for _, integers := range []bool{true, false} {
		rb := batchOf(t, memory.DefaultAllocator, from, rows)
		defer rb.Release()
		w := newWriter(t, config(t, to, nil))
		taken, err := takeAll(t, w, sourceOf(t, rb, 2, parquet.WithStoreDecimalAsInteger(integers)), []int{0, -2, 1, 2, 3, 4, 5, 6}, 3)
		if err != nil {
			t.Fatal(err)
		}
		got := readColumns(t, taken[0][0])
		for i, f := range want.Schema().Fields() {
			sameColumn(t, f.Name, got[f.Name], jsonValues(t, want.Column(i)))
		}
	}
}

// TestTakes: what is not the very same values, or might not fit, goes the ordinary way.
func TestTakes(t *testing.T) {
	for _, tt := range []struct {
		name string
		from iceberg.Type
		to   iceberg.NestedField
		rows string
		want bool
	}{
		{"same", prim.Int32, opt(1, "c", prim.Int32), `[{"c":1}]`, true},
		{"narrower", prim.Int64, opt(1, "c", prim.Int32), `[{"c":1}]`, false},
		{"another meaning", prim.Int32, opt(1, "c", prim.Date), `[{"c":1}]`, false},
		{"time zone", prim.Timestamp, opt(1, "c", prim.TimestampTz), `[{"c":"2024-01-01T00:00:00"}]`, false},
		{"date to timestamp", prim.Date, opt(1, "c", prim.Timestamp), `[{"c":"2024-01-01"}]`, false},
		{"text to bytes", prim.String, opt(1, "c", prim.Binary), `[{"c":"a"}]`, false},
		{"another scale", iceberg.DecimalTypeOf(9, 2), opt(1, "c", iceberg.DecimalTypeOf(9, 3)), `[{"c":"1.00"}]`, false},
		{"fewer digits", iceberg.DecimalTypeOf(9, 2), opt(1, "c", iceberg.DecimalTypeOf(8, 2)), `[{"c":"1.00"}]`, false},
		{"another length", iceberg.FixedTypeOf(3), opt(1, "c", iceberg.FixedTypeOf(4)), `[{"c":"AAEC"}]`, false},
		{"no nulls into required", prim.Int32, req(1, "c", prim.Int32), `[{"c":1}]`, true},
		{"a null into required", prim.Int32, req(1, "c", prim.Int32), `[{"c":1},{"c":null}]`, false},
		{"a list", &iceberg.ListType{ElementID: 2, Element: prim.Int32}, opt(1, "c", prim.Int32), `[{"c":[1]}]`, false},
	} {
		rb := batchOf(t, memory.DefaultAllocator, iceberg.NewSchema(0, opt(1, "c", tt.from)), tt.rows)
		source := sourceOf(t, rb, 10)
		rb.Release()
		part := &rows.Part{Path: source.Path, GroupRows: rb.NumRows(), To: rb.NumRows(), File: source, Leaves: []int{0}}
		schema := iceberg.NewSchema(0, tt.to)
		if got, _ := newWriter(t, config(t, schema, nil)).Takes(part); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		cfg := config(t, schema, nil)
		cfg.Spec = spec(by(1, 1000, "p", iceberg.IdentityTransform{}))
		if got, _ := newWriter(t, cfg).Takes(part); tt.want && got {
			t.Errorf("%s: taken into a partitioned table", tt.name)
		}
	}
	w := newWriter(t, config(t, iceberg.NewSchema(0, req(1, "c", prim.Int32)), nil))
	if got, _ := w.Takes(&rows.Part{File: opened(t, mustSource(t)), GroupRows: 1, To: 1, Leaves: []int{rows.Nulls}}); got {
		t.Error("nulls are taken into a required column")
	}
}

func mustSource(t *testing.T) []byte {
	t.Helper()
	rb := batchOf(t, memory.DefaultAllocator, iceberg.NewSchema(0, opt(1, "c", prim.Int32)), `[{"c":1}]`)
	defer rb.Release()
	var b bytes.Buffer
	w, err := pqarrow.NewFileWriter(rb.Schema(), &b, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rb); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTakeAndWrite: rows of parts and of record batches go into one file in their order.
func TestTakeAndWrite(t *testing.T) {
	rb := flatBatch(t, 90)
	defer rb.Release()
	source := sourceOf(t, rb, 90)
	w := newWriter(t, config(t, flat(), nil))
	middle := rb.NewSlice(30, 60)
	defer middle.Release()
	for _, from := range []int64{0, 30, 60} {
		var err error
		if from == 30 {
			err = w.Write(t.Context(), middle)
		} else {
			err = w.Take(t.Context(), &rows.Part{Path: source.Path, GroupRows: 90, From: from, To: from + 30, File: source, Leaves: leavesInOrder(16)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := w.Finish(t.Context())
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	got := readColumns(t, files[0])
	for i, f := range rb.Schema().Fields() {
		sameColumn(t, f.Name, got[f.Name], jsonValues(t, rb.Column(i)))
	}
}
