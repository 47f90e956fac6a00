package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go/catalog"

	"icepipe/internal/catalogs"
	"icepipe/pkg/plan"
)

// metadataTables are the names behind a table's name that engines answer with its metadata
// (t.snapshots in Spark and PyIceberg, t$snapshots in Trino). They hold no rows to move.
var metadataTables = []string{
	"all_data_files", "all_delete_files", "all_entries", "all_files", "all_manifests", "changes", "data_files",
	"delete_files", "entries", "files", "history", "manifests", "metadata_log_entries", "partitions",
	"position_deletes", "properties", "refs", "snapshots",
}

// notATable says of a table that is not there that it is the metadata table of one that is.
func notATable(ctx context.Context, ref catalogs.Ref, failed error) error {
	if !errors.Is(failed, catalog.ErrNoSuchTable) {
		return failed
	}
	last := len(ref.Identifier) - 1
	owner := slices.Clone(ref.Identifier[:last])
	meta := ref.Identifier[last]
	if name, after, ok := strings.Cut(meta, "$"); ok {
		owner, meta = append(owner, name), after
	}
	if len(owner) < 2 || !slices.Contains(metadataTables, strings.ToLower(meta)) {
		return failed
	}
	of := ref
	of.Identifier = owner
	opened, err := catalogs.Open(ctx, of, catalogs.ReadOnly)
	if err != nil {
		return failed
	}
	defer opened.Close()
	return fmt.Errorf("%s is a metadata table of table %s, not a table: name %s itself", plan.FormatPath(ref.Identifier), plan.FormatPath(owner), plan.FormatPath(owner))
}
