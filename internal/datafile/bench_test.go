package datafile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/localdisk"
)

// ordersSchema is the table of the benchmark: sales.orders, 12 columns.
func ordersSchema() *iceberg.Schema {
	f := func(id int, name string, t iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: t, Required: id == 1}
	}
	p := iceberg.PrimitiveTypes
	return iceberg.NewSchema(0,
		f(1, "order_id", p.Int64), f(2, "customer_id", p.Int64), f(3, "total_amount", p.Float64), f(4, "quantity", p.Int64),
		f(5, "price", iceberg.DecimalTypeOf(14, 2)), f(6, "region", p.String), f(7, "note", p.String), f(8, "created", p.Timestamp),
		f(9, "updated", p.TimestampTz), f(10, "day", p.Date), f(11, "paid", p.Bool), f(12, "sku", p.String))
}

// ordersBatch makes rows like those of the benchmark: some columns with few values, some with many,
// a text that compresses badly, a few nulls.
func ordersBatch(rows int, first int64) arrow.RecordBatch {
	sc, err := table.SchemaToArrowSchema(ordersSchema(), nil, true, false)
	if err != nil {
		panic(err)
	}
	r := rand.New(rand.NewPCG(1, uint64(first)))
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	regions := []string{"north", "south", "east", "west", "centre"}
	words := []string{"please", "leave", "at", "the", "door", "ring", "twice", "fragile", "gift", "call", "before", "after", "noon"}
	for i := range rows {
		id := first + int64(i)
		b.Field(0).(*array.Int64Builder).Append(id)
		b.Field(1).(*array.Int64Builder).Append(r.Int64N(200000))
		b.Field(2).(*array.Float64Builder).Append(float64(r.IntN(1000000)) / 100)
		b.Field(3).(*array.Int64Builder).Append(r.Int64N(20))
		b.Field(4).(*array.Decimal128Builder).Append(decimal128.FromI64(r.Int64N(100000)))
		b.Field(5).(*array.StringBuilder).Append(regions[r.IntN(len(regions))])
		if r.IntN(10) < 3 {
			b.Field(6).AppendNull()
		} else {
			b.Field(6).(*array.StringBuilder).Append(words[r.IntN(13)] + " " + words[r.IntN(13)] + " " + words[r.IntN(13)] + fmt.Sprint(r.IntN(1000)))
		}
		at := arrow.Timestamp(1700000000000000 + id*1000000 + r.Int64N(1000000))
		b.Field(7).(*array.TimestampBuilder).Append(at)
		b.Field(8).(*array.TimestampBuilder).Append(at + arrow.Timestamp(r.Int64N(86400000000)))
		b.Field(9).(*array.Date32Builder).Append(arrow.Date32(19600 + id/86400))
		b.Field(10).(*array.BooleanBuilder).Append(r.IntN(4) > 0)
		b.Field(11).(*array.StringBuilder).Append(fmt.Sprintf("SKU-%06d", r.IntN(50000)))
	}
	return b.NewRecordBatch()
}

// BenchmarkWriter measures encoding and writing alone, zstd level 1, in batches of 50,000 and 1M rows.
func BenchmarkWriter(b *testing.B) {
	const piece = 50000
	var source []arrow.RecordBatch
	for i := range 20 {
		source = append(source, ordersBatch(piece, int64(i*piece)))
	}
	for _, bc := range []struct {
		name   string
		perRun int // record batches of a batch
		spec   iceberg.PartitionSpec
	}{
		{"50k", 1, *iceberg.UnpartitionedSpec},
		{"1M", 20, *iceberg.UnpartitionedSpec},
		{"1M/region", 20, iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{6}, FieldID: 1000, Name: "region", Transform: iceberg.IdentityTransform{}})},
	} {
		b.Run(bc.name, func(b *testing.B) {
			dir := b.TempDir()
			w, err := NewWriter(context.Background(), Config{
				Schema: ordersSchema(), Spec: bc.spec, Version: 2, Location: dir,
				Properties: iceberg.Properties{propLevel: "1"},
			})
			if err != nil {
				b.Fatal(err)
			}
			rows, bytes := 0, int64(0)
			cpu := cpuSeconds()
			start := time.Now()
			for b.Loop() {
				for at := 0; at < len(source); at += bc.perRun {
					for _, rb := range source[at : at+bc.perRun] {
						if err := w.Write(context.Background(), rb); err != nil {
							b.Fatal(err)
						}
						rows += piece
					}
					for _, f := range written(b, w) {
						bytes += f.FileSizeBytes()
					}
				}
			}
			secs := time.Since(start).Seconds()
			b.ReportMetric(float64(rows)/secs/1e6, "Mrows/s")
			b.ReportMetric((cpuSeconds()-cpu)/float64(rows)*1e6, "cpu-s/Mrows")
			b.ReportMetric(float64(bytes)/float64(rows), "B/row")
			var ms runtime.MemStats
			runtime.ReadMemStats(&ms)
			b.ReportMetric(float64(ms.Sys)/(1<<20), "sys-MB")
		})
	}
}

