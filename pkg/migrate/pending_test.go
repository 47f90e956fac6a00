package migrate_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// pending leaves a job with its third batch pending, not committed.
func pending(t *testing.T, from *store) *job {
	t.Helper()
	to := newStore(t)
	to.create(t, "dst", people(), noRetries())
	j := newJob(from, to, 5)
	j.checkpoint = checkpointPath(t)
	to.commit = failAt(2, false, to)
	_, err := j.one(t.Context(), t)
	if !errors.Is(err, errLost) {
		t.Fatalf("error %v", err)
	}
	j.reset()
	c := j.note(t)
	if c.Pending == nil || c.Batches != 2 {
		t.Fatalf("checkpoint %+v", c)
	}
	return j
}

// The files of a pending batch are committed as they are, also on a head that another writer moved.
func TestResumePending(t *testing.T) {
	from, want := source34(t)
	t.Run("as it is", func(t *testing.T) {
		j := pending(t, from)
		file := j.note(t).Pending.Files[0].Path
		_, err := j.three(t.Context(), t)
		must(t, err)
		j.finished(t, want, 7)
		if !slices.Contains(j.to.files(t, "dst"), file) {
			t.Errorf("file %s of the pending batch was not committed", file)
		}
	})
	t.Run("the head moved", func(t *testing.T) {
		j := pending(t, from)
		j.to.insert(t, "dst", `{"id":-1,"name":"another's"}`)
		_, err := j.one(t.Context(), t)
		must(t, err)
		equal(t, "rows", j.to.content(t, "dst"), slices.Sorted(slices.Values(append(slices.Clone(want), `{"id":-1,"name":"another's"}`))))
	})
	for name, spoil := range map[string]func(string) error{
		"file gone":    os.Remove,
		"file cut off": func(path string) error { return os.Truncate(path, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			j := pending(t, from)
			file := j.note(t).Pending.Files[0].Path
			must(t, spoil(strings.TrimPrefix(file, "file://")))
			r, err := j.one(t.Context(), t)
			must(t, err)
			j.finished(t, want, 7)
			if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "pending batch 2 is written again") {
				t.Errorf("warnings %q", r.Warnings)
			}
			if slices.Contains(j.to.files(t, "dst"), file) {
				t.Errorf("file %s was committed", file)
			}
		})
	}
}

// An interruption in the middle of a commit lets it end, and notes it.
func TestInterruptedInACommit(t *testing.T) {
	from, want := source34(t)
	for _, f := range []form{one, three} {
		t.Run(f.name, func(t *testing.T) {
			to := newStore(t)
			to.create(t, "dst", people())
			j := newJob(from, to, 5)
			j.checkpoint = checkpointPath(t)
			ctx, cancel := context.WithCancel(t.Context())
			to.commit = func(ctx context.Context, commit func() error) error {
				cancel()
				if ctx.Err() != nil {
					t.Error("the commit was cancelled")
				}
				return commit()
			}
			r, err := f.run(j, ctx, t)
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
			equal(t, "the error", strings.Count(err.Error(), "canceled"), 1)
			equal(t, "batches in the receipt", r.Batches, 1)
			c := j.note(t)
			equal(t, "batches noted", c.Batches, 1)
			equal(t, "pending", c.Pending, nil)
			j.reset()
			_, err = other(f, []form{one, three}).run(j, t.Context(), t)
			must(t, err)
			j.finished(t, want, 7)
		})
	}
}
