//go:build interop || memory

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// moveTimeout ends a program that hangs; the slowest move takes seconds.
const moveTimeout = 5 * time.Minute

// checkout returns the folder of go.mod.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return root
}

// dependencies makes what the tests need of Python and Java, once, and returns its folder:
// ICEPIPE_DEPS, or .cache/interop in the checkout.
func dependencies(t *testing.T, root string) string {
	t.Helper()
	dir := os.Getenv("ICEPIPE_DEPS")
	if dir == "" {
		dir = filepath.Join(root, ".cache", "interop")
	}
	call(t, exec.Command(filepath.Join(root, "testdata", "interop", "setup.sh"), dir))
	return dir
}

// build makes the programs and returns their folder.
func build(t *testing.T, root string) string {
	t.Helper()
	call(t, exec.Command("make", "-s", "-C", root, "build"))
	return filepath.Join(root, "bin")
}

// say prints a line at once. The targets of the Makefile run this package as the current folder, where
// "go test" passes it on; a log of the test would be shown on failure alone.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// call runs a command of the harness; its failure ends the test.
func call(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	say("%5.1f s  %s", time.Since(began).Seconds(), program{args: cmd.Args})
}

// A program is one stage of a pipe.
type program struct {
	args []string // the path of the program first
	env  []string // beside the plain environment
	dir  string   // where it runs
	temp string   // its temporary folder, "" for the system's
}

// name is that of the program without its folder.
func (p program) name() string { return filepath.Base(p.args[0]) }

func (p program) String() string {
	words := append([]string{}, p.env...)
	words = append(words, p.name())
	for _, a := range p.args[1:] {
		if strings.ContainsAny(a, " '\"$*#") || a == "" {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// A run is what became of a program.
type run struct {
	program program
	code    int  // exit code; -1 when a signal ended it
	piped   bool // SIGPIPE ended it
	stderr  string
	maxRSS  int64 // peak of resident memory in bytes
}

// pipe runs programs joined by pipes, the last one's stdout into out, and waits for all.
func pipe(t *testing.T, programs []program, out io.Writer) []run {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), moveTimeout)
	defer cancel()
	cmds := make([]*exec.Cmd, len(programs))
	stderr := make([]bytes.Buffer, len(programs))
	var ours []*os.File // our copies of the ends, to be closed once the programs hold theirs
	for i, p := range programs {
		cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
		cmd.Dir, cmd.Env, cmd.Stderr = p.dir, environment(p), &stderr[i]
		cmds[i] = cmd
		if i > 0 {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmds[i-1].Stdout, cmd.Stdin = w, r
			ours = append(ours, r, w)
		}
	}
	cmds[len(cmds)-1].Stdout = out
	var failed error
	started := 0
	for _, cmd := range cmds {
		if failed = cmd.Start(); failed != nil {
			break
		}
		started++
	}
	for _, f := range ours {
		f.Close()
	}
	runs := make([]run, started)
	for i, cmd := range cmds[:started] {
		err := cmd.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			failed = errors.Join(failed, err)
		}
		runs[i] = run{program: programs[i], code: cmd.ProcessState.ExitCode(), stderr: stderr[i].String()}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
			runs[i].piped = status.Signaled() && status.Signal() == syscall.SIGPIPE
		}
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			runs[i].maxRSS = usage.Maxrss * 1024
		}
	}
	if failed != nil {
		t.Errorf("run %s: %v", programs, failed)
	}
	return runs
}

// environment is what a program sees: no configuration of the person who runs the tests.
func environment(p program) []string {
	temp := p.temp
	if temp == "" {
		temp = os.TempDir()
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + temp, "LANG=C.UTF-8"}
	return append(env, p.env...)
}

// told joins what the programs said, for messages of failed tests.
func told(runs []run) string {
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "$ %s\nexit %d\n%s\n", r.program, r.code, strings.TrimRight(r.stderr, "\n"))
	}
	return b.String()
}

// tortures reports whether all is to be tried of which the tests try a sample.
func tortures() bool { return os.Getenv("ICEPIPE_TORTURE") == "1" }
