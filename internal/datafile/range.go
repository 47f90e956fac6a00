package datafile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// remoteBlock is how much of a remote file is asked for at a time.
const remoteBlock = 4 << 20

var remoteBlocks = sync.Pool{New: func() any { return new([remoteBlock]byte) }}

// A fileRange is the pages of a chunk where they are in a source file, which it holds. They are looked at when they
// are copied, but by a store that copies them itself: the file is damaged if they are not what the footer promised.
type fileRange struct {
	source *Source
	off    int64
	promised
	place string       // in the file, for errors
	stop  func() error // says why copying is given up; nil: it is not
}

// Size is how many bytes the pages have.
func (r *fileRange) Size() int64 { return r.size }

// Release lets the source go.
func (r *fileRange) Release() { r.source.Release() }

// WriteTo copies the pages, in blocks, or by the kernel where both ends are local files, or by a store that can; what
// goes wrong there may be known as late as by the end of the file.
func (r *fileRange) WriteTo(w io.Writer) (int64, error) {
	if done, err := r.within(w); err != nil {
		return 0, err // which may be about ranges before this one
	} else if done {
		return r.size, nil
	}
	n, err := r.copy(w)
	if err == nil && n != r.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, fmt.Errorf("copy from file %q, %s: %w", r.source.Path, r.place, cut(err))
	}
	return n, nil
}

// within has the store copy the pages, where both files are in one that can.
func (r *fileRange) within(w io.Writer) (bool, error) {
	out, ok := w.(composer)
	if !ok {
		return false, nil
	}
	if err := r.stop(); err != nil {
		return false, err
	}
	return out.CopyRange(r.source.at, r.off, r.size)
}

func (r *fileRange) copy(w io.Writer) (int64, error) {
	local, ok := r.source.at.(*os.File)
	if !ok {
		return r.stream(w)
	}
	if err := walkPages(&jumper{at: local, pos: r.off, end: r.off + r.size}, r.promised); err != nil {
		return 0, err
	}
	done := int64(0)
	if out, ok := w.(onDisk); ok {
		var err error
		if done, err = copyRange(out.File, local, r.off, r.size, r.stop); err != nil || done == r.size {
			return done, err
		}
	}
	block := largeBlocks.Get().(*[blockSize]byte)
	defer largeBlocks.Put(block)
	rest, err := r.blocks(w, done, block[:])
	return done + rest, err
}

// blocks copies from byte done of the range on.
func (r *fileRange) blocks(w io.Writer, done int64, block []byte) (n int64, err error) {
	for at := done; at < r.size; {
		if err := r.stop(); err != nil {
			return n, err
		}
		k := min(int64(len(block)), r.size-at)
		if _, err := io.ReadFull(io.NewSectionReader(r.source.at, r.off+at, k), block[:k]); err != nil {
			return n, err
		}
		m, err := w.Write(block[:k])
		n += int64(m)
		if err != nil {
			return n, writeError{err}
		}
		at += k
	}
	return n, nil
}

// stream copies and looks at the pages in one go: what is remote is read once.
func (r *fileRange) stream(w io.Writer) (int64, error) {
	block := remoteBlocks.Get().(*[remoteBlock]byte)
	defer remoteBlocks.Put(block)
	through := &through{r: r, w: w, block: block[:]}
	in := bufio.NewReaderSize(through, 64<<10)
	err := walkPages(streamed{in}, r.promised)
	if err != nil {
		return through.written, err
	}
	return through.written, through.failed
}

// writeError is an error of the destination.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

// through reads a range and writes what it read.
type through struct {
	r       *fileRange
	w       io.Writer
	block   []byte
	asked   int64 // bytes of the range that were read
	left    []byte
	written int64
	failed  error
}

func (t *through) Read(p []byte) (int, error) {
	if t.failed != nil {
		return 0, t.failed
	}
	if len(t.left) == 0 {
		if t.asked == t.r.size {
			return 0, io.EOF
		}
		if t.failed = t.more(); t.failed != nil {
			return 0, t.failed
		}
	}
	n := copy(p, t.left)
	t.left = t.left[n:]
	return n, nil
}

func (t *through) more() error {
	if err := t.r.stop(); err != nil {
		return err
	}
	block := t.block[:min(int64(len(t.block)), t.r.size-t.asked)]
	if _, err := io.ReadFull(io.NewSectionReader(t.r.source.at, t.r.off+t.asked, int64(len(block))), block); err != nil {
		return err
	}
	t.asked += int64(len(block))
	t.left = block
	n, err := t.w.Write(block)
	t.written += int64(n)
	if err != nil {
		return writeError{err}
	}
	return nil
}

// streamed is a run of pages that is read through.
type streamed struct{ *bufio.Reader }

func (s streamed) skip(n int64) error {
	for n > 0 {
		k, err := s.Discard(int(min(n, 1<<30)))
		n -= int64(k)
		if err != nil {
			return err
		}
	}
	return nil
}

// A jumper is a run of pages of a local file, of which nothing but headers is read.
type jumper struct {
	at       io.ReaderAt
	pos, end int64
	head     [512]byte
	lo, hi   int64 // what of the file is in head
}

func (j *jumper) ReadByte() (byte, error) {
	if j.pos >= j.end {
		return 0, io.EOF
	}
	if j.pos < j.lo || j.pos >= j.hi {
		n, err := j.at.ReadAt(j.head[:min(int64(len(j.head)), j.end-j.pos)], j.pos)
		if n == 0 {
			return 0, err
		}
		j.lo, j.hi = j.pos, j.pos+int64(n)
	}
	b := j.head[j.pos-j.lo]
	j.pos++
	return b, nil
}

func (j *jumper) Read(p []byte) (int, error) {
	if j.pos >= j.end {
		return 0, io.EOF
	}
	n, err := j.at.ReadAt(p[:min(int64(len(p)), j.end-j.pos)], j.pos)
	j.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (j *jumper) skip(n int64) error {
	j.pos += n
	return nil
}
