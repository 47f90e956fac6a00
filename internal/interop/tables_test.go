//go:build interop

package interop

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	_ "modernc.org/sqlite" // the driver of the catalogs
)

// A fixture is an object of manifest.json, as testdata/interop/README.md tells it.
type fixture struct {
	Name        string
	Catalog, DB string
	Identifier  string
	Rows        int
	RowCounts   map[string]int    `json:"row_counts"`
	Expected    map[string]string // label to file
	Snapshots   map[string]int64
	Mode        string
	Keys        []string           // of an upsert
	After       map[string]*string // policy to file, nil where the policy is to refuse; none where there is one result
	Destination struct {
		Version int `json:"format_version"`
	}
	ColumnMapping map[string]string `json:"column_mapping"`
	ExpectError   string            `json:"expect_error"`
	MayRefuse     string            `json:"may_refuse"`
	Refs          map[string]int64
	Expired       int64                                  `json:"expired_snapshot_id"`
	AlsoIn        []struct{ Catalog, DB, Layout string } `json:"also_in"`
	Filters       []struct{ Filter, Expected string }
	Unreadable    map[string]string
	WrongReaders  map[string]string `json:"wrong_readers"`
}

// appends reports whether the fixture is for appending its rows.
func (f *fixture) appends() bool { return f.Mode == "" || f.Mode == "append" }

// A lab is the folder of tables, programs and tools that the tests work with.
type lab struct {
	root   string // of the checkout
	out    string // of the tables
	bin    string
	python string
	tables []fixture
	only   []string // the fixtures that ONLY names; none: all
}

// openLab makes the programs, the tools and, once, the tables, and resets the destinations.
//
// Metadata holds absolute paths, and a destination serves one move. Nothing that icepipe does
// deletes or changes a file, so the catalog of before the moves is all that a reset needs: each
// move gets a copy of its own, and the files of earlier moves are garbage, swept here.
func openLab(t *testing.T) *lab {
	t.Helper()
	root := checkout(t)
	l := &lab{root: root, out: filepath.Join(root, ".cache", "tables"), bin: build(t, root)}
	l.python = filepath.Join(dependencies(t, root), "venv", "bin", "python")
	l.load(t)
	return l
}

// load makes the tables, or sweeps those that are there, and reads their manifest.
func (l *lab) load(t *testing.T) {
	t.Helper()
	l.lock(t)
	l.makeTables(t)
	l.sweep(t)
	content, err := os.ReadFile(filepath.Join(l.out, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &l.tables); err != nil {
		t.Fatal(err)
	}
	if l.only = strings.Fields(os.Getenv("ONLY")); len(l.only) > 0 {
		l.tables = slices.DeleteFunc(l.tables, func(f fixture) bool { return !slices.Contains(l.only, f.Name) })
	}
	slices.SortFunc(l.tables, func(a, b fixture) int { return strings.Compare(a.Name, b.Name) })
}

// lock keeps a second run of the tests in this checkout waiting.
func (l *lab) lock(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(l.out), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(l.out+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// makeTables makes all fixtures, unless they were made here by the same scripts.
func (l *lab) makeTables(t *testing.T) {
	t.Helper()
	scripts := filepath.Join(l.root, "testdata", "interop")
	stamp, err := l.stamp(scripts)
	if err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(l.out, "stamp")
	if have, err := os.ReadFile(done); err == nil && bytes.Equal(have, stamp) {
		return
	}
	if err := os.RemoveAll(l.out); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.out, 0o755); err != nil {
		t.Fatal(err)
	}
	call(t, exec.Command(l.python, filepath.Join(scripts, "make_tables.py"), l.out))
	files, err := filesUnder(filepath.Join(l.out, "dst_wh"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.out, "dst_files"), []byte(strings.Join(files, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(done, stamp, 0o644); err != nil {
		t.Fatal(err)
	}
}

// stamp tells the scripts and the place apart from others.
func (l *lab) stamp(scripts string) ([]byte, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, l.out, l.python)
	names, err := filepath.Glob(filepath.Join(scripts, "*"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		kind, _, _ := strings.Cut(filepath.Base(name), "_")
		if !slices.Contains([]string{".py", ".txt", ".sh"}, filepath.Ext(name)) || slices.Contains([]string{"read", "filter", "verify", "upsert"}, kind) {
			continue // makes no table
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(name), len(content), content)
	}
	return fmt.Appendf(nil, "%x\n", sum.Sum(nil)), nil
}

// sweep takes away what earlier runs of the tests left.
func (l *lab) sweep(t *testing.T) {
	t.Helper()
	listed, err := os.ReadFile(filepath.Join(l.out, "dst_files"))
	if err != nil {
		t.Fatal(err)
	}
	keep := strings.Split(string(listed), "\n")
	slices.Sort(keep)
	files, err := filesUnder(filepath.Join(l.out, "dst_wh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if _, found := slices.BinarySearch(keep, name); found {
			continue
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(l.out, "cases")); err != nil {
		t.Fatal(err)
	}
}

// copyFile copies a file of the harness.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// filesUnder lists the files below a folder, sorted; none when the folder is not there.
func filesUnder(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		files = append(files, path)
		return nil
	})
	slices.Sort(files)
	return files, err
}

// sourceState is what must not change while tables are read: the catalogs' files and all below the
// source's warehouse, with a digest of the former.
func (l *lab) sourceState(t *testing.T) string {
	t.Helper()
	files, err := filesUnder(filepath.Join(l.out, "src_wh"))
	if err != nil {
		t.Fatal(err)
	}
	beside, err := filepath.Glob(filepath.Join(l.out, "*.db*")) // journals too
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range beside {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %x\n", filepath.Base(name), sha256.Sum256(content))
	}
	return b.String() + strings.Join(files, "\n")
}

// metadataLocation asks a catalog's file where a table's metadata is.
func metadataLocation(db, catalog, identifier string) (string, error) {
	conn, err := sql.Open("sqlite", "file:"+db+"?mode=ro")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	dot := strings.LastIndex(identifier, ".")
	var location string
	err = conn.QueryRow("SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
		catalog, identifier[:dot], identifier[dot+1:]).Scan(&location)
	if err != nil {
		return "", fmt.Errorf("%s in %s: %w", identifier, db, err)
	}
	return location, nil
}

// localPath is the path of a location with or without file: and its slashes.
func localPath(location string) string {
	return "/" + strings.TrimLeft(strings.TrimPrefix(location, "file:"), "/")
}
