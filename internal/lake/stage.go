package lake

import (
	"context"
	"fmt"
	"maps"

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
	if err := ctx.Err(); err != nil {
		return attempt{}, err
	}
	switch { // those that read rows take as long as it takes
	case c.Overwrite != nil:
		return t.stageOverwrite(ctx, c)
	case c.Upsert != nil:
		return t.stageUpsert(ctx, c)
	}
	return t.stageAppend(ctx, c)
}

// stageAppend makes an attempt that adds files and changes nothing else.
func (t *Table) stageAppend(ctx context.Context, c Commit) (attempt, error) {
	ctx, cancel := context.WithTimeout(ctx, t.callTimeout())
	defer cancel()
	on, err := t.staging()
	if err != nil {
		return attempt{}, err
	}
	tx, err := on.NewTransactionOnBranchWithError(c.Branch)
	if err != nil {
		return attempt{}, err
	}
	properties := iceberg.Properties(c.Mark.Properties())
	maps.Copy(properties, c.Properties)
	// A row delta of rows alone is an append. Unlike AddDataFiles it leaves row IDs to the commit, as the
	// spec wants it (First Row ID Inheritance), and never merges manifests: mendList does.
	if err := tx.NewRowDelta(properties).AddRows(c.Files...).Commit(ctx); err != nil {
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
	if err := t.mendList(ctx, snapshot); err != nil {
		return attempt{}, err
	}
	return attemptOf(tx, snapshot)
}

// attemptOf is the transaction as it goes to the catalog, with a snapshot that may have been changed.
func attemptOf(tx *table.Transaction, snapshot *table.Snapshot) (attempt, error) {
	commit, err := tx.TableCommit()
	if err != nil {
		return attempt{}, err
	}
	// The transaction's own update points into the transaction, and so into the metadata that it began
	// with: a table made of the catalog's answer would keep every one before it alive, 600 MB after 280
	// commits. snapshot is a copy.
	for i, u := range commit.Updates {
		if u.Action() == table.UpdateAddSnapshot {
			commit.Updates[i] = table.NewAddSnapshotUpdate(snapshot)
		}
	}
	return attempt{TableCommit: commit, snapshot: snapshot.SnapshotID}, nil
}
