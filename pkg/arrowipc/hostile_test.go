package arrowipc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

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

// stride is the distance of the places of a stream that are tried: all of them, but for a look at races.
func stride() int {
	if testing.Short() {
		return 7
	}
	return 1
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
		for n := 0; n < len(whole); n += stride() {
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
		for i := 0; i < len(whole); i += stride() {
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
