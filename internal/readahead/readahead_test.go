package readahead

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// A remote is a file that notes what is asked of it, and can be held up or fail.
type remote struct {
	text  []byte
	gate  func(off int64) error // before an answer; may be nil
	mu    sync.Mutex
	asked []Range
}

func (r *remote) ReadAt(p []byte, off int64) (int, error) {
	r.mu.Lock()
	r.asked = append(r.asked, Range{off, off + int64(len(p))})
	r.mu.Unlock()
	if r.gate != nil {
		if err := r.gate(off); err != nil {
			return 0, err
		}
	}
	return bytes.NewReader(r.text).ReadAt(p, off)
}

func textOf(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(rand.Uint32())
	}
	return out
}

// A chunk that is read in order is asked for in blocks, each once, whatever the reads are.
func TestInOrder(t *testing.T) {
	r := &remote{text: textOf(5 << 20)}
	end := int64(5<<20 - 100)
	f := New(r, []Range{{100, end}}, 12) // blocks of 1 MiB
	var got []byte
	for off := int64(100); off < end; {
		p := make([]byte, min(end-off, int64(1+rand.IntN(400<<10))))
		n, err := f.ReadAt(p, off)
		if err != nil || n != len(p) {
			t.Fatalf("%d bytes, %v", n, err)
		}
		got = append(got, p...)
		off += int64(n)
	}
	f.Close()
	if !bytes.Equal(got, r.text[100:end]) {
		t.Error("other bytes")
	}
	slices.SortFunc(r.asked, func(a, b Range) int { return int(a.Off - b.Off) })
	var want []Range
	for off := int64(100); off < end; off += 1 << 20 {
		want = append(want, Range{off, min(end, off+1<<20)})
	}
	if !slices.Equal(r.asked, want) {
		t.Errorf("asked for %v, want %v", r.asked, want)
	}
}

// The next block is asked for before the one that is waited for has come.
func TestAhead(t *testing.T) {
	second := make(chan struct{})
	r := &remote{text: textOf(4 << 20)}
	r.gate = func(off int64) error {
		switch off {
		case 0:
			<-second
		case 1 << 20:
			close(second)
		}
		return nil
	}
	f := New(r, []Range{{0, 4 << 20}}, 12)
	p := make([]byte, 10)
	if n, err := f.ReadAt(p, 0); n != 10 || err != nil || !bytes.Equal(p, r.text[:10]) {
		t.Errorf("%d bytes, %v", n, err)
	}
	f.Close()
}

// Whatever is read, in whatever order, by however many: the bytes are those of the file.
func TestAnyOrder(t *testing.T) {
	r := &remote{text: textOf(3 << 20)}
	var chunks []Range
	for off := int64(0); off < 3<<20; off += 300_000 {
		chunks = append(chunks, Range{off + 7, min(3<<20, off+299_000)})
	}
	chunks = append(chunks, Range{-5, 10}, Range{1 << 62, 1<<62 + 1}, Range{50, 50}, Range{2 << 20, 90 << 20})
	for _, together := range []int{0, 1, 40} {
		f := New(r, chunks, together)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 300 {
					off := rand.Int64N(3<<20 + 10)
					p := make([]byte, rand.IntN(500_000))
					want := make([]byte, len(p))
					k, wrong := bytes.NewReader(r.text).ReadAt(want, off)
					n, err := f.ReadAt(p, off)
					if wrong == nil && (n != k || err != nil || !bytes.Equal(p, want)) || wrong != nil && err == nil && n > k {
						t.Errorf("%d bytes at %d: %d, %v, want %d, %v", len(p), off, n, err, k, wrong)
					}
				}
			})
		}
		all.Wait()
		f.Close()
	}
}

// An error of the file is the error of who reads what it was about, and of nobody else; a file that ends within a chunk
// is one too.
func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	r := &remote{text: textOf(3 << 20)}
	r.gate = func(off int64) error {
		if off == 1<<20 {
			return broken
		}
		return nil
	}
	f := New(r, []Range{{0, 4 << 20}}, 12)
	p := make([]byte, 1<<20)
	if n, err := f.ReadAt(p, 0); n != 1<<20 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := f.ReadAt(p, 1<<20-10); n != 10 || !errors.Is(err, broken) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := f.ReadAt(p, 2<<20); n != 1<<20 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := f.ReadAt(p, 3<<20-10); n != 10 || err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	r.gate = nil // what failed may not fail again, as with other keys
	if n, err := f.ReadAt(p, 1<<20); n != 1<<20 || err != nil || !bytes.Equal(p, r.text[1<<20:2<<20]) {
		t.Errorf("%d bytes, %v", n, err)
	}
	f.Close()
	if n, err := f.ReadAt(p[:10], 100); n != 10 || err != nil { // a reader that is late
		t.Errorf("%d bytes, %v", n, err)
	}
}

// Many chunks side by side would be read in ranges that are too small.
func TestTooMany(t *testing.T) {
	if New(&remote{}, nil, 100) != nil {
		t.Error("100 columns are read ahead")
	}
}

// BenchmarkRemote reads twelve chunks side by side from a file whose answers take 20 ms, as a scan of all columns does.
func BenchmarkRemote(b *testing.B) {
	const columns, size, piece = 12, 4 << 20, 256 << 10
	r := &remote{text: make([]byte, columns*size), gate: func(int64) error { time.Sleep(20 * time.Millisecond); return nil }}
	var chunks []Range
	for i := range int64(columns) {
		chunks = append(chunks, Range{i * size, (i + 1) * size})
	}
	read := func(b *testing.B, in io.ReaderAt) {
		p := make([]byte, piece)
		for off := int64(0); off < size; off += piece {
			for i := range int64(columns) {
				if _, err := in.ReadAt(p, i*size+off); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("as asked", func(b *testing.B) {
		b.SetBytes(columns * size)
		for b.Loop() {
			read(b, r)
		}
	})
	b.Run("ahead", func(b *testing.B) {
		b.SetBytes(columns * size)
		for b.Loop() {
			f := New(r, chunks, columns)
			read(b, f)
			f.Close()
		}
	})
}
