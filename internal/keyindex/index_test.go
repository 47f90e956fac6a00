package keyindex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestAgainstModel adds and looks up at random, by budgets of memory so small that there are many runs, and
// holds all that the index says against a map.
func TestAgainstModel(t *testing.T) {
	for _, shape := range shapes {
		for _, memory := range []int64{1, 1 << 10, 9 << 10, 64 << 10, 1 << 20} {
			t.Run(fmt.Sprintf("%s in %d", shape.name, memory), func(t *testing.T) {
				records := 25_000
				if testing.Short() {
					records = 5_000
				}
				if memory == 1 {
					records = 300 // each makes a run
				}
				dir := t.TempDir()
				r := rand.New(rand.NewPCG(uint64(memory), 1))
				x, m, added := New(dir, memory), model{}, int64(0)
				for i := range records {
					key := uint64(r.IntN(records))
					p := Place(r.Uint64())
					switch {
					case key%7 == 0:
						p %= 3 // the same again
					case key%1000 == 1:
						key = 1 // one key at many places
					}
					d := shape.digest(key)
					if err := x.Add(d, p); err != nil {
						t.Fatal(err)
					}
					m.add(d, p)
					added++
					if every := records / 10; i%every == every/2 || r.IntN(records/5) == 0 {
						var ds []Digest
						for range r.IntN(500) {
							ds = append(ds, shape.digest(uint64(r.IntN(2*records))))
						}
						ds = append(ds, ds[:len(ds)/4]...)
						if got, want := findAll(t, x, ds), m.find(ds); !slices.Equal(got, want) {
							t.Fatalf("after %d: %d places of %d digests, not %d, or in another order", i, len(got), len(ds), len(want))
						}
					}
				}
				if x.Len() != added {
					t.Errorf("%d records, not %d", x.Len(), added)
				}
				if len(x.runs) > mostRuns || memory < 1<<20 && len(x.runs) == 0 {
					t.Errorf("%d runs", len(x.runs))
				}
				all := make([]Digest, 0, 2*records)
				for i := range 2 * records {
					all = append(all, shape.digest(uint64(i)))
				}
				r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				if shape.name == "the last byte alone" {
					all = all[:100] // each has many places
				}
				if got, want := findAll(t, x, all), m.find(all); !slices.Equal(got, want) {
					t.Errorf("%d places of all digests, not %d, or in another order", len(got), len(want))
				}
				checkRepeated(t, x, m)
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
				checkEmpty(t, dir)
			})
		}
	}
}

// TestOnePlaceMany adds one digest at more places than are read at a time, among others.
func TestOnePlaceMany(t *testing.T) {
	x, m := New(t.TempDir(), 64<<10), model{}
	defer x.Close()
	for i := range uint64(30_000) {
		for _, d := range []Digest{even(1), even(i)} {
			if err := x.Add(d, Place(i)); err != nil {
				t.Fatal(err)
			}
			m.add(d, Place(i))
		}
	}
	ds := []Digest{even(0), even(1), even(2), even(100_000), even(29_999)}
	if got, want := findAll(t, x, ds), m.find(ds); !slices.Equal(got, want) {
		t.Errorf("%d places, not %d, or in another order", len(got), len(want))
	}
	checkRepeated(t, x, m)
}

// TestEdges looks where the ends are: of the digests, of a block, of the buffer.
func TestEdges(t *testing.T) {
	var least Digest
	most := Digest(slices.Repeat([]byte{0xff}, 16))
	for _, n := range []int{0, 1, blockRecords - 1, blockRecords, blockRecords + 1, mostBlocks*blockRecords - 1, mostBlocks * blockRecords, mostBlocks*blockRecords + 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			x, m := New(t.TempDir(), int64(n+2)*recordBytes), model{}
			defer x.Close()
			ds := []Digest{most, least, most}
			add := func(d Digest, p Place) {
				if err := x.Add(d, p); err != nil {
					t.Fatal(err)
				}
				m.add(d, p)
			}
			check := func() {
				t.Helper()
				if got, want := findAll(t, x, ds), m.find(ds); !slices.Equal(got, want) {
					t.Errorf("%d places, not %d, or in another order", len(got), len(want))
				}
				checkRepeated(t, x, m)
			}
			add(most, Place(n))
			for i := range n {
				ds = append(ds, even(uint64(i)))
				add(even(uint64(i)), 0)
			}
			check()
			add(least, 0)
			check()
			if len(x.runs) != 0 {
				t.Errorf("%d runs before the buffer is full", len(x.runs))
			}
			add(least, 1<<64-1)
			if len(x.runs) != 1 {
				t.Errorf("%d runs once it is more than full", len(x.runs))
			}
			check()
		})
	}
}

func TestEmpty(t *testing.T) {
	x := New(os.DevNull+"/nowhere", 0)
	never := errors.New("called")
	if err := x.Find(t.Context(), []Digest{{}}, func(int, Place) error { return never }); err != nil {
		t.Error(err)
	}
	if err := x.Repeated(t.Context(), func(Digest, []Place) error { return never }); err != nil {
		t.Error(err)
	}
	if err := x.Add(Digest{1}, 2); err != nil {
		t.Error(err)
	}
	if err := x.Find(t.Context(), nil, func(int, Place) error { return never }); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if x.Len() != 0 {
			t.Errorf("%d records of a closed index", x.Len())
		}
	}
}

// TestErrorOfCaller ends look-ups by the caller's own error.
func TestErrorOfCaller(t *testing.T) {
	x := New(t.TempDir(), 1<<10)
	defer x.Close()
	for i := range uint64(1000) {
		if err := x.Add(even(i/2), Place(i)); err != nil {
			t.Fatal(err)
		}
	}
	enough := errors.New("enough")
	calls := 0
	if err := x.Find(t.Context(), []Digest{even(1), even(2)}, func(int, Place) error { calls++; return enough }); err != enough || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if err := x.Repeated(t.Context(), func(Digest, []Place) error { calls++; return enough }); err != enough || calls != 2 {
		t.Errorf("%v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Find(ctx, []Digest{even(1)}, func(int, Place) error { calls++; return nil }); !errors.Is(err, context.Canceled) || calls != 2 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if err := x.Repeated(ctx, func(Digest, []Place) error { calls++; return nil }); !errors.Is(err, context.Canceled) || calls != 2 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// TestCancelled cancels while places are told: the next look at the context ends it.
func TestCancelled(t *testing.T) {
	x := New(t.TempDir(), 64<<10)
	defer x.Close()
	var ds []Digest
	for i := range uint64(3 * checkEvery) {
		ds = append(ds, even(i))
		for p := range Place(2) {
			if err := x.Add(even(i), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	if err := x.Find(ctx, ds, func(int, Place) error { cancel(); calls++; return nil }); !errors.Is(err, context.Canceled) || calls > 2*checkEvery {
		t.Errorf("%v after %d calls", err, calls)
	}
	ctx, cancel = context.WithCancel(t.Context())
	calls = 0
	if err := x.Repeated(ctx, func(Digest, []Place) error { cancel(); calls++; return nil }); !errors.Is(err, context.Canceled) || calls > checkEvery {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// TestAddAllocatesNothing adds to a buffer that has room.
func TestAddAllocatesNothing(t *testing.T) {
	x := New("", 0)
	defer x.Close()
	i := uint64(0)
	if n := testing.AllocsPerRun(1000, func() {
		i++
		if err := x.Add(Digest{byte(i), byte(i >> 8)}, Place(i)); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
