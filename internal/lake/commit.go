package lake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/crash"
)

// ErrUnknownOutcome says that nobody can tell whether a commit landed.
var ErrUnknownOutcome = errors.New("cannot tell whether the commit landed")

// A Commit is one append to a branch.
type Commit struct {
	Branch     string
	Mark       Mark
	Properties map[string]string // further summary properties
	Files      []iceberg.DataFile
}

// A Committed append.
type Committed struct {
	Snapshot int64
	Parent   *int64
	Tries    int
}

// Append commits files as one snapshot on the head of a branch and reloads the table.
//
// An answer that is not success proves nothing: the table is loaded again and searched for the
// batch's marks and for its files. Only when both are absent, over a history that is unbroken back to
// the head of the attempt, is it tried again on the new head (cases 70 to 72, 76). Files are never
// removed (case 71). Attempts are bounded by the table's commit.retry.* properties; where
// something may not be written there is but one. An error that is not ErrUnknownOutcome says that the commit is not in the table.
func (t *Table) Append(ctx context.Context, c Commit) (Committed, error) {
	if len(c.Files) == 0 {
		return Committed{}, errors.New("commit: there are no files to commit")
	}
	bound := newRetryBound(t.Properties())
	begin := time.Now()
	sent := false
	for try := 1; ; try++ {
		base, err := t.Branch(c.Branch)
		if err != nil {
			return Committed{}, err
		}
		a, failed := t.stage(ctx, c)
		if failed == nil {
			crash.Here("lake.staged")
			sent = true
			if failed = t.sendWithin(ctx, a.Requirements, a.Updates); failed == nil {
				crash.Here("lake.sent")
				return Committed{Snapshot: a.snapshot, Parent: idOf(base), Tries: try}, nil
			}
		}
		landed, err := t.settle(ctx, c, idOf(base), bound)
		wait := bound.wait(try)
		switch {
		case err != nil && !sent:
			return Committed{}, fmt.Errorf("commit: %w", failed) // nothing of it ever reached the catalog
		case err != nil:
			return Committed{}, fmt.Errorf("commit: %w; %w", failed, err)
		case landed != nil:
			landed.Tries = try
			return *landed, nil
		case ctx.Err() != nil:
			return Committed{}, fmt.Errorf("commit: %w", failed)
		case isDenied(failed):
			return Committed{}, fmt.Errorf("commit: %w", t.deniedText(failed))
		case try > bound.retries || time.Since(begin)+wait > bound.total:
			return Committed{}, givenUp(try, bound.retries, failed)
		}
		if err := sleep(ctx, wait); err != nil {
			return Committed{}, fmt.Errorf("commit, %w after %d tries: %w", err, try, failed)
		}
	}
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
	io, ok := t.Catalog.(table.CatalogIO)
	if t.Catalog.CatalogType() != catalog.SQL || !ok {
		return t.Reload(ctx) // with whatever credentials the catalog gives out now
	}
	// What CommitTable answers points into the metadata that it was made from, and so keeps every
	// one before it alive: 600 MB after 280 commits. Loading breaks that chain, at the price of
	// reading the metadata file.
	if t.unread++; t.unread >= loadEvery {
		return t.Reload(ctx)
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
		return lasting{fmt.Errorf("table %q was dropped and made anew meanwhile (UUID %s, then %s)", t.Name(), was, is)}
	}
	t.Table, t.unread = fresh, 0
	return nil
}

func idOf(s *table.Snapshot) *int64 {
	if s == nil {
		return nil
	}
	return &s.SnapshotID
}
