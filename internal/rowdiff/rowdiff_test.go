package rowdiff

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"icepipe/internal/rowform"
)

var fields = []iceberg.NestedField{
	{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
	{ID: 2, Name: "text", Type: iceberg.PrimitiveTypes.String},
	{ID: 3, Name: "x", Type: iceberg.PrimitiveTypes.Float64},
}

// a row of the tests: the text is null when it is empty.
type row struct {
	id   int64
	text string
	x    float64
}

// side yields rows in record batches of some rows each.
func side(mem memory.Allocator, rows []row, size int) Side {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "x", Type: arrow.PrimitiveTypes.Float64}}, nil)
	return func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			for part := range slices.Chunk(rows, size) {
				if err := ctx.Err(); err != nil {
					yield(nil, err)
					return
				}
				b := array.NewRecordBuilder(mem, schema)
				for _, r := range part {
					b.Field(0).(*array.Int64Builder).Append(r.id)
					if r.text == "" {
						b.Field(1).AppendNull()
					} else {
						b.Field(1).(*array.StringBuilder).Append(r.text)
					}
					b.Field(2).(*array.Float64Builder).Append(r.x)
				}
				rb := b.NewRecordBatch()
				b.Release()
				if !yield(rb, nil) {
					return
				}
			}
		}
	}
}

