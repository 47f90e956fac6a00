package keyindex

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// filled is an index with some runs of several blocks, and the digests in it.
func filled(t *testing.T, dir string) (*Index, []Digest) {
	t.Helper()
	x := New(dir, 24<<10)
	t.Cleanup(func() { _ = x.Close() })
	var ds []Digest
	for i := range uint64(5 << 10) {
		ds = append(ds, even(i))
		if err := x.Add(even(i), Place(i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(x.runs) != 4 || len(x.runs[0].fences) != 7 {
		t.Fatalf("%d runs", len(x.runs))
	}
	return x, ds
}

// TestDamage damages a run in every way that a disk may: each is found, by whoever reads the block, and the
// error names the file.
func TestDamage(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(f *os.File) error
		text   string
		is     error
	}{
		"nothing left":  {func(f *os.File) error { return f.Truncate(0) }, "blocks 0 to 6 of 7", io.ErrUnexpectedEOF},
		"block cut":     {func(f *os.File) error { return f.Truncate(3*blockBytes + 100) }, "blocks 0 to 6 of 7", io.ErrUnexpectedEOF},
		"last byte cut": {func(f *os.File) error { return f.Truncate(7*blockBytes - 1) }, "blocks 0 to 6 of 7", io.ErrUnexpectedEOF},
		"closed":        {func(f *os.File) error { return f.Close() }, "blocks 0 to 6 of 7", fs.ErrClosed},
		"bit turned":    {func(f *os.File) error { return turn(f, 2*blockBytes+77) }, "block 2 of 7 is not what was written", nil},
		"count turned":  {func(f *os.File) error { return turn(f, 4*blockBytes-9) }, "block 3 of 7 is not what was written", nil},
		"zeros":         {func(f *os.File) error { return write(f, 5, make([]byte, blockBytes)) }, "block 5 of 7 is not what was written", nil},
		"block elsewhere": {func(f *os.File) error {
			b := make([]byte, blockBytes)
			if _, err := f.ReadAt(b, blockBytes); err != nil {
				return err
			}
			return write(f, 2, b)
		}, "block 2 of 7 is not what was written", nil},
	} {
		t.Run(name, func(t *testing.T) {
			x, ds := filled(t, t.TempDir())
			f := x.runs[2].file
			if err := c.damage(f.File); err != nil {
				t.Fatal(err)
			}
			findErr := x.Find(t.Context(), ds, func(int, Place) error { return nil })
			repeatedErr := x.Repeated(t.Context(), func(Digest, []Place) error { return nil })
			for _, err := range []error{findErr, repeatedErr} {
				if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), fmt.Sprintf("%q", f.Name())) {
					t.Errorf("error %v does not say %q of %q", err, c.text, f.Name())
				}
				if c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("error %v is not %v", err, c.is)
				}
			}
		})
	}
}

func turn(f *os.File, at int64) error {
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return err
	}
	b[0] ^= 4
	_, err := f.WriteAt(b[:], at)
	return err
}

func write(f *os.File, block int64, b []byte) error {
	_, err := f.WriteAt(b, block*blockBytes)
	return err
}

// TestCountDoesNotFit reads a run that should have another number of records than it has.
func TestCountDoesNotFit(t *testing.T) {
	x, ds := filled(t, t.TempDir())
	x.runs[1].count--
	err := x.Find(t.Context(), ds, func(int, Place) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "block 6 of 7 has 4 records, not 3") || !strings.Contains(err.Error(), x.runs[1].file.Name()) {
		t.Errorf("error %v", err)
	}
}

