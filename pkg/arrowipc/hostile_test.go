package arrowipc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/arrowipc"
	"icepipe/pkg/rows"
)

// boundaries are the offsets of the messages of a whole stream, the end marker's included.
func boundaries(t testing.TB, b []byte) []int {
	t.Helper()
	var at []int
	for pos := 0; pos < len(b); {
		at = append(at, pos)
		n := int(binary.LittleEndian.Uint32(b[pos+4:]))
		if n == 0 {
			break
		}
		meta := b[pos+8 : pos+8+n]
		root := int(binary.LittleEndian.Uint32(meta))
		vtable := root - int(int32(binary.LittleEndian.Uint32(meta[root:])))
		body, size := 0, int(binary.LittleEndian.Uint16(meta[vtable:]))
		if size < 4+2*4 {
			pos += 8 + n
			continue
		}
		if off := int(binary.LittleEndian.Uint16(meta[vtable+4+2*3:])); off != 0 {
			body = int(binary.LittleEndian.Uint64(meta[root+off:]))
		}
		pos += 8 + n + body
	}
	return at
}

func isPrefix(got, want []string) bool {
	return len(got) <= len(want) && slices.Equal(got, want[:len(got)])
}

// A stream that ends early, at whatever byte, is unsealed, and yields no span that the next message
// has not vouched for (case 94).
func TestCutAtEveryByte(t *testing.T) {
	for _, compression := range []string{"none", "zstd"} {
		whole := writtenNarrow(t, arrowipc.WithCompression(compression))
		want := read(t, whole)
		at := boundaries(t, whole)
		if len(at) != 1+len(script())+2 {
			t.Fatalf("%d messages", len(at))
		}
		for n := range len(whole) {
			got := read(t, whole[:n])
			if !errors.Is(got.err, rows.ErrUnsealed) || !strings.Contains(got.err.Error(), "stream ended before its seal") {
				t.Fatalf("cut at %d: error %v", n, got.err)
			}
			if got.seal != "" {
				t.Fatalf("cut at %d: sealed", n)
			}
			if !isPrefix(got.spans, want.spans) {
				t.Fatalf("cut at %d: other spans", n)
			}
			// A span is vouched for by the message behind the next boundary.
			most := 0
			for i := 2; i < len(at) && at[i] < n; i++ {
				most = i - 1
			}
			if most == len(want.spans) {
				most-- // the last one waits for the end of the input
			}
			if len(got.spans) > most {
				t.Fatalf("cut at %d: %d spans, at most %d are vouched for", n, len(got.spans), most)
			}
		}
	}
}

// A flipped bit is found, or does not matter; never are other rows read. It is always found in front
// of the seal.
func TestFlipInEachByte(t *testing.T) {
	for _, compression := range []string{"none", "lz4", "zstd"} {
		whole := writtenNarrow(t, arrowipc.WithCompression(compression))
		want := read(t, whole)
		at := boundaries(t, whole)
		first, seal := at[1], at[len(at)-2]
		for i := range whole {
			if compression != "none" && (i < first || testing.Short()) {
				continue // the same bytes but for the header's
			}
			b := slices.Clone(whole)
			b[i] ^= 1 << rand.IntN(8)
			var opts []arrowipc.ReadOption
			if i < first && i%2 == 0 {
				opts = append(opts, arrowipc.WithUnsealedOK())
			}
			got := read(t, b, opts...)
			if got.err == nil && (i < seal || got.seal != want.seal || len(got.spans) != len(want.spans)) {
				t.Fatalf("flip at %d (%08b): no error, %d spans, seal %s", i, b[i]^whole[i], len(got.spans), got.seal)
			}
			if !isPrefix(got.spans, want.spans) {
				t.Fatalf("flip at %d (%08b): other rows", i, b[i]^whole[i])
			}
			if got.header != "" && got.header != want.header {
				t.Fatalf("flip at %d: other header", i)
			}
		}
	}
}

// Two messages that change places, one that is missing, one that comes twice.
func TestMessagesMoved(t *testing.T) {
	whole := written(t)
	want := read(t, whole)
	at := append(boundaries(t, whole), len(whole))
	message := func(i int) []byte { return whole[at[i]:at[i+1]] }
	n := len(at) - 1
	for i := 1; i < n-1; i++ {
		for name, order := range map[string][]int{"without": {}, "twice": {i, i}} {
			var b []byte
			for k := range n {
				if k != i {
					b = append(b, message(k)...)
					continue
				}
				for _, m := range order {
					b = append(b, message(m)...)
				}
			}
			got := read(t, b)
			if got.err == nil || !isPrefix(got.spans, want.spans) {
				t.Errorf("%s message %d: %v, %d spans", name, i, got.err, len(got.spans))
			}
		}
	}
}

