package arrowipc

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"icepipe/pkg/rows"
)

// Limits bound what a stream may ask for. Zero members take the defaults.
type Limits struct {
	Metadata int64 // bytes of a message's metadata, the header's included; default 64 MiB
	Body     int64 // bytes of a record batch, compressed and not; default 2 GiB
}

// A ReadOption is an option of Read.
type ReadOption func(*readConfig)

type readConfig struct {
	mem      memory.Allocator
	limits   Limits
	unsealed bool
}

// WithAllocator sets where record batches take their memory from.
func WithAllocator(mem memory.Allocator) ReadOption {
	return func(c *readConfig) { c.mem = mem }
}

// WithLimits sets other limits.
func WithLimits(l Limits) ReadOption {
	return func(c *readConfig) { c.limits = l }
}

// WithUnsealedOK takes the Arrow streams of other programs too. A stream of icepipe is held to its
// seal all the same.
func WithUnsealedOK() ReadOption {
	return func(c *readConfig) { c.unsealed = true }
}

// Read takes a stream from r: the header at once, the spans as they are asked for. All spans are
// opened. It reads r to its end once the stream is over, and does not close it.
//
// Input that ends before the stream does wraps rows.ErrUnsealed, from Read where not even the
// header is there, else as the last item of Spans. Damage, and marks that contradict one another,
// are other errors.
//
// The stream of another program (WithUnsealedOK) has a header that says Foreign, and a span for
// each record batch, with cursors that count its rows. Its columns come plain: dictionaries,
// run-ends and views decoded, lists of fixed size or with views as lists, small decimals as
// decimal128, extensions as their storage but for uuid and variant. Columns with a union are
// refused by name (cases 7, 50).
func Read(r io.Reader, opts ...ReadOption) (rows.Stream, error) {
	cfg := readConfig{mem: memory.DefaultAllocator}
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.limits.Metadata <= 0 {
		cfg.limits.Metadata = 64 << 20
	}
	if cfg.limits.Body <= 0 {
		cfg.limits.Body = 2 << 30
	}
	src := newSource(r, cfg.limits, cfg.mem)
	if err := src.recognise(); err != nil {
		return rows.Stream{}, err
	}
	m, err := src.next()
	if err != nil {
		return rows.Stream{}, err
	}
	if m == nil || m.kind != kindSchema || m.head.body != 0 {
		return rows.Stream{}, errors.New("input is not an Arrow IPC stream: it does not start with a schema")
	}
	if err := src.readBody(m); err != nil {
		return rows.Stream{}, err
	}
	defer m.release()
	marks, err := checkSchema(m.flat, m.pos)
	if err != nil {
		return rows.Stream{}, m.wrong(err)
	}
	// The keys are looked for in the bytes, since one flipped bit can hide all metadata, but not
	// both keys.
	if !bytes.Contains(m.meta, []byte(keyHeader)) && !bytes.Contains(m.meta, []byte(keyHash)) {
		if !cfg.unsealed {
			return rows.Stream{}, errors.New(
				"input is an Arrow stream of another program, which cannot tell whether it is whole: --unsealed-ok takes it as it is")
		}
		return readForeign(src, m)
	}
	return readSealed(src, m, marks)
}

// marked says whether metadata is of icepipe.
func marked(pairs []pair) bool {
	for _, p := range pairs {
		if len(p.key) >= len(keyPrefix) && p.key[:len(keyPrefix)] == keyPrefix {
			return true
		}
	}
	return false
}

// readSealed reads a stream that Write wrote.
func readSealed(src *source, m *message, marks []pair) (rows.Stream, error) {
	if err := checkHeaderHash(m, marks); err != nil {
		return rows.Stream{}, m.wrong(err)
	}
	text, ok := find(marks, keyHeader)
	if !ok {
		return rows.Stream{}, m.wrong(errors.New("schema without " + keyHeader))
	}
	header, err := parseHeader(text.value)
	if err != nil {
		return rows.Stream{}, err
	}
	dec, err := newDecoder(src, m)
	if err != nil {
		return rows.Stream{}, m.wrong(err)
	}
	for _, f := range dec.schema.Fields() {
		if has(f.Type, arrow.DICTIONARY) {
			return rows.Stream{}, m.wrong(fmt.Errorf("column %q is dictionary-encoded", f.Name))
		}
	}
	s := &sealed{src: src, dec: dec, tally: newTally(header)}
	return rows.Stream{Header: header, Schema: dec.schema, Spans: s.spans, Seal: s.sealed}, nil
}

