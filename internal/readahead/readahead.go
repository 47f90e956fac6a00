// Package readahead reads the column chunks of remote Parquet files in larger ranges than they are asked for, and the
// next range of a chunk while one is being used: each request to an object store takes tens of milliseconds, however
// little it asks for.
package readahead

import (
	"cmp"
	"io"
	"slices"
	"sync"
)

// Sizes of ranges.
const (
	budget     = 24 << 20 // of a file, where all its chunks of a row group are read side by side
	leastBlock = 256 << 10
	mostBlock  = 4 << 20
)

// A Range is a column chunk: bytes from Off to End.
type Range struct{ Off, End int64 }

// A File reads ranges that it was told of ahead, and all else as it is asked for. Its methods may be called by several
// goroutines; what is read of one chunk should be read in order, by one goroutine at a time, or it is only slower.
type File struct {
	in     io.ReaderAt
	size   int64 // of a block
	mu     sync.Mutex
	chunks []chunk // by Off
	going  sync.WaitGroup
	closed bool
}

// chunk is what is there of a column chunk. A chunk that is begun anew often is not read in order, and not ahead.
type chunk struct {
	Range
	now, next *block // nil: nothing; next follows now
	begun     int
}

// mostBegun is how often a chunk is begun until it is read as it is asked for.
const mostBegun = 8

// block is a range on its way: text is there once done is closed, and never changes. It is shorter than the range where
// that could not be read.
type block struct {
	Range
	done chan struct{}
	text []byte
}

// from waits for what there is of a block from off on; of none there is nothing.
func (b *block) from(off int64) []byte {
	if b == nil {
		return nil
	}
	<-b.done
	return b.text[min(int64(len(b.text)), off-b.Off):]
}

// New returns a File that reads in, or nil where so many chunks are read side by side that each would be read in ranges
// too small to be worth it. together is how many those are, as the leaves of a row group; chunks lie apart.
func New(in io.ReaderAt, chunks []Range, together int) *File {
	size := min(mostBlock, budget/int64(2*max(1, together)))
	if size < leastBlock {
		return nil
	}
	f := &File{in: in, size: size}
	for _, r := range chunks {
		if 0 <= r.Off && r.Off < r.End && r.End < 1<<60 { // a footer may say anything
			f.chunks = append(f.chunks, chunk{Range: r})
		}
	}
	slices.SortFunc(f.chunks, func(a, b chunk) int { return cmp.Compare(a.Off, b.Off) })
	return f
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		text := f.block(off+int64(n), off+int64(len(p))).from(off + int64(n))
		if len(text) == 0 { // there is no such block, or no more of it: whoever reads is told why
			m, err := f.in.ReadAt(p[n:], off+int64(n))
			return n + m, err
		}
		n += copy(p[n:], text)
	}
	return n, nil
}

// block is the block that holds the byte at off, and has the next one come; nil where what is asked for, up to end, is
// not of one chunk, or of one that is not read ahead.
func (f *File) block(off, end int64) *block {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.chunkOf(off, end)
	if c == nil || f.closed {
		return nil
	}
	switch {
	case c.now.holds(off):
	case c.next.holds(off):
		c.now, c.next = c.next, nil
	case c.begun == mostBegun:
		return nil
	default:
		c.begun++
		c.now, c.next = f.fetch(off, c.End), nil
	}
	if c.next == nil && c.now.End < c.End {
		c.next = f.fetch(c.now.End, c.End)
	}
	now := c.now
	if now.End == c.End && end == c.End { // the last bytes
		c.now, c.next = nil, nil
	}
	return now
}

// chunkOf is the chunk that a range lies in; nil for none. f.mu is held.
func (f *File) chunkOf(off, end int64) *chunk {
	at, found := slices.BinarySearchFunc(f.chunks, off, func(c chunk, off int64) int { return cmp.Compare(c.Off, off) })
	if !found {
		at--
	}
	if at < 0 || f.chunks[at].End < end {
		return nil
	}
	return &f.chunks[at]
}

func (b *block) holds(off int64) bool { return b != nil && b.Off <= off && off < b.End }

// fetch asks for the range from off on that is no longer than a block. f.mu is held.
func (f *File) fetch(off, end int64) *block {
	b := &block{Range: Range{off, min(end, off+f.size)}, done: make(chan struct{})}
	f.going.Go(func() { // Close waits for it
		defer close(b.done)
		text := make([]byte, b.End-b.Off)
		n, _ := f.in.ReadAt(text, b.Off) // an error comes again, to who reads on
		b.text = text[:n]
	})
	return b
}

// Close waits for what was asked for. The reader below is not closed.
func (f *File) Close() {
	f.mu.Lock()
	f.closed = true
	for i := range f.chunks {
		f.chunks[i].now, f.chunks[i].next = nil, nil
	}
	f.mu.Unlock()
	f.going.Wait()
}
