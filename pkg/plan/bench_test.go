package plan

import (
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// BenchmarkCast is the cost of casts, a record batch of 64 Ki values at a time.
func BenchmarkCast(b *testing.B) {
	const n = 1 << 16
	longs := array.NewInt64Builder(memory.DefaultAllocator)
	doubles := array.NewFloat64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	stamps := array.NewTimestampBuilder(memory.DefaultAllocator, arrow.FixedWidthTypes.Timestamp_us.(*arrow.TimestampType))
	for i := range n {
		longs.Append(int64(i) * 7)
		doubles.Append(float64(i) / 4)
		texts.Append(strconv.FormatFloat(float64(i)/4, 'f', 2, 64))
		stamps.Append(arrow.Timestamp(int64(i) * 1_000_000_000))
	}
	l, d, s, t := longs.NewArray(), doubles.NewArray(), texts.NewArray(), stamps.NewArray()
	for _, c := range []struct {
		from, to string
		values   arrow.Array
	}{
		{"long", "int", l}, {"long", "decimal(18,2)", l}, {"long", "string", l}, {"double", "decimal(18,2)", d}, {"double", "string", d},
		{"string", "double", s}, {"string", "decimal(18,2)", s}, {"timestamptz", "date", t}, {"timestamptz", "timestamp", t}, {"timestamptz", "string", t},
	} {
		b.Run(c.from+" to "+c.to, func(b *testing.B) {
			field := func(t string) *iceberg.Schema {
				return iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "c", Type: must(parseType(t))})
			}
			p := must(Build(field(c.from), field(c.to), 3, Options{AssumeTimezone: "Europe/Berlin"}))
			values := c.values
			sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: values.DataType(), Nullable: true}}, nil)
			proj := must(p.Projector(sc, memory.DefaultAllocator))
			rec := array.NewRecordBatch(sc, []arrow.Array{values}, n)
			for b.Loop() {
				must(proj.Project(rec)).Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}
