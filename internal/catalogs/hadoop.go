package catalogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"icepipe/internal/localdisk"
	"icepipe/internal/storage"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// settleHadoop finds the warehouse: a hadoop catalog is a folder, in which the tables are.
func settleHadoop(ref *Ref, f TableFlags, env Env) error {
	switch {
	case f.DBPath != "":
		return usage("%s is the database of a sqlite catalog; a hadoop catalog is a folder: give %s", ref.flag("db-path"), ref.flag("warehouse"))
	case f.URI != "":
		return usage("%s is the address of a server; a hadoop catalog is a folder: give %s", ref.flag("uri"), ref.flag("warehouse"))
	}
	ref.origin = ref.property("warehouse")
	if f.Warehouse != "" {
		ref.origin = ref.flag("warehouse")
	}
	warehouse := cmp.Or(f.Warehouse, ref.Place.Warehouse)
	if warehouse == "" {
		return usage("%s is missing: a hadoop catalog is the folder that its tables are in", ref.flag("warehouse"))
	}
	ref.Place.Warehouse = hadoopFolder(warehouse, env)
	for _, part := range ref.Identifier {
		if err := checkFolderName(part); err != nil {
			return usage("table %s: %v", plan.FormatPath(ref.Identifier), err)
		}
	}
	return nil
}

// sameHadoop tells whether configured properties are those of the catalog at place.
func sameHadoop(properties map[string]string, place rows.Place, env Env) bool {
	return properties["warehouse"] != "" && hadoopFolder(properties["warehouse"], env) == place.Warehouse
}

// hadoopFolder is a warehouse as it is recorded: whole, without a user and without slashes at its end.
func hadoopFolder(warehouse string, env Env) string {
	return strings.TrimRight(absolute(withoutUser(warehouse), env.Dir), "/")
}

// checkFolderName refuses what is no name of a folder.
func checkFolderName(part string) error {
	if part == "." || part == ".." || strings.ContainsAny(part, "/\x00") {
		return fmt.Errorf("%q: the tables of a hadoop catalog are folders, and this is no name of one", part)
	}
	return nil
}

// errNotLocal says why a warehouse that is not on the local disk is no destination.
var errNotLocal = errors.New("a hadoop catalog can be written on the local disk alone: elsewhere no name is taken by one writer only, so that a commit could overwrite another")

// openHadoop finds the newest metadata in the table's folder, and loads it.
func openHadoop(ctx context.Context, ref Ref, mode Mode) (*Opened, error) {
	for _, part := range ref.Identifier {
		if err := checkFolderName(part); err != nil {
			return nil, fmt.Errorf("table %s: %w", ref, err)
		}
	}
	_, local := localdisk.Path(ref.Place.Warehouse)
	if mode == ReadWrite && !local {
		return nil, fmt.Errorf("destination %s: %w: register the table in a catalog of another kind, and name that one (warehouse %q, see to %s)",
			ref, errNotLocal, ref.Place.Warehouse, ref.where())
	}
	c := &hadoopCatalog{refusing: refusing{ref.Place.Warehouse}, ref: ref, mode: mode, local: local, files: storage.New(ref.Properties)}
	tbl, err := c.LoadTable(ctx, ref.Identifier)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	return &Opened{Catalog: c, Table: tbl, Ref: ref, close: func() error { return nil }}, nil
}
