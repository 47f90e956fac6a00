package catalogs

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// A refusing catalog answers what no program here asks for: tables and namespaces are never made, dropped
// or renamed. Catalogs embed it, and implement the rest.
type refusing struct{ catalog string } // its name, for messages

func (r refusing) refuse(what string) error {
	return fmt.Errorf("catalog %q: %s is not for this program", r.catalog, what)
}

// CreateTable implements catalog.Catalog, by a refusal.
func (r refusing) CreateTable(context.Context, table.Identifier, *iceberg.Schema, ...catalog.CreateTableOpt) (*table.Table, error) {
	return nil, r.refuse("creating a table")
}

// DropTable implements catalog.Catalog, by a refusal.
func (r refusing) DropTable(context.Context, table.Identifier) error {
	return r.refuse("dropping a table")
}

// RenameTable implements catalog.Catalog, by a refusal.
func (r refusing) RenameTable(context.Context, table.Identifier, table.Identifier) (*table.Table, error) {
	return nil, r.refuse("renaming a table")
}

// CreateNamespace implements catalog.Catalog, by a refusal.
func (r refusing) CreateNamespace(context.Context, table.Identifier, iceberg.Properties) error {
	return r.refuse("creating a namespace")
}

// DropNamespace implements catalog.Catalog, by a refusal.
func (r refusing) DropNamespace(context.Context, table.Identifier) error {
	return r.refuse("dropping a namespace")
}

// UpdateNamespaceProperties implements catalog.Catalog, by a refusal.
func (r refusing) UpdateNamespaceProperties(context.Context, table.Identifier, []string, iceberg.Properties) (catalog.PropertiesUpdateSummary, error) {
	return catalog.PropertiesUpdateSummary{}, r.refuse("changing a namespace")
}
