package keyindex

import (
	"encoding/binary"
	"math/bits"
	"testing"
)

// many are the records that benchmarks look among, memory what they all fit in.
const (
	many   = 10_000_000
	memory = 256 << 20
)

// scattered is a digest that costs next to nothing to make.
func scattered(i uint64) (d Digest) {
	hi, lo := bits.Mul64((i+1)*0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	binary.BigEndian.PutUint64(d[:8], hi^lo)
	binary.BigEndian.PutUint64(d[8:], lo)
	return d
}

func fill(b *testing.B, memory int64, n uint64) *Index {
	b.Helper()
	x := New(b.TempDir(), memory)
	b.Cleanup(func() {
		if err := x.Close(); err != nil {
			b.Error(err)
		}
	})
	for i := range n {
		if err := x.Add(scattered(i), Place(i)); err != nil {
			b.Fatal(err)
		}
	}
	return x
}

var budgets = []struct {
	name   string
	memory int64
}{{"in memory", memory}, {"by default", 0}, {"16 MiB", 16 << 20}}

// BenchmarkAdd adds ten million records and sorts them.
func BenchmarkAdd(b *testing.B) {
	for _, c := range budgets {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x := fill(b, c.memory, many)
				x.buffer.parts()
				if err := x.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFind looks for 50,000 scattered digests among ten million, half of which are there.
func BenchmarkFind(b *testing.B) {
	for _, c := range budgets {
		b.Run(c.name, func(b *testing.B) {
			x := fill(b, c.memory, many)
			x.buffer.parts()
			ds := make([]Digest, 50_000)
			for i := range ds {
				ds[i] = scattered(uint64(i) * (2 * many / uint64(len(ds))))
			}
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				if err := x.Find(b.Context(), ds, func(int, Place) error { n++; return nil }); err != nil || n != len(ds)/2 {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// BenchmarkBatches adds and looks for 50,000 digests by turns, as a job does that finds again what it wrote.
func BenchmarkBatches(b *testing.B) {
	const batch = 50_000
	x := fill(b, memory, many/2)
	ds := make([]Digest, batch)
	next := uint64(many)
	b.ReportAllocs()
	for b.Loop() {
		for i := range ds {
			ds[i] = scattered(next - uint64(i) - many/2)
			if err := x.Add(scattered(next), Place(next)); err != nil {
				b.Fatal(err)
			}
			next++
		}
		if err := x.Find(b.Context(), ds, func(int, Place) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRepeated goes through ten million records, none of which is repeated.
func BenchmarkRepeated(b *testing.B) {
	for _, c := range budgets {
		b.Run(c.name, func(b *testing.B) {
			x := fill(b, c.memory, many)
			for b.Loop() {
				if err := x.Repeated(b.Context(), func(Digest, []Place) error { b.Fatal("repeated"); return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
