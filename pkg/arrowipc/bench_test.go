package arrowipc_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/arrowipc"
	"icepipe/pkg/rows"
)

// BenchmarkPipe sends record batches of 32768 rows and 12 columns through a pipe.
func BenchmarkPipe(b *testing.B) {
	const n, spans = 32768, 16
	var fields []arrow.Field
	for i := range 8 {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("i%d", i), Type: arrow.PrimitiveTypes.Int64})
	}
	for i := range 4 {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("s%d", i), Type: arrow.BinaryTypes.String, Nullable: true})
	}
	schema := arrow.NewSchema(fields, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer rb.Release()
	for r := range n {
		for i := range 8 {
			rb.Field(i).(*array.Int64Builder).Append(int64(r * i))
		}
		for i := range 4 {
			rb.Field(8 + i).(*array.StringBuilder).Append(fmt.Sprintf("value %d", r%1000))
		}
	}
	batch := rb.NewRecordBatch()
	defer batch.Release()
	for _, compression := range []string{"none", "lz4", "zstd"} {
		b.Run(compression, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				in := rows.Stream{Schema: schema,
					Spans: func(yield func(rows.Span, error) bool) {
						for i := range int64(spans) {
							batch.Retain()
							if !yield(rows.Span{From: rows.Cursor{Row: i * n}, To: rows.Cursor{Row: i*n + n}, Rows: n, Batch: batch}, nil) {
								return
							}
						}
					},
					Seal: func() (rows.Seal, error) {
						return rows.Seal{Rows: spans * n, Last: rows.Cursor{Row: spans * n}}, nil
					}}
				pr, pw := io.Pipe()
				done := make(chan error, 1)
				go func() {
					_, err := arrowipc.Write(context.Background(), pw, in, arrowipc.WithCompression(compression))
					pw.CloseWithError(err)
					done <- err
				}()
				out, err := arrowipc.Read(pr)
				if err != nil {
					b.Fatal(err)
				}
				for s, err := range out.Spans {
					if err != nil {
						b.Fatal(err)
					}
					s.Release()
				}
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*spans*n/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
