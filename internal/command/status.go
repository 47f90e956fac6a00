package command

import (
	"context"
	"fmt"

	"icepipe/internal/catalogs"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

// statusCommand is ice-migrate status.
type statusCommand struct {
	Checkpoint          string `required:"" placeholder:"FILE" help:"The job's checkpoint."`
	catalogs.TableFlags `embed:"" prefix:"dst-"`
	Output              string `enum:"text,json" default:"text" help:"Form of the result on stdout: text or json."`
}

// Run implements Program. Where the destination cannot be reached the status is that of the checkpoint.
func (p *statusCommand) Run(ctx context.Context, w *World) error {
	store := ckpt.Open(p.Checkpoint)
	c, err := store.Load()
	if err != nil {
		return err
	}
	if c == nil {
		return fmt.Errorf("checkpoint %q is not there; a job that has not begun has no status", p.Checkpoint)
	}
	var place rows.Place
	if c.Destination.Place != nil {
		place = rows.Place(*c.Destination.Place)
	}
	ref, err := catalogs.FromPlace(place, c.Destination.Identifier, w.Env)
	if p.TableFlags.Given() && err == nil {
		ref, err = p.TableFlags.ResolveOver(ref, w.Env)
	}
	var dst *migrate.Table
	if err == nil {
		var done func()
		if dst, done, err = open(ctx, ref, catalogs.ReadOnly); err == nil {
			defer done()
		}
	}
	status, failed := migrate.StatusOf(ctx, c, dst)
	if failed != nil {
		return fmt.Errorf("checkpoint %q: %w", p.Checkpoint, failed)
	}
	if err != nil {
		status.Notes = append(status.Notes, "the destination was not looked at: "+oneLine(err))
	}
	return writeResult(w, p.Output, status)
}
