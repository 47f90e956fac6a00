//go:build !noclouds && !nos3

package storage

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
)

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
