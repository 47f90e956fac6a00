package filter

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

func bindText(t testing.TB, schema *iceberg.Schema, text string) *Bound {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Fatalf("%s\n%v\n%s", text, err, err.(*Error).Caret())
	}
	b, err := e.Bind(schema)
	if err != nil {
		t.Fatalf("%s\n%v\n%s", text, err, err.(*Error).Caret())
	}
	return b
}

// TestRandomFilters draws filters and rows, and holds what is selected, the canonical form and what is
// pruned against the tests' own three-valued logic.
func TestRandomFilters(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	schema := everyType()
	for range 20 {
		rows := make([]map[string]cell, 1+r.IntN(40))
		for i := range rows {
			rows[i] = randomRow(r)
		}
		batch := batchOf(t, mem, schema, rows, r.IntN(2) == 0)
		from := r.IntN(len(rows))
		part := batch.NewSlice(int64(from), int64(len(rows)))
		batch.Release()
		rows = rows[from:]
		for range 100 {
			d := drawFilter(r, r.IntN(6))
			b := bindText(t, schema, d.text)
			want := selectedBy(d, rows)
			got, err := b.Mask(part)
			if err != nil {
				t.Fatal(err)
			}
			if i := firstDifference(got, want); i >= 0 {
				t.Fatalf("seed %d: filter %s\ncanonical %s\nrow %v\nselected %v, want %v", seed, d.text, b, rows[i], got[i], want[i])
			}
			if again := bindText(t, schema, b.String()); again.String() != b.String() {
				t.Fatalf("seed %d: filter %s: canonical form %s becomes %s", seed, d.text, b, again)
			}
			stats := randomStats(r, rows)
			if slices.Contains(want, true) && !b.Possible(stats) {
				t.Fatalf("seed %d: filter %s (%s) is not possible, and selects rows of %v", seed, d.text, b, rows)
			}
			if slices.Contains(want, false) && b.Certain(stats) {
				t.Fatalf("seed %d: filter %s (%s) is certain, and does not select all rows of %v", seed, d.text, b, rows)
			}
		}
		part.Release()
	}
}

func firstDifference(a, b []bool) int {
	for i := range b {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// randomStats are true statistics of rows with some of them left out or widened, as writers do.
func randomStats(r *rand.Rand, rows []map[string]cell) func(id int) Stats {
	path := map[int]string{1: "b", 2: "i", 3: "l", 4: "f", 5: "d", 6: "dec", 7: "day", 8: "tod", 9: "ts", 10: "tz", 11: "ns", 12: "s", 13: "u", 14: "fx", 15: "bin", 17: "st.x", 19: "st.in.y", 20: `"a.b"`, 21: "big"}
	given := map[int]Stats{}
	for id, p := range path {
		lo, hi, s := statsOf(rows, p)
		if lo != nil && r.IntN(5) > 0 {
			s.Lower, s.Upper = encodeCell(p, lo, r.IntN(2) == 0), encodeCell(p, hi, r.IntN(2) == 0)
		}
		if r.IntN(5) == 0 {
			s.Nulls = -1
		}
		if r.IntN(3) == 0 {
			s.NaNs = -1
		}
		if r.IntN(5) == 0 {
			s.Rows = -1
		}
		if text, ok := hi.(string); ok && s.Upper != nil && len(text) > 1 && r.IntN(3) == 0 {
			s.Upper = s.Upper[:1] // a writer that cuts without counting up
		}
		given[id] = s
	}
	return func(id int) Stats {
		if s, ok := given[id]; ok {
			return s
		}
		return NoStats
	}
}

// encodeCell is a bound in Iceberg's binary form, as before a promotion where that is asked for and can be.
func encodeCell(path string, v cell, narrow bool) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return []byte{1}
		}
		return []byte{0}
	case string:
		return []byte(v)
	case float64:
		if path == "f" || narrow && float64(float32(v)) == v {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v)))
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	}
	n := v.(*big.Rat).Num()
	switch path {
	case "dec", "big":
		out := make([]byte, 16)
		new(big.Int).And(n, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))).FillBytes(out)
		for narrow && len(out) > 1 && (out[0] == 0 && out[1] < 0x80 || out[0] == 0xff && out[1] >= 0x80) {
			out = out[1:]
		}
		return out
	case "i", "day", "st.x":
		return binary.LittleEndian.AppendUint32(nil, uint32(n.Int64()))
	case "l", `"a.b"`:
		if narrow && n.Int64() == int64(int32(n.Int64())) {
			return binary.LittleEndian.AppendUint32(nil, uint32(n.Int64()))
		}
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(n.Int64()))
}

// Memory, and so time, goes by the length of a chain of ANDs or ORs, as a program makes them.
func TestLongChain(t *testing.T) {
	for _, text := range []string{"id = 7 OR ", "id != 7 AND "} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Parse(strings.Repeat(text, 20_000) + "id = 1"); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 200<<20 {
			t.Errorf("%d MiB for a filter of 20,000 comparisons", n>>20)
		}
	}
}
