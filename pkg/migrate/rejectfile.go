package migrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/internal/cat"
	"icepipe/internal/localdisk"
	"icepipe/pkg/rows"
)

// A rejectFile keeps rejected rows. Its entries ascend by cursor.
type rejectFile struct {
	path  string
	file  *os.File
	form  rejectForm
	dirty bool
}

// A rejectForm writes entries in one format.
type rejectForm interface {
	// keep copies the entries before a cursor from what the file held.
	keep(old io.Reader, before rows.Cursor) error
	add(source arrow.RecordBatch, e *PlacedError) error
	flush() error
}

// openRejects begins a reject file for a stream of rows of a schema that starts at first: entries before it
// stay.
func openRejects(path string, schema *arrow.Schema, first rows.Cursor) (*rejectFile, error) {
	fail := func(err error) (*rejectFile, error) { return nil, fmt.Errorf("reject file %q: %w", path, err) }
	var old io.Reader = bytes.NewReader(nil)
	switch had, err := os.Open(path); {
	case err == nil:
		defer had.Close()
		old = bufio.NewReader(had)
	case !errors.Is(err, os.ErrNotExist):
		return fail(err)
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fail(err)
	}
	f := &rejectFile{path: path, file: fresh}
	switch filepath.Ext(path) {
	case ".arrow", ".arrows", ".ipc":
		f.form = newArrowRejects(fresh, schema)
	default:
		f.form = &lineRejects{out: bufio.NewWriter(fresh)}
	}
	if err = f.form.keep(old, first); err == nil {
		err = f.settle()
	}
	if err != nil {
		fresh.Close()
		os.Remove(fresh.Name())
		return fail(err)
	}
	return f, nil
}

// settle puts the new file in the place of the old one.
func (f *rejectFile) settle() error {
	f.dirty = true
	if err := f.sync(); err != nil {
		return err
	}
	if err := f.file.Chmod(0o644); err != nil {
		return err
	}
	if err := os.Rename(f.file.Name(), f.path); err != nil {
		return err
	}
	return localdisk.SyncDir(filepath.Dir(f.path))
}

// add writes an entry: the row of the source that the error names.
func (f *rejectFile) add(source arrow.RecordBatch, e *PlacedError) error {
	f.dirty = true
	if err := f.form.add(source, e); err != nil {
		return fmt.Errorf("reject file %q: %w", f.path, err)
	}
	return nil
}

// sync makes what was written safe.
func (f *rejectFile) sync() error {
	if !f.dirty {
		return nil
	}
	err := f.form.flush()
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("reject file %q: %w", f.path, err)
	}
	f.dirty = false
	return nil
}

// close ends the file without another word: what is not synced belongs to a batch that did not end.
func (f *rejectFile) close() error {
	if err := f.sync(); err != nil {
		f.file.Close()
		return err
	}
	return f.file.Close()
}

// An entry is a rejected row in JSON lines, but for the row itself, which is the member source.
type entry struct {
	File     string `json:"file"`
	RowGroup int    `json:"row_group"`
	Row      *int64 `json:"row"` // null: somewhere behind the cursor
	Cursor   string `json:"cursor"`
	Column   string `json:"column"`
	Value    string `json:"value"`
	Rule     string `json:"rule"`
}

func entryOf(e *PlacedError) entry {
	out := entry{File: e.At.Path, RowGroup: e.At.RowGroup, Cursor: e.At.String(), Column: e.Err.Path, Value: e.Err.Value, Rule: e.Err.Rule}
	if e.Exact {
		out.Row = &e.At.Row
	}
	return out
}

// lineRejects writes JSON lines.
type lineRejects struct{ out *bufio.Writer }

func (l *lineRejects) add(source arrow.RecordBatch, e *PlacedError) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(entryOf(e)); err != nil {
		return err
	}
	text := append(bytes.TrimSuffix(line.Bytes(), []byte("}\n")), `,"source":`...)
	_, err := l.out.Write(append(cat.AppendRow(text, source, int(e.Err.Row)), "}\n"...))
	return err
}

func (l *lineRejects) flush() error { return l.out.Flush() }

// keep copies lines; one that was cut off is left out.
func (l *lineRejects) keep(old io.Reader, before rows.Cursor) error {
	in := bufio.NewReader(old)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || e.Cursor == "" {
			return fmt.Errorf("line %d is no rejected row; give another file", n)
		}
		at, err := rows.ParseCursor(e.Cursor)
		if err != nil {
			return fmt.Errorf("line %d: %w; give another file", n, err)
		}
		if at.Compare(before) >= 0 {
			return nil
		}
		if _, err := l.out.Write(line); err != nil {
			return err
		}
	}
}
