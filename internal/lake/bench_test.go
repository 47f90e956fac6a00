package lake

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"icepipe/internal/datafile"
	"icepipe/pkg/rows"
)

// BenchmarkFilter scans rows like those of the benchmark's orders without a filter, decoded, and with one
// that half of them pass at random.
func BenchmarkFilter(b *testing.B) {
	schema := schemaOf(opt(1, "id", prim.Int64), opt(2, "x", prim.Float64), opt(3, "name", prim.String), opt(4, "city", prim.String),
		opt(5, "day", prim.Date), opt(6, "ts", prim.TimestampTz), opt(7, "n", prim.Int32), opt(8, "ok", prim.Bool),
		opt(9, "price", iceberg.DecimalTypeOf(12, 2)), opt(10, "y", prim.Float64), opt(11, "note", prim.String), opt(12, "m", prim.Int64))
	tbl := newTable(b, schema, unpartitioned())
	config, err := tbl.FileConfig(b.Context(), datafile.Resources{Jobs: 1})
	if err != nil {
		b.Fatal(err)
	}
	w, err := datafile.NewWriter(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	const total, each = 200_000, 20_000
	for from := 0; from < total; from += each {
		var text strings.Builder
		for i := from; i < from+each; i++ {
			fmt.Fprintf(&text, `{"id":%d,"x":%v,"name":"customer %d","city":"city %d","day":"2024-01-%02d","ts":"2024-01-01T00:%02d:%02dZ","n":%d,"ok":%t,"price":"%d.%02d","y":%v,"note":"note %x","m":%d},`,
				i, r.Float64(), r.IntN(100_000), r.IntN(100), 1+r.IntN(28), r.IntN(60), r.IntN(60), r.IntN(1000), r.IntN(2) == 0, r.IntN(1000), r.IntN(100), r.Float64(), r.Uint64(), r.Int64())
		}
		batch := record(b, memory.DefaultAllocator, arrowOf(b, schema, true), "["+strings.TrimSuffix(text.String(), ",")+"]")
		if err := w.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		batch.Release()
	}
	files, err := w.Finish(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := tbl.Append(b.Context(), Commit{Branch: "main", Mark: markOf(0), Files: files}); err != nil {
		b.Fatal(err)
	}
	tbl = load(b, tbl)
	for _, text := range []string{"", "x < 0.5", "x < 2", "x < 0.5 AND city != 'city 7' OR id IN (1, 2, 3)", "x > 2"} {
		b.Run(map[bool]string{true: "none"}[text == ""]+text, func(b *testing.B) {
			o := ScanOptions{BatchRows: total}
			if text != "" {
				o.Filter = condition(b, text)
			}
			b.ReportAllocs()
			n, before := 0, processorTime(b)
			for b.Loop() {
				n++
				s, err := tbl.PlanScan(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				for span, err := range rows.Opened(b.Context(), s.Stream(b.Context())).Spans {
					if err != nil {
						b.Fatal(err)
					}
					span.Release()
				}
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(n)/1e6, "cpu-ms/op")
		})
	}
}

// BenchmarkPlan plans a scan of 200 files of a few rows each: their manifests are read and their footers.
func BenchmarkPlan(b *testing.B) {
	tbl := newTable(b, idAndText(), unpartitioned())
	for n := range int64(2) {
		var files []iceberg.DataFile
		for i := range int64(100) {
			files = append(files, written(b, tbl, fmt.Sprintf(`[{"id":%d,"p":"x"},{"id":%d,"p":null}]`, n*100+i, i))...)
		}
		if _, err := tbl.Append(b.Context(), Commit{Branch: "main", Mark: markOf(n), Files: files}); err != nil {
			b.Fatal(err)
		}
		tbl = load(b, tbl)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := tbl.PlanScan(b.Context(), ScanOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if e := s.Header().Expected; e.Files != 200 || e.Rows != 400 {
			b.Fatalf("%+v", e)
		}
	}
}

// BenchmarkCommits commits one file after another on a table of its own: what grows with the history
// that the table keeps. The data file is not written.
func BenchmarkCommits(b *testing.B) {
	for _, commits := range []int64{50, 200} {
		b.Run(fmt.Sprint(commits), func(b *testing.B) {
			for b.Loop() {
				tbl := newTable(b, idAndText(), unpartitioned())
				var since *int64
				for n := range commits {
					f := fileAt(b, tbl, iceberg.EntryContentData, fmt.Sprintf("%s/data/%d.parquet", tbl.Location(), n), 1).Build()
					c, err := tbl.Append(b.Context(), Commit{Branch: "main", Mark: markOf(n), Files: []iceberg.DataFile{f}, Since: since})
					if err != nil {
						b.Fatal(err)
					}
					since = &c.Snapshot
				}
			}
		})
	}
}

// processorTime is what the process used so far, in nanoseconds: unlike the time on the clock it does not
// grow with what else the machine does.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
