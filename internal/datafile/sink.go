package datafile

import (
	"bytes"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/file"
)

const (
	firstBlock = 32 << 10 // of a sink, so that a thousand narrow columns stay small
	blockSize  = 256 << 10

	// sinkBase is the place that a sink says it starts at: in a chunk's metadata a dictionary page
	// at 0 means that there is none, and 4 is where the pages of a file start.
	sinkBase = 4
)

// blocks holds the blocks of sinks that were written out.
var (
	smallBlocks = sync.Pool{New: func() any { return new([firstBlock]byte) }}
	largeBlocks = sync.Pool{New: func() any { return new([blockSize]byte) }}
)

// A Sink takes the pages of one column chunk and holds them in pooled blocks, so that a chunk never
// grows by doubling. One goroutine at a time uses it.
type Sink struct {
	small *[firstBlock]byte
	large []*[blockSize]byte
	n     int64
	shut  bool // what comes after the last page is not wanted
}

// Tell says where the next byte goes, counted from where a file's pages start.
func (s *Sink) Tell() int64 { return sinkBase + s.n }

// Write keeps a copy of p. It does not fail.
func (s *Sink) Write(p []byte) (int, error) {
	size := len(p)
	if s.shut {
		return size, nil
	}
	for len(p) > 0 {
		k := copy(s.room(), p)
		p = p[k:]
		s.n += int64(k)
	}
	return size, nil
}

// room is the free part of the last block; a new block when that is full.
func (s *Sink) room() []byte {
	if s.n < firstBlock {
		if s.small == nil {
			s.small = smallBlocks.Get().(*[firstBlock]byte)
		}
		return s.small[s.n:]
	}
	o := (s.n - firstBlock) % blockSize
	if o == 0 {
		s.large = append(s.large, largeBlocks.Get().(*[blockSize]byte))
	}
	return s.large[len(s.large)-1][o:]
}

// WriteTo writes all that s holds; s stays as it is.
func (s *Sink) WriteTo(w io.Writer) (int64, error) {
	var done int64
	put := func(p []byte) error {
		k := min(int64(len(p)), s.n-done)
		m, err := w.Write(p[:k])
		done += int64(m)
		return err
	}
	if s.small != nil {
		if err := put(s.small[:]); err != nil {
			return done, err
		}
	}
	for _, b := range s.large {
		if err := put(b[:]); err != nil {
			return done, err
		}
	}
	return done, nil
}

// Size is how many bytes WriteTo writes.
func (s *Sink) Size() int64 { return s.n }

// Release gives the blocks back; s is empty then.
func (s *Sink) Release() {
	if s.small != nil {
		smallBlocks.Put(s.small)
	}
	for _, b := range s.large {
		largeBlocks.Put(b)
	}
	*s = Sink{}
}

// pager keeps out of the sink what the library writes behind the last page: the chunk's metadata,
// which belongs in the footer. It compresses data pages in the leaf's buffer, if that has one, which is as good as
// the library's own for each chunk.
type pager struct {
	file.PageWriter
	leaf   *leafEncoder
	sink   *Sink
	gaveUp bool // the dictionary, at once or on the way
}

// Compress implements file.PageWriter. What it returns is valid until the next call. Both buffers are empty, and stay
// it: the library takes their room alone.
func (p *pager) Compress(buf *bytes.Buffer, src []byte) []byte {
	if p.leaf.packed != nil {
		buf = p.leaf.packed
	}
	return p.PageWriter.Compress(buf, src)
}

func (p *pager) Close(hasDict, fallback bool) error {
	p.sink.shut = true
	p.gaveUp = fallback || !hasDict
	return p.PageWriter.Close(hasDict, fallback)
}
