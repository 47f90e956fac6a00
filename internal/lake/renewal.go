package lake

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go/catalog"
	iceio "github.com/apache/iceberg-go/io"
)

// storage is the table's file system for a caller that keeps it for long. Where the catalog is a server,
// which may vend credentials that end, it is asked for anew with each file (case 86).
func (t *Table) storage(ctx context.Context) (iceio.IO, error) {
	fs, err := t.FS(ctx)
	if err != nil || t.Catalog == nil || t.Catalog.CatalogType() == catalog.SQL {
		return fs, err
	}
	loaded := t.Table // the table may be loaded anew meanwhile, by another goroutine
	return renewed{func() (iceio.IO, error) { return loaded.FS(ctx) }}, nil
}

// A renewed file system asks for the one that it stands for with each call.
type renewed struct{ fs func() (iceio.IO, error) }

// Open implements iceio.IO.
func (r renewed) Open(name string) (iceio.File, error) {
	fs, err := r.fs()
	if err != nil {
		return nil, err
	}
	return fs.Open(name)
}

// Remove implements iceio.IO.
func (r renewed) Remove(name string) error {
	fs, err := r.fs()
	if err != nil {
		return err
	}
	return fs.Remove(name)
}

// Create implements iceio.WriteFileIO.
func (r renewed) Create(name string) (iceio.FileWriter, error) {
	fs, err := r.writable(name)
	if err != nil {
		return nil, err
	}
	return fs.Create(name)
}

// WriteFile implements iceio.WriteFileIO.
func (r renewed) WriteFile(name string, p []byte) error {
	fs, err := r.writable(name)
	if err != nil {
		return err
	}
	return fs.WriteFile(name, p)
}

func (r renewed) writable(name string) (iceio.WriteFileIO, error) {
	fs, err := r.fs()
	if err != nil {
		return nil, err
	}
	w, ok := fs.(iceio.WriteFileIO)
	if !ok {
		return nil, fmt.Errorf("the storage of %q cannot be written", name)
	}
	return w, nil
}