func form(t *testing.T) *rowform.Form {
	t.Helper()
	f, err := rowform.New(fields)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// told is what a comparison tells, as text and sorted.
func told(t *testing.T, d Diff, a, b []row) ([]string, Totals) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	text := func(row []byte) string {
		if row == nil {
			return "-"
		}
		cells, err := d.Form.Cells(row)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for i, c := range cells {
			s, err := rowform.JSON(c, fields[i].Type)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		return strings.Join(out, " ")
	}
	var out []string
	totals, err := d.Run(t.Context(), side(mem, a, 7), side(mem, b, 5), func(x Difference) error {
		out = append(out, fmt.Sprintf("%s %d: %s | %s %v", x.Kind, x.Count, text(x.Source), text(x.Dest), x.Columns))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if totals.SourceRows != int64(len(a)) || totals.DestRows != int64(len(b)) {
		t.Errorf("counted %d and %d rows, want %d and %d", totals.SourceRows, totals.DestRows, len(a), len(b))
	}
	slices.Sort(out)
	return out, totals
}

func TestDifferences(t *testing.T) {
	base := []row{{1, "a", 0.5}, {2, "", 1}, {3, "c", 2}, {3, "c", 2}}
	with := func(change func([]row) []row) []row { return change(slices.Clone(base)) }
	for _, tt := range []struct {
		name  string
		keys  []int
		loose map[int]float64
		dest  []row
		want  []string
	}{
		{"same, in another order", nil, nil, []row{{3, "c", 2}, {1, "a", 0.5}, {3, "c", 2}, {2, "", 1}}, nil},
		{"one more", nil, nil, with(func(r []row) []row { return append(r, row{4, "d", 1}) }), []string{`extra 1: - | 4 "d" 1 []`}},
		{"one doubled, another dropped", nil, nil, with(func(r []row) []row { r[1] = r[0]; return r }), []string{`extra 1: - | 1 "a" 0.5 []`, `missing 1: 2 null 1 | - []`}},
		{"three of two", nil, nil, with(func(r []row) []row { return append(r, r[3], r[3]) }), []string{`extra 2: - | 3 "c" 2 []`}},
		{"changed, without a key", nil, nil, with(func(r []row) []row { r[0].text = "b"; return r }), []string{`extra 1: - | 1 "b" 0.5 []`, `missing 1: 1 "a" 0.5 | - []`}},
		{"changed, with a key", []int{0}, nil, with(func(r []row) []row { r[0].text = "b"; return r }), []string{`changed 1: 1 "a" 0.5 | 1 "b" 0.5 [1]`}},
		{"null for a text", []int{0}, nil, with(func(r []row) []row { r[1].text = "null"; return r }), []string{`changed 1: 2 null 1 | 2 "null" 1 [1]`}},
		{"one of two of a key changed", []int{0}, nil, with(func(r []row) []row { r[2].x = 3; return r }), []string{`changed 1: 3 "c" 2 | 3 "c" 3 [2]`}},
		{"minus zero", []int{0}, nil, with(func(r []row) []row { r[1].x = -1; return r }), []string{`changed 1: 2 null 1 | 2 null -1 [2]`}},
		{"near enough", []int{0}, map[int]float64{2: 0.1}, with(func(r []row) []row { r[0].x += 0.05; return r }), nil},
		{"not near enough", []int{0}, map[int]float64{2: 0.1}, with(func(r []row) []row { r[0].x += 0.25; return r }), []string{`changed 1: 1 "a" 0.5 | 1 "a" 0.75 [2]`}},
		{"near, but another text", []int{0}, map[int]float64{2: 0.1}, with(func(r []row) []row { r[0] = row{1, "z", 0.55}; return r }), []string{`changed 1: 1 "a" 0.5 | 1 "z" 0.55 [1]`}},
		{"nothing there", []int{0}, nil, nil, []string{`missing 1: 1 "a" 0.5 | - []`, `missing 1: 2 null 1 | - []`, `missing 2: 3 "c" 2 | - []`}},
	} {
		got, totals := told(t, Diff{Form: form(t), Keys: tt.keys, Tolerance: tt.loose}, base, tt.dest)
		if !slices.Equal(got, tt.want) || totals.Agree() != (len(tt.want) == 0) {
			t.Errorf("%s: %q, %+v; want %q", tt.name, got, totals, tt.want)
		}
	}
	_, err := (&Diff{Form: form(t), Tolerance: map[int]float64{2: 1}}).Run(t.Context(), nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "needs keys") {
		t.Errorf("a tolerance without keys: %v", err)
	}
}

// TestSharedKey: as many rows of one key as there are differ in no time, whatever their values.
func TestSharedKey(t *testing.T) {
	const n = 20000
	var a, b, c []row
	for i := range int64(n) {
		a = append(a, row{7, fmt.Sprint(i), 1})
		b = append(b, row{7, fmt.Sprint((i*7919 + 1) % (n + 1)), 1}) // all but one of a's, and another one
		c = append(c, row{7, fmt.Sprint(i), 2})
	}
	d := Diff{Form: form(t), Keys: []int{0}}
	got, _ := told(t, d, a, b)
	if len(got) != 1 || !strings.HasPrefix(got[0], "changed 1:") {
		t.Errorf("%d differences, want one row that changed: %.5q", len(got), got)
	}
	if got, totals := told(t, d, a, c); len(got) != n || totals.Changed != n {
		t.Errorf("%d differences, %+v; want all changed", len(got), totals)
	}
	d.Tolerance = map[int]float64{2: 1}
	if got, totals := told(t, d, a, c); !totals.Agree() {
		t.Errorf("%d differences %+v within a tolerance", len(got), totals)
	}
}

// TestTolerance: of rows of one key as many are paired as can be, which trying all ways finds out.
func TestTolerance(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	d := Diff{Form: form(t), Keys: []int{0}, Tolerance: map[int]float64{2: 1}}
	for _, tt := range []struct {
		a, b    []float64
		most    float64
		differs int64
	}{
		{[]float64{1, 2}, []float64{2, 3}, 1, 0}, // 2 is not for 2
		{[]float64{-2, -1}, []float64{-3, -2}, 1, 0},
		{[]float64{nan, inf, -inf, 1}, []float64{-inf, 1.5, nan, inf}, 1, 0},
		{[]float64{nan, inf, 1}, []float64{1, -inf, 1}, inf, 2},
		{[]float64{0, 1}, []float64{math.Copysign(0, -1), 1}, 0, 0},
		{[]float64{1, 1, 1}, []float64{1, 1}, 1, 1},
	} {
		d.Tolerance[2] = tt.most
		if got, totals := told(t, d, ofKey(tt.a), ofKey(tt.b)); totals.Changed+totals.Missing+totals.Extra != tt.differs {
			t.Errorf("%v and %v by %g: %q", tt.a, tt.b, tt.most, got)
		}
	}
	d.Tolerance[2] = 1
	rnd := rand.New(rand.NewPCG(9, 1))
	for range 60 {
		var a, b []float64
		for range 1 + rnd.IntN(5) {
			a, b = append(a, float64(rnd.IntN(16)-8)/2), append(b, float64(rnd.IntN(16)-8)/2)
		}
		if got, totals := told(t, d, ofKey(a), ofKey(b)); int(totals.Changed) != len(a)-pairs(a, b) {
			t.Errorf("%v and %v: %q; want %d pairs", a, b, got, pairs(a, b))
		}
	}
}

func ofKey(x []float64) (out []row) {
	for _, v := range x {
		out = append(out, row{1, "", v})
	}
	return out
}

// pairs is how many of a have one of b within 1 of their own.
func pairs(a, b []float64) int {
	if len(a) == 0 {
		return 0
	}
	best := pairs(a[1:], b)
	for i, x := range b {
		if math.Abs(a[0]-x) <= 1 {
			best = max(best, 1+pairs(a[1:], slices.Delete(slices.Clone(b), i, i+1)))
		}
	}
	return best
}

// TestSpill: what is found does not hang on how much memory there is, and nothing is left on disk.
func TestSpill(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for round := range 8 {
		var a, b []row
		for i := range 300 {
			r := row{int64(rnd.IntN(200)), fmt.Sprint(rnd.IntN(3)), float64(i % 5)}
			a = append(a, r)
			switch rnd.IntN(10 + round*3) {
			case 0:
				continue
			case 1:
				r.x++
			case 2:
				b = append(b, r)
			}
			b = append(b, r)
		}
		rnd.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		for _, keys := range [][]int{nil, {0}, {1, 0}} {
			want, wantTotals := told(t, Diff{Form: form(t), Keys: keys}, a, b)
			for _, memory := range []int64{1500, 20000} {
				dir := t.TempDir()
				got, totals := told(t, Diff{Form: form(t), Keys: keys, Memory: memory, Dir: dir}, a, b)
				if !slices.Equal(got, want) || totals != wantTotals {
					t.Errorf("round %d, keys %v, %d bytes: %d differences %+v, want %d %+v", round, keys, memory, len(got), totals, len(want), wantTotals)
				}
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("left on disk: %v", left)
				}
			}
			if keys == nil {
				checkCounts(t, a, b, wantTotals)
			}
		}
	}
}

// checkCounts holds the totals of whole rows against counting them.
func checkCounts(t *testing.T, a, b []row, got Totals) {
	t.Helper()
	count := map[row]int64{}
	for _, r := range a {
		count[r]++
	}
	for _, r := range b {
		count[r]--
	}
	var missing, extra int64
	for _, n := range count {
		missing += max(0, n)
		extra -= min(0, n)
	}
	if got.Missing != missing || got.Extra != extra || got.Changed != 0 {
		t.Errorf("%+v, want %d missing and %d extra", got, missing, extra)
	}
}

// TestErrors: an error of a side or of the receiver ends the comparison, and a side that changes between the two
// readings is one.
func TestErrors(t *testing.T) {
	mem := memory.DefaultAllocator
	a, b := side(mem, []row{{1, "a", 1}}, 1), side(mem, []row{{2, "a", 1}}, 1)
	broken := errors.New("broken")
	bad := func(context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, broken) }
	}
	d := Diff{Form: form(t)}
	ok := func(Difference) error { return nil }
	for name, f := range map[string]func() (Totals, error){
		"source":   func() (Totals, error) { return d.Run(t.Context(), bad, b, ok) },
		"dest":     func() (Totals, error) { return d.Run(t.Context(), a, bad, ok) },
		"receiver": func() (Totals, error) { return d.Run(t.Context(), a, b, func(Difference) error { return broken }) },
	} {
		if _, err := f(); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pass := 0
	shrinking := func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		pass++
		if pass == 1 {
			return a(ctx)
		}
		return side(mem, nil, 1)(ctx)
	}
	if _, err := d.Run(t.Context(), shrinking, b, ok); err == nil || !strings.Contains(err.Error(), "second reading") {
		t.Errorf("a side that changed: %v", err)
	}
}

func TestSum(t *testing.T) {
	var a, b Sum
	ones := [32]byte{}
	for i := range ones {
		ones[i] = 0xff
	}
	a.Add([32]byte{31: 1})
	a.Add(ones) // -1
	if a != (Sum{}) {
		t.Errorf("1 - 1 is %x", a)
	}
	a.Add([32]byte{7: 1, 31: 5})
	b.Add([32]byte{31: 5})
	b.Add([32]byte{7: 1})
	if a != b || a[0] != 1 || a[3] != 5 {
		t.Errorf("%x, %x", a, b)
	}
}
