package keyindex

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// A shape makes the digest of the i-th key.
type shape struct {
	name   string
	digest func(i uint64) Digest
}

func even(i uint64) (d Digest) {
	r := rand.New(rand.NewPCG(i, 7))
	binary.BigEndian.PutUint64(d[:8], r.Uint64())
	binary.BigEndian.PutUint64(d[8:], r.Uint64())
	return d
}

var shapes = []shape{
	{"even", even},
	{"the first bytes equal", func(i uint64) (d Digest) { d = even(i); clear(d[:6]); return d }},
	{"the first half equal", func(i uint64) (d Digest) { d = even(i); copy(d[:], "the same"); return d }},
	{"counted", func(i uint64) (d Digest) { binary.BigEndian.PutUint64(d[8:], i); return d }},
	{"the last byte alone", func(i uint64) (d Digest) { d[0], d[15] = 0xff, byte(i); return d }},
	{"all bits", func(i uint64) (d Digest) { d = even(i); d[0] |= 0x80 * byte(i%2); d[15] = byte(i); return d }},
}

// A model is what an index is held against.
type model map[Digest]map[Place]bool

func (m model) add(d Digest, p Place) {
	if m[d] == nil {
		m[d] = map[Place]bool{}
	}
	m[d][p] = true
}

func (m model) places(d Digest) []Place {
	var out []Place
	for p := range m[d] {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

type hit struct {
	d Digest
	p Place
	i int
}

// find is what Find must tell, in order.
func (m model) find(ds []Digest) []hit {
	var out []hit
	for i, d := range ds {
		for p := range m[d] {
			out = append(out, hit{d, p, i})
		}
	}
	slices.SortFunc(out, func(a, b hit) int {
		return cmp.Or(slices.Compare(a.d[:], b.d[:]), cmp.Compare(a.p, b.p), cmp.Compare(a.i, b.i))
	})
	return out
}

func findAll(t *testing.T, x *Index, ds []Digest) []hit {
	t.Helper()
	var out []hit
	err := x.Find(t.Context(), ds, func(i int, p Place) error {
		out = append(out, hit{ds[i], p, i})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func checkRepeated(t *testing.T, x *Index, m model) {
	t.Helper()
	var want []Digest
	for d, ps := range m {
		if len(ps) > 1 {
			want = append(want, d)
		}
	}
	slices.SortFunc(want, func(a, b Digest) int { return slices.Compare(a[:], b[:]) })
	var got []Digest
	err := x.Repeated(t.Context(), func(d Digest, ps []Place) error {
		if !slices.Equal(ps, m.places(d)) {
			t.Fatalf("%x is at %d, not %d", d, ps, m.places(d))
		}
		got = append(got, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%d digests have several places, not %d, or in another order", len(got), len(want))
	}
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%d files are left, %s among them", len(left), left[0].Name())
	}
}
