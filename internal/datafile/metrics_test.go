package datafile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

func TestMetrics(t *testing.T) {
	s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "f", prim.Float64), opt(3, "s", prim.String), opt(4, "x.y", prim.String),
		opt(5, "a", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(6, "b", prim.Int32)}}), opt(7, "quiet", prim.Int32), opt(8, "d", iceberg.DecimalTypeOf(9, 2)),
		opt(9, "fs", &iceberg.ListType{ElementID: 10, Element: prim.Float32}))
	sc, err := table.SchemaToArrowSchema(s, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i, f := range []float64{math.NaN(), 2, -1, math.NaN()} {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Float64Builder).Append(f)
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("a text of more than sixteen letters %d", i))
		b.Field(3).(*array.StringBuilder).Append("dotted")
		b.Field(4).(*array.StructBuilder).AppendNull()
		b.Field(5).AppendNull()
		b.Field(6).AppendNull()
		lb := b.Field(7).(*array.ListBuilder)
		lb.Append(true)
		lb.ValueBuilder().(*array.Float32Builder).AppendValues([]float32{float32(f), 1}, nil)
	}
	files := write(t, config(t, s, iceberg.Properties{propMetricsCol + "quiet": "none", propMetricsCol + "x.y": "truncate(3)", propMetricsCol + "s": "counts", propMetricsCol + "id": "full"}), b.NewRecordBatch())
	df := files[0]
	want := func(name string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	want("NaN counts", df.NaNValueCounts(), map[int]int64{2: 2, 10: 2})
	want("value counts", slices.Sorted(maps.Keys(df.ValueCounts())), []int{1, 2, 3, 4, 6, 8, 10})
	want("null counts", df.NullValueCounts(), map[int]int64{1: 0, 2: 0, 3: 0, 4: 0, 6: 4, 8: 4, 10: 0})
	// Counts only for what is nested or asked for; no bounds where all is null.
	want("lower bounds", slices.Sorted(maps.Keys(df.LowerBoundValues())), []int{1, 2, 4})
	want("upper bound of x.y", string(df.UpperBoundValues()[4]), "dou")
	low, err := iceberg.LiteralFromBytes(prim.Float64, df.LowerBoundValues()[2])
	if err != nil {
		t.Fatal(err)
	}
	want("lower bound of f", low, "-1")
}

// A bound of a row group that the footer leaves out for its length must not make the file's bounds
// those of the other row groups.
func TestLongTextHasNoBounds(t *testing.T) {
	s := iceberg.NewSchema(0, opt(1, "s", prim.String), opt(2, "t", prim.String))
	long := strings.Repeat("z", 5000)
	for _, rows := range []string{
		fmt.Sprintf(`[{"s":"m","t":"x"},{"s":%q,"t":null}]`, long),
		fmt.Sprintf(`[{"s":%q,"t":"y"},{"s":"m","t":"x"}]`, long),
	} {
		files := write(t, config(t, s, iceberg.Properties{propRowGroupSize: "1", propMetrics: "full"}), batchOf(t, memory.DefaultAllocator, s, rows))
		if n := openParquet(t, files[0]).NumRowGroups(); n != 2 {
			t.Fatalf("%d row groups", n)
		}
		up := files[0].UpperBoundValues()
		if _, ok := up[1]; ok {
			t.Errorf("upper bound of s: %.10q…", up[1])
		}
		if got := string(up[2]); got != "x" && got != "y" {
			t.Errorf("upper bound of t: %q", got)
		}
	}
}

func TestWithFirstRowID(t *testing.T) {
	s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "p", prim.String))
	cfg := config(t, s, nil)
	cfg.Version, cfg.Spec = 3, spec(by(2, 1000, "p", iceberg.IdentityTransform{}))
	df := write(t, cfg, batchOf(t, memory.DefaultAllocator, s, `[{"id":1,"p":"a"}]`))[0]
	if df.FirstRowID() != nil {
		t.Errorf("first row ID %d from the start", *df.FirstRowID())
	}
	got, err := WithFirstRowID(df, s, cfg.Spec, 77)
	if err != nil {
		t.Fatal(err)
	}
	if *got.FirstRowID() != 77 || got.Count() != 1 || got.FileSizeBytes() != df.FileSizeBytes() || got.SpecID() != df.SpecID() ||
		fmt.Sprint(got.Partition(), got.LowerBoundValues(), got.NullValueCounts(), got.SplitOffsets(), got.ColumnSizes()) !=
			fmt.Sprint(df.Partition(), df.LowerBoundValues(), df.NullValueCounts(), df.SplitOffsets(), df.ColumnSizes()) {
		t.Errorf("%v became %v", df, got)
	}
	if back := manifest(t, cfg, []iceberg.DataFile{got})[0]; back.FirstRowID() == nil || *back.FirstRowID() != 77 {
		t.Errorf("manifest: %v", back.FirstRowID())
	}
	if _, err := WithFirstRowID(df, s, *iceberg.UnpartitionedSpec, 1); err == nil {
		t.Error("another spec is taken")
	}
}
