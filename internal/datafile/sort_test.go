package datafile

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

func sortOrder(t *testing.T, fields ...table.SortField) table.SortOrder {
	t.Helper()
	o, err := table.NewSortOrder(5, fields)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func asc(id int, tr iceberg.Transform) table.SortField {
	return table.SortField{SourceIDs: []int{id}, Transform: tr, Direction: table.SortASC, NullOrder: table.NullsFirst}
}

func desc(id int, tr iceberg.Transform) table.SortField {
	return table.SortField{SourceIDs: []int{id}, Transform: tr, Direction: table.SortDESC, NullOrder: table.NullsLast}
}

func TestSortedFiles(t *testing.T) {
	s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "s", prim.String), opt(3, "i", prim.Int32), opt(4, "d", iceberg.DecimalTypeOf(30, 1)), opt(5, "l", &iceberg.ListType{ElementID: 6, Element: prim.Int32}))
	rows := []string{
		`{"id":0,"s":"b","i":13,"d":"-1.0","l":[1]}`, `{"id":1,"s":null,"i":1,"d":"100000000000000000000.0","l":null}`, `{"id":2,"s":"a","i":null,"d":null,"l":[]}`,
		`{"id":3,"s":"b","i":-2,"d":"-200000000000000000000.0","l":[2,3]}`, `{"id":4,"s":"","i":11,"d":"0.5","l":[4]}`,
	}
	last := func(f table.SortField, n table.NullOrder) table.SortField { f.NullOrder = n; return f }
	id := iceberg.IdentityTransform{}
	for name, tc := range map[string]struct {
		order table.SortOrder
		want  string
	}{
		"text ascending":      {sortOrder(t, asc(2, id)), "1 4 2 0 3"},
		"text, nulls last":    {sortOrder(t, last(asc(2, id), table.NullsLast)), "4 2 0 3 1"},
		"text descending":     {sortOrder(t, desc(2, id)), "0 3 2 4 1"},
		"desc, nulls first":   {sortOrder(t, last(desc(2, id), table.NullsFirst)), "1 0 3 2 4"},
		"two fields":          {sortOrder(t, desc(2, id), asc(3, id)), "3 0 2 4 1"},
		"long decimals":       {sortOrder(t, asc(4, id)), "2 3 0 4 1"},
		"truncated, stable":   {sortOrder(t, asc(3, iceberg.TruncateTransform{Width: 10})), "2 3 1 0 4"},
		"bucket then int":     {sortOrder(t, asc(2, iceberg.BucketTransform{NumBuckets: 1}), asc(3, id)), "1 2 3 4 0"},
		"void orders nothing": {sortOrder(t, asc(2, iceberg.VoidTransform{})), "0 1 2 3 4"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			cfg := config(t, s, nil)
			cfg.SortOrder, cfg.Mem = tc.order, mem
			files := write(t, cfg, batchOf(t, mem, s, "["+strings.Join(rows[:2], ",")+"]"), batchOf(t, mem, s, "["+strings.Join(rows[2:], ",")+"]"))
			if got := texts(t, files[0], "id"); len(files) != 1 || got != tc.want {
				t.Errorf("%d files, order %s, want %s", len(files), got, tc.want)
			}
			if claimed := files[0].SortOrderID(); (claimed == nil) != strings.HasPrefix(name, "void") || claimed != nil && *claimed != 5 {
				t.Errorf("sort order ID %v", claimed)
			}
			lists := map[string]string{"0": "[1]", "1": "null", "2": "[]", "3": "[2,3]", "4": "[4]"}
			var want []string
			for _, r := range strings.Fields(tc.want) {
				want = append(want, lists[r])
			}
			if got := texts(t, files[0], "l"); got != strings.Join(want, " ") {
				t.Errorf("rows came apart: lists %s", got)
			}
		})
	}
}

func TestFloatsSortWithNaNLast(t *testing.T) {
	s := iceberg.NewSchema(0, opt(1, "f", prim.Float64))
	sc, err := table.SchemaToArrowSchema(s, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	b.Field(0).(*array.Float64Builder).AppendValues([]float64{math.NaN(), 1, math.Inf(-1), 0, math.Copysign(0, -1), math.Copysign(math.NaN(), -1), -1, math.Inf(1)}, nil)
	cfg := config(t, s, nil)
	cfg.SortOrder = sortOrder(t, asc(1, iceberg.IdentityTransform{}))
	got := texts(t, write(t, cfg, b.NewRecordBatch())[0], "f")
	if want := `"-Inf" -1 -0 0 1 "+Inf" "NaN" "NaN"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Each file of each gathering is sorted, and so claims it; partitions stay apart.
func TestSortWithinPartitions(t *testing.T) {
	s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "p", prim.String))
	cfg := config(t, s, nil)
	cfg.Spec = spec(by(2, 1000, "p", iceberg.IdentityTransform{}))
	cfg.SortOrder = sortOrder(t, desc(1, iceberg.IdentityTransform{}))
	var rows []string
	for i := range 9 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"p":"%c"}`, i, 'a'+i%2))
	}
	files := write(t, cfg, batchOf(t, memory.DefaultAllocator, s, "["+strings.Join(rows, ",")+"]"))
	got := ""
	for _, f := range files {
		got += fmt.Sprintf("%v %s %d; ", f.Partition()[1000], texts(t, f, "id"), *f.SortOrderID())
	}
	if want := "a 8 6 4 2 0 5; b 7 5 3 1 5; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
