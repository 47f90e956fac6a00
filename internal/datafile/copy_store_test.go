package datafile

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"icepipe/pkg/rows"
)

// A memoryStore keeps what its files were closed with. Those that compose take ranges of sources without reading them
// before they are closed.
type memoryStore struct {
	iceio.LocalFS
	composes bool
	refuses  int // the so many-th range is an error, 1 the first; -1: Close is
	files    *[]string
	ranges   *int // that were taken
}

func (s memoryStore) Create(string) (iceio.FileWriter, error) {
	f := &memoryFile{memoryStore: s}
	if s.composes {
		return &composedFile{memoryFile: f}, nil
	}
	return f, nil
}

type memoryFile struct {
	memoryStore
	bytes.Buffer
	aborted bool
}

func (f *memoryFile) Close() error {
	*f.files = append(*f.files, f.String())
	return nil
}

func (f *memoryFile) Abort() error { f.aborted = true; return nil }

type composedFile struct {
	*memoryFile
	ready  bool
	later  []func() error // fills in what ranges left open
	copied int64
}

func (f *composedFile) CopyRange(from any, off, n int64) (bool, error) {
	f.ready = f.ready || n == 0
	if *f.ranges++; *f.ranges == f.refuses {
		return false, errors.New("no range")
	}
	at := f.Len()
	f.Write(make([]byte, n))
	f.later = append(f.later, func() error {
		_, err := from.(io.ReaderAt).ReadAt(f.Bytes()[at:at+int(n)], off)
		return err
	})
	f.copied += n
	return true, nil
}

func (f *composedFile) Close() error {
	if f.refuses < 0 {
		return errors.New("no end")
	}
	if !f.ready {
		return errors.New("nobody said that ranges come")
	}
	for _, fill := range f.later {
		if err := fill(); err != nil {
			return err
		}
	}
	return f.memoryFile.Close()
}

func (f *composedFile) CopiedByStore() int64 { return f.copied }

// unread is a file that is elsewhere, and of which it is told whether it was read.
type unread struct {
	io.ReaderAt
	reads *int
}

func (u unread) ReadAt(p []byte, off int64) (int, error) {
	*u.reads++
	return u.ReaderAt.ReadAt(p, off)
}

// TestStoreCopies: what a store copies itself makes the very file that is made of what is read, beside columns that
// are written anew, and is not read by us.
func TestStoreCopies(t *testing.T) {
	from := iceberg.NewSchema(0, req(1, "id", prim.Int32), opt(2, "p", prim.String))
	to := iceberg.NewSchema(0, opt(1, "id", prim.Int64), opt(2, "text", prim.String), opt(3, "none", prim.Int32))
	rb := batchOf(t, memory.DefaultAllocator, from, manyRows(0, 3000))
	defer rb.Release()
	for name, table := range map[string]*iceberg.Schema{"renamed": from, "promoted": to} {
		var made [2][]string
		var counted [2]Bytes
		for i, composes := range []bool{false, true} {
			source := localSource(t, rb, 1000)
			reads, ranges := 0, 0
			source.at = unread{source.at, &reads}
			cfg := config(t, table, nil)
			cfg.Location, cfg.Copy.Mode = "mem://bucket/table", CopyAuto
			cfg.FS = memoryStore{composes: composes, files: &made[i], ranges: &ranges}
			w := newWriter(t, cfg)
			for g := range source.Reader.NumRowGroups() {
				p := partOf(source, from, g)
				if table == to {
					p.Leaves, p.Nested = append(p.Leaves, rows.Nulls), append(p.Nested, nil)
				}
				if err := w.Take(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			end := w.End(t.Context())
			files, err := end.Wait()
			if err != nil {
				t.Fatal(err)
			}
			counted[i] = end.Bytes()
			if len(files) != 1 || len(made[i]) != 1 || files[0].FileSizeBytes() != int64(len(made[i][0])) {
				t.Errorf("%s: %d files, %d of them in the store", name, len(files), len(made[i]))
			}
			if composes && reads > ranges {
				t.Errorf("%s: %d reads for %d ranges", name, reads, ranges)
			}
		}
		if !slices.Equal(made[0], made[1]) {
			t.Errorf("%s: the files are not the same", name)
		}
		want := counted[0]
		want.ByStore = want.Copied
		if counted[1] != want || counted[0].ByStore != 0 || want.Copied == 0 {
			t.Errorf("%s: %+v, and by the store %+v", name, counted[0], counted[1])
		}
	}
}

// TestStoreCopiesFail: a store that cannot go on ends the batch, at whatever range that is, and so does one that cannot
// bring a file to its end; no column is blamed, since it may have been another's.
func TestStoreCopiesFail(t *testing.T) {
	source := copySource(t, idText, manyRows(0, 500))
	source.at = struct{ io.ReaderAt }{source.at}
	for nth := -1; ; nth++ {
		var made []string
		ranges := 0
		cfg := copyConfig(t, idText, nil)
		cfg.Location, cfg.FS = "mem://bucket/table", memoryStore{composes: true, refuses: nth, files: &made, ranges: &ranges}
		_, _, err := copyAll(t, newWriter(t, cfg), source, idText)
		switch {
		case nth == 0 || nth > ranges:
			if err != nil || len(made) != 1 {
				t.Errorf("%d: %v, %d files", nth, err, len(made))
			}
			if nth > 0 {
				return
			}
		case err == nil || len(made) > 0 || strings.Contains(err.Error(), "column") || !strings.Contains(err.Error(), "write mem://bucket/table"):
			t.Errorf("%d: %v, %d files", nth, err, len(made))
		}
	}
}

// TestStoreStops: a batch that is given up asks for no more ranges.
func TestStoreStops(t *testing.T) {
	source := copySource(t, idText, manyRows(0, 500))
	stopped := errors.New("stopped")
	r := &fileRange{source: source, promised: promised{size: 1}, stop: func() error { return stopped }}
	if _, err := r.WriteTo(&composedFile{}); !errors.Is(err, stopped) {
		t.Error(err)
	}
}
