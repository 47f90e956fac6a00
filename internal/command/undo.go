package command

import (
	"context"
	"fmt"

	"icepipe/internal/catalogs"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
)

// undoCommand is ice-migrate undo.
type undoCommand struct {
	backFlags `embed:""`
	Force     bool `help:"Take back the snapshots of other writers that came after the job's first batch too, or those that nobody can tell any more since snapshots expired."`
	Schema    bool `help:"Drop the columns that the job added, which stay otherwise."`
}

// redoCommand is ice-migrate redo.
type redoCommand struct {
	backFlags `embed:""`
}

// backFlags are those of undo and redo.
type backFlags struct {
	Checkpoint string `required:"" placeholder:"FILE" help:"The job's checkpoint."`
	DryRun     bool   `help:"Say what would change, and change nothing."`
	placeFlags `embed:""`
	Output     string `enum:"text,json" default:"text" help:"Form of the result on stdout: text or json."`
}

// Run implements Program.
func (p *undoCommand) Run(ctx context.Context, w *World) error {
	return p.move(ctx, w, func(store *ckpt.Store, dst *migrate.Table) (migrate.Undoing, error) {
		return migrate.Undo(ctx, store, dst, migrate.UndoOptions{DryRun: p.DryRun, Force: p.Force, Schema: p.Schema})
	})
}

// Run implements Program.
func (p *redoCommand) Run(ctx context.Context, w *World) error {
	return p.move(ctx, w, func(store *ckpt.Store, dst *migrate.Table) (migrate.Undoing, error) {
		return migrate.Redo(ctx, store, dst, p.DryRun)
	})
}

// move opens the destination, for reading alone in a dry run, and writes what do did.
func (p *backFlags) move(ctx context.Context, w *World, do func(*ckpt.Store, *migrate.Table) (migrate.Undoing, error)) error {
	store := ckpt.Open(p.Checkpoint)
	c, err := store.Load()
	if err != nil {
		return err
	}
	if c == nil {
		return fmt.Errorf("checkpoint %q is not there; a job that lost its checkpoint gets it back by ice-migrate recover", p.Checkpoint)
	}
	mode := catalogs.ReadWrite
	if p.DryRun {
		mode = catalogs.ReadOnly
	}
	dst, done, err := p.openAs(ctx, c, w.Env, mode)
	if err != nil {
		return err
	}
	defer done()
	undoing, err := do(store, dst)
	if err != nil {
		return err
	}
	return writeResult(w, p.Output, undoing)
}