func TestInputGoesOn(t *testing.T) {
	whole := written(t)
	for _, more := range [][]byte{{0}, whole} {
		got := read(t, append(slices.Clone(whole), more...))
		if got.err == nil || errors.Is(got.err, rows.ErrUnsealed) || got.seal != "" {
			t.Errorf("%d bytes behind the end: %v", len(more), got.err)
		}
	}
}

// Read takes the input to its end, or its writer dies of SIGPIPE.
func TestDrains(t *testing.T) {
	r := &counting{r: bytes.NewReader(written(t))}
	in, err := arrowipc.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	collect(t, in)
	if !r.eof {
		t.Error("the end of the input was not read")
	}
}

type counting struct {
	r   io.Reader
	eof bool
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p[:min(len(p), 7)]) // short reads, as of a pipe
	c.eof = c.eof || err == io.EOF
	return n, err
}

func TestReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	whole := written(t)
	in, err := arrowipc.Read(io.MultiReader(bytes.NewReader(whole[:len(whole)-20]), &failing{broken}))
	if err != nil {
		t.Fatal(err)
	}
	if got := collect(t, in); !errors.Is(got.err, broken) || errors.Is(got.err, rows.ErrUnsealed) {
		t.Errorf("got %v", got.err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// Input of another format is refused by name.
func TestOtherFormats(t *testing.T) {
	for in, want := range map[string]string{
		"ARROW1\x00\x00xx":                 "Arrow IPC file",
		"PAR1\x15\x04":                     "Parquet file",
		"\x1f\x8b\x08\x00xxxx":             "gzip",
		"\x28\xb5\x2f\xfd\x00\x00":         "zstd",
		"id,name\n1,a\n":                   "not an Arrow IPC stream",
		`{"id":1}` + "\n":                  "not an Arrow IPC stream",
		"\xff\xff\xff\xff\x00\x00\x00\x00": "does not start with a schema",
	} {
		_, err := arrowipc.Read(strings.NewReader(in), arrowipc.WithUnsealedOK())
		if err == nil || errors.Is(err, rows.ErrUnsealed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// Lengths that the input does not bear out are not believed.
func TestHostileLengths(t *testing.T) {
	whole := written(t)
	at := boundaries(t, whole)
	u32 := func(pos int, v uint32) []byte {
		b := slices.Clone(whole)
		binary.LittleEndian.PutUint32(b[pos:], v)
		return b
	}
	inputs := map[string][]byte{
		"schema metadata 64 MiB": u32(4, 64<<20),
		"schema metadata 2 GiB":  u32(4, 1<<31-1),
		"batch metadata 64 MiB":  u32(at[1]+4, 64<<20),
		"batch metadata -8":      u32(at[1]+4, 1<<32-8),
	}
	// Every word of the schema and of the first record batch's metadata, at its largest.
	for pos := 8; pos < at[2]; pos += 4 {
		for _, v := range []uint32{1<<31 - 1, 1 << 28, 1<<32 - 1} {
			got, grew := allocated(t, u32(pos, v))
			if got.err == nil && pos < at[1] {
				t.Errorf("word at %d as %#x: no error", pos, v)
			}
			if grew > 48<<20 {
				t.Fatalf("word at %d as %#x: %d MiB allocated (%v)", pos, v, grew>>20, got.err)
			}
		}
	}
	for name, in := range inputs {
		got, grew := allocated(t, in)
		if got.err == nil || grew > 48<<20 {
			t.Errorf("%s: %v, %d MiB allocated", name, got.err, grew>>20)
		}
	}
}

// allocated reads b as a stream of our own and as a foreign one, and says how many bytes that took.
func allocated(t *testing.T, b []byte) (reading, uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := read(t, b, arrowipc.WithUnsealedOK())
	runtime.ReadMemStats(&after)
	return got, after.TotalAlloc - before.TotalAlloc
}

func TestLimits(t *testing.T) {
	whole := written(t)
	for _, l := range []arrowipc.Limits{{Metadata: 1000}, {Body: 100}} {
		if got := read(t, whole, arrowipc.WithLimits(l)); got.err == nil || errors.Is(got.err, rows.ErrUnsealed) {
			t.Errorf("%+v: %v", l, got.err)
		}
	}
	one := stream(t, memory.DefaultAllocator)
	one.Header.First, one.Header.BatchRows = rows.Cursor{}, 0
	one.Spans = func(yield func(rows.Span, error) bool) {
		yield(rows.Span{To: rows.Cursor{Row: 3000}, Rows: 3000, Batch: testBatch(t, memory.DefaultAllocator, one.Schema, 0, 3000)}, nil)
	}
	one.Seal = func() (rows.Seal, error) { return rows.Seal{Rows: 3000, Last: rows.Cursor{Row: 3000}}, nil }
	var packed bytes.Buffer
	if _, err := arrowipc.Write(context.Background(), &packed, one, arrowipc.WithCompression("zstd")); err != nil {
		t.Fatal(err)
	}
	limit := arrowipc.WithLimits(arrowipc.Limits{Body: int64(packed.Len())})
	if got := read(t, packed.Bytes(), limit); got.err == nil || !strings.Contains(got.err.Error(), "compressed record batch of more than") {
		t.Errorf("decompressed size is not limited: %v", got.err)
	}
}

// Marks that contradict the rows or one another are refused at both ends.
func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(spans []rows.Span, seal *rows.Seal, h *rows.Header)
		want   string
	}{
		"gap":             {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].From.Row++ }, "the one before ends at"},
		"start":           {func(_ []rows.Span, _ *rows.Seal, h *rows.Header) { h.First.Row++ }, "the one before ends at"},
		"backwards":       {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[0].To.Row = 1 }, "before its start"},
		"count":           {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[0].Rows++ }, "keeps 4 rows, its record batch has 3"},
		"bitmap":          {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].Kept = []byte{0b11} }, "keeps 2 rows"},
		"bitmap length":   {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].Kept = []byte{0b10, 0} }, "bitmap of 2 bytes"},
		"bitmap tail":     {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].Kept = []byte{0b110} }, "bits behind"},
		"batch end":       {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].EndsBatch = false }, "crosses the end of a batch"},
		"seal rows":       {func(_ []rows.Span, s *rows.Seal, _ *rows.Header) { s.Rows-- }, "seal says 13 rows"},
		"seal rejects":    {func(_ []rows.Span, s *rows.Seal, _ *rows.Header) { s.Rejects = 0 }, "seal says 0 rejects"},
		"seal last":       {func(_ []rows.Span, s *rows.Seal, _ *rows.Header) { s.Last.Row++ }, "seal says that the stream ends"},
		"protocol":        {func(_ []rows.Span, _ *rows.Seal, h *rows.Header) { h.Protocol = 9 }, "protocol 9"},
		"unknown feature": {func(_ []rows.Span, _ *rows.Seal, h *rows.Header) { h.Requires = []string{"magic"} }, `requires "magic"`},
		"foreign":         {func(_ []rows.Span, _ *rows.Seal, h *rows.Header) { h.Foreign = true }, "another program"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			spans, in := script(), stream(t, mem)
			seal, _ := in.Seal()
			real := script()
			c.change(spans, &seal, &in.Header)
			in.Seal = func() (rows.Seal, error) { return seal, nil }
			in.Spans = func(yield func(rows.Span, error) bool) {
				for i, s := range spans {
					s.Batch = testBatch(t, mem, in.Schema, 0, left(real[i]))
					if !yield(s, nil) {
						return
					}
				}
			}
			var b bytes.Buffer
			_, err := arrowipc.Write(context.Background(), &b, in)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if got := read(t, b.Bytes()); !errors.Is(got.err, rows.ErrUnsealed) {
				t.Errorf("what was written reads as %v", got.err)
			}
		})
	}
}

