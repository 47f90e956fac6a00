package migrate_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
)

// status, clean, undo and reset know what is staged.
func TestOnceTools(t *testing.T) {
	from, want := source34(t)
	j := onceJob(t, from)
	j.spoil = brokenAfter(2, errPipe)
	if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
		t.Fatal(err)
	}
	j.reset()
	store := ckpt.Open(j.checkpoint)
	staged := j.stagedFiles(t)
	s, err := migrate.StatusOf(t.Context(), store, j.note(t), j.to.open(t, "dst"))
	must(t, err)
	equal(t, "staged batches", s.Staged, 2)
	equal(t, "staged rows", s.StagedRows, 10)
	if !strings.HasPrefix(s.Next, "go on from cursor 0/2/") {
		t.Errorf("next is %q", s.Next)
	}
	clean := migrate.CleanOptions{Before: time.Now().Add(time.Hour), Checkpoint: store}
	c, err := migrate.Clean(t.Context(), j.to.open(t, "dst"), clean)
	must(t, err)
	equal(t, "kept", c.Kept, staged)
	for _, o := range c.Files {
		if slices.Contains(staged, o.Path) {
			t.Errorf("staged file %s would be removed", o.Path)
		}
	}

	_, err = j.one(t.Context(), t)
	must(t, err)
	u, err := migrate.Undo(t.Context(), store, j.to.open(t, "dst"), migrate.UndoOptions{})
	must(t, err)
	equal(t, "snapshots undone", len(u.Snapshots), 1)
	equal(t, "rows", j.to.content(t, "dst"), []string{})
	_, err = migrate.Redo(t.Context(), store, j.to.open(t, "dst"), false)
	must(t, err)
	j.finished(t, want, 1)

	k := onceJob(t, from)
	k.spoil = brokenAfter(2, errPipe)
	if _, err := k.three(t.Context(), t); !errors.Is(err, errPipe) {
		t.Fatal(err)
	}
	k.reset()
	store, staged = ckpt.Open(k.checkpoint), k.stagedFiles(t)
	forgotten, err := migrate.Reset(store, k.to.open(t, "dst"), nil, false)
	must(t, err)
	equal(t, "pending files", forgotten.Pending, staged)
	if _, err := os.Stat(k.checkpoint + ".staged"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the side file is there: %v", err)
	}
	clean.Checkpoint = nil
	c, err = migrate.Clean(t.Context(), k.to.open(t, "dst"), clean)
	must(t, err)
	var orphans []string
	for _, o := range c.Files {
		orphans = append(orphans, o.Path)
	}
	for _, path := range staged {
		if !slices.ContainsFunc(orphans, func(o string) bool { return strings.HasSuffix(path, o) || strings.HasSuffix(o, path) }) {
			t.Errorf("%s is not among the orphans %q", path, orphans)
		}
	}
	_, err = k.one(t.Context(), t)
	must(t, err)
	k.finished(t, want, 1)
}

// A lost checkpoint comes back from the one snapshot's marks.
func TestOnceRecover(t *testing.T) {
	from, want := source34(t)
	j := onceJob(t, from)
	_, err := j.one(t.Context(), t)
	must(t, err)
	must(t, os.Remove(j.checkpoint))
	_, err = j.migrator(t).Recover(t.Context(), "")
	must(t, err)
	_, err = j.one(t.Context(), t)
	must(t, err)
	j.finished(t, want, 1)
}
