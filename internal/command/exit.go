package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/term"

	"icepipe/internal/catalogs"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

// The exit codes. README.md and the manual pages hold the same table.
const (
	exitDone        = 0
	exitFailed      = 1
	exitDiffer      = 2
	exitUnsealed    = 3
	exitUsage       = 64
	exitPipe        = 141 // 128 + SIGPIPE
	exitInterrupted = 130
)

const exitCodes = `

Exit codes: 0 done, or the tables agree; 1 failed, a refused resume included; 2 the tables differ;
3 the input stream ended before its seal: look upstream; 64 the command line is wrong; 130 interrupted:
what was committed is recorded, run again to resume.`

var (
	errInterrupted = errors.New("interrupted")
	errDiffer      = errors.New("the tables differ")
)

// A verifyError says that a comparison could not be made.
type verifyError struct{ error }

func (e verifyError) Unwrap() error { return e.error }

// exitCode is the one table from error to exit code.
func exitCode(err error) int {
	var usage *catalogs.UsageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errDiffer):
		return exitDiffer
	case errors.Is(err, rows.ErrUnsealed):
		return exitUnsealed
	}
	return exitFailed
}

// advised is an error with a hint, which is a line of its own.
type advised struct {
	error
	hint string
}

func (e advised) Unwrap() error { return e.error }

// report writes what there is to say of an error, one line and its hints, and returns the exit code.
func report(w *World, err error) int {
	code := exitCode(err)
	var wrong verifyError
	switch {
	case code == exitDone || code == exitPipe || code == exitDiffer:
	case code == exitInterrupted && errors.Is(err, context.Canceled):
		fmt.Fprintf(w.Stderr, "Error: %s\n", errInterrupted)
	case errors.As(err, &wrong):
		fmt.Fprintf(w.Stderr, "Verify error: %s\n", oneLine(err))
	default:
		fmt.Fprintf(w.Stderr, "Error: %s\n", oneLine(err))
	}
	for _, line := range caretOf(err) {
		fmt.Fprintf(w.Stderr, "  %s\n", line)
	}
	if hint := hintOf(err, code); hint != "" && code != exitDiffer {
		fmt.Fprintf(w.Stderr, "Hint: %s\n", hint)
	}
	if err != nil && code != exitDiffer && (os.Getenv("ICE_TRACEBACK") == "1" || os.Getenv("ICEBERG_OPS_TRACEBACK") == "1") {
		chain(w, err, 1)
	}
	return code
}

func hintOf(err error, code int) string {
	var a advised
	switch {
	case errors.As(err, &a):
		return a.hint
	case code == exitUnsealed:
		return "the program before this one in the pipe failed or was stopped: its message says why"
	}
	return ""
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}

// chain prints the errors that err is made of.
func chain(w *World, err error, depth int) {
	fmt.Fprintf(w.Stderr, "%s%T: %s\n", strings.Repeat("  ", depth), err, oneLine(err))
	switch e := err.(type) {
	case panicked:
		fmt.Fprintf(w.Stderr, "%s\n", e.stack)
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			chain(w, inner, depth+1)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			chain(w, inner, depth+1)
		}
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// version is the program's version and, where the build knows it, the revision.
func version() string {
	v := migrate.Version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += " (" + s.Value[:12] + ")"
			}
		}
	}
	return v
}
