package catalogs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/localdisk"
	"icepipe/internal/storage"
)

// A hadoopCatalog is a folder of tables, as Java's HadoopCatalog has it. It loads tables from any storage, and
// commits to those on the local disk; it refuses all else. It may be used by several goroutines.
//
// The library's own is not used: it takes the highest number in the folder for the newest version, those of
// other catalogs' files too, knows one of the two names of compressed metadata, and guards a version by claims
// that Java does not know and that lapse by the clock.
type hadoopCatalog struct {
	refusing
	ref   Ref
	mode  Mode
	local bool
	files *storage.Store
	texts snapshotTexts
}

// CatalogType implements catalog.Catalog.
func (c *hadoopCatalog) CatalogType() catalog.Type { return catalog.Hadoop }

// LoadTable implements catalog.Catalog.
func (c *hadoopCatalog) LoadTable(ctx context.Context, identifier table.Identifier) (*table.Table, error) {
	folder, err := c.folder(ctx, identifier)
	if err != nil {
		return nil, err
	}
	_, name, err := folder.newest()
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("folder %q: %w", folder.location, catalog.ErrNoSuchTable)
	}
	return c.load(ctx, identifier, folder.location+"/"+name)
}

func (c *hadoopCatalog) load(ctx context.Context, identifier table.Identifier, location string) (*table.Table, error) {
	return loaded(ctx, identifier, location, c.files, c)
}

// explain says what the user can do about an error of a load.
func (c *hadoopCatalog) explain(ctx context.Context, err error) error {
	if !errors.Is(err, catalog.ErrNoSuchTable) {
		return fmt.Errorf("load table %s from warehouse %q: %w", c.ref, c.ref.Place.Warehouse, err)
	}
	text := fmt.Sprintf("table %s is not in warehouse %q", c.ref, c.ref.Place.Warehouse)
	if root, ok := localdisk.Path(c.ref.Place.Warehouse); ok {
		if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
			return &notThereError{text + ", which is not there: see to " + c.ref.where()}
		}
	}
	all, _ := c.ListNamespaces(ctx, nil)
	none := fmt.Sprintf("want v….metadata.json in %q", c.location(c.ref.Identifier)+"/"+metadataFolder)
	return missing{c.ref, c.mode, text, "that folder", none}.among(ctx, c, all)
}

// ListTables implements catalog.Catalog, on the local disk: the folders in the namespace's that hold metadata.
func (c *hadoopCatalog) ListTables(_ context.Context, namespace table.Identifier) iter.Seq2[table.Identifier, error] {
	return func(yield func(table.Identifier, error) bool) {
		for _, name := range c.folders(namespace) {
			identifier := append(slices.Clone(namespace), name)
			if c.isTable(identifier) && !yield(identifier, nil) {
				return
			}
		}
	}
}

// ListNamespaces implements catalog.Catalog, on the local disk: the folders that hold no metadata.
func (c *hadoopCatalog) ListNamespaces(_ context.Context, parent table.Identifier) (list []table.Identifier, err error) {
	for _, name := range c.folders(parent) {
		if identifier := append(slices.Clone(parent), name); !c.isTable(identifier) {
			list = append(list, identifier)
		}
	}
	return list, nil
}

// folders are the names of those in a namespace's folder, as far as they can be listed.
func (c *hadoopCatalog) folders(namespace []string) (names []string) {
	at, ok := localdisk.Path(strings.TrimRight(c.location(namespace), "/"))
	if !ok {
		return nil
	}
	entries, _ := os.ReadDir(at)
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

func (c *hadoopCatalog) isTable(identifier []string) bool {
	at, ok := localdisk.Path(c.location(identifier))
	if !ok {
		return false
	}
	version, err := tableFolder{path: path.Join(at, metadataFolder)}.highest()
	return err == nil && version > 0
}

// CheckTableExists implements catalog.Catalog.
func (c *hadoopCatalog) CheckTableExists(ctx context.Context, identifier table.Identifier) (bool, error) {
	folder, err := c.folder(ctx, identifier)
	if err != nil {
		return false, err
	}
	_, name, err := folder.newest()
	return name != "", err
}

// CheckNamespaceExists implements catalog.Catalog, on the local disk.
func (c *hadoopCatalog) CheckNamespaceExists(_ context.Context, namespace table.Identifier) (bool, error) {
	at, ok := localdisk.Path(c.location(namespace))
	if !ok {
		return false, c.refuse("looking for a namespace on this storage")
	}
	st, err := os.Stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.IsDir(), err
}

// LoadNamespaceProperties implements catalog.Catalog, by a refusal.
func (c *hadoopCatalog) LoadNamespaceProperties(context.Context, table.Identifier) (iceberg.Properties, error) {
	return nil, c.refuse("reading a namespace's properties")
}
