package lake

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
)

// settle finds out what became of an attempt on base: the landed commit, or nil when it is proven lost.
// A catalog that does not answer is asked again, within bounds, before it gives up with ErrUnknownOutcome.
// It outlives the context that the attempt was made in.
func (t *Table) settle(ctx context.Context, c Commit, base *int64, bound retryBound) (*Committed, error) {
	var landed *Committed
	err := t.persist(context.WithoutCancel(ctx), bound, func(ctx context.Context) error {
		if err := t.Reload(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
		var err error
		landed, err = t.Landed(ctx, c, base)
		return err
	})
	return landed, err
}

// persist calls f until it succeeds, or fails for good, or settleTries times. All tries together take
// no longer than two calls to the catalog may.
func (t *Table) persist(ctx context.Context, bound retryBound, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*t.callTimeout())
	defer cancel()
	bound.max = min(bound.max, settleMaxWait)
	for try := 1; ; try++ {
		call, cancel := context.WithTimeout(ctx, t.callTimeout())
		err := f(call)
		cancel()
		if err == nil || isLasting(err) || try == settleTries || sleep(ctx, bound.wait(try)) != nil {
			return err
		}
	}
}

// A lasting error is one that asking again does not mend. A catalog's errors can be such too: they have
// the same method.
type lasting struct{ error }

func (e lasting) Unwrap() error { return e.error }

// Lasting marks the error.
func (e lasting) Lasting() bool { return true }

func isLasting(err error) bool {
	var e interface{ Lasting() bool }
	return errors.As(err, &e) && e.Lasting() || errors.Is(err, catalog.ErrNoSuchTable)
}

// Landed searches the branch for a commit that was to be made on base: by its marks, then by its
// files. It returns nil when it is not there, and ErrUnknownOutcome when that cannot be told: because
// the history back to base has a gap and the head's manifests do not name the files, or because one
// of them could not be read.
func (t *Table) Landed(ctx context.Context, c Commit, base *int64) (*Committed, error) {
	history, err := t.History(c.Branch)
	if err != nil {
		return nil, lasting{fmt.Errorf("%w: %w", ErrUnknownOutcome, err)}
	}
	marks, err := history.MarksOf(c.Mark.Job)
	if err != nil {
		return nil, lasting{fmt.Errorf("%w: %w", ErrUnknownOutcome, err)}
	}
	for _, m := range marks {
		if m.same(c.Mark) {
			return &Committed{Snapshot: m.Snapshot, Parent: m.Parent}, nil
		}
	}
	if len(history.Snapshots) > 0 {
		named, err := t.names(ctx, history, base, c.Files)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
		if named != nil {
			return named, nil
		}
	}
	if !history.ReachesTo(base) {
		return nil, lasting{fmt.Errorf("%w: snapshots of table %q between it and the head have expired", ErrUnknownOutcome, t.Name())}
	}
	return nil, nil
}

// names returns the snapshot that added one of the files, if a manifest of the head names one. Manifests
// as old as base are not looked into.
func (t *Table) names(ctx context.Context, history History, base *int64, files []iceberg.DataFile) (*Committed, error) {
	if len(files) == 0 {
		return nil, nil
	}
	want := map[string]bool{}
	for _, f := range files {
		want[f.FilePath()] = true
	}
	old := history.upTo(base)
	skip := func(m iceberg.ManifestFile) bool { return old[m.SnapshotID()] }
	for entry, err := range t.liveFiles(ctx, &history.Snapshots[0], skip) {
		if err != nil {
			return nil, err
		}
		if want[entry.DataFile().FilePath()] {
			return history.committed(entry.SnapshotID()), nil
		}
	}
	return nil, nil
}

// upTo are the retained snapshots from the oldest to base.
func (h History) upTo(base *int64) map[int64]bool {
	out := map[int64]bool{}
	for _, s := range h.Snapshots {
		if len(out) > 0 || base != nil && s.SnapshotID == *base {
			out[s.SnapshotID] = true
		}
	}
	return out
}

// committed is what is known of a snapshot that holds a commit.
func (h History) committed(snapshot int64) *Committed {
	c := &Committed{Snapshot: snapshot}
	for _, s := range h.Snapshots {
		if s.SnapshotID == snapshot {
			c.Parent = s.ParentSnapshotID
		}
	}
	return c
}
