// Package command is where the stages meet the world: command lines, standard streams, signals,
// progress and exit codes.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"icepipe/internal/catalogs"
)

// A World is what a program touches.
type World struct {
	Name           string
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            catalogs.Env
	// Terminal tells whether a stream is a terminal.
	Terminal func(any) bool
}

// A Program is a command line and what it does.
type Program interface {
	Run(ctx context.Context, w *World) error
}

// Main runs the program of that name in this process's world and exits. Nothing else exits.
func Main(name string) {
	// A panic that nothing catches would exit with 2, which says that tables differ: it ends by SIGABRT (134) instead.
	debug.SetTraceback("crash")

	// The libraries log by the standard loggers; their lines are not for our user's stderr.
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))

	collectEarly(0, true)

	ctx, stop := interrupted()
	defer stop()
	w := &World{Name: name, Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: isTerminal}
	var err error
	if w.Env, err = catalogs.FromOS(); err != nil {
		os.Exit(report(w, err))
	}
	w.Env.Warn = func(text string) { fmt.Fprintf(w.Stderr, "Warning: %s\n", text) }
	os.Exit(Run(ctx, name, w))
}

// interrupted returns a context that ends with the first signal to stop. By then the next one kills.
func interrupted() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(signals, s)
		}
	}
	go func() { // ends with the process: it waits for what may never come
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// Run runs the program of that name in a world and returns its exit code. ctx ends when the user
// interrupts.
func Run(ctx context.Context, name string, w *World) int {
	err := guarded(ctx, name, w)
	if ctx.Err() != nil && err != nil {
		err = fmt.Errorf("%w: %w", errInterrupted, err)
	}
	return report(w, err)
}

// guarded is run with a panic made an error: it is a mistake of ours, or of a library's about a table that is damaged.
func guarded(ctx context.Context, name string, w *World) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked{fmt.Errorf("%v", p), debug.Stack()}
		}
	}()
	return run(ctx, name, w)
}

// panicked is what a panic left.
type panicked struct {
	error
	stack []byte
}

func (p panicked) Error() string {
	return fmt.Sprintf("%v: this is a mistake of the program, or a table is damaged in a way that it does not know; ICE_TRACEBACK=1 shows where", p.error)
}

func run(ctx context.Context, name string, w *World) error {
	p, ok := programs[name]
	if !ok {
		return fmt.Errorf("no program %q", name)
	}
	grammar := p.grammar()
	parsed, done, err := parse(name, p.about, grammar, w)
	if err != nil || done {
		return err
	}
	program, ok := grammar.(Program)
	if chosen := parsed.Selected(); chosen != nil {
		program, ok = chosen.Target.Addr().Interface().(Program)
	}
	if !ok {
		return fmt.Errorf("%s: no such command", name)
	}
	return program.Run(ctx, w)
}

// A program is an entry of the table of programs.
type program struct {
	about   string
	grammar func() any
}

var programs = map[string]program{
	"ice-scan":      {"Reads an Iceberg table, pinned to a snapshot, and writes its rows as an Arrow IPC stream.", func() any { return new(scanProgram) }},
	"ice-reconcile": {"Projects an Arrow IPC stream to the columns of a destination table.", func() any { return new(reconcileProgram) }},
	"ice-write":     {"Appends the rows of an Arrow IPC stream to an Iceberg table, exactly once.", func() any { return new(writeProgram) }},
	"ice-migrate":   {"Moves the rows of one Iceberg table into another: scan, reconcile and write in one process.", func() any { return new(migrateProgram) }},
	"ice-verify":    {"Compares two Iceberg tables.", func() any { return new(verifyProgram) }},
	"ice-cat":       {"Prints an Arrow IPC stream for people.", func() any { return new(catProgram) }},
}

// exited is what parse recovers when kong wants to exit, after --help or --version.
type exited int

// parse reads the command line. It returns done when the line was answered already.
func parse(name, about string, grammar any, w *World) (parsed *kong.Context, done bool, err error) {
	parser, err := kong.New(grammar,
		kong.Name(name), kong.Description(about+exitCodes), kong.Writers(w.Stdout, w.Stderr),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Exit(func(code int) { panic(exited(code)) }), kong.Vars{"version": name + " " + version()})
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exited); !ok {
				panic(r)
			}
			done = true
		}
	}()
	args := w.Args
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		if _, ok := grammar.(*migrateProgram); ok {
			args = []string{"run", "--help"} // the flags that everybody looks for are the default verb's
		}
	}
	parsed, err = parser.Parse(args)
	var bad *kong.ParseError
	if errors.As(err, &bad) {
		return nil, false, &catalogs.UsageError{Text: choices(bad.Error()) + "; see " + name + " --help"}
	}
	return parsed, false, err
}

// choices is an error of kong without the empty choice that a flag without a default has.
func choices(text string) string { return strings.Replace(text, `,"" but got`, " but got", 1) }
