package command

import (
	"context"

	"icepipe/internal/catalogs"
)

// configCommand is ice-migrate config.
type configCommand struct {
	catalogs.PairFlags `embed:""`
	Output             string `enum:"text,json" default:"text" help:"Form of the result on stdout: text or json."`
}

// Run implements Program. It touches no catalog.
func (p *configCommand) Run(_ context.Context, w *World) error {
	overview, err := p.Overview(w.Env)
	if err != nil {
		return err
	}
	return writeResult(w, p.Output, overview)
}
