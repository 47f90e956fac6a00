//go:build interop

package interop

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// readers are the independent engines that read the destinations.
var readers = []string{"pyiceberg", "spark", "duckdb"}

// identifierIn names the table of a move in the catalog that gather makes.
func identifierIn(m *move) string { return "lab." + m.id() }

// gather makes one catalog in which every destination that was written is a table, so that each
// engine starts once and reads them all.
func (l *lab) gather(t *testing.T, done []*outcome) string {
	t.Helper()
	db := filepath.Join(l.out, "cases", "gathered.db")
	if err := copyFile(filepath.Join(l.out, "dst.db"), db); err != nil {
		t.Fatal(err)
	}
	conn, err := sql.Open("sqlite", "file:"+db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tx, err := conn.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("DELETE FROM iceberg_tables"); err != nil {
		t.Fatal(err)
	}
	for _, o := range done {
		_, err := tx.Exec("INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) VALUES ('dst', 'lab', ?, ?, 'TABLE')",
			o.move.id(), o.after)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return db
}

// readAll lets every engine read every table; the rows are found by found.
func (l *lab) readAll(t *testing.T, db string, done []*outcome) {
	t.Helper()
	list := l.list(t, "all.tsv", db, done)
	var wait sync.WaitGroup
	said := make([]error, len(readers))
	for i, reader := range readers {
		wait.Go(func() {
			cmd := l.script("read_table.py", "--reader", reader, "--batch", list, l.readings(reader))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == 1 {
				err = nil // some tables could not be read: told by the files
			}
			if err != nil {
				said[i] = fmt.Errorf("%s: %w\n%s", cmd, err, out)
			}
		})
	}
	wait.Wait()
	if err := errors.Join(said...); err != nil {
		t.Fatal(err)
	}
}

// list writes the list of tables that the scripts read.
func (l *lab) list(t *testing.T, name, db string, done []*outcome) string {
	t.Helper()
	var b strings.Builder
	for _, o := range done {
		fmt.Fprintf(&b, "%s\t%s\tdst\t%s\n", o.move.id(), db, identifierIn(o.move))
	}
	path := filepath.Join(l.out, "cases", name)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// script is a call of a script of testdata/interop.
func (l *lab) script(name string, args ...string) *exec.Cmd {
	return exec.Command(l.python, append([]string{filepath.Join(l.root, "testdata", "interop", name)}, args...)...)
}

// readings is the folder of what an engine read.
func (l *lab) readings(reader string) string { return filepath.Join(l.out, "cases", "read_"+reader) }

// errNotAsked says that DuckDB is not asked about a table, see read_table.py.
var errNotAsked = errors.New("not asked")

// found returns the rows that an engine found in the destination of a move.
func (l *lab) found(reader string, m *move) (rowSet, error) {
	path := filepath.Join(l.readings(reader), m.id())
	trouble, err := os.ReadFile(path + ".error")
	said, _, _ := strings.Cut(string(trouble), "\n")
	switch {
	case err == nil && reader == "duckdb" && strings.HasPrefix(said, "ValueError: duckdb reads"):
		return nil, fmt.Errorf("%w: %s", errNotAsked, said)
	case err == nil:
		return nil, errors.New(said)
	case !os.IsNotExist(err):
		return nil, err
	}
	return rowsOf(path+".jsonl", nil)
}

// notice returns why the manifest says that an engine does not read the fixture, or reads it wrongly.
func (f *fixture) notice(reader string) string {
	for _, notices := range []map[string]string{f.Unreadable, f.WrongReaders} {
		for _, key := range []string{reader, reader + " dest"} {
			if reason, known := notices[key]; known {
				return reason
			}
		}
	}
	return ""
}
