//go:build !noclouds && !nos3

package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
)

const mib = 1 << 20

// noise is text that is nowhere the same.
func noise(n int) string {
	r := rand.NewChaCha8([32]byte{1})
	p := make([]byte, n)
	r.Read(p)
	return string(p)
}

// A piece of an object in the making: text, or n bytes of an open object.
type piece struct {
	text   string
	from   iceio.File
	off, n int
}

func opened(t *testing.T, all files, location string) iceio.File {
	t.Helper()
	f, err := all.Open(location)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func created(t *testing.T, all files, location string) *composed {
	t.Helper()
	w, err := all.Create(location)
	if err != nil {
		t.Fatal(err)
	}
	return w.(*composed)
}

// put appends a piece, which is read where it is not copied.
func (c *composed) put(p piece) (copied bool, err error) {
	if p.from == nil {
		_, err := c.Write([]byte(p.text))
		return false, err
	}
	done, err := c.CopyRange(p.from, int64(p.off), int64(p.n))
	if done || err != nil {
		return done, err
	}
	block := make([]byte, p.n)
	if _, err := p.from.ReadAt(block, int64(p.off)); err != nil {
		return false, err
	}
	_, err = c.Write(block)
	return false, err
}

// compose makes an object of pieces, and says how many bytes the store copied.
func compose(t *testing.T, all files, location string, pieces ...piece) int {
	t.Helper()
	c := created(t, all, location)
	for _, p := range pieces {
		if _, err := c.put(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return int(c.CopiedByStore())
}

// whole is what pieces of objects of one text are together.
func whole(text string, pieces ...piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
		if p.from != nil {
			b.WriteString(text[p.off : p.off+p.n])
		}
	}
	return b.String()
}

// Ranges that follow each other are one, which begins where the source does if the objects begin alike; nothing of
// them is read.
func TestRangesAreCopied(t *testing.T) {
	f := newFakeS3(t)
	all := filesOf(t, New(f.properties("s3.sse-kms-key-id", "k")))
	text := "PAR1" + noise(20*mib)
	f.objects["src.parquet"] = text
	src := opened(t, all, "s3a://b/src.parquet")
	src.Close() // its ranges are copied all the same
	f.requests, f.headers = nil, nil
	pieces := []piece{{text: "PAR1"}, {from: src, off: 4, n: 9 * mib}, {from: src, off: 4 + 9*mib, n: 100}, {from: src, off: 104 + 9*mib, n: 6 * mib}, {text: "footer"}}
	if n := compose(t, all, "s3://b/dst.parquet", pieces...); n != 15*mib+100 {
		t.Errorf("%d bytes were copied", n)
	}
	if f.objects["dst.parquet"] != whole(text, pieces...) {
		t.Error("the object is another one")
	}
	end := 4 + 15*mib + 100
	want := []string{"GET src.parquet bytes=0-3", "POST dst.parquet", fmt.Sprintf("PUT dst.parquet 1 b/src.parquet bytes=0-%d", end-1), "PUT dst.parquet 2", "POST dst.parquet", "HEAD dst.parquet"}
	if !slices.Equal(f.requests, want) {
		t.Errorf("requests %q, want %q", f.requests, want)
	}
	if h := f.headers[1]; h.Get("X-Amz-Server-Side-Encryption") != "aws:kms" || h.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id") != "k" || h.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("the upload is begun with %v", h)
	}
}

// Parts are as large as they must be: what is too small for one is read, and no more than that.
func TestPartSizes(t *testing.T) {
	f := newFakeS3(t)
	all := filesOf(t, New(f.properties()))
	text := noise(150 * mib)
	f.objects["src.parquet"] = text
	src := opened(t, all, "s3://b/src.parquet")
	at := func(off, n int) piece { return piece{from: src, off: off, n: n} }
	for name, tt := range map[string]struct {
		pieces []piece
		copied int
		parts  int // 0: one request
	}{
		"nothing":                     {nil, 0, 0},
		"small":                       {[]piece{{text: "a"}, at(7, 100), {text: "b"}}, 0, 0},
		"smaller than a part":         {[]piece{at(0, 5*mib-1), {text: "b"}}, 0, 0},
		"a part":                      {[]piece{at(0, 5*mib), {text: "b"}}, 5 * mib, 2},
		"without an end":              {[]piece{at(0, 5*mib)}, 5 * mib, 1},
		"bytes in front":              {[]piece{{text: "abcd"}, at(7, 10*mib-4), {text: "b"}}, 5 * mib, 3},
		"too few behind the bytes":    {[]piece{{text: "abcd"}, at(7, 10*mib-5), {text: "b"}}, 0, 2},
		"a part in front":             {[]piece{at(3, 1), {text: noise(5*mib - 1)}, at(7, 5*mib), {text: "b"}}, 5 * mib, 3},
		"more than a part in front":   {[]piece{at(3, 1), {text: noise(20 * mib)}, at(7, 6*mib)}, 5*mib + 1, 4},
		"other bytes where it begins": {[]piece{{text: "abcd"}, at(4, 20*mib)}, 15*mib + 4, 2},
		"equal bytes, of many":        {[]piece{{text: text[:17]}, at(17, 20*mib)}, 15*mib + 17, 2},
		"ranges apart":                {[]piece{at(0, 6*mib), at(7*mib, 6*mib), at(1, 6*mib)}, 18 * mib, 3},
		"bytes between":               {[]piece{at(0, 6*mib), {text: "x"}, at(6*mib, 11*mib), {text: "y"}, at(0, 3), at(9, 5*mib), {text: "z"}}, 12*mib + 1, 4},
		"equal parts":                 {[]piece{at(0, 130*mib), {text: "b"}}, 130 * mib, 4},
		"announced":                   {[]piece{at(0, 0), {text: noise(6 * mib)}, at(7, 5*mib)}, 5 * mib, 2},
		"not announced":               {[]piece{{text: noise(6 * mib)}, at(7, 5*mib)}, 0, 0},
	} {
		f.requests = nil
		if n := compose(t, all, "s3://b/dst.parquet", tt.pieces...); n != tt.copied {
			t.Errorf("%s: %d bytes were copied, want %d", name, n, tt.copied)
		}
		if f.objects["dst.parquet"] != whole(text, tt.pieces...) {
			t.Errorf("%s: the object is another one", name)
		}
		parts, fetched := 0, false
		for _, r := range f.requests {
			if strings.HasPrefix(r, "PUT dst.parquet ") {
				parts++
			}
			fetched = fetched || strings.HasPrefix(r, "GET")
		}
		if parts != tt.parts || len(f.uploads) > 0 || tt.copied == 130*mib && fetched {
			t.Errorf("%s: %d parts, want %d: %q", name, parts, tt.parts, f.requests)
		}
	}
}

// Whatever pieces an object is made of, it is made of them.
func TestComposedAtRandom(t *testing.T) {
	f := newFakeS3(t)
	all := filesOf(t, New(f.properties()))
	text := noise(40 * mib)
	f.objects["a.parquet"], f.objects["b.parquet"] = text, text
	sources := []iceio.File{opened(t, all, "s3://b/a.parquet"), opened(t, all, "s3://b/b.parquet")}
	sizes := []int{1, 4, 100, 64 << 10, mib, 5*mib - 4, 5*mib - 1, 5 * mib, 5*mib + 1, 8 * mib, 9 * mib, 12 * mib}
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		var pieces []piece
		at := 0
		for range 1 + r.IntN(7) {
			n := sizes[r.IntN(len(sizes))]
			switch r.IntN(3) {
			case 0:
				pieces = append(pieces, piece{text: text[n : 2*n]})
			case 1:
				at = r.IntN(len(text) - n)
				fallthrough
			default: // behind the one before, perhaps
				at = min(at, len(text)-n)
				pieces = append(pieces, piece{from: sources[r.IntN(2)], off: at, n: n})
				at += n
			}
		}
		n := compose(t, all, "s3://b/dst.parquet", pieces...)
		if want := whole(text, pieces...); f.objects["dst.parquet"] != want || n > len(want) {
			t.Errorf("%d: %d bytes of %d, %d copied", i, len(f.objects["dst.parquet"]), len(want), n)
		}
	}
}

