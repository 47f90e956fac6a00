package datafile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

const magic = "PAR1"

// Output is where a File goes.
type Output interface {
	io.Writer
	// Sync returns once what was written survives a crash, as far as the store can promise it.
	Sync() error
	Close() error
	// Abort closes what will not be used; in a store where a file is there once it is closed there is none.
	Abort() error
}

// A composer is an Output in a store that can copy ranges of its files into others.
type composer interface {
	// CopyRange appends n bytes of an open file, from byte off on, that the store copies; false where it cannot. With
	// no bytes it asks whether that can be, and has the file made ready for it. The file may be closed afterwards.
	CopyRange(from any, off, n int64) (bool, error)
	// CopiedByStore is how many bytes came by CopyRange and did not pass through this process, once the file is closed.
	CopiedByStore() int64
}

// A File is a Parquet file in the making, assembled from column chunks: for each row group the
// chunks of all leaves in the order of the shape. After an error it is of no use but to Abort.
type File struct {
	out    Output
	buf    *bufio.Writer
	pos    int64
	shape  *Shape
	footer *metadata.FileMetaDataBuilder
	group  *metadata.RowGroupMetaDataBuilder
	next   int // leaf that Add expects
	groups []groupSize
	rows   int64
	unsure []unsure // per leaf
	bytes  Bytes
}

// unsure is what is known of the values of a leaf, and what is not.
type unsure struct {
	nans      int64
	some      bool // nans are not all
	blind     bool // a chunk has values, but not their smallest and largest
	uncounted bool // nobody has counted the nulls of a chunk
}

// Bytes are those of the column chunks of files, by how they came there.
type Bytes struct {
	Copied     int64 // from source files, as they were
	ByStore    int64 // of these, those that the store copied: they were not read
	Transcoded int64 // decoded from the pages of source files and encoded anew, without record batches
	Encoded    int64 // from record batches, and nulls
}

// Plus is the sum.
func (b Bytes) Plus(c Bytes) Bytes {
	return Bytes{b.Copied + c.Copied, b.ByStore + c.ByStore, b.Transcoded + c.Transcoded, b.Encoded + c.Encoded}
}

// add counts a chunk of n bytes; one in which both kinds of rows are is shared out by rows.
func (b *Bytes) add(c Chunk, n int64) {
	if c.copied {
		b.Copied += n
		return
	}
	taken := int64(0)
	if c.Rows > 0 {
		taken = int64(float64(n) * float64(c.taken) / float64(c.Rows))
	}
	b.Transcoded += taken
	b.Encoded += n - taken
}

// groupSize is what the library's row group builder does not know of chunks made elsewhere.
type groupSize struct{ offset, compressed, uncompressed int64 }

// Create starts a file of the given shape on out, which it owns from then on.
func Create(out Output, shape *Shape) (*File, error) {
	f := &File{
		out:    out,
		buf:    bufio.NewWriterSize(out, 64<<10),
		shape:  shape,
		footer: metadata.NewFileMetadataBuilder(shape.Parquet, parquet.NewWriterProperties(), nil),
		next:   len(shape.Leaves),
		unsure: make([]unsure, len(shape.Leaves)),
	}
	_, err := f.buf.WriteString(magic)
	f.pos = int64(len(magic))
	if err != nil {
		return nil, errors.Join(err, out.Abort())
	}
	return f, nil
}

// Pos is how many bytes the file has so far.
func (f *File) Pos() int64 { return f.pos }

// Rows is how many rows the file has so far.
func (f *File) Rows() int64 { return f.rows }

// RowGroup starts a row group of that many rows.
func (f *File) RowGroup(rows int64) error {
	if f.next != len(f.shape.Leaves) {
		return fmt.Errorf("row group %d has %d of %d columns", len(f.groups)-1, f.next, len(f.shape.Leaves))
	}
	f.group = f.footer.AppendRowGroup()
	f.group.SetNumRows(int(rows))
	f.groups = append(f.groups, groupSize{offset: f.pos})
	f.next = 0
	f.rows += rows
	return nil
}

