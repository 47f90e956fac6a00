package datafile

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// A Chunk is one leaf column of one row group: its pages, wherever they are, and what the footer
// says of them. Whoever holds it releases it, or gives it to File.Add, which does.
type Chunk struct {
	Leaf int // in Shape.Leaves
	Rows int64
	NaNs int64 // NaN values, of a leaf of float or double

	nansUnknown bool  // NaNs is what is known, and there may be more
	copied      bool  // the pages are a source file's
	taken       int64 // of Rows, those whose values were taken from the pages of a file

	meta *metadata.ColumnChunkMetaDataBuilder
	base int64 // where the pages start, in the counting of meta's offsets
	body body
}

// body is where a chunk's pages are. Pages encoded here are in a Sink; a byte range of a source file
// is the other kind.
type body interface {
	io.WriterTo
	Size() int64
	Release()
}

// Release frees what the chunk's pages take.
func (c Chunk) Release() { c.body.Release() }

// check says whether the chunk's metadata and its pages agree.
func (c Chunk) check() error {
	m := c.meta.Contents().MetaData
	if c.body.Size() != m.TotalCompressedSize {
		return fmt.Errorf("column %q: chunk has %d bytes of pages, its metadata says %d", c.meta.Descr().Path(), c.body.Size(), m.TotalCompressedSize)
	}
	return nil
}

// uncounted reports whether nobody knows how many nulls the chunk has.
func (c Chunk) uncounted() bool {
	st := c.meta.Contents().MetaData.Statistics
	return st == nil || st.NullCount == nil
}

// boundless reports whether the chunk may have values that compare, but lacks their smallest or largest:
// the library leaves out a bound of more than 4 KiB, and one of a source file need not be relied on.
func (c Chunk) boundless() bool {
	m := c.meta.Contents().MetaData
	st := m.Statistics
	if c.uncounted() {
		return m.NumValues > 0 && (st == nil || st.MinValue == nil || st.MaxValue == nil)
	}
	return m.NumValues-*st.NullCount-c.NaNs > 0 && (st.MinValue == nil || st.MaxValue == nil)
}