// An object never needs more parts than there may be, and none is too large.
func TestManyParts(t *testing.T) {
	m := newMultipart(objects{files: files{ctx: t.Context(), Store: New(nil)}}, "s3://b/x")
	least := int64(0)
	for range mostParts {
		p, err := m.number()
		if err != nil || int(*p.PartNumber) != len(m.list)+1 {
			t.Fatal(p, err)
		}
		least += m.scaled(leastPart)
		m.list = append(m.list, p)
	}
	if least < 4<<40 {
		t.Errorf("%d bytes take as many parts as there may be", least)
	}
	if _, err := m.number(); err == nil || !strings.Contains(err.Error(), "more than 10000 parts") {
		t.Error(err)
	}
}

// Copies that the store refuses are read, and not asked for again between these buckets; what fails for the moment is
// read alone.
func TestRefusedCopies(t *testing.T) {
	text := noise(132 * mib)
	for name, tt := range map[string]struct {
		refuse       func(nth int) (int, string)
		first, again int // copies that are asked for
		copied       int
	}{
		"access denied":   {func(int) (int, string) { return 403, "AccessDenied" }, 1, 1, 0},
		"not implemented": {func(int) (int, string) { return 501, "NotImplemented" }, 1, 1, 0},
		"for the moment":  {func(nth int) (int, string) { return map[bool]int{true: 400}[nth == 1], "ExpiredToken" }, 1, 4, 0},
		"in the middle":   {func(nth int) (int, string) { return map[bool]int{true: 403}[nth == 2], "AccessDenied" }, 3, 3, 88 * mib},
	} {
		if testing.Short() && name != "in the middle" {
			continue
		}
		f := newFakeS3(t)
		f.objects["src.parquet"], f.refuseCopies = text, tt.refuse
		all := filesOf(t, New(f.properties()))
		for i, want := range []int{tt.first, tt.again} {
			src := opened(t, all, "s3://b/src.parquet")
			pieces := []piece{{from: src, n: 132 * mib}, {text: "e"}}
			n := compose(t, all, "s3://b/dst.parquet", pieces...)
			if f.objects["dst.parquet"] != whole(text, pieces...) || f.copies != want || i == 0 && n != tt.copied {
				t.Errorf("%s, %d: %d copies, want %d; %d bytes", name, i, f.copies, want, n)
			}
			if refused := tt.first == tt.again; i > 0 && refused != (n == 0) {
				t.Errorf("%s: then %d bytes", name, n)
			}
		}
	}
}

