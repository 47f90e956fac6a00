package migrate

import (
	"errors"
	"fmt"
	"io"

	"icepipe/pkg/ckpt"
)

// A Forgotten is a job whose checkpoint was reset.
type Forgotten struct {
	Job     string   `json:"job"` // "" where the file could not be read
	State   string   `json:"state"`
	Batches int64    `json:"batches"` // that the checkpoint knew of
	Before  *string  `json:"dest_snapshot_before"`
	Pending []string `json:"pending_files"` // which nobody commits any more
	Forced  bool     `json:"forced"`
}

// Reset removes a job's checkpoint: which of its batches are in the destination is forgotten, so that a new
// job writes their rows again. It refuses while any is there, as far as can be told, unless force is set;
// the error names the way to take them out. dst may be nil where it cannot be reached, for which unreached
// is the reason. The checkpoint of another program is never removed.
func Reset(store *ckpt.Store, dst *Table, unreached error, force bool) (Forgotten, error) {
	unlock, err := store.Lock()
	if err != nil {
		return Forgotten{}, err
	}
	defer unlock()
	c, err := store.Load()
	switch {
	case err == nil && c == nil:
		return Forgotten{}, fmt.Errorf("checkpoint %q is not there; there is nothing to reset", store.Path())
	case err != nil && force && (errors.Is(err, ckpt.ErrCorrupt) || errors.Is(err, ckpt.ErrVersion)):
		return Forgotten{Pending: []string{}, Forced: true}, store.Reset()
	case err != nil:
		return Forgotten{}, err
	}
	if !force {
		if err := resettable(c, dst, unreached); err != nil {
			return Forgotten{}, fmt.Errorf("checkpoint %q: %w", store.Path(), err)
		}
	}
	waiting, err := waitingPaths(store, c)
	if err != nil && !force {
		return Forgotten{}, err
	}
	f := Forgotten{Job: c.Job, State: c.State, Batches: c.Batches, Before: c.DestSnapshotBefore, Pending: waiting, Forced: force}
	if err := store.Reset(); err != nil {
		return f, err
	}
	return f, errors.Join(store.Unstage(), store.DropKeys()) // of no use without the checkpoint, that says whose they are
}

// resettable refuses a checkpoint that is still needed to know what the destination holds.
func resettable(c *ckpt.Checkpoint, dst *Table, unreached error) error {
	const force = "--force forgets them and leaves their rows"
	switch {
	case c.State == ckpt.Undone || c.Batches == 0 && c.Pending == nil && c.LastSnapshot == "" && c.State == ckpt.Running && dst == nil:
		return nil
	case dst == nil:
		return fmt.Errorf("whether batches of job %s are in the destination cannot be told: %w; --force forgets them all the same", c.Job, unreached)
	}
	now := tableNow(dst.lake, c.Destination.Branch)
	if !sameTable(c.Destination, now) {
		if sameName(c.Destination, now) {
			return nil // dropped and made anew: no row of the job is in it
		}
		return remade(c, "", dst.lake)
	}
	n, hidden := present(c, dst.lake)
	switch {
	case n > 0:
		are := "are"
		if n == 1 {
			are = "is"
		}
		return fmt.Errorf("%s of job %s %s in the destination: %s first, as ice-migrate undo does; %s", plural(n, "batch", "batches"), c.Job, are, rollBack(c), force)
	case hidden && (c.Batches > 0 || c.Pending != nil):
		return fmt.Errorf("snapshots of the destination have expired, so that batches of job %s may be in it: %s first; %s", c.Job, rollBack(c), force)
	}
	return nil
}

// WriteText says what was forgotten.
func (f Forgotten) WriteText(w io.Writer) error {
	if f.Job == "" {
		_, err := fmt.Fprintln(w, "the checkpoint, which could not be read, is removed")
		return err
	}
	_, err := fmt.Fprintf(w, "job %s is forgotten: the checkpoint, with %s, is removed\n", f.Job, plural(f.Batches, "batch", "batches"))
	for _, p := range f.Pending {
		if err == nil {
			_, err = fmt.Fprintf(w, "pending file %s stays; ice-migrate clean finds it\n", p)
		}
	}
	return err
}
