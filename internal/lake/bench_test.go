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
