//go:build !noclouds && !nos3

package storage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func filesOf(t *testing.T, s *Store) files {
	t.Helper()
	fs, err := s.FS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fs.(files)
}

// Objects are read by ranges, in one request each, and those that are read from their beginning by one.
func TestObjectsAreReadByRanges(t *testing.T) {
	f := newFakeS3(t)
	all := filesOf(t, New(f.properties()))
	text := strings.Repeat("0123456789", 100)
	for _, name := range []string{"a/x.parquet", "a/x.avro"} {
		if err := all.WriteFile("s3://b/"+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	f.requests = nil
	file, err := all.Open("s3a://b/a/x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if st, err := file.Stat(); err != nil || st.Size() != 1000 || st.ModTime().Unix() != 1e9 {
		t.Errorf("stat %v, %v", st, err)
	}
	p := make([]byte, 20)
	if n, err := file.ReadAt(p, 985); n != 15 || err != io.EOF || string(p[:15]) != text[985:] {
		t.Errorf("%d, %v, %q", n, err, p)
	}
	if n, err := file.ReadAt(p, 1000); n != 0 || err != io.EOF {
		t.Errorf("behind the end %d, %v", n, err)
	}
	if at, err := file.Seek(-5, io.SeekEnd); at != 995 || err != nil {
		t.Errorf("at %d, %v", at, err)
	}
	if rest, err := io.ReadAll(file); string(rest) != "56789" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	whole, err := all.ReadFile("s3://b/a/x.avro")
	if err != nil || string(whole) != text {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	want := []string{"HEAD a/x.parquet", "GET a/x.parquet bytes=985-999", "GET a/x.parquet bytes=995-", "GET a/x.avro"}
	if !slices.Equal(f.requests, want) {
		t.Errorf("requests %q, want %q", f.requests, want)
	}
}

// A body that breaks off is asked for again from there, and its end is never taken for that of the file.
func TestBrokenBodies(t *testing.T) {
	f := newFakeS3(t)
	text := strings.Repeat("abcdefghij", 1000)
	f.objects["x.parquet"], f.objects["x.json"] = text, text
	all := filesOf(t, New(f.properties()))
	f.cut = 5
	whole, err := all.ReadFile("s3://b/x.json")
	if err != nil || string(whole) != text {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	file, err := all.Open("s3://b/x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	f.cut = 4
	p := make([]byte, len(text))
	if n, err := file.ReadAt(p, 0); n != len(text) || err != nil || string(p) != text {
		t.Errorf("%d bytes, %v", n, err)
	}
	f.cut = 1 << 20 // a body of one byte cannot be cut
	if n, err := file.ReadAt(p, 0); n != len(text) || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	delete(f.objects, "x.parquet")
	if n, err := file.ReadAt(p, 0); n != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of an object that is gone %d bytes, %v", n, err)
	}
}

// An object that the server says it made, and did not, or not whole, is an error of whoever wrote it: else a table would
// name it.
func TestNotKept(t *testing.T) {
	f := newFakeS3(t)
	all := filesOf(t, New(f.properties()))
	f.objects["src.parquet"] = noise(6 * mib)
	src := opened(t, all, "s3://b/src.parquet")
	write := func(text string, ranges bool) error {
		w := created(t, all, "s3://b/x.parquet")
		if ranges {
			if _, err := w.put(piece{from: src, off: 0, n: 6 * mib}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.put(piece{text: text}); err != nil {
			t.Fatal(err)
		}
		return w.Close()
	}
	for name, again := range map[string]func() error{
		"a text":           func() error { return all.WriteFile("s3://b/x.avro", []byte("text")) },
		"one request":      func() error { return write("text", false) },
		"parts":            func() error { return write(noise(20*mib), false) },
		"parts and ranges": func() error { return write(noise(6*mib), true) },
	} {
		f.change(func() { f.forgets = true; delete(f.objects, "x.parquet") })
		if err := again(); err == nil || !strings.Contains(err.Error(), "s3://b/x.") || !strings.Contains(err.Error(), "the server says that it made this object, and has none of that name") {
			t.Errorf("%s, forgotten: %v", name, err)
		}
		f.change(func() { f.forgets, f.shortens = false, 1 })
		if err := again(); err == nil || !strings.Contains(err.Error(), "s3://b/x.") || !strings.Contains(err.Error(), "bytes of it, not ") {
			t.Errorf("%s, cut short: %v", name, err)
		}
		f.change(func() { f.shortens = 0 })
		if err := again(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What comes for a range is taken only if it says that it is that range: a server may answer with all of the object.
func TestOtherRanges(t *testing.T) {
	f := newFakeS3(t)
	f.objects["x.parquet"] = strings.Repeat("abcdefghij", 1000)
	all := filesOf(t, New(f.properties()))
	file, err := all.Open("s3://b/x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 100)
	for _, c := range []struct {
		deaf bool
		late int
		says string
	}{{true, 0, "the whole object"}, {false, 1, "bytes 5001-5099/10000"}} {
		f.change(func() { f.deaf, f.late = c.deaf, c.late })
		if n, err := file.ReadAt(p, 5000); n != 0 || err == nil || !strings.Contains(err.Error(), "answered a request for bytes 5000-5099 with "+c.says) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if _, err := file.Seek(7000, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if n, err := file.Read(p); n != 0 || err == nil || !strings.Contains(err.Error(), "answered a request for bytes 7000- with") {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	f.change(func() { f.deaf, f.late = false, 0 })
	if n, err := file.ReadAt(p, 5000); n != 100 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// Keys are used as they stand, whatever they hold.
func TestKeysAsTheyStand(t *testing.T) {
	f := newFakeS3(t)
	all := filesOf(t, New(f.properties()))
	for _, key := range []string{
		"plain", "a b/c", "100%/x", "a%20b", "a+b&c=d", "größe/表", "q?x=1", "h#y", "p=../x.parquet", "a//b", "a/./b", "l\tm", "co:lon", "__0x2f__",
	} {
		location := "s3://b/" + key
		if err := all.WriteFile(location, []byte(key)); err != nil {
			t.Errorf("%q: %v", key, err)
			continue
		}
		if f.objects[key] != key {
			t.Errorf("%q is written elsewhere: %q", key, f.requests[len(f.requests)-1])
		}
		got, err := all.ReadFile(location)
		if err != nil || string(got) != key {
			t.Errorf("%q reads %q, %v", key, got, err)
		}
	}
	if err := all.Remove("s3://b/p=../x.parquet"); err == nil || !strings.Contains(err.Error(), "own tools") {
		t.Errorf("removed: %v", err)
	}
	if err := all.Remove("s3://b/100%/x"); err != nil || f.objects["100%/x"] != "" {
		t.Errorf("remove: %v", err)
	}
}

// A file that is given up is not made, and what was sent of it is dropped.
func TestGivenUp(t *testing.T) {
	f := newFakeS3(t)
	all := filesOf(t, New(f.properties()))
	for _, size := range []int{10, 40 << 20} {
		w, err := all.Create("s3://b/x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), size)); err != nil {
			t.Fatal(err)
		}
		if err := w.(interface{ Abort() error }).Abort(); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context()) // as an interrupt does
	interrupted, err := New(f.properties()).FS(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w, err := interrupted.(files).Create("s3://b/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte("x"), 40<<20)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("closed after the interrupt: %v", err)
	}
	if len(f.objects) > 0 || len(f.uploads) > 0 || f.aborted != 2 {
		t.Errorf("objects %v, %d uploads, %d of them dropped", f.objects, len(f.uploads), f.aborted)
	}
}

// All below a folder is listed, and nothing beside it.
func TestListed(t *testing.T) {
	f := newFakeS3(t)
	for _, key := range []string{"t/a", "t/d/b", "t2/c", "t/", "t/e//f"} {
		f.objects[key] = "12"
	}
	var got []string
	err := filesOf(t, New(f.properties())).WalkDir("s3://b/t", func(path string, entry fs.DirEntry, err error) error {
		info, _ := entry.Info()
		if err != nil || entry.IsDir() || info.Size() != 2 || info.ModTime().Year() != 2026 {
			t.Errorf("%q: %v", path, err)
		}
		got = append(got, path)
		return nil
	})
	if want := []string{"s3://b/t/a", "s3://b/t/d/b", "s3://b/t/e//f"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// What PyIceberg's properties say is done.
func TestPropertiesOfS3(t *testing.T) {
	f := newFakeS3(t)
	write := func(p map[string]string) (user, encryption, key string) {
		t.Helper()
		f.headers = nil
		if err := filesOf(t, New(p)).WriteFile("s3://b/x", []byte("x")); err != nil {
			t.Fatal(err)
		}
		h := f.headers[0]
		user, _, _ = strings.Cut(strings.TrimPrefix(h.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
		return user, h.Get("X-Amz-Server-Side-Encryption"), h.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id")
	}
	if user, encryption, _ := write(f.properties()); user != "key" || encryption != "" {
		t.Errorf("%q, %q", user, encryption)
	}
	client := map[string]string{"s3.endpoint": f.URL, "client.region": "r", "client.access-key-id": "other", "client.secret-access-key": "s"}
	if user, _, _ := write(client); user != "other" {
		t.Errorf("client.*: %q", user)
	}
	if user, _, _ := write(f.properties("s3.anonymous", "true")); user != "" {
		t.Errorf("anonymous: %q", user)
	}
	if _, encryption, key := write(f.properties("s3.sse-kms-key-id", "k")); encryption != "aws:kms" || key != "k" {
		t.Errorf("encryption %q with %q", encryption, key)
	}
}

// Refusals are one line, with the cure where there is one.
func TestRefusals(t *testing.T) {
	f := newFakeS3(t)
	for code, want := range map[string]string{
		"InvalidAccessKeyId": "the keys are not known, or not any more", "AuthorizationHeaderMalformed": "see to s3.region",
		"AccessDenied": "the keys do not allow it", "Strange": "Strange: not you",
	} {
		f.refuse["key"] = code
		_, err := filesOf(t, New(f.properties())).ReadFile("s3://b/x")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", code, err, want)
		}
	}
	_, err := filesOf(t, New(f.properties("s3.remote-signing-enabled", "true"))).ReadFile("s3://b/x")
	if err == nil || !strings.Contains(err.Error(), "cannot be signed by a server: let the catalog vend credentials") {
		t.Errorf("remote signing: %v", err)
	}
	_, err = filesOf(t, New(nil)).ReadFile("ftp://b/x")
	if err == nil || !strings.Contains(err.Error(), "no storage for ftp:// locations") {
		t.Errorf("another scheme: %v", err)
	}
}