// checkHeaderHash verifies the hash that a schema message has of itself.
func checkHeaderHash(m *message, marks []pair) error {
	mark, ok := find(marks, keyHash)
	if !ok {
		return errors.New("schema without " + keyHash)
	}
	h := xxh3.New128()
	h.Write(m.prefix)
	rest := m.meta
	if len(mark.value) == len(noHash) {
		h.Write(rest[:mark.at])
		h.WriteString(noHash)
		rest = rest[mark.at+len(noHash):]
	}
	h.Write(rest)
	if hashText(h.Sum128()) != mark.value {
		return errors.New("header does not match its hash: damaged, or written anew by another program")
	}
	return nil
}

// A sealed is a stream of icepipe being read.
type sealed struct {
	src   *source
	dec   *decoder
	tally *tally
	seal  *rows.Seal
}

func (s *sealed) sealed() (rows.Seal, error) {
	if s.seal == nil {
		return rows.Seal{}, rows.ErrUnsealed
	}
	return *s.seal, nil
}

// spans yields each span once the message behind it has vouched for its bytes. What is decoded, and
// what is believed of a message but its hash, was verified before.
func (s *sealed) spans(yield func(rows.Span, error) bool) {
	defer s.dec.release()
	var held *message // read, not yet vouched for
	defer func() { held.release() }()
	fail := func(err error) { yield(rows.Span{}, err) }
	for {
		hash := s.src.hash()
		m, err := s.src.next()
		if err != nil {
			fail(err)
			return
		}
		if m == nil {
			fail(fmt.Errorf("end marker before byte %d: %w", s.src.offset, rows.ErrUnsealed))
			return
		}
		if err := vouches(m, hash); err != nil {
			fail(err)
			return
		}
		var span rows.Span
		if held != nil {
			span, err = s.open(held)
			held.release()
			held = nil
			if err != nil {
				fail(err)
				return
			}
		}
		if text, ok := find(m.pairs, keySeal); ok {
			seal, err := s.finish(m, text.value)
			if err != nil {
				span.Release()
				fail(err)
				return
			}
			if span.Batch == nil || yield(span, nil) {
				s.seal = &seal
			}
			return
		}
		if span.Batch != nil && !yield(span, nil) {
			return
		}
		held = m
		if err := s.src.readBody(m); err != nil {
			fail(err)
			return
		}
	}
}

// vouches checks that a message has the hash of all bytes before it.
func vouches(m *message, hash string) error {
	if m.kind != kindBatch {
		return m.wrong(errors.New("not a record batch"))
	}
	said, ok := find(m.pairs, keyHash)
	if !ok {
		return m.wrong(errors.New("record batch without " + keyHash))
	}
	if said.value != hash {
		return m.wrong(errors.New("the bytes before it do not match their hash: the stream is damaged"))
	}
	return nil
}

// open decodes a verified message.
func (s *sealed) open(m *message) (rows.Span, error) {
	span, err := parseSpanMarks(m.pairs)
	if err != nil {
		return rows.Span{}, m.wrong(err)
	}
	if span.Batch, err = s.dec.decode(m); err != nil {
		return rows.Span{}, m.wrong(err)
	}
	if err := s.tally.add(span, span.Batch.NumRows()); err != nil {
		span.Release()
		return rows.Span{}, m.wrong(err)
	}
	return span, nil
}

// finish reads what is left from the seal's body on to the end of the input.
func (s *sealed) finish(m *message, text string) (rows.Seal, error) {
	seal, err := parseSeal(text, m.pairs)
	if err != nil {
		return seal, m.wrong(err)
	}
	if err := s.tally.seal(seal); err != nil {
		return seal, m.wrong(err)
	}
	err = s.src.readBody(m)
	m.release()
	if err != nil {
		return seal, err
	}
	after, err := s.src.next()
	if err != nil {
		return seal, err
	}
	if after != nil {
		return seal, after.wrong(errors.New("a message behind the seal"))
	}
	return seal, s.src.end()
}
