package migrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/internal/cat"
	"icepipe/internal/localdisk"
	"icepipe/pkg/rows"
)

// A rejectFile keeps rejected rows. Its entries ascend by cursor.
//
// What a former run rejected behind the stream's start is not taken out before this run says something
// else: a run that reads again what is committed, and ends before it has come as far, loses none of it.
type rejectFile struct {
	path  string
	job   string
	form  rejectForm
	kept  int     // entries of the former run that stay
	ahead *former // its entries behind them; nil once the file is written anew
	file  *os.File
	dirty bool
}

// former are the entries of a former run that are still to be said again.
type former struct {
	file *os.File
	next entry
	pull func() (entry, error, bool)
	stop func()
}

func (f *former) close() {
	f.stop()
	f.file.Close()
}

// A rejectForm writes entries in one format.
type rejectForm interface {
	// entries are those that a file holds, up to where it was cut off.
	entries(old io.Reader) iter.Seq2[entry, error]
	start(w io.Writer)
	// keep copies the first n entries from what the file held.
	keep(old io.Reader, n int) error
	add(source arrow.RecordBatch, e *PlacedError) error
	flush() error
	// end writes what a whole file ends with.
	end() error
}

// openRejects begins a reject file for a stream of rows of a schema that starts at first: entries before it
// stay. A file of another job is refused.
func openRejects(path, job string, schema *arrow.Schema, first rows.Cursor) (*rejectFile, error) {
	f := &rejectFile{path: path, job: job, form: &lineRejects{job: job}}
	switch filepath.Ext(path) {
	case ".arrow", ".arrows", ".ipc":
		f.form = newArrowRejects(job, schema)
	}
	if err := f.open(first); err != nil {
		return nil, fmt.Errorf("reject file %q: %w", path, err)
	}
	return f, nil
}

// open counts the entries before first.
func (f *rejectFile) open(first rows.Cursor) error {
	had, err := os.Open(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return f.renew()
	}
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(f.form.entries(bufio.NewReader(had)))
	f.ahead = &former{file: had, pull: next, stop: stop}
	for {
		e, err, ok := next()
		var at rows.Cursor
		if ok && err == nil {
			at, err = rows.ParseCursor(e.Cursor)
		}
		if ok && err == nil && e.Job != f.job {
			err = errors.New("it holds rejected rows of another job, of other tables or settings or an earlier snapshot")
		}
		switch {
		case err != nil:
			f.ahead.close()
			return fmt.Errorf("%w; give another file", err)
		case !ok:
			return f.renew()
		case at.Compare(first) >= 0:
			f.ahead.next = e
			return nil
		}
		f.kept++
	}
}

// renew writes the file anew with the entries that stay; those behind them go.
func (f *rejectFile) renew() error {
	if f.ahead != nil {
		f.ahead.close()
		f.ahead = nil
	}
	var old io.Reader = bytes.NewReader(nil)
	switch had, err := os.Open(f.path); {
	case err == nil:
		defer had.Close()
		old = bufio.NewReader(had)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	fresh, err := os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+"-*")
	if err != nil {
		return err
	}
	f.file = fresh
	f.form.start(fresh)
	if err = f.form.keep(old, f.kept); err == nil {
		err = f.settle()
	}
	if err != nil {
		fresh.Close()
		os.Remove(fresh.Name())
	}
	return err
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

// add writes an entry, unless a former run has: the row of the source that the error names.
func (f *rejectFile) add(source arrow.RecordBatch, e *PlacedError) error {
	if err := f.put(source, e); err != nil {
		return fmt.Errorf("reject file %q: %w", f.path, err)
	}
	return nil
}

func (f *rejectFile) put(source arrow.RecordBatch, e *PlacedError) error {
	if f.ahead != nil && f.ahead.next.says(entryOf(e, f.job)) {
		f.kept++
		var err error
		var ok bool
		if f.ahead.next, err, ok = f.ahead.pull(); err != nil || !ok {
			return f.renew()
		}
		return nil
	}
	if f.ahead != nil {
		if err := f.renew(); err != nil {
			return err
		}
	}
	f.dirty = true
	return f.form.add(source, e)
}

// sync makes what was written safe.
func (f *rejectFile) sync() error {
	var err error
	switch {
	case f.ahead != nil:
		err = f.ahead.file.Sync()
	case f.dirty:
		if err = f.form.flush(); err == nil {
			err = f.file.Sync()
		}
	}
	if err != nil {
		return fmt.Errorf("reject file %q: %w", f.path, err)
	}
	f.dirty = false
	return nil
}

// close ends the file. Of a stream that is whole nothing stays that it did not say.
func (f *rejectFile) close(whole bool) error {
	if f.ahead != nil {
		if !whole {
			f.ahead.close()
			return nil
		}
		if err := f.renew(); err != nil {
			return fmt.Errorf("reject file %q: %w", f.path, err)
		}
	}
	if err := f.form.end(); err != nil {
		f.file.Close()
		return fmt.Errorf("reject file %q: %w", f.path, err)
	}
	f.dirty = true
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
	Job      string `json:"job"` // digest of what the job is: see rejecter
}

func entryOf(e *PlacedError, job string) entry {
	out := entry{File: e.At.Path, RowGroup: e.At.RowGroup, Cursor: e.At.String(), Column: e.Err.Path, Value: e.Err.Value, Rule: e.Err.Rule, Job: job}
	if e.Exact {
		out.Row = &e.At.Row
	}
	return out
}

// says reports whether two entries are of the same row and reason.
func (e entry) says(o entry) bool {
	return e.Cursor == o.Cursor && e.Column == o.Column && e.Rule == o.Rule
}

// lineRejects writes JSON lines.
type lineRejects struct {
	job string
	out *bufio.Writer
}

func (l *lineRejects) add(source arrow.RecordBatch, e *PlacedError) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(entryOf(e, l.job)); err != nil {
		return err
	}
	text := append(bytes.TrimSuffix(line.Bytes(), []byte("}\n")), `,"source":`...)
	_, err := l.out.Write(append(cat.AppendRow(text, source, int(e.Err.Row)), "}\n"...))
	return err
}

func (l *lineRejects) flush() error { return l.out.Flush() }

func (l *lineRejects) end() error { return nil }

func (l *lineRejects) start(w io.Writer) { l.out = bufio.NewWriter(w) }

// entries reads lines; one that was cut off is left out.
func (l *lineRejects) entries(old io.Reader) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		in := bufio.NewReader(old)
		for n := 1; ; n++ {
			line, err := in.ReadBytes('\n')
			if err == io.EOF {
				return
			}
			var e entry
			if err == nil && (json.Unmarshal(line, &e) != nil || e.Cursor == "") {
				err = fmt.Errorf("line %d is no rejected row", n)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (l *lineRejects) keep(old io.Reader, n int) error {
	in := bufio.NewReader(old)
	for range n {
		line, err := in.ReadBytes('\n')
		if err == nil {
			_, err = l.out.Write(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
