package catalogs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/storage"
	"icepipe/pkg/plan"
)

// A restCatalog is a catalog of the library's that is replaced when its token ends before its time, which
// the library never mends (case 87). It loads tables and commits to them, and refuses all else.
//
// The tables that it loads ask this catalog, not the library's, and their file systems outlive the calls
// that renew them: see restFiles. It may be used by several goroutines.
type restCatalog struct {
	refusing
	ref  Ref
	mode Mode

	mu    sync.Mutex
	inner *rest.Catalog
	spent bool                  // the token of the properties was refused, and the credential is there to get others by
	files map[string]*restFiles // by the table's identifier
}

func (c *restCatalog) current() *rest.Catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inner
}

// CatalogType implements catalog.Catalog.
func (c *restCatalog) CatalogType() catalog.Type { return catalog.REST }

// Close implements catalog.Closer.
func (c *restCatalog) Close() error { return c.current().Close() }

// call makes a call, and makes it again with a fresh token where the server refuses the old one and there
// is a credential to get another by. A commit that landed and was then refused is safe: it asserts the
// state that it was made on, so that the second call of it is a conflict.
func (c *restCatalog) call(ctx context.Context, f func(*rest.Catalog) error) error {
	inner := c.current()
	err := f(inner)
	if ended(err) && c.ref.Properties["credential"] != "" {
		if inner, err = c.renew(ctx, inner); err == nil {
			err = f(inner)
		}
	}
	return c.explain(err)
}

// ended tells whether the server no longer takes a token.
func ended(err error) bool {
	return errors.Is(err, rest.ErrUnauthorized) || errors.Is(err, rest.ErrAuthorizationExpired)
}

// renew replaces a catalog whose token is refused, unless another goroutine has done so already.
func (c *restCatalog) renew(ctx context.Context, old *rest.Catalog) (*rest.Catalog, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != old {
		return c.inner, nil
	}
	c.spent = true
	fresh, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	old.Close() // its idle connections; nobody waits for its error
	c.inner = fresh
	return fresh, nil
}

// LoadTable implements catalog.Catalog.
func (c *restCatalog) LoadTable(ctx context.Context, identifier table.Identifier) (*table.Table, error) {
	loaded, err := c.load(ctx, identifier)
	if err != nil {
		return nil, err
	}
	files := storage.Vended(c.ref.Properties, loaded.MetadataLocation(), c.filesOf(identifier, loaded.FS))
	return table.New(identifier, loaded.Metadata(), loaded.MetadataLocation(), files.FS, c), nil
}

// filesOf are the files of a table that was just loaded. All tables of that identifier have them, so that whoever loaded
// one before has the newest keys too.
func (c *restCatalog) filesOf(identifier table.Identifier, open table.FSysF) *restFiles {
	key := plan.FormatPath(identifier)
	c.mu.Lock()
	f := c.files[key]
	if f == nil {
		f = &restFiles{catalog: c, identifier: identifier}
		if c.files == nil {
			c.files = map[string]*restFiles{}
		}
		c.files[key] = f
	}
	c.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = open
	return f
}

// load loads a table as the library has it.
func (c *restCatalog) load(ctx context.Context, identifier table.Identifier) (t *table.Table, err error) {
	ctx = about(ctx, identifier)
	err = c.call(ctx, func(inner *rest.Catalog) (err error) {
		t, err = inner.LoadTable(ctx, identifier)
		return err
	})
	return t, err
}

// CommitTable implements catalog.Catalog. A catalog that is opened ReadOnly refuses it.
func (c *restCatalog) CommitTable(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (meta table.Metadata, location string, err error) {
	if c.mode != ReadWrite {
		return nil, "", c.refuse("a commit")
	}
	ctx = about(ctx, identifier)
	err = c.call(ctx, func(inner *rest.Catalog) (err error) {
		meta, location, err = inner.CommitTable(ctx, identifier, requirements, updates)
		return err
	})
	return meta, location, err
}

// restFiles opens the file system of a table that was loaded from a REST catalog; it is the storage.Vendor of its keys.
//
// The library renews storage credentials that the catalog vends when it is asked for the file system, and
// the new one keeps the context of that call: one that ends with the planning of a scan, say, makes every
// later read fail. Here no context ends. Where the credentials cannot be renewed, the token having ended or
// the server having no endpoint for it, or where the storage refuses them before their time, the table is loaded
// anew for fresh ones (case 86).
type restFiles struct {
	catalog    *restCatalog
	identifier table.Identifier

	mu   sync.Mutex
	open table.FSysF
	last iceio.IO // that was given out
}

// Open implements storage.Vendor.
func (f *restFiles) Open(ctx context.Context) (iceio.IO, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx = about(context.WithoutCancel(ctx), f.identifier) // each call to the server has a deadline of its own
	f.mu.Lock()
	defer f.mu.Unlock()
	fs, err := f.open(ctx)
	if err != nil {
		if failed := f.reload(ctx); failed != nil {
			return nil, fmt.Errorf("storage of table %s: %w; and the table cannot be loaded anew: %w", f.catalog.ref, err, failed)
		}
		if fs, err = f.open(ctx); err != nil {
			return nil, fmt.Errorf("storage of table %s: %w", f.catalog.ref, err)
		}
	}
	f.last = fs
	return fs, nil
}

// Renew implements storage.Vendor.
func (f *restFiles) Renew(ctx context.Context, refused iceio.IO) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != refused {
		return nil
	}
	f.last = nil // which the first to come after this replaces
	return f.reload(about(context.WithoutCancel(ctx), f.identifier))
}

// reload loads the table anew for what opens its files. f.mu is held.
func (f *restFiles) reload(ctx context.Context) error {
	loaded, err := f.catalog.load(ctx, f.identifier)
	if err == nil {
		f.open = loaded.FS
	}
	return err
}

// ListTables implements catalog.Catalog.
func (c *restCatalog) ListTables(ctx context.Context, namespace table.Identifier) iter.Seq2[table.Identifier, error] {
	return c.current().ListTables(ctx, namespace)
}

// CheckTableExists implements catalog.Catalog.
func (c *restCatalog) CheckTableExists(ctx context.Context, identifier table.Identifier) (there bool, err error) {
	ctx = about(ctx, identifier)
	err = c.call(ctx, func(inner *rest.Catalog) (err error) {
		there, err = inner.CheckTableExists(ctx, identifier)
		return err
	})
	return there, err
}

// ListNamespaces implements catalog.Catalog.
func (c *restCatalog) ListNamespaces(ctx context.Context, parent table.Identifier) (list []table.Identifier, err error) {
	err = c.call(ctx, func(inner *rest.Catalog) (err error) {
		list, err = inner.ListNamespaces(ctx, parent)
		return err
	})
	return list, err
}

// CheckNamespaceExists implements catalog.Catalog.
func (c *restCatalog) CheckNamespaceExists(ctx context.Context, namespace table.Identifier) (there bool, err error) {
	err = c.call(ctx, func(inner *rest.Catalog) (err error) {
		there, err = inner.CheckNamespaceExists(ctx, namespace)
		return err
	})
	return there, err
}

// LoadNamespaceProperties implements catalog.Catalog.
func (c *restCatalog) LoadNamespaceProperties(ctx context.Context, namespace table.Identifier) (p iceberg.Properties, err error) {
	err = c.call(ctx, func(inner *rest.Catalog) (err error) {
		p, err = inner.LoadNamespaceProperties(ctx, namespace)
		return err
	})
	return p, err
}