// ordersSource is a file of 200,000 rows like those of the benchmark, in two row groups, zstd level 1.
func ordersSource(b *testing.B) *Source {
	rb := ordersBatch(200_000, 0)
	defer rb.Release()
	return localSource(b, rb, 100_000, parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(1))
}

// BenchmarkDecode reads the leaves of a source file, of which nothing becomes of the values, and of a mask that
// has nine rows of ten those that it has.
func BenchmarkDecode(b *testing.B) {
	source := ordersSource(b)
	for _, bc := range []struct {
		name string
		keep func(i int64) bool
	}{{"all", nil}, {"masked", nineOfTen}} {
		b.Run(bc.name, func(b *testing.B) {
			kept, n := int64(0), 0
			cpu := cpuSeconds()
			for b.Loop() {
				n++
				for g := range source.Reader.NumRowGroups() {
					part := partOf(source, ordersSchema(), g)
					part.Mask = maskOf(0, part.GroupRows, bc.keep)
					for leaf, f := range ordersSchema().Fields() {
						typ := f.Type.(iceberg.PrimitiveType)
						to, ok := convertible(source.Reader.MetaData().Schema.Column(leaf), typ)
						if !ok {
							b.Fatalf("column %s is not taken", f.Name)
						}
						var most decimalBound
						if d, ok := typ.(iceberg.DecimalType); ok {
							most = boundOf(d.Precision(), d.Scale())
						}
						r := newLeafReader(part, leaf, to, most)
						err := r.take(0, part.GroupRows, new(decoded), func(d *decoded) error { kept += int64(d.rows); return nil })
						r.close()
						if err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			b.ReportMetric(float64(kept)/float64(n)/12, "rows/op")
			b.ReportMetric((cpuSeconds()-cpu)/float64(n)*1e3, "cpu-ms/op")
		})
	}
}

// BenchmarkTake writes the rows of a source file into another: all of them encoded anew, those of a mask, and
// whole row groups that are copied.
func BenchmarkTake(b *testing.B) {
	source := ordersSource(b)
	for _, bc := range []struct {
		name string
		copy CopyMode
		keep func(i int64) bool
	}{{"all", CopyNever, nil}, {"masked", CopyNever, nineOfTen}, {"copied", CopyRequire, nil}} {
		b.Run(bc.name, func(b *testing.B) {
			w, err := NewWriter(b.Context(), Config{
				Schema: ordersSchema(), Spec: *iceberg.UnpartitionedSpec, Version: 2, Location: b.TempDir(),
				Properties: iceberg.Properties{propLevel: "1"}, Copy: Copy{Mode: bc.copy},
			})
			if err != nil {
				b.Fatal(err)
			}
			kept, n := int64(0), 0
			cpu := cpuSeconds()
			for b.Loop() {
				n++
				for g := range source.Reader.NumRowGroups() {
					part := partOf(source, ordersSchema(), g)
					part.Mask = maskOf(0, part.GroupRows, bc.keep)
					if err := w.Take(b.Context(), part); err != nil {
						b.Fatal(err)
					}
				}
				for _, f := range written(b, w) {
					kept += f.Count()
				}
			}
			b.ReportMetric(float64(kept)/float64(n), "rows/op")
			b.ReportMetric((cpuSeconds()-cpu)/float64(n)*1e3, "cpu-ms/op")
		})
	}
}

// nineOfTen are nine rows of ten, scattered.
func nineOfTen(i int64) bool { return uint64(i)*0x9e3779b97f4a7c15>>32%10 != 0 }

// written finishes a batch, and removes its files.
func written(b *testing.B, w *Writer) []iceberg.DataFile {
	files, err := w.Finish(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		path, _ := localdisk.Path(f.FilePath())
		os.Remove(path)
	}
	return files
}

func cpuSeconds() float64 {
	var r syscall.Rusage
	if syscall.Getrusage(0, &r) != nil {
		return 0
	}
	s := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return s(r.Utime) + s(r.Stime)
}
