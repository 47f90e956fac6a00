package datafile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"icepipe/pkg/rows"
)

// Chunks with large dictionaries, whole ones and such that go on without, are read as they were written, each row
// once: the row that asks for the last value is none of them.
func TestLargeDictionaries(t *testing.T) {
	const n, distinct = 20_000, 3000
	r := rand.New(rand.NewPCG(3, 4))
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "required", Type: arrow.PrimitiveTypes.Int64}, {Name: "optional", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "double", Type: arrow.PrimitiveTypes.Float64},
		{Name: "small", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "edge", Type: arrow.PrimitiveTypes.Int32},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	want := make([][]string, schema.NumFields())
	for i := range n {
		for c, f := range schema.Fields() {
			v := r.IntN(distinct)
			if f.Nullable && r.IntN(5) == 0 {
				b.Field(c).AppendNull()
				want[c] = append(want[c], "null")
				continue
			}
			switch to := b.Field(c).(type) {
			case *array.Int64Builder:
				to.Append(int64(v) << 32)
				want[c] = append(want[c], fmt.Sprint(int64(v)<<32))
			case *array.StringBuilder:
				to.Append(fmt.Sprint("value ", v))
				want[c] = append(want[c], fmt.Sprint("value ", v))
			case *array.Float64Builder:
				to.Append(float64(v) / 2)
				want[c] = append(want[c], fmt.Sprint(float64(v)/2))
			case *array.Int32Builder:
				if v %= 10; f.Name == "edge" {
					v = i % largeDictionary
				}
				to.Append(int32(v))
				want[c] = append(want[c], fmt.Sprint(v))
			}
		}
	}
	rb := b.NewRecordBatch()
	defer rb.Release()
	for name, props := range map[string][]parquet.WriterProperty{
		"pages of version 1":    {parquet.WithDataPageSize(4 << 10)},
		"pages of version 2":    {parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithDataPageSize(4 << 10)},
		"not to the end":        {parquet.WithDictionaryPageSizeLimit(16 << 10), parquet.WithBatchSize(500), parquet.WithDataPageSize(4 << 10)},
		"without a dictionary":  {parquet.WithDictionaryDefault(false)},
		"of several row groups": {parquet.WithDataPageSize(4 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			group := int64(n)
			if name == "of several row groups" {
				group = 7000
			}
			s := sourceOf(t, rb, group, props...)
			larges := 0
			for c := range want {
				var got []string
				for g := range s.Reader.NumRowGroups() {
					total := s.Reader.MetaData().RowGroup(g).NumRows()
					l := newLeafReader(&rows.Part{Ordinal: g, GroupRows: total, To: total, File: s}, c, asIs, decimalBound{})
					for from := int64(0); from < total; from += 3000 {
						if err := l.take(from, min(3000, total-from), new(decoded), func(d *decoded) error { got = append(got, rowsAsText(d)...); return nil }); err != nil {
							t.Fatal(err)
						}
					}
					pages, err := s.Reader.RowGroup(g).GetColumnPageReader(c)
					if err != nil {
						t.Fatal(err)
					}
					if pages.Next() {
						if d, ok := pages.Page().(*file.DictionaryPage); ok && d.NumValues() >= largeDictionary {
							larges++
						}
					}
				}
				if len(got) != n {
					t.Fatalf("column %s: %d rows", schema.Field(c).Name, len(got))
				}
				for i := range got {
					if got[i] != want[c][i] {
						t.Fatalf("column %s, row %d: %s, want %s", schema.Field(c).Name, i, got[i], want[c][i])
					}
				}
			}
			if (larges > 0) != (name != "without a dictionary") {
				t.Errorf("%d dictionaries are large", larges)
			}
		})
	}
}

// rowsAsText are the rows of a run.
func rowsAsText(d *decoded) (out []string) {
	at := 0
	for i := range d.rows {
		if d.def != nil && d.def[i] == 0 {
			out = append(out, "null")
			continue
		}
		switch d.kind {
		case parquet.Types.Int64:
			out = append(out, fmt.Sprint(d.i64[at]))
		case parquet.Types.Int32:
			out = append(out, fmt.Sprint(d.i32[at]))
		case parquet.Types.Double:
			out = append(out, fmt.Sprint(d.f64[at]))
		case parquet.Types.ByteArray:
			out = append(out, string(d.bytes[at]))
		}
		at++
	}
	return out
}
