package arrowipc

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// maxRows bounds the rows of a record batch. Rows may cost no bytes at all, as those of a column of
// type null, so that the size of a message does not bound them.
const maxRows = math.MaxInt32

// Codecs of a compressed body (Message.fbs, CompressionType).
const (
	codecNone = -1
	codecLZ4  = 0
	codecZstd = 1
)

// A layout is how many nodes, buffers and counts of variadic buffers a record batch must have.
// arrow-go's reader takes as many as the schema asks for, and reads past the end of what is there.
type layout struct {
	nodes, buffers, views int
}

// add adds what an array of type dt has, the variadic buffers of views not counted.
func (l *layout) add(dt arrow.DataType) {
	if ext, ok := dt.(arrow.ExtensionType); ok {
		l.add(ext.StorageType())
		return
	}
	l.nodes++
	switch dt.ID() {
	case arrow.NULL, arrow.RUN_END_ENCODED:
	case arrow.STRUCT, arrow.FIXED_SIZE_LIST:
		l.buffers++
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW:
		l.buffers += 3
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		l.buffers += 2
		l.views++
	default: // values of fixed width, indices of dictionaries, lists, maps
		l.buffers += 2
	}
	if nested, ok := dt.(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			l.add(f.Type)
		}
	}
}

// checkBatch holds a RecordBatch table (Message.fbs) against the body of its message and the layout
// of its schema, so that decoding it stays inside the body, and takes at most limit bytes where the
// body is compressed.
func checkBatch(f *flat, batch int, want layout, body []byte, limit int64) error {
	if length := f.slot(batch, 0); length != 0 {
		if n := f.i64(length); n < 0 || n > maxRows {
			f.fail("record batch of %d rows", n)
		}
	}
	first, n := f.vector(batch, 1, 16)
	if n != want.nodes {
		f.fail("record batch of %d arrays, the schema has %d", n, want.nodes)
	}
	for i := range n {
		length, nulls := f.i64(first+16*i), f.i64(first+16*i+8)
		if length < 0 || length > maxRows || nulls < 0 || nulls > length {
			f.fail("array of %d values and %d nulls", length, nulls)
		}
	}
	codec := codecNone
	if c := f.table(batch, 3); c != 0 {
		codec = codecLZ4
		if at := f.slot(c, 0); at != 0 {
			codec = f.u8(at)
		}
		if codec != codecLZ4 && codec != codecZstd {
			f.fail("compression of unknown kind %d", codec)
		}
		if at := f.slot(c, 1); at != 0 && f.u8(at) != 0 {
			f.fail("compression of unknown method %d", f.u8(at))
		}
	}
	first, buffers := f.vector(batch, 2, 16)
	var total int64
	for i := range buffers {
		off, size := f.i64(first+16*i), f.i64(first+16*i+8)
		if off < 0 || size < 0 || off > int64(len(body)) || size > int64(len(body))-off {
			f.fail("buffer of %d bytes at %d in a body of %d", size, off, len(body))
		}
		if f.err != nil {
			return f.err
		}
		if codec == codecNone || size == 0 {
			continue
		}
		plain, err := plainSize(body[off:off+size], codec)
		if err != nil {
			return err
		}
		if total += plain; total > limit {
			return fmt.Errorf("compressed record batch of more than %d bytes", limit)
		}
	}
	first, n = f.vector(batch, 4, 8)
	if n != want.views {
		f.fail("record batch with views in %d arrays, the schema has %d", n, want.views)
	}
	var variadic int64
	for i := range n {
		v := f.i64(first + 8*i)
		if v < 0 || v > int64(buffers)-variadic {
			f.fail("more variadic buffers than buffers")
			break
		}
		variadic += v
	}
	if int64(want.buffers)+variadic != int64(buffers) {
		f.fail("record batch of %d buffers, the schema asks for %d", buffers, int64(want.buffers)+variadic)
	}
	return f.err
}

// plainSize returns how many bytes a compressed buffer says it has when it is decompressed, and
// refuses what its compressed bytes cannot hold.
func plainSize(buf []byte, codec int) (int64, error) {
	if len(buf) < 8 {
		return 0, fmt.Errorf("compressed buffer of %d bytes", len(buf))
	}
	n, packed := int64(binary.LittleEndian.Uint64(buf)), int64(len(buf)-8)
	if n == -1 { // stored as it is
		return packed, nil
	}
	most := packed*255 + 64<<10 // an LZ4 sequence gains 255 bytes for each that it takes
	if codec == codecZstd {
		most = packed*(128<<10)/4 + 128<<10 // a block of at least 4 bytes holds at most 128 KiB
	}
	if n < 0 || n > most {
		return 0, fmt.Errorf("%d compressed bytes that claim to hold %d", packed, n)
	}
	return n, nil
}
