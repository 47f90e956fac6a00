package lake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
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

// loadEvery is how many commits in a row are gone on from without loading the table again.
const loadEvery = 8

// Bounds of the commit loop where the table's commit.retry.* properties say nothing: Java's defaults.
const (
	commitTries   = 4
	commitMinWait = 100 * time.Millisecond
	commitMaxWait = 60 * time.Second
	commitTotal   = 30 * time.Minute
	commitTimeout = 2 * time.Minute // of one call to the catalog
)

// Append commits files as one snapshot on the head of a branch and reloads the table.
//
// An answer that is not success proves nothing: the table is loaded again and searched for the
// batch's marks and for its files. Only when both are absent, over a history that is unbroken back to
// the head of the attempt, is it tried again on the new head (cases 70 to 72, 76). Files are never
// removed (case 71). Attempts are bounded by the table's commit.retry.* properties.
func (t *Table) Append(ctx context.Context, c Commit) (Committed, error) {
	bound := newRetryBound(t.Properties())
	begin := time.Now()
	for try := 1; ; try++ {
		base, err := t.Branch(c.Branch)
		if err != nil {
			return Committed{}, err
		}
		failed := t.appendOnce(ctx, c)
		if failed == nil {
			head, err := t.Branch(c.Branch)
			if err != nil || head == nil {
				return Committed{}, errors.Join(fmt.Errorf("branch %q has no head after a commit", c.Branch), err)
			}
			return Committed{Snapshot: head.SnapshotID, Parent: head.ParentSnapshotID, Tries: try}, nil
		}
		landed, err := t.settle(ctx, c, idOf(base))
		switch {
		case err != nil:
			return Committed{}, errors.Join(fmt.Errorf("commit: %w", failed), err)
		case landed != nil:
			landed.Tries = try
			return *landed, nil
		case errors.Is(failed, context.Canceled) || ctx.Err() != nil:
			return Committed{}, fmt.Errorf("commit: %w", failed)
		case try > bound.retries || time.Since(begin) > bound.total:
			return Committed{}, fmt.Errorf("commit, given up after %d tries (the table's commit.retry.num-retries is %d): %w", try, bound.retries, failed)
		}
		if err := sleep(ctx, bound.wait(try)); err != nil {
			return Committed{}, err
		}
	}
}

// appendOnce makes one attempt on the table as it is loaded; on success the table is the new one.
func (t *Table) appendOnce(ctx context.Context, c Commit) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	tx, err := t.NewTransactionOnBranchWithError(c.Branch)
	if err != nil {
		return err
	}
	properties := iceberg.Properties{}
	for k, v := range c.Mark.Properties() {
		properties[k] = v
	}
	for k, v := range c.Properties {
		properties[k] = v
	}
	// Java merges manifests unless told otherwise, the library only when told to. The property is set
	// in the transaction alone: its update is left out of what goes to the catalog.
	const merge = "commit.manifest-merge.enabled"
	_, set := t.Properties()[merge]
	if !set {
		if err := tx.SetProperties(iceberg.Properties{merge: "true"}); err != nil {
			return err
		}
	}
	if t.Metadata().Version() >= 3 {
		// AddDataFiles wants row IDs that only the catalog's commit can give out.
		delta := tx.NewRowDelta(properties).AddRows(c.Files...)
		err = delta.Commit(ctx)
	} else {
		err = tx.AddDataFiles(ctx, c.Files, properties, table.WithoutAutoNameMapping(), table.WithoutDuplicateCheck())
	}
	if err != nil {
		return err
	}
	commit, err := tx.TableCommit()
	if err != nil {
		return err
	}
	if !set {
		commit.Updates = slices.DeleteFunc(commit.Updates, func(u table.Update) bool { return u.Action() == table.UpdateSetProperties })
	}
	return t.send(ctx, commit.Requirements, commit.Updates)
}

// send hands requirements and updates to the catalog; on success the table is the new one.
func (t *Table) send(ctx context.Context, requirements []table.Requirement, updates []table.Update) error {
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
		return fmt.Errorf("table %q was dropped and made anew meanwhile (UUID %s, then %s)", t.Name(), is, was)
	}
	t.Table, t.unread = fresh, 0
	return nil
}

// settle finds out what became of an attempt on base: the landed commit, or nil when it is proven lost.
func (t *Table) settle(ctx context.Context, c Commit, base *int64) (*Committed, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := t.Reload(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return t.Landed(ctx, c, base)
}

// Landed searches the branch for a commit that was to be made on base: by its marks, then by its
// files. It returns nil when it is not there, and ErrUnknownOutcome when that cannot be told because
// the history back to base has a gap and the head's manifests do not name the files.
func (t *Table) Landed(ctx context.Context, c Commit, base *int64) (*Committed, error) {
	history, err := t.History(c.Branch)
	if err != nil {
		return nil, err
	}
	marks, err := history.Marks()
	if err != nil {
		return nil, err
	}
	for _, m := range marks {
		if m.same(c.Mark) {
			return &Committed{Snapshot: m.Snapshot, Parent: m.Parent}, nil
		}
	}
	if len(history.Snapshots) > 0 {
		named, err := t.names(ctx, history.Snapshots[0], c.Files)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
		if named != nil {
			return &Committed{Snapshot: *named}, nil
		}
	}
	if !history.ReachesTo(base) {
		return nil, fmt.Errorf("%w: snapshots of table %q between it and the head have expired", ErrUnknownOutcome, t.Name())
	}
	return nil, nil
}

func idOf(s *table.Snapshot) *int64 {
	if s == nil {
		return nil
	}
	return &s.SnapshotID
}

// names returns the snapshot that added one of the files, if the manifests of s name one.
func (t *Table) names(ctx context.Context, s table.Snapshot, files []iceberg.DataFile) (*int64, error) {
	if len(files) == 0 {
		return nil, nil
	}
	want := map[string]bool{}
	for _, f := range files {
		want[f.FilePath()] = true
	}
	fs, err := t.FS(ctx)
	if err != nil {
		return nil, err
	}
	manifests, err := s.Manifests(fs)
	if err != nil {
		return nil, err
	}
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		for entry, err := range m.Entries(fs, true) {
			if err != nil {
				return nil, err
			}
			if want[entry.DataFile().FilePath()] {
				id := entry.SnapshotID()
				return &id, nil
			}
		}
	}
	return nil, nil
}

// A retryBound limits the commit loop by the table's commit.retry.* properties.
type retryBound struct {
	retries  int
	min, max time.Duration
	total    time.Duration
}

func newRetryBound(p iceberg.Properties) retryBound {
	ms := func(key string, unset time.Duration) time.Duration {
		return time.Duration(p.GetInt(key, int(unset/time.Millisecond))) * time.Millisecond
	}
	return retryBound{
		retries: p.GetInt("commit.retry.num-retries", commitTries),
		min:     ms("commit.retry.min-wait-ms", commitMinWait),
		max:     ms("commit.retry.max-wait-ms", commitMaxWait),
		total:   ms("commit.retry.total-timeout-ms", commitTotal),
	}
}

// wait is the pause before the next try: doubled each time, with jitter.
func (b retryBound) wait(try int) time.Duration {
	d := b.min << min(try-1, 20)
	if d > b.max || d <= 0 {
		d = b.max
	}
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
