package arrowipc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"icepipe/pkg/rows"
)

// A WriteOption is an option of Write.
type WriteOption func(*writeConfig)

type writeConfig struct {
	compression string
	mem         memory.Allocator
}

// WithCompression compresses the buffers of record batches: none (the default), lz4 or zstd.
func WithCompression(name string) WriteOption {
	return func(c *writeConfig) { c.compression = name }
}

// WithWriteAllocator sets where encoding takes its memory from.
func WithWriteAllocator(mem memory.Allocator) WriteOption {
	return func(c *writeConfig) { c.mem = mem }
}

// Write sends a stream, and returns the seal that it set under it.
//
// It opens the spans, and releases the record batch of each. Every message is flushed, so that the
// reader can go on. The totals of in's seal must be those of the spans that came; Records is what
// was sent.
//
// On any error, in's own included, the stream is left without seal and end marker, so that its
// reader knows. A stream of another program is refused: it has no places to send.
func Write(ctx context.Context, w io.Writer, in rows.Stream, opts ...WriteOption) (rows.Seal, error) {
	cfg := writeConfig{compression: "none", mem: memory.DefaultAllocator}
	for _, o := range opts {
		o(&cfg)
	}
	if in.Header.Foreign {
		return rows.Seal{}, errors.New("a stream of another program has no places: give it to the writing program itself")
	}
	s := &sender{out: newHashWriter(w), mem: cfg.mem, tally: newTally(in.Header)}
	if err := s.start(in, cfg.compression); err != nil {
		return rows.Seal{}, err
	}
	for span, err := range rows.Opened(ctx, in).Spans {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			span.Release()
			return rows.Seal{}, err
		}
		err = s.span(span)
		span.Release()
		if err != nil {
			return rows.Seal{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return rows.Seal{}, err
	}
	seal, err := in.Seal()
	if err != nil {
		return rows.Seal{}, err
	}
	return s.seal(seal)
}

// A sender is one stream being written.
type sender struct {
	out    *hashWriter
	mem    memory.Allocator
	schema *arrow.Schema // as sent, marks included
	ipc    *ipc.Writer
	tally  *tally
}

// start sends the schema with the header.
func (s *sender) start(in rows.Stream, compression string) error {
	options := []ipc.Option{ipc.WithAllocator(s.mem)}
	switch compression {
	case "none", "":
	case "lz4":
		options = append(options, ipc.WithLZ4())
	case "zstd":
		options = append(options, ipc.WithZstd())
	default:
		return fmt.Errorf("compression %q is not known: use none, lz4 or zstd", compression)
	}
	if in.Schema == nil {
		return errors.New("stream without a schema")
	}
	for _, f := range in.Schema.Fields() {
		if has(f.Type, arrow.DICTIONARY) {
			return fmt.Errorf("column %q is dictionary-encoded: decode it before it is sent", f.Name)
		}
		if err := checkType(f.Type); err != nil {
			return fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	h := in.Header
	if h.Protocol == 0 {
		h.Protocol = rows.Protocol
	}
	header, err := jsonText(h)
	if err != nil {
		return fmt.Errorf("stream header: %w", err)
	}
	if _, err := parseHeader(header); err != nil {
		return err
	}
	s.schema = withMarks(in.Schema, []string{keyHeader, keyHash}, []string{header, noHash})
	s.ipc = ipc.NewWriterWithPayloadWriter(&afterSchema{out: s.out}, append(options, ipc.WithSchema(s.schema))...)
	msg, err := schemaMessage(s.schema, s.mem)
	if err != nil {
		return err
	}
	if _, err := s.out.Write(msg); err != nil {
		return fmt.Errorf("write stream header: %w", err)
	}
	return s.out.flush()
}

// schemaMessage encodes the schema, and puts the hash of the message into it.
func schemaMessage(schema *arrow.Schema, mem memory.Allocator) (_ []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("encode schema: %v", p)
		}
	}()
	payload := ipc.GetSchemaPayload(schema, mem)
	defer payload.Release()
	var b bytes.Buffer
	if _, err := payload.WritePayload(&b); err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	msg := b.Bytes()
	const prefix = 8
	f := newFlat(msg[prefix:])
	h, err := readHead(f)
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	pairs, err := checkSchema(f, h.pos)
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	mark, _ := find(pairs, keyHash)
	copy(msg[prefix+mark.at:], hashText(xxh3.Hash128(msg)))
	return msg, nil
}

// span sends a record batch with the marks of its span. It only borrows the span.
func (s *sender) span(span rows.Span) error {
	batch := span.Batch
	if batch == nil {
		return fmt.Errorf("span at %s is not opened", span.From)
	}
	if err := s.fits(batch); err != nil {
		return fmt.Errorf("span at %s: %w", span.From, err)
	}
	if err := s.tally.add(span, batch.NumRows()); err != nil {
		return err
	}
	return s.send(batch.Columns(), batch.NumRows(), spanMarks(span, s.out.hash()))
}

// fits checks that a record batch is of the stream's schema.
func (s *sender) fits(batch arrow.RecordBatch) error {
	if int(batch.NumCols()) != s.schema.NumFields() {
		return fmt.Errorf("record batch has %d columns, the stream %d", batch.NumCols(), s.schema.NumFields())
	}
	for i, col := range batch.Columns() {
		want := s.schema.Field(i)
		if !arrow.TypeEqual(col.DataType(), want.Type) {
			return fmt.Errorf("column %q is %s, in the stream %s", want.Name, col.DataType(), want.Type)
		}
		if int64(col.Len()) != batch.NumRows() {
			return fmt.Errorf("column %q has %d values for %d rows", want.Name, col.Len(), batch.NumRows())
		}
	}
	return nil
}

func (s *sender) send(cols []arrow.Array, n int64, marks arrow.Metadata) error {
	marked := array.NewRecordBatchWithMetadata(s.schema, cols, n, marks)
	defer marked.Release()
	if err := s.ipc.Write(marked); err != nil {
		return fmt.Errorf("write record batch %d: %w", s.tally.records, err)
	}
	return s.out.flush()
}

// seal sends the seal and the end marker.
func (s *sender) seal(seal rows.Seal) (rows.Seal, error) {
	seal.Records = s.tally.records
	if err := s.tally.seal(seal); err != nil {
		return rows.Seal{}, err
	}
	marks, err := sealMarks(seal, s.out.hash())
	if err != nil {
		return rows.Seal{}, err
	}
	b := array.NewRecordBuilder(s.mem, s.schema)
	defer b.Release()
	empty := b.NewRecordBatch()
	defer empty.Release()
	if err := s.send(empty.Columns(), 0, marks); err != nil {
		return rows.Seal{}, fmt.Errorf("write seal: %w", err)
	}
	if _, err := s.out.Write([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}); err != nil {
		return rows.Seal{}, fmt.Errorf("write end marker: %w", err)
	}
	return seal, s.out.flush()
}

// afterSchema takes what an ipc.Writer sends, but for the schema, which was sent before.
type afterSchema struct {
	out     *hashWriter
	started bool
}

func (a *afterSchema) Start() error { return nil }
func (a *afterSchema) Close() error { return nil }

func (a *afterSchema) WritePayload(p ipc.Payload) error {
	if !a.started {
		a.started = true
		return nil
	}
	_, err := p.WritePayload(a.out)
	return err
}

// A hashWriter knows the hash of all bytes that were written.
type hashWriter struct {
	buf *bufio.Writer
	sum *xxh3.Hasher128
}

func newHashWriter(w io.Writer) *hashWriter {
	return &hashWriter{bufio.NewWriterSize(w, 64<<10), xxh3.New128()}
}

func (h *hashWriter) Write(p []byte) (int, error) {
	n, err := h.buf.Write(p)
	h.sum.Write(p[:n])
	return n, err
}

func (h *hashWriter) hash() string { return hashText(h.sum.Sum128()) }

func (h *hashWriter) flush() error {
	if err := h.buf.Flush(); err != nil {
		return fmt.Errorf("write stream: %w", err)
	}
	return nil
}
