package datafile

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A pageRun is where the pages of a chunk are read from, to be looked at.
type pageRun interface {
	io.ByteReader
	io.Reader
	// skip passes over n bytes that are there.
	skip(n int64) error
}

// lastEncoding is the highest number of an encoding that Parquet has given: BYTE_STREAM_SPLIT.
const lastEncoding = 9

// promised is what the footer says of a chunk's pages.
type promised struct {
	size   int64 // bytes, headers and all
	values int64
}

// walkPages holds the pages of a chunk against what the footer promises: that their headers can be read and fill
// the chunk, that they hold so many values in encodings that there are, and checksums, where they have some.
func walkPages(in pageRun, p promised) error {
	at := &counted{pageRun: in}
	values := int64(0)
	for n := 0; at.n < p.size; n++ {
		start := at.n
		h, err := readPageHead(at)
		if err != nil {
			return fmt.Errorf("page %d: %w", n, cut(err))
		}
		if err := h.allowed(n); err != nil {
			return fmt.Errorf("page %d at byte %d of the column: %w", n, start, err)
		}
		if h.compressed > p.size-at.n {
			return fmt.Errorf("page %d at byte %d of the column has %d bytes, the column %d: the file is damaged", n, start, h.compressed, p.size)
		}
		if h.kind == dataPage || h.kind == dataPageV2 {
			values += h.values
		}
		if err := at.body(h); err != nil {
			return fmt.Errorf("page %d at byte %d of the column: %w", n, start, cut(err))
		}
	}
	if at.n != p.size || values != p.values {
		return fmt.Errorf("its pages have %d bytes and %d values, the footer says %d and %d: the file is damaged", at.n, values, p.size, p.values)
	}
	return nil
}

// allowed says what is wrong with the n-th page of a chunk by its header.
func (h pageHead) allowed(n int) error {
	switch h.kind {
	case dictionaryPage:
		if n > 0 {
			return errors.New("a dictionary behind other pages: the file is damaged")
		}
	case dataPage, dataPageV2:
		if !h.valued || h.values < 0 || h.levels > h.compressed {
			return fmt.Errorf("%w: the file is damaged", errHeader)
		}
	case indexPage:
		return nil
	default:
		return fmt.Errorf("a page of kind %d is not known", h.kind)
	}
	if h.encoding < 0 || h.encoding == 1 || h.encoding > lastEncoding {
		return fmt.Errorf("encoding %d is not known", h.encoding)
	}
	return nil
}

// cut says of the end of a file what it means.
func cut(err error) error {
	switch {
	case errors.As(err, new(writeError)): // its end is not the source's
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file ends in it: it is cut short")
	case errors.Is(err, errHeader):
		return fmt.Errorf("%w: the file is damaged", err)
	}
	return err
}

// counted counts how far a run was read.
type counted struct {
	pageRun
	n int64
}

func (c *counted) ReadByte() (byte, error) {
	b, err := c.pageRun.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// body passes over a page behind its header, and verifies its checksum.
func (c *counted) body(h pageHead) error {
	c.n += h.compressed
	if !h.checked {
		return c.skip(h.compressed)
	}
	sum := crc32.NewIEEE() // of the page as it is in the file (Parquet: PageHeader.crc)
	block := largeBlocks.Get().(*[blockSize]byte)
	defer largeBlocks.Put(block)
	for left := h.compressed; left > 0; {
		n := min(left, blockSize)
		if _, err := io.ReadFull(c.pageRun, block[:n]); err != nil {
			return err
		}
		sum.Write(block[:n])
		left -= n
	}
	if got := sum.Sum32(); got != h.crc {
		return fmt.Errorf("its checksum is %08x, its bytes give %08x: the file is damaged", h.crc, got)
	}
	return nil
}
