package tempfile

import (
	"os"
	"testing"
)

// A file can be written and read, and its folder is empty when it is closed.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(dir, "some-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("rows"); err != nil {
		t.Error(err)
	}
	text := make([]byte, 4)
	if _, err := f.ReadAt(text, 0); err != nil || string(text) != "rows" {
		t.Errorf("read %q, error %v", text, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, error %v", left, err)
	}
	if _, err := Create(dir+"/none", "some-"); !os.IsNotExist(err) {
		t.Errorf("error %v of a folder that is not there", err)
	}
}

// A file whose name could not be removed while it was open, as on Windows, has none when it is closed.
func TestNamed(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(dir, "some-")
	if err != nil {
		t.Fatal(err)
	}
	if !f.named {
		if err := os.WriteFile(f.Name(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		f.named = true
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, error %v", left, err)
	}
}
