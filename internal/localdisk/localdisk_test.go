package localdisk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
)

func TestPath(t *testing.T) {
	for _, tt := range []struct {
		location, path string
		ok             bool
	}{
		{"/a/b c%20d#e", "/a/b c%20d#e", true},
		{"file:/a/b", "/a/b", true},
		{"file:///a/p=x%2Fy/f", "/a/p=x%2Fy/f", true},
		{"FILE:///a?b", "/a?b", true},
		{"file://localhost/a", "/a", true},
		{"file://server/a", "", false},
		{"file:a", "a", false},
		{"s3://bucket/a", "s3://bucket/a", false},
		{"rel/a", "rel/a", true},
	} {
		path, ok := Path(tt.location)
		if ok != tt.ok || ok && path != tt.path {
			t.Errorf("%q: got %q, %v; want %q, %v", tt.location, path, ok, tt.path, tt.ok)
		}
	}
}

// disk returns the file system that the library finds for a location.
func open(t *testing.T, location string) iceio.WriteFileIO {
	t.Helper()
	found, err := iceio.LoadFS(t.Context(), nil, location)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := found.(disk)
	if !ok {
		t.Fatalf("the file system of %q is %T", location, found)
	}
	return d
}

func TestLocalDisk(t *testing.T) {
	dir := t.TempDir()
	const text = "some bytes"
	for _, form := range []string{"", "file:", "file://", "file://localhost"} {
		name := form + dir + "/new " + filepath.Base(form) + "/p=a%2Fb%20c/f#1.parquet"
		d := open(t, form+dir)
		if err := d.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		path, _ := Path(name)
		if got, err := os.ReadFile(path); err != nil || string(got) != text { // as it stands (case 64)
			t.Errorf("%q: %q, %v", name, got, err)
		}
		f, err := d.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(f); err != nil || string(got) != text {
			t.Errorf("%q: %q, %v", name, got, err)
		}
		f.Close()
		if err := d.Remove(name); err != nil {
			t.Error(err)
		}
		if _, err := d.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q after Remove: %v", name, err)
		}
	}
}

// What the library wrote under the decoded path is found there.
func TestLocalDiskDecoded(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a b", "f"), []byte("decoded"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, "file://"+dir).(disk)
	name := "file://" + dir + "/a%20b/f"
	if got, err := d.ReadFile(name); err != nil || string(got) != "decoded" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := d.Stat(name); err != nil {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a%20b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a%20b", "f"), []byte("as it stands"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadFile(name); err != nil || string(got) != "as it stands" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRefuses(t *testing.T) {
	d := disk{}
	if _, err := d.Open("file://server/a"); err == nil {
		t.Error("another machine's file was opened")
	}
	if _, err := d.Create("s3://bucket/a"); err == nil {
		t.Error("a file was made for a bucket")
	}
	blocked := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile(blocked+"/a/b", nil); err == nil {
		t.Error("a folder was made below a file")
	}
}
