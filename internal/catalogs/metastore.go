package catalogs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/storage"
	"icepipe/pkg/plan"
)

// What Glue and Hive keep of an Iceberg table: parameters of these names.
const (
	tableTypeKey        = "table_type"
	metadataLocationKey = "metadata_location"
	previousLocationKey = "previous_metadata_location"
)

// A metastore keeps the names of tables and, of each, which metadata file is the current one: Glue, or Hive's.
// Its errors are for the user already: they name the catalog and the cure.
type metastore interface {
	// entry is what is kept of a table. The error of one that is not there wraps catalog.ErrNoSuchTable.
	entry(ctx context.Context, database, name string) (entry, error)
	// swap makes next, in the file at location, the current metadata, if the table's entry is still old: it is a
	// compare-and-swap. An error that wraps table.ErrCommitFailed says that it is not, one that is Lasting that the
	// change is refused; after any other the change may have been made.
	swap(ctx context.Context, old entry, next table.Metadata, location string) error
	databases(ctx context.Context) ([]string, error)
	tables(ctx context.Context, database string) ([]string, error) // Iceberg's alone
	close() error
}

// An entry is what a metastore keeps of a table.
type entry interface{ parameters() map[string]string }

// A metastoreCatalog is a catalog whose names are in a metastore. It loads tables and commits to them, and
// refuses all else. It may be used by several goroutines.
type metastoreCatalog struct {
	refusing
	metastore
	ref   Ref
	mode  Mode
	kind  catalog.Type
	files *storage.Store
	last  *lastCommit
}

// openMetastore loads the table of ref from a metastore, which it closes when it fails.
func openMetastore(ctx context.Context, ref Ref, mode Mode, kind catalog.Type, m metastore) (_ *Opened, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if len(ref.Identifier) != 2 {
		return nil, fmt.Errorf("table %s: a %s catalog has one level of namespaces: want DATABASE.table", ref, kind)
	}
	c := &metastoreCatalog{
		refusing: refusing{ref.store()}, metastore: m, ref: ref, mode: mode, kind: kind,
		files: storage.New(ref.Properties), last: &lastCommit{},
	}
	tbl, err := c.LoadTable(ctx, ref.Identifier)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		return nil, c.notThere(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("load table %s: %w", ref, err)
	}
	return &Opened{Catalog: c, Table: tbl, Ref: ref, close: m.close}, nil
}

// CatalogType implements catalog.Catalog.
func (c *metastoreCatalog) CatalogType() catalog.Type { return c.kind }

// find returns the entry of a table and the file of its metadata.
func (c *metastoreCatalog) find(ctx context.Context, identifier table.Identifier) (entry, string, error) {
	if len(identifier) != 2 {
		return nil, "", fmt.Errorf("table %s: %w", plan.FormatPath(identifier), catalog.ErrNoSuchTable)
	}
	e, err := c.entry(ctx, identifier[0], identifier[1])
	if err != nil {
		return nil, "", err
	}
	p := e.parameters()
	location := p[metadataLocationKey]
	switch kind := p[tableTypeKey]; {
	case strings.EqualFold(kind, "iceberg-view"), strings.EqualFold(kind, "iceberg_view"):
		return nil, "", fmt.Errorf("%s is a view, not a table: name the table that it reads", c.ref)
	case !strings.EqualFold(kind, "iceberg"):
		return nil, "", fmt.Errorf("%s is not a table of Iceberg: its %s is %q", plan.FormatPath(identifier), tableTypeKey, kind)
	case location == "":
		return nil, "", fmt.Errorf("%s has no %s in catalog %q: register its metadata anew", plan.FormatPath(identifier), metadataLocationKey, c.ref.store())
	}
	return e, location, nil
}

// LoadTable implements catalog.Catalog.
func (c *metastoreCatalog) LoadTable(ctx context.Context, identifier table.Identifier) (*table.Table, error) {
	_, location, err := c.find(ctx, identifier)
	if err != nil {
		return nil, err
	}
	return c.load(ctx, identifier, location)
}

func (c *metastoreCatalog) load(ctx context.Context, identifier table.Identifier, location string) (*table.Table, error) {
	return loaded(ctx, identifier, location, c.files, c)
}

// CommitTable implements catalog.Catalog: the requirements are checked on the current metadata, the new
// metadata is written to a new file, and the metastore is made to name that one if its entry is still that on
// which they were checked. A catalog that is opened ReadOnly refuses it.
func (c *metastoreCatalog) CommitTable(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	if c.mode != ReadWrite {
		return nil, "", c.refuse("a commit")
	}
	old, now, err := c.find(ctx, identifier)
	if err != nil {
		return nil, "", err
	}
	return c.last.commit(ctx, c.files, change{identifier, now, requirements, updates}, c, func(next table.Metadata, location string) error {
		return c.swap(ctx, old, next, location)
	})
}

// ListTables implements catalog.Catalog.
func (c *metastoreCatalog) ListTables(ctx context.Context, namespace table.Identifier) iter.Seq2[table.Identifier, error] {
	return func(yield func(table.Identifier, error) bool) {
		if len(namespace) != 1 {
			return
		}
		names, err := c.tables(ctx, namespace[0])
		if err != nil {
			yield(nil, err)
			return
		}
		for _, name := range names {
			if !yield(table.Identifier{namespace[0], name}, nil) {
				return
			}
		}
	}
}

// CheckTableExists implements catalog.Catalog.
func (c *metastoreCatalog) CheckTableExists(ctx context.Context, identifier table.Identifier) (bool, error) {
	_, _, err := c.find(ctx, identifier)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		return false, nil
	}
	return err == nil, err
}

// ListNamespaces implements catalog.Catalog.
func (c *metastoreCatalog) ListNamespaces(ctx context.Context, parent table.Identifier) (list []table.Identifier, err error) {
	if len(parent) > 0 {
		return nil, nil
	}
	names, err := c.databases(ctx)
	for _, name := range names {
		list = append(list, table.Identifier{name})
	}
	return list, err
}

// CheckNamespaceExists implements catalog.Catalog.
func (c *metastoreCatalog) CheckNamespaceExists(ctx context.Context, namespace table.Identifier) (bool, error) {
	names, err := c.databases(ctx)
	return len(namespace) == 1 && slices.Contains(names, namespace[0]), err
}

// LoadNamespaceProperties implements catalog.Catalog, by a refusal.
func (c *metastoreCatalog) LoadNamespaceProperties(context.Context, table.Identifier) (iceberg.Properties, error) {
	return nil, c.refuse("reading a namespace's properties")
}

// notThere says that the table does not exist, what is near, and the cure. What cannot be found out about
// what is near is left out.
func (c *metastoreCatalog) notThere(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, nearTimeout)
	defer cancel()
	m := missing{c.ref, c.mode, fmt.Sprintf("table %s is not in catalog %q", c.ref, c.ref.store()), "that database", ""}
	database := c.ref.Identifier[:1]
	all, err := c.ListNamespaces(ctx, nil)
	switch there := slices.ContainsFunc(all, func(n []string) bool { return slices.Equal(n, database) }); {
	case there:
		m.none = "that database lists no tables of Iceberg"
	case err == nil:
		m.text += without("database", database, all)
		if c.kind == catalog.Glue {
			m.text += " in that region: see to " + c.ref.property("glue.region")
		}
	}
	return m.among(ctx, c, all)
}
