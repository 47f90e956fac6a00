package lake

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/crash"
)

// ErrUnknownOutcome says that nobody can tell whether a commit landed.
var ErrUnknownOutcome = errors.New("cannot tell whether the commit landed")

// ErrMovedAway says that a table, or its branch, is no longer the one that a job was writing to.
var ErrMovedAway = errors.New("is not what it was")

// A Commit is one append to a branch.
type Commit struct {
	Branch     string
	Mark       Mark
	Properties map[string]string // further summary properties
	Files      []iceberg.DataFile

	// Since is the snapshot up to which the branch is known to hold nothing of the batch, nil for the
	// beginning of the table. What came after it is searched before each try.
	Since *int64

	// Alone has the commit refused where another job with the same settings has committed since: its rows are these.
	Alone bool

	Overwrite *Overwrite // the files take the place of others; nil: they are added
	Upsert    *Upsert    // rows go in the same snapshot; nil: none. Not with Overwrite
}

// A Committed append.
type Committed struct {
	Snapshot int64
	Parent   *int64
	Tries    int
}

// Append commits files as one snapshot on the head of a branch and reloads the table.
//
// It commits on a head whose history it has searched: a batch that is there already, since another
// process goes on with a copy of the job's checkpoint, is not committed again. An answer that is not
// success proves nothing: the table is loaded again and searched for the batch's marks and for its files.
// Only when both are absent, over a history that is unbroken back to the head of the attempt, is it tried
// again on the new head (cases 70 to 72, 76, 77). Files are never removed (case 71). retryBound says how
// often it is tried; what may not be written is tried but once. An error that is not ErrUnknownOutcome
// says that the commit is not in the table.
func (t *Table) Append(ctx context.Context, c Commit) (Committed, error) {
	if len(c.Files) == 0 {
		return Committed{}, errors.New("commit: there are no files to commit")
	}
	tries := newRetryBound(t.Properties()).begin()
	for {
		base, err := t.Branch(c.Branch)
		if err != nil {
			return Committed{}, err
		}
		landed, err := t.committedSince(c)
		if err != nil {
			return Committed{}, fmt.Errorf("commit: %w", err)
		}
		if landed != nil {
			landed.Tries = tries.made
			return *landed, nil
		}
		tries.made++
		landed, sent, failed := t.try(ctx, c, base)
		if failed == nil {
			landed.Tries = tries.made
			return *landed, nil
		}
		landed, err = t.settle(ctx, c, idOf(base), tries.retryBound)
		switch {
		case err != nil && !sent && tries.made == 1:
			return Committed{}, fmt.Errorf("commit: %w", failed) // nothing of it ever reached the catalog
		case err != nil && strings.Contains(err.Error(), failed.Error()):
			return Committed{}, fmt.Errorf("commit: %w", err)
		case err != nil:
			return Committed{}, fmt.Errorf("commit: %w; %w", failed, err)
		case landed != nil:
			landed.Tries = tries.made
			return *landed, nil
		case ctx.Err() != nil, isLasting(failed):
			return Committed{}, fmt.Errorf("commit: %w", failed)
		case isDenied(failed):
			return Committed{}, fmt.Errorf("commit: %w", t.deniedText(failed))
		}
		if err := t.again(ctx, tries, failed); err != nil {
			return Committed{}, err
		}
	}
}

// try makes one attempt on base, the head of the branch. sent says whether the catalog may know of it.
func (t *Table) try(ctx context.Context, c Commit, base *table.Snapshot) (landed *Committed, sent bool, err error) {
	a, err := t.stage(ctx, c)
	if err != nil {
		return nil, false, err
	}
	crash.Here("lake.staged")
	if err := t.sendWithin(ctx, a.Requirements, a.Updates); err != nil {
		return nil, true, err
	}
	crash.Here("lake.sent")
	if t.Metadata().SnapshotByID(a.snapshot) == nil { // looked for, as after an answer that was lost
		return nil, true, fmt.Errorf("the catalog says that snapshot %d landed in table %q, which has no such snapshot", a.snapshot, t.Name())
	}
	return &Committed{Snapshot: a.snapshot, Parent: idOf(base)}, true, nil
}

// again waits for the next try and loads the table once more, since meanwhile it has moved on: a try on
// the head of before the wait would lose whenever another writer is busy.
func (t *Table) again(ctx context.Context, tries *retries, failed error) error {
	wait, more := tries.next(failed)
	if !more {
		return tries.givenUp(failed)
	}
	if err := sleep(ctx, wait); err != nil {
		return fmt.Errorf("commit, %w after %d tries: %w", err, tries.made, failed)
	}
	if err := t.persist(ctx, tries.retryBound, t.Reload); err != nil {
		return fmt.Errorf("commit: %w; %w", failed, err)
	}
	return nil
}

// sendWithin hands requirements and updates to the catalog, and gives up when it does not answer in
// time; on success the table is the new one.
func (t *Table) sendWithin(ctx context.Context, requirements []table.Requirement, updates []table.Update) error {
	ctx, cancel := context.WithTimeout(ctx, t.callTimeout())
	defer cancel()
	meta, location, err := t.Catalog.CommitTable(ctx, t.Identifier(), requirements, updates)
	if err != nil {
		return err
	}
	t.dropOldMetadata(ctx, t.Metadata(), meta)
	io, ok := t.Catalog.(table.CatalogIO)
	if t.Catalog.CatalogType() != catalog.SQL || !ok {
		return t.Reload(ctx) // with whatever credentials the catalog gives out now
	}
	if t.files == nil {
		t.files = t.FS
	}
	t.Table = table.New(t.Identifier(), meta, location, t.files, io)
	return nil
}

// Reload loads the table again. A table that was dropped and made anew is an error.
func (t *Table) Reload(ctx context.Context) error {
	fresh, err := t.Catalog.LoadTable(ctx, t.Identifier())
	if err != nil {
		return fmt.Errorf("load table %q: %w", t.Name(), err)
	}
	if was, is := t.Metadata().TableUUID(), fresh.Metadata().TableUUID(); was != is {
		return lasting{fmt.Errorf("table %q %w: it was dropped and made anew meanwhile (UUID %s, then %s)", t.Name(), ErrMovedAway, was, is)}
	}
	t.Table = fresh
	return nil
}

func idOf(s *table.Snapshot) *int64 {
	if s == nil {
		return nil
	}
	return &s.SnapshotID
}
