// Package localdisk is the local file system for tables: where their locations lie, and how the library
// reads and writes them. Importing it puts it in the place of the library's own.
package localdisk

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	iceio "github.com/apache/iceberg-go/io"
)

// disk is the local file system as the library's, with two differences.
//
// A path behind file: is taken as it stands, as PyIceberg and Spark take it: their names of
// partitions hold percent signs that the library would decode (case 64). A file that is not there
// is looked for under the decoded path, where the library's own earlier writes went.
//
// A file is on the disk, with its name, once it is closed. The library never syncs, and the
// database that names a metadata file does: without this a loss of power can leave a table that
// cannot be read.
type disk struct{ iceio.LocalFS }

// Files are those of the local disk.
func Files() iceio.WriteFileIO { return disk{} }

func init() {
	factory := func(context.Context, *url.URL, map[string]string) (iceio.IO, error) { return disk{}, nil }
	for _, scheme := range []string{"file", ""} {
		iceio.Unregister(scheme)
		iceio.Register(scheme, factory)
	}
}

// Path returns the path of a file on the local disk from its location in a table's metadata:
// bare, file:/PATH, file:///PATH or file://localhost/PATH. ok is false for any other location.
func Path(location string) (path string, ok bool) {
	if len(location) >= 5 && strings.EqualFold(location[:5], "file:") {
		path = location[5:]
		if rest, ok := strings.CutPrefix(path, "//"); ok {
			host, _, _ := strings.Cut(rest, "/")
			if host != "" && !strings.EqualFold(host, "localhost") {
				return "", false
			}
			path = rest[len(host):]
		}
		return path, strings.HasPrefix(path, "/")
	}
	return location, !strings.Contains(location, "://")
}

// written returns where name is to be written.
func written(op, name string) (string, error) {
	path, ok := Path(name)
	if !ok {
		return "", &fs.PathError{Op: op, Path: name, Err: errors.New("not a path on this machine")}
	}
	return path, nil
}

// found returns where name is: as it stands, or decoded.
func found(op, name string) (string, error) {
	path, err := written(op, name)
	if err != nil || path == name || !strings.Contains(path, "%") {
		return path, err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if decoded, err := url.PathUnescape(path); err == nil {
			if _, err := os.Lstat(decoded); err == nil {
				return decoded, nil
			}
		}
	}
	return path, nil
}

func (disk) Open(name string) (iceio.File, error) {
	path, err := found("open", name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return f, nil
}

func (disk) ReadFile(name string) ([]byte, error) {
	path, err := found("open", name)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func (disk) Stat(name string) (fs.FileInfo, error) {
	path, err := found("stat", name)
	if err != nil {
		return nil, err
	}
	return os.Stat(path)
}

func (disk) Remove(name string) error {
	path, err := found("remove", name)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

func (disk) Create(name string) (iceio.FileWriter, error) {
	path, err := written("create", name)
	if err != nil {
		return nil, err
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &syncedFile{f}, nil
}

func (d disk) WriteFile(name string, text []byte) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// syncedFile is on the disk once Close returns nil.
type syncedFile struct{ *os.File }

func (f *syncedFile) Close() error {
	if err := f.Sync(); err != nil {
		f.File.Close()
		return err
	}
	if err := f.File.Close(); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(f.Name()))
}

// makeDir makes a directory and those above it, each of them synced in the one that holds it.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}

// SyncDir makes the names in a folder last.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		d.Close()
		return err
	}
	return d.Close()
}
