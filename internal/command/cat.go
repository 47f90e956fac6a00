package command

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"

	"icepipe/internal/cat"
	"icepipe/pkg/arrowipc"
)

// catProgram is ice-cat.
type catProgram struct {
	versionFlag
	File       string `arg:"" optional:"" help:"A saved stream (default stdin)."`
	Format     string `enum:"table,jsonl,csv,header" default:"table" help:"table, jsonl, csv, or header for the header and the schema alone."`
	Limit      *int64 `short:"n" placeholder:"N" help:"Print N rows and stop; a program that still writes to the pipe then ends too."`
	Marks      bool   `help:"Print the marks of each record batch: cursors, rows, ends of batches."`
	UnsealedOK bool   `name:"unsealed-ok" default:"true" negatable:"" help:"Print streams of other programs too (default); with --no-unsealed-ok they are an error."`
}

// Run implements Program.
func (p *catProgram) Run(ctx context.Context, w *World) error {
	limit, err := count("-n", p.Limit)
	if err != nil {
		return err
	}
	in := w.Stdin
	if p.File != "" {
		f, err := os.Open(p.File)
		if err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		defer f.Close()
		in = f
	} else if w.Terminal(in) {
		return usagef("stdin is a terminal; name a file or pipe an Arrow stream into ice-cat")
	}
	var options []arrowipc.ReadOption
	if p.UnsealedOK {
		options = append(options, arrowipc.WithUnsealedOK())
	}
	stream, err := arrowipc.Read(bufio.NewReader(interruptible(ctx, in)), options...)
	if err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(p.File, "stdin of "+w.Name), err)
	}
	out := bufio.NewWriter(w.Stdout)
	err = cat.Print(ctx, out, stream, cat.Options{Format: p.Format, Limit: limit, Marks: p.Marks, Notes: w.Stderr})
	if flush := out.Flush(); err == nil {
		err = flush
	}
	return err
}