// TestMergeFails damages a run that is to be merged. Adding fails once; what was added before is still there,
// but for what is damaged, and so is what is added after.
func TestMergeFails(t *testing.T) {
	dir := t.TempDir()
	x := New(dir, 10*recordBytes)
	defer x.Close()
	n := uint64(0)
	var failure error
	for ; n < 200 && failure == nil; n++ {
		if len(x.runs) == 3 && n%10 == 9 {
			if err := turn(x.runs[2].file.File, 0); err != nil {
				t.Fatal(err)
			}
		}
		failure = x.Add(even(n), Place(n))
	}
	if n != 91 || failure == nil || !strings.Contains(failure.Error(), "merge 90 keys") || !strings.Contains(failure.Error(), x.runs[2].file.Name()) {
		t.Fatalf("adding %d: %v", n, failure)
	}
	if x.Len() != 90 || len(x.runs) != mostRuns+1 {
		t.Fatalf("%d records in %d runs", x.Len(), len(x.runs))
	}
	if err := turn(x.runs[2].file.File, 0); err != nil {
		t.Fatal(err)
	}
	m := model{}
	var ds []Digest
	for i := range uint64(200) {
		ds = append(ds, even(i))
		m.add(even(i), Place(i))
		if i < 90 {
			continue
		}
		if err := x.Add(even(i), Place(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := findAll(t, x, ds); !slices.Equal(got, m.find(ds)) {
		t.Errorf("%d places of 200", len(got))
	}
	if len(x.runs) > mostRuns {
		t.Errorf("%d runs", len(x.runs))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	checkEmpty(t, dir)
}

// TestNoRoom has no folder to write to: the record is not added, the others stay.
func TestNoRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not there yet")
	x, m := New(dir, 10*recordBytes), model{}
	defer x.Close()
	for i := range uint64(10) {
		if err := x.Add(even(i), 1); err != nil {
			t.Fatal(err)
		}
		m.add(even(i), 1)
	}
	for range 2 {
		if err := x.Add(even(10), 1); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
			t.Fatalf("no folder: %v", err)
		}
	}
	ds := []Digest{even(10), even(9)}
	if got, want := findAll(t, x, ds), m.find(ds); !slices.Equal(got, want) || x.Len() != 10 {
		t.Errorf("%v, not %v, of %d", got, want, x.Len())
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := x.Add(even(10), 1); err != nil {
		t.Fatal(err)
	}
	m.add(even(10), 1)
	if got, want := findAll(t, x, ds), m.find(ds); !slices.Equal(got, want) || x.Len() != 11 {
		t.Errorf("%v, not %v, of %d", got, want, x.Len())
	}
}

// TestNothingLeftBehind has no file with a name while the index is in use, so that none stays if the process dies.
func TestNothingLeftBehind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file keeps its name on Windows")
	}
	dir := t.TempDir()
	x, ds := filled(t, dir)
	checkEmpty(t, dir)
	if got := len(findAll(t, x, ds)); got != len(ds) {
		t.Errorf("%d of %d are found", got, len(ds))
	}
}

// TestFewBlocks counts what is read for digests that lie far apart, and for those that lie near.
func TestFewBlocks(t *testing.T) {
	x := New(t.TempDir(), 24*100*blockRecords)
	defer x.Close()
	for i := range uint64(100*blockRecords + 1) {
		if err := x.Add(even(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	r := x.runs[0]
	digest := func(block int) record { return record{hi: r.fences[block] + 1} }
	for name, c := range map[string]struct {
		from       int
		asked      []record
		first, end int
	}{
		"one":                      {0, []record{digest(50)}, 50, 51},
		"the first":                {0, []record{digest(0)}, 0, 1},
		"before the first":         {0, []record{{}}, 0, 0},
		"the last":                 {0, []record{digest(99)}, 99, 100},
		"at a block's start":       {0, []record{{hi: r.fences[20]}}, 19, 21},
		"read already":             {51, []record{digest(50)}, 51, 51},
		"neighbours":               {0, []record{digest(5), digest(6), digest(8)}, 5, 9},
		"over a gap":               {0, []record{digest(5), digest(6 + mostGap)}, 5, 7 + mostGap},
		"far apart":                {0, []record{digest(5), digest(7 + mostGap)}, 5, 6},
		"read already, others not": {10, append([]record{digest(9)}, every(r, 10)...), 10, 10},
		"as many as are read":      {10, every(r, 10), 10, 10 + mostBlocks},
	} {
		if first, end := r.wanted(c.from, c.asked); first != c.first || end != c.end {
			t.Errorf("%s: blocks %d to %d, not %d to %d", name, first, end, c.first, c.end)
		}
	}
	alike := run{fences: make([]uint64, 3*mostBlocks)}
	if first, end := alike.wanted(1, []record{{}}); first != 1 || end != 1+mostBlocks {
		t.Errorf("blocks %d to %d are read at once of a run that begins alike everywhere", first, end)
	}
}

// every asks for a digest of each block from one on.
func every(r *run, from int) []record {
	var out []record
	for _, f := range r.fences[from:] {
		out = append(out, record{hi: f + 1})
	}
	return out
}

// TestGallop holds it against counting.
func TestGallop(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 70 {
		s := make([]int, n)
		for i := range s {
			s[i] = r.IntN(50)
		}
		slices.Sort(s)
		for d := range 52 {
			before := func(v int) bool { return v < d }
			want := 0
			for want < n && before(s[want]) {
				want++
			}
			if got := gallop(s, before); got != want {
				t.Fatalf("%d of %v are less than %d, not %d", want, s, d, got)
			}
		}
	}
}