// A stream whose source fails is not sealed, and neither is one whose source never was.
func TestWriteDoesNotSign(t *testing.T) {
	broken := errors.New("source broke")
	for name, change := range map[string]func(*rows.Stream){
		"error": func(in *rows.Stream) {
			spans := in.Spans
			in.Spans = func(yield func(rows.Span, error) bool) {
				n := 0
				for s, err := range spans {
					if n++; n == 3 {
						s.Release()
						yield(rows.Span{}, broken)
						return
					}
					if !yield(s, err) {
						return
					}
				}
			}
		},
		"unsealed": func(in *rows.Stream) {
			in.Seal = func() (rows.Seal, error) { return rows.Seal{}, broken }
		},
	} {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		in := stream(t, mem)
		change(&in)
		var b bytes.Buffer
		if _, err := arrowipc.Write(context.Background(), &b, in); !errors.Is(err, broken) {
			t.Errorf("%s: Write: %v", name, err)
		}
		if got := read(t, b.Bytes()); !errors.Is(got.err, rows.ErrUnsealed) {
			t.Errorf("%s: read as %v", name, got.err)
		}
		mem.AssertSize(t, 0)
	}
}

// A writer that fails at its k-th byte gives its error, and frees what it holds.
func TestWriteFailsAnywhere(t *testing.T) {
	whole := len(written(t))
	for n := 0; n < whole; n += 97 {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		w := &short{left: n}
		if _, err := arrowipc.Write(context.Background(), w, stream(t, mem), arrowipc.WithWriteAllocator(mem)); !errors.Is(err, errShort) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		mem.AssertSize(t, 0)
	}
}

