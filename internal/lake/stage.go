package lake

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// An attempt is a commit that is staged: its manifests are written, the catalog does not know of it.
type attempt struct {
	table.TableCommit
	snapshot int64
}

// stage makes an attempt on the table as it is loaded.
func (t *Table) stage(ctx context.Context, c Commit) (attempt, error) {
	ctx, cancel := context.WithTimeout(ctx, t.callTimeout())
	defer cancel()
	if err := ctx.Err(); err != nil {
		return attempt{}, err
	}
	tx, err := t.NewTransactionOnBranchWithError(c.Branch)
	if err != nil {
		return attempt{}, err
	}
	properties := iceberg.Properties(c.Mark.Properties())
	maps.Copy(properties, c.Properties)
	// Java merges manifests unless told otherwise, the library only when told to. The property is set
	// in the transaction alone: its update is left out of what goes to the catalog.
	const merge = "commit.manifest-merge.enabled"
	_, set := t.Properties()[merge]
	if !set {
		if err := tx.SetProperties(iceberg.Properties{merge: "true"}); err != nil {
			return attempt{}, err
		}
	}
	if t.Metadata().Version() >= 3 {
		// AddDataFiles wants row IDs that only the catalog's commit can give out.
		err = tx.NewRowDelta(properties).AddRows(c.Files...).Commit(ctx)
	} else {
		err = tx.AddDataFiles(ctx, c.Files, properties, table.WithoutAutoNameMapping(), table.WithoutDuplicateCheck())
	}
	if err != nil {
		return attempt{}, err
	}
	staged, err := tx.StagedTable()
	if err != nil {
		return attempt{}, err
	}
	snapshot := staged.Metadata().SnapshotByName(c.Branch)
	if snapshot == nil {
		return attempt{}, fmt.Errorf("no snapshot was staged on branch %q", c.Branch)
	}
	if err := t.mendBounds(ctx, snapshot); err != nil {
		return attempt{}, err
	}
	commit, err := tx.TableCommit()
	if err != nil {
		return attempt{}, err
	}
	if !set {
		commit.Updates = slices.DeleteFunc(commit.Updates, func(u table.Update) bool { return u.Action() == table.UpdateSetProperties })
	}
	return attempt{TableCommit: commit, snapshot: snapshot.SnapshotID}, nil
}