// Add writes the row group's next chunk, and releases it in any case.
func (f *File) Add(c Chunk) error {
	defer c.Release()
	switch {
	case f.group == nil || f.next == len(f.shape.Leaves) || c.Leaf != f.next:
		return fmt.Errorf("chunk of column %d where column %d is due", c.Leaf, f.next)
	case c.Rows != f.group.NumRows():
		return fmt.Errorf("column %q: chunk of %d rows in a row group of %d", f.shape.Leaves[c.Leaf].Name, c.Rows, f.group.NumRows())
	}
	if err := c.check(); err != nil {
		return err
	}
	n, err := f.put(c)
	if err != nil {
		return err
	}
	f.describe(c, f.pos-c.base)
	f.pos += n
	f.next++
	f.bytes.add(c, n)
	u := &f.unsure[c.Leaf]
	u.nans += c.NaNs
	u.some = u.some || c.nansUnknown
	u.blind = u.blind || c.boundless()
	u.uncounted = u.uncounted || c.uncounted()
	return nil
}

// put writes a chunk's pages: those that are copied past the buffer, which they would only go through.
func (f *File) put(c Chunk) (int64, error) {
	if !c.copied {
		return c.body.WriteTo(f.buf)
	}
	if err := f.buf.Flush(); err != nil {
		return 0, err
	}
	return c.body.WriteTo(f.out)
}

// describe takes over what is known of a chunk into the footer, with its offsets shifted.
func (f *File) describe(c Chunk, shift int64) {
	dst := f.group.NextColumnChunk().Contents()
	path := dst.MetaData.PathInSchema
	*dst = *c.meta.Contents()
	m := *dst.MetaData // of its own, as the row groups of a source share theirs
	dst.MetaData = &m
	m.PathInSchema = path
	m.DataPageOffset += shift
	if m.DictionaryPageOffset != nil {
		d := *m.DictionaryPageOffset + shift
		m.DictionaryPageOffset = &d
	}
	// What lies outside the pages does not come along.
	m.IndexPageOffset, m.BloomFilterOffset, m.BloomFilterLength = nil, nil, nil
	dst.ColumnIndexOffset, dst.ColumnIndexLength, dst.OffsetIndexOffset, dst.OffsetIndexLength = nil, nil, nil, nil
	dst.FileOffset = 0
	g := &f.groups[len(f.groups)-1]
	g.compressed += m.TotalCompressedSize
	g.uncompressed += m.TotalUncompressedSize
}

// Close writes the footer, syncs and closes. It gives what the footer says and the file's size.
func (f *File) Close() (*metadata.FileMetaData, int64, error) {
	meta, err := f.finish()
	if err == nil {
		err = f.out.Sync()
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.out.Abort())
	}
	if err := f.out.Close(); err != nil {
		return nil, 0, err
	}
	if c, ok := f.out.(composer); ok {
		f.bytes.ByStore = c.CopiedByStore()
	}
	return meta, f.pos, nil
}

func (f *File) finish() (*metadata.FileMetaData, error) {
	if f.next != len(f.shape.Leaves) {
		return nil, fmt.Errorf("row group %d has %d of %d columns", len(f.groups)-1, f.next, len(f.shape.Leaves))
	}
	meta, err := f.footer.Finish()
	if err != nil {
		return nil, err
	}
	for i, g := range f.groups {
		rg, ordinal := meta.RowGroups[i], int16(i)
		rg.FileOffset, rg.TotalCompressedSize, rg.TotalByteSize = &g.offset, &g.compressed, g.uncompressed
		if i <= 1<<15-1 {
			rg.Ordinal = &ordinal
		}
	}
	var b bytes.Buffer
	n, err := meta.WriteTo(&b, nil)
	if err != nil {
		return nil, err
	}
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
	b.WriteString(magic)
	f.pos += int64(b.Len())
	if _, err := b.WriteTo(f.buf); err != nil {
		return nil, err
	}
	return meta, f.buf.Flush()
}

// Abort closes the file without a footer: no reader takes it for whole.
func (f *File) Abort() error { return f.out.Abort() }
