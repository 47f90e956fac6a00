package arrowipc_test

import (
	"bytes"
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

// A stream of the benchmarks is so many spans, each a record batch of so many rows and 12 columns.
const benchRows, benchSpans = 32768, 16

// benchStream returns a function that makes such a stream anew.
func benchStream(b *testing.B) func() rows.Stream {
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
	for r := range benchRows {
		for i := range 8 {
			rb.Field(i).(*array.Int64Builder).Append(int64(r * i))
		}
		for i := range 4 {
			rb.Field(8 + i).(*array.StringBuilder).Append(fmt.Sprintf("value %d", r%1000))
		}
	}
	batch := rb.NewRecordBatch()
	b.Cleanup(batch.Release)
	return func() rows.Stream {
		return rows.Stream{Schema: schema,
			Spans: func(yield func(rows.Span, error) bool) {
				for i := range int64(benchSpans) {
					batch.Retain()
					from, to := rows.Cursor{Row: i * benchRows}, rows.Cursor{Row: (i + 1) * benchRows}
					if !yield(rows.Span{From: from, To: to, Rows: benchRows, Batch: batch}, nil) {
						return
					}
				}
			},
			Seal: func() (rows.Seal, error) {
				return rows.Seal{Rows: benchSpans * benchRows, Last: rows.Cursor{Row: benchSpans * benchRows}}, nil
			}}
	}
}

// eachCompression runs a benchmark of a stream for each compression, and reports how fast its rows are.
func eachCompression(b *testing.B, run func(b *testing.B, compression string)) {
	for _, compression := range []string{"none", "lz4", "zstd"} {
		b.Run(compression, func(b *testing.B) {
			b.ReportAllocs()
			run(b, compression)
			b.ReportMetric(float64(b.N)*benchSpans*benchRows/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

func writeAll(b *testing.B, to io.Writer, in rows.Stream, compression string) {
	if _, err := arrowipc.Write(context.Background(), to, in, arrowipc.WithCompression(compression)); err != nil {
		b.Fatal(err)
	}
}

func readAll(b *testing.B, from io.Reader) {
	out, err := arrowipc.Read(from)
	if err != nil {
		b.Fatal(err)
	}
	for s, err := range out.Spans {
		if err != nil {
			b.Fatal(err)
		}
		s.Release()
	}
	if seal, err := out.Seal(); err != nil || seal.Rows != benchSpans*benchRows {
		b.Fatal(seal, err)
	}
}

// BenchmarkWrite writes a stream to nowhere.
func BenchmarkWrite(b *testing.B) {
	stream := benchStream(b)
	eachCompression(b, func(b *testing.B, compression string) {
		for b.Loop() {
			writeAll(b, io.Discard, stream(), compression)
		}
	})
}

// BenchmarkRead reads a stream from memory.
func BenchmarkRead(b *testing.B) {
	stream := benchStream(b)
	eachCompression(b, func(b *testing.B, compression string) {
		var text bytes.Buffer
		writeAll(b, &text, stream(), compression)
		for b.Loop() {
			readAll(b, bytes.NewReader(text.Bytes()))
		}
	})
}

// BenchmarkPipe sends a stream through a pipe.
func BenchmarkPipe(b *testing.B) {
	stream := benchStream(b)
	eachCompression(b, func(b *testing.B, compression string) {
		for b.Loop() {
			pr, pw := io.Pipe()
			done := make(chan error, 1)
			go func() {
				_, err := arrowipc.Write(context.Background(), pw, stream(), arrowipc.WithCompression(compression))
				pw.CloseWithError(err)
				done <- err
			}()
			readAll(b, pr)
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
	})
}