// A source that has changed ends it, named, whether it is copied or read; what was sent is dropped.
func TestChangedSource(t *testing.T) {
	for _, size := range []int{100, 10 * mib, 130 * mib} {
		for _, refused := range []bool{false, true} {
			f := newFakeS3(t)
			f.objects["src.parquet"] = noise(size)
			all := filesOf(t, New(f.properties()))
			if refused {
				f.refuseCopies = func(int) (int, string) { return 403, "AccessDenied" }
			}
			src := opened(t, all, "s3://b/src.parquet")
			f.objects["src.parquet"] = noise(size - 1)
			c := created(t, all, "s3://b/dst.parquet")
			_, err := c.put(piece{from: src, n: size - 1})
			if err == nil {
				err = c.Close()
			}
			if err == nil || !strings.Contains(err.Error(), `s3://b/src.parquet: PreconditionFailed: not so; it has changed since it was opened`) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%d bytes: %v", size, err)
			}
			if _, there := f.objects["dst.parquet"]; there || len(f.uploads) > 0 || size >= 10*mib && f.aborted != 1 {
				t.Errorf("%d bytes: %d uploads are left, %d dropped", size, len(f.uploads), f.aborted)
			}
		}
	}
}

// An object that is given up leaves nothing behind, after an interrupt too, and one that is made of half of the bytes
// is none.
func TestComposedGivenUp(t *testing.T) {
	f := newFakeS3(t)
	f.objects["src.parquet"] = noise(20 * mib)
	for i, end := range []func(c *composed, cancel func()) error{
		func(c *composed, cancel func()) error { return c.Abort() },
		func(c *composed, cancel func()) error { cancel(); return c.Abort() },
		func(c *composed, cancel func()) error {
			cancel()
			err := c.Close()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("closed after the interrupt: %v", err)
			}
			return c.Abort()
		},
		func(c *composed, cancel func()) error {
			f.change(func() { f.refuse["key"] = "Strange" })
			if err := c.Close(); err == nil || !strings.HasPrefix(err.Error(), "write s3://b/dst.parquet: ") || !strings.HasSuffix(err.Error(), "Strange: not you") {
				t.Errorf("closed where the store refuses: %v", err)
			}
			f.change(func() { delete(f.refuse, "key") })
			return c.Abort()
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		fs, err := New(f.properties()).FS(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all := fs.(files)
		src := opened(t, all, "s3://b/src.parquet")
		c := created(t, all, "s3://b/dst.parquet")
		for _, p := range []piece{{from: src, n: 6 * mib}, {text: "x"}, {from: src, n: 14 * mib}, {text: "y"}} {
			if _, err := c.put(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := end(c, cancel); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		cancel()
		if len(f.objects) != 1 || len(f.uploads) > 0 || f.aborted != i+1 {
			t.Errorf("%d: objects %d, %d uploads, %d of them dropped", i, len(f.objects), len(f.uploads), f.aborted)
		}
	}
}

// Copies are of the very keys, whatever these hold.
func TestOddCopies(t *testing.T) {
	f := newFakeS3(t)
	all := filesOf(t, New(f.properties()))
	text := noise(6 * mib)
	for _, key := range []string{"a b/c.parquet", "100%/x.parquet", "a%20b.parquet", "a+b&c=d.parquet", "größe/表.parquet", "q?x=1.parquet", "h#y.parquet", "p=../x.parquet", "a//b.parquet", "co:lon.parquet"} {
		f.objects[key] = text
		src := opened(t, all, "s3://b/"+key)
		f.headers = nil
		if n := compose(t, all, "s3://b/to/"+key, piece{from: src, n: 6 * mib}); n != 6*mib || f.objects["to/"+key] != text {
			t.Errorf("%q: %d bytes copied, %d there", key, n, len(f.objects["to/"+key]))
		}
		for _, h := range f.headers {
			if source := h.Get("X-Amz-Copy-Source"); source != "" {
				if decoded, err := url.QueryUnescape(source); err != nil || decoded != "b/"+key {
					t.Errorf("%q is copied from %q", key, source)
				}
			}
		}
	}
}

// Keys that end are replaced in the middle of an upload.
func TestKeysAreReplacedBetweenParts(t *testing.T) {
	f := newFakeS3(t)
	v := &vendor{f: f, user: "first", made: map[string]iceio.IO{}}
	all := filesOf(t, Vended(f.properties(), "s3://b/t/metadata/v1.json", v))
	text := noise(20 * mib)
	f.objects["src.parquet"] = text
	src := opened(t, all, "s3://b/src.parquet")
	pieces := []piece{{from: src, n: 6 * mib}, {text: "x"}, {from: src, off: 3, n: 14 * mib}, {text: "y"}}
	for at := range pieces {
		f.change(func() { delete(f.refuse, "first") })
		v.user, v.renewed = "first", 0 // nothing is on its way
		c := created(t, all, "s3://b/dst.parquet")
		for i, p := range pieces {
			if i == at {
				f.change(func() { f.refuse["first"] = "ExpiredToken" })
			}
			if copied, err := c.put(p); err != nil || copied != (p.from != nil) {
				t.Fatal(copied, err)
			}
		}
		if err := c.Close(); err != nil || v.renewed != 1 || f.objects["dst.parquet"] != whole(text, pieces...) {
			t.Errorf("ended before piece %d: %v, renewed %d times", at, err, v.renewed)
		}
	}
}

// Ranges are not copied of what is not an object of the same server, nor can they lie beside it; a server that knows
// no ranges is found out.
func TestNotCopied(t *testing.T) {
	f, other := newFakeS3(t), newFakeS3(t)
	all, there := filesOf(t, New(f.properties())), filesOf(t, New(other.properties()))
	f.objects["src.parquet"], other.objects["src.parquet"], f.objects["src.avro"] = noise(9*mib), noise(9*mib), "text"
	avro := opened(t, all, "s3://b/src.avro")
	for name, from := range map[string]any{
		"no object": strings.NewReader("x"), "nothing": nil, "another server's": opened(t, there, "s3://b/src.parquet"), "one without ETag": avro,
	} {
		c := created(t, all, "s3://b/dst.parquet")
		if done, err := c.CopyRange(from, 0, 1); done || err != nil {
			t.Errorf("%s: %v, %v", name, done, err)
		}
	}
	avro.Close()
	src := opened(t, all, "s3://b/src.parquet")
	for _, at := range [][2]int64{{-1, 1}, {0, 9*mib + 1}, {9*mib + 1, 0}, {1, 9 * mib}, {1, 1<<63 - 1}, {0, -1}} {
		c := created(t, all, "s3://b/dst.parquet")
		if done, err := c.CopyRange(src, at[0], at[1]); done || err == nil || !strings.Contains(err.Error(), "copy s3://b/src.parquet: the range does not lie in it") {
			t.Errorf("%v: %v, %v", at, done, err)
		}
	}
	f.blind = true
	c := created(t, all, "s3://b/dst.parquet")
	if _, err := c.put(piece{from: src, off: 1, n: 6 * mib}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "it does not copy ranges of objects") {
		t.Errorf("a server that is blind: %v", err)
	}
}
