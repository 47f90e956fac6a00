package lake

import (
	"context"
	"errors"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// errCatalog is an answer of a catalog that tells nothing.
var errCatalog = errors.New("500 Internal Server Error")

// A faulty catalog does what its functions say before and after each commit and load.
type faulty struct {
	catalog.Catalog
	commit func(n int, land func() error) error // nil: lands
	load   func(n int) error                    // nil: loads

	commits, loads int
}

func (c *faulty) CommitTable(ctx context.Context, id table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	c.commits++
	var meta table.Metadata
	var location string
	land := func() (err error) {
		meta, location, err = c.Catalog.CommitTable(context.WithoutCancel(ctx), id, reqs, updates)
		return err
	}
	if c.commit == nil {
		err := land()
		return meta, location, err
	}
	err := c.commit(c.commits, land)
	if err == nil && meta == nil { // a lie: it is told as it is
		now, err := c.Catalog.LoadTable(ctx, id)
		if err != nil {
			return nil, "", err
		}
		return now.Metadata(), now.MetadataLocation(), nil
	}
	if err == errHang {
		<-ctx.Done()
		err = ctx.Err()
	}
	return meta, location, err
}

func (c *faulty) LoadTable(ctx context.Context, id table.Identifier) (*table.Table, error) {
	c.loads++
	if c.load != nil {
		if err := c.load(c.loads); err != nil {
			return nil, err
		}
	}
	return c.Catalog.LoadTable(ctx, id)
}

// errHang makes a commit hang until its context ends.
var errHang = errors.New("hang")

// another commits rows as another writer does.
func another(t testing.TB, tbl *Table) {
	t.Helper()
	other := load(t, tbl)
	if f, ok := tbl.Catalog.(*faulty); ok {
		other.Catalog = f.Catalog
	}
	delta(t, other, []iceberg.DataFile{data(t, other, ids(100, 100))})
}

// landings are the snapshots of a batch in the table, by its mark.
func landings(t testing.TB, tbl *Table, mark Mark) (n int) {
	t.Helper()
	tbl = load(t, tbl)
	history, err := tbl.History("main")
	if err != nil {
		t.Fatal(err)
	}
	marks, err := history.Marks()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range marks {
		if m.same(mark) {
			n++
		}
	}
	return n
}
