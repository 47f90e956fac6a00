package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"icepipe/internal/catalogs"
	"icepipe/pkg/arrowipc"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

// scanProgram is ice-scan.
type scanProgram struct {
	versionFlag
	catalogs.SingleFlags `embed:""`
	pinFlags             `embed:""`
	cutFlags             `embed:""`
	Checkpoint           string `placeholder:"FILE" help:"Read the snapshot that the job's checkpoint pins, from where it stands. The file is not changed."`
	streamFlags          `embed:""`
}

// streamFlags say where a stream goes.
type streamFlags struct {
	Out         string `short:"o" placeholder:"FILE" help:"Write the stream to FILE in place of stdout."`
	Compression string `enum:"none,lz4,zstd," default:"" placeholder:"none|lz4|zstd" help:"Compression of the stream (default none to a pipe, zstd to a file)."`
}

// Run implements Program.
func (p *scanProgram) Run(ctx context.Context, w *World) error {
	options, err := p.options()
	if err != nil {
		return err
	}
	if options.Pin, err = p.pin(""); err != nil {
		return err
	}
	if p.Checkpoint != "" {
		if options.Limit > 0 {
			return usagef("--limit makes a trial, which takes no checkpoint")
		}
		options.Checkpoint = ckpt.Open(p.Checkpoint)
	}
	if err := p.check(w); err != nil {
		return err
	}
	ref, err := p.Resolve(w.Env)
	if err != nil {
		return err
	}
	src, done, err := open(ctx, ref, catalogs.ReadOnly)
	if err != nil {
		return err
	}
	defer done()
	in, err := migrate.Scan(ctx, src, options)
	if err != nil {
		return err
	}
	return p.send(ctx, w, rows.Ahead(ctx, in, scanAhead, nil))
}

// open opens a table; done gives it back.
func open(ctx context.Context, ref catalogs.Ref, mode catalogs.Mode) (t *migrate.Table, done func(), err error) {
	o, err := catalogs.Open(ctx, ref, mode)
	if err != nil {
		return nil, nil, notATable(ctx, ref, err)
	}
	return migrate.FromLoaded(o.Catalog, o.Table, o.Ref.Place), func() { o.Close() }, nil
}

func (f streamFlags) check(w *World) error {
	if f.Out == "" && w.Terminal(w.Stdout) {
		return usagef("stdout is a terminal, and an Arrow stream is nothing to look at; pipe it into the next program or ice-cat, or use -o FILE")
	}
	return nil
}

// send writes a stream to where it goes. A file that is not whole is removed.
func (f streamFlags) send(ctx context.Context, w *World, in rows.Stream) error {
	if f.Out == "" {
		return transmit(ctx, w.Stdout, in, cmp.Or(f.Compression, "none"))
	}
	if info, err := os.Stat(f.Out); err == nil {
		if info.Mode().IsRegular() {
			return usagef("-o %q: the file is there already and is never overwritten; remove it or name another", f.Out)
		}
		return f.device(ctx, in)
	}
	file, err := os.OpenFile(f.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	err = transmit(ctx, file, in, cmp.Or(f.Compression, "zstd"))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		os.Remove(f.Out)
	}
	return err
}

// device writes to what is no file, such as /dev/null.
func (f streamFlags) device(ctx context.Context, in rows.Stream) error {
	file, err := os.OpenFile(f.Out, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	return errors.Join(transmit(ctx, file, in, cmp.Or(f.Compression, "none")), file.Close())
}

// scanAhead is how many record batches are decoded while one is written.
const scanAhead = 2

// transmit writes a stream, of which each message is flushed.
func transmit(ctx context.Context, out io.Writer, in rows.Stream, compression string) error {
	widen(out)
	_, err := arrowipc.Write(ctx, out, in, arrowipc.WithCompression(compression))
	return err
}
