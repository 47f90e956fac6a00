package lake

import (
	"context"
	"strings"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// dropOldMetadata removes the metadata files that a commit pushed out of the table's log of former ones, where its
// owner wants that (write.metadata.delete-after-commit.enabled). Who commits does it, as Java has it, but for a REST
// catalog, whose server does. A file that cannot be removed stays: the commit has landed all the same.
func (t *Table) dropOldMetadata(ctx context.Context, before, after table.Metadata) {
	if t.Catalog.CatalogType() == catalog.REST || !strings.EqualFold(after.Properties()[table.MetadataDeleteAfterCommitEnabledKey], "true") {
		return
	}
	kept := map[string]bool{}
	for e := range after.PreviousFiles() {
		kept[e.MetadataFile] = true
	}
	fs, err := t.FS(ctx)
	if err != nil {
		return
	}
	for e := range before.PreviousFiles() {
		if !kept[e.MetadataFile] {
			_ = fs.Remove(e.MetadataFile)
		}
	}
}
