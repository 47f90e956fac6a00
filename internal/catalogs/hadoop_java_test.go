package catalogs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
)

// ago is before any writer that can still be at work.
func (w warehouse) ago() time.Time { return time.Now().Add(-2 * javaAlive) }

// javaFile is where a writer of Java has its metadata before it renames it.
const javaFile = "22222222-2222-4222-8222-222222222222.metadata.json"

// A writer of Java that has looked before our commit, and renames behind it, takes our version away: the commit
// waits for it, and is a conflict. Java's stays.
func TestHadoopJavaOverwrites(t *testing.T) {
	w := newWarehouse(t)
	theirs := w.version(77)
	w.write(javaFile, theirs)
	o := mustOpen(t, w.ref, ReadWrite)
	done := make(chan error, 1)
	go func() { done <- set(t, o, "k", "ours") }()
	w.until(t, done, "v2.metadata.json")
	if err := os.Rename(filepath.Join(w.folder, javaFile), filepath.Join(w.folder, "v2.metadata.json")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, table.ErrCommitFailed) || !strings.Contains(err.Error(), "another writer has put its own metadata in the place of version 2") {
		t.Errorf("got %v, want a conflict", err)
	}
	if string(w.read("v2.metadata.json")) != string(theirs) {
		t.Error("Java's metadata is gone")
	}
	if err := set(t, o, "k", "ours"); err != nil { // on Java's
		t.Fatal(err)
	}
	if p := mustOpen(t, w.ref, ReadOnly).Table.Properties(); p["k"] != "ours" || p["v"] != "77" {
		t.Errorf("properties %v", p)
	}
}

// One that gives up, since it sees our version, is waited for too, and the commit is there.
func TestHadoopJavaGivesUp(t *testing.T) {
	w := newWarehouse(t)
	w.write(javaFile, w.version(77))
	o := mustOpen(t, w.ref, ReadWrite)
	done := make(chan error, 1)
	go func() { done <- set(t, o, "k", "ours") }()
	w.until(t, done, "v2.metadata.json")
	if err := os.Remove(filepath.Join(w.folder, javaFile)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if p := mustOpen(t, w.ref, ReadOnly).Table.Properties(); p["k"] != "ours" {
		t.Errorf("properties %v", p)
	}
}

// One that changes the compression at the same time takes the version under another name: ours gives way.
func TestHadoopJavaOtherForm(t *testing.T) {
	w := newWarehouse(t)
	w.write(javaFile, zipped(w.version(77)))
	o := mustOpen(t, w.ref, ReadWrite)
	done := make(chan error, 1)
	go func() { done <- set(t, o, "k", "ours") }()
	w.until(t, done, "v2.metadata.json")
	if err := os.Rename(filepath.Join(w.folder, javaFile), filepath.Join(w.folder, "v2.gz.metadata.json")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("got %v, want a conflict", err)
	}
	if p := mustOpen(t, w.ref, ReadOnly).Table.Properties(); p["v"] != "77" || p["k"] != "" {
		t.Errorf("properties %v", p)
	}
}

// A commit whose context ends while it waits does not say that it is there.
func TestHadoopJavaInterrupted(t *testing.T) {
	w := newWarehouse(t)
	w.write(javaFile, w.version(77))
	folder := tableFolder{path: w.folder}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- folder.publish(ctx, 2, "v2.metadata.json", w.version(2)) }()
	w.until(t, done, "v2.metadata.json")
	cancel()
	if err := <-done; err == nil || errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("got %v, want an outcome that is unknown", err)
	}
}

// A version that is taken, in whatever form, is a conflict, and stays.
func TestHadoopTaken(t *testing.T) {
	for _, name := range versionForms(2) {
		w := newWarehouse(t)
		w.write(name, []byte("theirs"))
		for _, ours := range versionForms(2)[:2] {
			err := tableFolder{path: w.folder}.publish(t.Context(), 2, ours, []byte("ours"))
			if !errors.Is(err, table.ErrCommitFailed) {
				t.Errorf("%s beside %s: %v", ours, name, err)
			}
		}
		if string(w.read(name)) != "theirs" || len(w.names()) != 3 {
			t.Errorf("the folder holds %q", w.names())
		}
	}
}

// A move to a name that is taken fails.
func TestMoveNew(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := moveNew(from, to); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(from+"2", []byte("newer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := moveNew(from+"2", to); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "new" {
		t.Errorf("it holds %q, %v", text, err)
	}
}

// until waits until a file is there, or the commit is done.
func (w warehouse) until(t *testing.T, done chan error, name string) {
	t.Helper()
	for {
		if _, err := os.Stat(filepath.Join(w.folder, name)); err == nil {
			return
		}
		select {
		case err := <-done:
			t.Fatalf("the commit does not wait: %v", err)
		case <-time.After(time.Millisecond): // and look again
		}
	}
}
