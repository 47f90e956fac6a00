package datafile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/rows"
)

// maskOf has the rows of n that keep has, the first of which is row first; nil: all.
func maskOf(first, n int64, keep func(row int64) bool) rows.Mask {
	if keep == nil {
		return nil
	}
	m := rows.NewMask(n)
	for i := range n {
		m.Set(i, keep(first+i))
	}
	return m
}

// TestTakeMasked: of the rows of a file those are taken that a mask has, wherever pages, row groups and batches
// end, and they are described as those alone.
func TestTakeMasked(t *testing.T) {
	const n = 240
	rb := flatBatch(t, n)
	defer rb.Release()
	random := rand.New(rand.NewPCG(1, 2))
	odds := make([]bool, n)
	for i := range odds {
		odds[i] = random.IntN(4) > 0
	}
	for name, keep := range map[string]func(i int64) bool{
		"none":                    func(int64) bool { return false },
		"all":                     func(int64) bool { return true },
		"every third":             func(i int64) bool { return i%3 == 1 },
		"but every third":         func(i int64) bool { return i%3 != 1 },
		"random":                  func(i int64) bool { return odds[i] },
		"runs":                    func(i int64) bool { return i/25%2 == 0 },
		"the first":               func(i int64) bool { return i == 0 },
		"the last":                func(i int64) bool { return i == n-1 },
		"first and last of a run": func(i int64) bool { return i == 31 || i == 98 },
	} {
		for _, props := range [][]parquet.WriterProperty{nil, {parquet.WithDataPageSize(200), parquet.WithBatchSize(17), parquet.WithStoreDecimalAsInteger(true)}} {
			for _, cut := range []struct{ group, batch int64 }{{n, n}, {100, 70}, {30, 40}} {
				t.Run(fmt.Sprintf("%s, groups of %d, batches of %d", name, cut.group, cut.batch), func(t *testing.T) {
					cfg := config(t, flat(), iceberg.Properties{propMetrics: "full"})
					taken, err := takeMasked(t, newWriter(t, cfg), sourceOf(t, rb, cut.group, props...), leavesInOrder(16), cut.batch, keep)
					if err != nil {
						t.Fatal(err)
					}
					var parts []arrow.RecordBatch
					for i := range int64(n) {
						if keep(i) {
							parts = append(parts, rb.NewSlice(i, i+1))
						}
					}
					want := map[string][]json.RawMessage{}
					for i, f := range rb.Schema().Fields() {
						for _, p := range parts {
							want[f.Name] = append(want[f.Name], jsonValues(t, p.Column(i))...)
						}
					}
					got := map[string][]json.RawMessage{}
					at := int64(0)
					for _, files := range taken {
						if len(files) != 1 {
							t.Fatalf("%d files", len(files))
						}
						for c, vals := range readColumns(t, files[0]) {
							got[c] = append(got[c], vals...)
						}
						sameMetrics(t, files, write(t, cfg, parts[at:at+files[0].Count()]...))
						at += files[0].Count()
					}
					if at != int64(len(parts)) {
						t.Errorf("%d rows, want %d", at, len(parts))
					}
					for c := range want {
						sameColumn(t, c, got[c], want[c])
					}
				})
			}
		}
	}
}

// Buffers that were made for fewer values have room for more: what a mask leaves out is left out of all of them.
func TestKeepInGrownBuffers(t *testing.T) {
	d := decoded{kind: parquet.Types.Int32}
	for _, n := range []int{16, 17, 30, 5, 34} {
		values := grow(&d.i32, n)
		for i := range values {
			values[i] = int32(i)
		}
		d.rows, d.values, d.def = n, n, nil
		if !d.keep(maskOf(0, int64(n), func(row int64) bool { return row%2 == 1 }), 0) || d.values != n/2 {
			t.Fatalf("of %d rows %d are left", n, d.values)
		}
		for i, v := range d.i32[:d.values] {
			if v != int32(2*i+1) {
				t.Errorf("of %d rows value %d is %d", n, i, v)
			}
		}
	}
}
