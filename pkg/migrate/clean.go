package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
)

// CleanAge is how old a file must be to be removed, unless the user says otherwise: a run that is at work
// has files that no snapshot names yet.
const CleanAge = 3 * 24 * time.Hour

// A CleanOptions says which files Clean removes.
type CleanOptions struct {
	Before     time.Time   // last changed before this time
	Checkpoint *ckpt.Store // a job whose pending files are kept; may be nil
	Remove     bool        // false: list them alone
}

// An Orphan is a file that a job made and that no retained snapshot names.
type Orphan struct {
	Kind     string    `json:"kind"` // data file, manifest or manifest list
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// A Cleaning is what Clean found and did.
type Cleaning struct {
	Table   []string  `json:"table"`
	Before  time.Time `json:"before"`
	Files   []Orphan  `json:"files"` // found, or removed where Removed is set
	Bytes   int64     `json:"bytes"`
	Kept    []string  `json:"kept"` // pending files of the checkpoint, that a resume commits
	Removed bool      `json:"removed"`
}

// Clean lists, and removes where it is asked to, the data files, manifests and manifest lists that jobs
// left in a table and that no retained snapshot names: files of batches that were never committed, and of
// attempts to commit that were lost. Files of others are never touched, nor those that the checkpoint
// notes as pending; a table with gc.enabled=false is refused. On an error the Cleaning says what is gone.
func Clean(ctx context.Context, dst *Table, o CleanOptions) (Cleaning, error) {
	c := Cleaning{Table: dst.lake.Identifier(), Before: o.Before.UTC(), Files: []Orphan{}, Kept: []string{}}
	pending, unlock, err := pendingOf(o)
	if err != nil {
		return c, err
	}
	defer unlock()
	found, err := dst.lake.Orphans(ctx, o.Before)
	if err != nil {
		return c, err
	}
	c.Kept = append(c.Kept, pending...)
	found = slices.DeleteFunc(found, func(f lake.Orphan) bool {
		return slices.ContainsFunc(pending, func(p string) bool { return path.Base(p) == path.Base(f.Path) })
	})
	if o.Remove {
		c.Removed = true
		found, err = dst.lake.Remove(ctx, found)
	}
	for _, f := range found {
		c.Files = append(c.Files, Orphan(f))
		c.Bytes += f.Size
	}
	return c, err
}

// pendingOf returns the pending files of a checkpoint, which is locked where files are to be removed.
func pendingOf(o CleanOptions) (files []string, unlock func(), err error) {
	unlock = func() {}
	if o.Checkpoint == nil {
		return nil, unlock, nil
	}
	if o.Remove {
		release, err := o.Checkpoint.Lock()
		if err != nil {
			return nil, unlock, err
		}
		unlock = func() { release() }
	}
	c, err := o.Checkpoint.Load()
	if err == nil && c == nil {
		err = fmt.Errorf("checkpoint %q is not there", o.Checkpoint.Path())
	}
	if err != nil {
		unlock()
		return nil, func() {}, err
	}
	if files, err = waitingPaths(o.Checkpoint, c); err != nil {
		unlock()
		return nil, func() {}, err
	}
	return files, unlock, nil
}

// WriteText writes what was found for people.
func (c Cleaning) WriteText(w io.Writer) error {
	var err error
	line := func(format string, args ...any) {
		_, e := fmt.Fprintf(w, format+"\n", args...)
		err = errors.Join(err, e)
	}
	for _, f := range c.Files {
		line("%-13s  %s  %s bytes  %s", f.Kind, f.Modified.Format(time.RFC3339), grouped(f.Size), f.Path)
	}
	for _, p := range c.Kept {
		line("kept           pending, a resume commits it: %s", p)
	}
	verb := "would be removed; --yes removes them"
	switch {
	case c.Removed:
		verb = "removed"
	case len(c.Files) == 0:
		verb = "to remove"
	}
	line("%s, %s bytes, last changed before %s: %s", plural(int64(len(c.Files)), "file", "files"), grouped(c.Bytes), c.Before.Format(time.RFC3339), verb)
	return err
}
