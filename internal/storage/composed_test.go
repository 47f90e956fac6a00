//go:build !noclouds && !nos3

package storage

import (
	"fmt"
	"math/rand/v2"
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
