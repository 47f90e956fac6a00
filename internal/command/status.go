package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"icepipe/internal/catalogs"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

// placeFlags name a job by its checkpoint, and its destination where the file does not.
type placeFlags struct {
	Dst                 string `name:"dst" placeholder:"CATALOG.namespace.table" help:"The destination, in place of --dst-catalog-name, --dst-namespace and --dst-table."`
	catalogs.TableFlags `embed:"" prefix:"dst-"`
}

// given tells whether a flag names the destination.
func (f placeFlags) given() bool { return f.Dst != "" || f.TableFlags.Given() }

// open opens the destination for reading: where the checkpoint says that it is, unless flags say
// otherwise. c may be nil where they do.
func (f placeFlags) open(ctx context.Context, c *ckpt.Checkpoint, env catalogs.Env) (*migrate.Table, func(), error) {
	return f.openAs(ctx, c, env, catalogs.ReadOnly)
}

// openAs is open in another mode.
func (f placeFlags) openAs(ctx context.Context, c *ckpt.Checkpoint, env catalogs.Env, mode catalogs.Mode) (*migrate.Table, func(), error) {
	flags := f.TableFlags
	flags.Short = f.Dst
	var ref catalogs.Ref
	var err error
	switch {
	case c == nil:
		ref, err = flags.Resolve(env)
	default:
		var place rows.Place
		if c.Destination.Place != nil {
			place = rows.Place(*c.Destination.Place)
		}
		ref, err = catalogs.FromPlace(place, c.Destination.Identifier, env)
		if err == nil && f.given() {
			ref, err = flags.ResolveOver(ref, env)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return open(ctx, ref, mode)
}

// statusCommand is ice-migrate status.
type statusCommand struct {
	Checkpoint string `required:"" placeholder:"FILE" help:"The job's checkpoint."`
	placeFlags `embed:""`
	Output     string `enum:"text,json" default:"text" help:"Form of the result on stdout: text or json."`
}

// Run implements Program. Where the destination cannot be reached the status is that of the checkpoint.
func (p *statusCommand) Run(ctx context.Context, w *World) error {
	c, err := ckpt.Open(p.Checkpoint).Load()
	if err != nil {
		return err
	}
	if c == nil {
		return fmt.Errorf("checkpoint %q is not there; a job that has not begun has no status, and one that lost its checkpoint gets it back by ice-migrate recover", p.Checkpoint)
	}
	dst, done, unreached := p.open(ctx, c, w.Env)
	if unreached == nil {
		defer done()
	}
	status, err := migrate.StatusOf(ctx, ckpt.Open(p.Checkpoint), c, dst)
	if err != nil {
		return fmt.Errorf("checkpoint %q: %w", p.Checkpoint, err)
	}
	if unreached != nil {
		status.Notes = append(status.Notes, "the destination was not looked at: "+oneLine(unreached))
	}
	return writeResult(w, p.Output, status)
}

// resetCommand is ice-migrate reset.
type resetCommand struct {
	Checkpoint string `required:"" placeholder:"FILE" help:"The job's checkpoint."`
	Force      bool   `help:"Forget the job although batches of it are, or may be, in the destination: their rows stay there."`
	placeFlags `embed:""`
	Output     string `enum:"text,json" default:"text" help:"Form of the result on stdout: text or json."`
}

// Run implements Program.
func (p *resetCommand) Run(ctx context.Context, w *World) error {
	store := ckpt.Open(p.Checkpoint)
	var dst *migrate.Table
	var unreached error
	if c, err := store.Load(); err == nil && c != nil && !p.Force {
		var done func()
		if dst, done, unreached = p.open(ctx, c, w.Env); unreached == nil {
			defer done()
		}
	}
	forgotten, err := migrate.Reset(store, dst, unreached, p.Force)
	if err != nil {
		return err
	}
	return writeResult(w, p.Output, forgotten)
}

// cleanCommand is ice-migrate clean.
type cleanCommand struct {
	Checkpoint string `placeholder:"FILE" help:"A job's checkpoint: its destination is cleaned, and files that it notes as pending are kept."`
	placeFlags `embed:""`
	OlderThan  string `default:"3d" placeholder:"AGE" help:"Files that were last changed longer ago than this (default ${default}; 36h, 90m). Shorter than the longest run on the table is dangerous."`
	Yes        bool   `help:"Remove the files; without it they are listed."`
	Output     string `enum:"text,json" default:"text" help:"Form of the result on stdout: text or json."`
}

// Run implements Program.
func (p *cleanCommand) Run(ctx context.Context, w *World) error {
	before, err := p.before()
	if err != nil {
		return err
	}
	o := migrate.CleanOptions{Before: before, Remove: p.Yes}
	var c *ckpt.Checkpoint
	if p.Checkpoint != "" {
		o.Checkpoint = ckpt.Open(p.Checkpoint)
		if c, err = o.Checkpoint.Load(); err != nil {
			return err
		}
		if c == nil {
			return fmt.Errorf("checkpoint %q is not there; name the table with --dst", p.Checkpoint)
		}
	} else if !p.given() {
		return usagef("name the table to clean, with --checkpoint FILE or --dst CATALOG.namespace.table")
	}
	dst, done, err := p.open(ctx, c, w.Env)
	if err != nil {
		return err
	}
	defer done()
	cleaning, err := migrate.Clean(ctx, dst, o)
	if err != nil && !cleaning.Removed {
		return err
	}
	return errors.Join(err, writeResult(w, p.Output, cleaning))
}

// before is the time that --older-than means.
func (p *cleanCommand) before() (time.Time, error) {
	text := p.OlderThan
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err == nil {
			return time.Now().AddDate(0, 0, -int(n)), nil
		}
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		return time.Time{}, usagef("--older-than %q: want an age such as 3d, 36h or 90m", text)
	}
	return time.Now().Add(-age), nil
}

// recoverCommand is ice-migrate recover.
type recoverCommand struct {
	jobFlags   `embed:""`
	Checkpoint string `required:"" placeholder:"FILE" help:"The checkpoint to make."`
	Job        string `placeholder:"UUID" help:"The job, where the destination holds batches of more than one with these settings."`
	Accept     bool   `name:"accept-expired-history" help:"Recover although the snapshots of the job's first batches have expired: say that nothing was rolled back."`
	Output     string `enum:"text,json" default:"text" help:"Form of the result on stdout: text or json."`
}

// Run implements Program. Both tables are opened for reading.
func (p *recoverCommand) Run(ctx context.Context, w *World) error {
	m, err := p.migrator()
	if err != nil {
		return err
	}
	if m.Scan.Limit > 0 {
		return usagef("--limit makes a trial, which takes no checkpoint")
	}
	m.Write.Branch, m.Write.Checkpoint, m.Write.AcceptExpiredHistory = p.DstBranch, ckpt.Open(p.Checkpoint), p.Accept
	srcRef, dstRef, err := p.Resolve(w.Env)
	if err != nil {
		return err
	}
	done, err := openPair(ctx, m, srcRef, dstRef, catalogs.ReadOnly)
	if err != nil {
		return err
	}
	defer done()
	status, err := m.Recover(ctx, p.Job)
	if err != nil {
		return err
	}
	return writeResult(w, p.Output, status)
}
