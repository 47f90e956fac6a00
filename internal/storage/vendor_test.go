//go:build !noclouds && !nos3

package storage

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
)

// A vendor gives keys out, and others once these are refused.
type vendor struct {
	f       *fakeS3
	user    string
	renewed int
	mu      sync.Mutex // of made, and of user while requests are made at once
	made    map[string]iceio.IO
}

func (v *vendor) Open(ctx context.Context) (iceio.IO, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.made[v.user] == nil {
		p := v.f.properties("s3.access-key-id", v.user)
		made, err := iceio.LoadFS(ctx, p, "s3://b/")
		if err != nil {
			return nil, err
		}
		v.made[v.user] = made
	}
	return v.made[v.user], nil
}

func (v *vendor) Renew(_ context.Context, refused iceio.IO) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if refused != v.made[v.user] {
		return nil
	}
	if v.renewed++; v.user == "last" {
		return errors.New("there are no others")
	}
	v.user = "last"
	return nil
}

// Keys that are refused are replaced once for a request, in the middle of a file too (case 86).
func TestKeysAreReplaced(t *testing.T) {
	f := newFakeS3(t)
	v := &vendor{f: f, user: "first", made: map[string]iceio.IO{}}
	all := filesOf(t, Vended(f.properties(), "s3://b/t/metadata/v1.json", v))
	f.objects["x.parquet"] = "0123456789"
	file, err := all.Open("s3://b/x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	f.refuse["first"] = "ExpiredToken"
	p := make([]byte, 10)
	if n, err := file.ReadAt(p, 0); n != 10 || err != nil || v.renewed != 1 {
		t.Errorf("%d bytes, %v, renewed %d times", n, err, v.renewed)
	}
	for _, do := range []func() error{
		func() error { return all.WriteFile("s3://b/y", []byte("y")) },
		func() error { return all.WalkDir("s3://b/", func(string, fs.DirEntry, error) error { return nil }) },
		func() error { return all.Remove("s3://b/y") },
	} {
		v.user = "first"
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	f.refuse["last"] = "ExpiredToken"
	_, err = all.ReadFile("s3://b/x.parquet")
	if err == nil || !strings.Contains(err.Error(), "there are no others") {
		t.Errorf("no keys: %v", err)
	}
	// A location that is no URL, and another bucket, are reached with the properties.
	bare := strings.ReplaceAll("s3://b/100P/v1.json", "P", "%")
	if _, err := url.Parse(bare); err == nil {
		t.Error("it is one")
	}
	plain := filesOf(t, Vended(f.properties(), bare, v))
	if _, err := plain.ReadFile("s3://b/x.parquet"); err != nil {
		t.Error(err)
	}
}