var errShort = errors.New("no space left")

type short struct{ left int }

func (s *short) Write(p []byte) (int, error) {
	if len(p) > s.left {
		n := s.left
		s.left = 0
		return n, errShort
	}
	s.left -= len(p)
	return len(p), nil
}

func TestWriteOptions(t *testing.T) {
	in := stream(t, memory.DefaultAllocator)
	if _, err := arrowipc.Write(context.Background(), io.Discard, in, arrowipc.WithCompression("gzip")); err == nil || !strings.Contains(err.Error(), `"gzip"`) {
		t.Errorf("gzip: %v", err)
	}
	in.Schema = arrow.NewSchema([]arrow.Field{{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}}}, nil)
	if _, err := arrowipc.Write(context.Background(), io.Discard, in); err == nil || !strings.Contains(err.Error(), `"d"`) {
		t.Errorf("dictionary: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := arrowipc.Write(ctx, io.Discard, stream(t, memory.DefaultAllocator)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Promises are opened before they are sent.
func TestWriteOpensSpans(t *testing.T) {
	want := collect(t, stream(t, memory.DefaultAllocator))
	in := stream(t, memory.DefaultAllocator)
	inner := in.Spans
	in.Spans = func(yield func(rows.Span, error) bool) {
		yield(rows.Span{Read: func(context.Context) iter.Seq2[rows.Span, error] { return inner }}, nil)
	}
	var b bytes.Buffer
	if _, err := arrowipc.Write(context.Background(), &b, in); err != nil {
		t.Fatal(err)
	}
	compare(t, read(t, b.Bytes()), want)
}

// The reader goes on as soon as it may: it has span k before the writer is asked for span k+2.
func TestFlushes(t *testing.T) {
	pr, pw := io.Pipe()
	step := make(chan struct{})
	in := stream(t, memory.DefaultAllocator)
	inner := in.Spans
	in.Spans = func(yield func(rows.Span, error) bool) {
		n := 0
		for s, err := range inner {
			if n++; n > 2 {
				<-step
			}
			if !yield(s, err) {
				return
			}
		}
	}
	done := make(chan error)
	go func() {
		_, err := arrowipc.Write(context.Background(), pw, in)
		pw.CloseWithError(err)
		done <- err
	}()
	out, err := arrowipc.Read(pr)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for s, err := range out.Spans {
		if err != nil {
			t.Fatal(err)
		}
		s.Release()
		if n++; n <= len(script())-2 {
			step <- struct{}{}
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// FuzzRead: whatever the input, Read returns, and what it yields is well-formed.
func FuzzRead(f *testing.F) {
	for _, c := range []string{"none", "lz4", "zstd"} {
		f.Add(written(f, arrowipc.WithCompression(c)))
	}
	files, _ := filepath.Glob("testdata/*.arrows")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, opts := range [][]arrowipc.ReadOption{nil, {arrowipc.WithUnsealedOK()}} {
			opts = append(opts, arrowipc.WithLimits(arrowipc.Limits{Body: 16 << 20, Metadata: 1 << 20}))
			in, err := arrowipc.Read(bytes.NewReader(b), opts...)
			if err != nil {
				continue
			}
			for s, err := range in.Spans {
				if err != nil {
					break
				}
				if s.Batch.NumRows() < 1000 {
					for _, col := range s.Batch.Columns() {
						for i := range col.Len() {
							col.ValueStr(i)
						}
					}
				}
				s.Release()
			}
		}
	})
}
