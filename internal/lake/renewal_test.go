package lake

import (
	"context"
	"errors"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// A server is a catalog that is no file.
type server struct{ catalog.Catalog }

func (server) CatalogType() catalog.Type { return catalog.REST }

// TestStorageIsAskedForAnew: case 86. A file system of a catalog that may vend credentials is had anew for
// each file, and its end is told; that of a file is kept.
func TestStorageIsAskedForAnew(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	asked, ended := 0, errors.New("credentials have ended")
	var failing error
	counted := table.New(tbl.Identifier(), tbl.Metadata(), tbl.MetadataLocation(), func(ctx context.Context) (iceio.IO, error) {
		asked++
		if failing != nil {
			return nil, failing
		}
		return tbl.FS(ctx)
	}, nil)
	for _, c := range []struct {
		name    string
		catalog catalog.Catalog
		asked   int
	}{{"SQL", tbl.Catalog, 1}, {"a server", server{tbl.Catalog}, 5}} {
		asked, failing = 0, nil
		fs, err := (&Table{Catalog: c.catalog, Table: counted}).storage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		name := tbl.Location() + "/data/" + c.name
		w := fs.(iceio.WriteFileIO)
		out, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(out.Close(), w.WriteFile(name, []byte("x"))); err != nil {
			t.Error(err)
		}
		in, err := fs.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(in.Close(), fs.Remove(name)); err != nil {
			t.Error(err)
		}
		if asked != c.asked {
			t.Errorf("%s: asked %d times, want %d", c.name, asked, c.asked)
		}
		failing = ended
		if c.name == "SQL" {
			continue
		}
		_, create := w.Create(name)
		_, open := fs.Open(name)
		for _, err := range []error{create, open, w.WriteFile(name, nil), fs.Remove(name)} {
			if !errors.Is(err, ended) {
				t.Errorf("got %v", err)
			}
		}
	}
}
