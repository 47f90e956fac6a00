package filter

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// BenchmarkMask asks filters about a record batch of 64 Ki rows.
func BenchmarkMask(b *testing.B) {
	const n = 1 << 16
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: p.Int64}, iceberg.NestedField{ID: 2, Name: "x", Type: p.Float64},
		iceberg.NestedField{ID: 3, Name: "city", Type: p.String}, iceberg.NestedField{ID: 4, Name: "at", Type: p.Timestamp})
	sc, err := table.SchemaToArrowSchema(schema, nil, true, false)
	if err != nil {
		b.Fatal(err)
	}
	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer rb.Release()
	for i := range n {
		scattered := uint64(i) * 0x9e3779b97f4a7c15 >> 40
		rb.Field(0).(*array.Int64Builder).Append(int64(scattered % 1000))
		if i%20 == 0 {
			rb.Field(1).AppendNull()
		} else {
			rb.Field(1).(*array.Float64Builder).Append(float64(scattered % 100))
		}
		rb.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("city %d", scattered%50))
		rb.Field(3).(*array.TimestampBuilder).Append(arrow.Timestamp(int64(i) * 1_000_000))
	}
	batch := rb.NewRecordBatch()
	defer batch.Release()
	for _, text := range []string{
		"id < 900", "x >= 10", "x IS NULL", "city LIKE 'city 1%'", "id IN (1, 5, 25, 125, 625)", "at < '1970-01-01T10:00:00'",
		"id < 900 AND NOT (x < 50 OR city = 'city 7')",
	} {
		b.Run(text, func(b *testing.B) {
			e, err := Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			bound, err := e.Bind(schema)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bound.Mask(batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
