package arrowipc

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"icepipe/pkg/rows"
)

// A source takes a stream apart into its messages, and knows the hash of all bytes before each.
// It frames them itself, because arrow-go's reader trusts lengths and takes the end of the input
// for the end of the stream.
type source struct {
	in     *bufio.Reader
	sum    *xxh3.Hasher128
	offset int64 // bytes taken
	number int   // of the next message, the schema's is 0
	limits Limits
	mem    memory.Allocator
}

func newSource(r io.Reader, limits Limits, mem memory.Allocator) *source {
	return &source{in: bufio.NewReaderSize(r, 64<<10), sum: xxh3.New128(), limits: limits, mem: mem}
}

func (s *source) hash() string { return hashText(s.sum.Sum128()) }

// A message is an encapsulated message (Arrow columnar format, "Encapsulated message format").
// Its owner releases it.
type message struct {
	head
	number int
	at     int64          // offset of its first byte
	prefix []byte         // what precedes the metadata: continuation and length
	meta   []byte         // the flatbuffer, and the padding behind it
	flat   *flat          // over meta
	body   *memory.Buffer // nil until it was read
}

func (m *message) release() {
	if m != nil && m.body != nil {
		m.body.Release()
		m.body = nil
	}
}

// wrong is an error that names the message.
func (m *message) wrong(err error) error {
	return fmt.Errorf("stream message %d at byte %d: %w", m.number, m.at, err)
}

// next reads a message up to its body; nil is Arrow's end marker. Input that ends wraps
// rows.ErrUnsealed, wherever it ends.
func (s *source) next() (*message, error) {
	m := &message{number: s.number, at: s.offset}
	s.number++
	var word [4]byte
	if err := s.fill(m, word[:]); err != nil {
		return nil, err
	}
	m.prefix = append(m.prefix, word[:]...)
	if word == [4]byte{0xff, 0xff, 0xff, 0xff} {
		if err := s.fill(m, word[:]); err != nil {
			return nil, err
		}
		m.prefix = append(m.prefix, word[:]...)
	} // else: a stream from before Arrow 0.15, which has no continuation
	size := int64(int32(binary.LittleEndian.Uint32(word[:])))
	if size == 0 {
		return nil, nil
	}
	if size < 8 || size > s.limits.Metadata {
		if m.number == 0 {
			return nil, errors.New("input is not an Arrow IPC stream")
		}
		return nil, m.wrong(fmt.Errorf("metadata of %d bytes (limit %d)", size, s.limits.Metadata))
	}
	var err error
	if m.meta, err = s.grow(m, size); err != nil {
		return nil, err
	}
	m.flat = newFlat(m.meta)
	if m.head, err = readHead(m.flat); err != nil {
		return nil, m.wrong(err)
	}
	if m.head.body > s.limits.Body {
		return nil, m.wrong(fmt.Errorf("body of %d bytes (limit %d)", m.head.body, s.limits.Body))
	}
	return m, nil
}

// How much memory a length alone is worth: what it claims beyond is taken only as the input bears
// it out.
const (
	metadataStep = 1 << 20
	bodyStep     = 8 << 20
)

// grow reads size bytes of metadata.
func (s *source) grow(m *message, size int64) ([]byte, error) {
	buf := make([]byte, min(size, metadataStep))
	for n := int64(0); ; {
		if err := s.fill(m, buf[n:]); err != nil {
			return nil, err
		}
		if n = int64(len(buf)); n == size {
			return buf, nil
		}
		larger := make([]byte, min(size, 2*n))
		copy(larger, buf)
		buf = larger
	}
}

// readBody reads the body of a message. On an error the message still has to be released.
func (s *source) readBody(m *message) error {
	size := int(m.head.body)
	m.body = memory.NewResizableBuffer(s.mem)
	m.body.Resize(min(size, bodyStep))
	for n := 0; n < size; {
		if err := s.fill(m, m.body.Bytes()[n:]); err != nil {
			return err
		}
		n = m.body.Len()
		m.body.Resize(min(size, 2*n))
	}
	return nil
}

// fill reads all of p.
func (s *source) fill(m *message, p []byte) error {
	n, err := io.ReadFull(s.in, p)
	s.sum.Write(p[:n])
	s.offset += int64(n)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return s.cut(m)
	default:
		return fmt.Errorf("read stream at byte %d: %w", s.offset, err)
	}
}

// cut is the error of a stream that ends here.
func (s *source) cut(m *message) error {
	return fmt.Errorf("message %d at byte %d, input ends at byte %d: %w", m.number, m.at, s.offset, rows.ErrUnsealed)
}

// end checks that the input ends here, so that two streams written one after the other do not
// pass for the first of them, and that the writer is not left with a full pipe.
func (s *source) end() error {
	n, err := io.ReadFull(s.in, make([]byte, 1))
	if n != 0 {
		return fmt.Errorf("input goes on at byte %d, behind the end of its stream: give one stream only", s.offset)
	}
	if err != io.EOF {
		return fmt.Errorf("read stream at byte %d: %w", s.offset, err)
	}
	return nil
}

// formats are what people take for an Arrow IPC stream.
var formats = []struct{ magic, what, cure string }{
	{"ARROW1", "an Arrow IPC file", "write it as a stream (pyarrow.ipc.new_stream, polars write_ipc_stream)"},
	{"FEA1", "a Feather file", "write it as an Arrow IPC stream (pyarrow.ipc.new_stream)"},
	{"PAR1", "a Parquet file", "read it with a program that writes an Arrow IPC stream (pyarrow.ipc.new_stream)"},
	{"PARE", "an encrypted Parquet file", "read it with a program that writes an Arrow IPC stream (pyarrow.ipc.new_stream)"},
	{"ORC", "an ORC file", "read it with a program that writes an Arrow IPC stream (pyarrow.ipc.new_stream)"},
	{"\x1f\x8b", "compressed by gzip", "decompress it first (gzip -dc)"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd", "decompress it first (zstd -dc)"},
	{"\x04\x22\x4d\x18", "compressed by lz4", "decompress it first (lz4 -dc)"},
	{"BZh", "compressed by bzip2", "decompress it first (bzip2 -dc)"},
	{"\xfd7zXZ", "compressed by xz", "decompress it first (xz -dc)"},
	{"PK\x03\x04", "a zip archive", "unpack it first"},
	{"Obj\x01", "an Avro file", "read it with a program that writes an Arrow IPC stream"},
}

// recognise refuses, by name, input of another format.
func (s *source) recognise() error {
	first, _ := s.in.Peek(6)
	for _, f := range formats {
		if bytes.HasPrefix(first, []byte(f.magic)) {
			return fmt.Errorf("input is %s, not an Arrow IPC stream: %s", f.what, f.cure)
		}
	}
	return nil
}
