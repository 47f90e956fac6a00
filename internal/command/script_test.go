package command_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/rogpeppe/go-internal/testscript"

	"icepipe/internal/command"
	"icepipe/internal/demo"
)

var programs = []string{"ice-scan", "ice-reconcile", "ice-write", "ice-migrate", "ice-verify", "ice-cat"}

func TestMain(m *testing.M) {
	commands := map[string]func(){}
	for _, name := range programs {
		commands[name] = func() { command.Main(name) }
	}
	testscript.Main(m, commands)
}

// params are what every script gets: the programs on PATH, and these commands:
//
//	demo             makes the demonstration's tables in the current folder, and a .pyiceberg.yaml
//	                 with the catalogs src and dst
//	status N prog …  runs a program and checks its exit code; stdout and stderr as for exec
//	sql FILE STATEMENT  runs a statement on a SQLite database
//	boundaries IN OUT  writes to a file where the messages of a stream begin and end, one a line
func params() testscript.Params {
	return testscript.Params{
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"demo": makeDemo, "status": status, "boundaries": boundaries, "sql": statement,
		},
	}
}

func makeDemo(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(demo.Make(context.Background(), ts.MkAbs(".")))
	config := fmt.Sprintf("catalog:\n  src:\n    type: sql\n    uri: sqlite:///%[1]s/src.db\n  dst:\n    type: sql\n    uri: sqlite:///%[1]s/dst.db\n", ts.MkAbs("."))
	ts.Check(os.WriteFile(ts.MkAbs(".pyiceberg.yaml"), []byte(config), 0o666))
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program [args…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s exited %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func statement(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql FILE STATEMENT")
	}
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.Exec(args[1])
	ts.Check(errors.Join(err, db.Close()))
}

// boundaries reads the framing of Arrow's IPC format: a continuation marker, the length of the
// metadata, the metadata, and a body whose length the metadata tells.
func boundaries(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: boundaries FILE OUT")
	}
	text := []byte(ts.ReadFile(args[0]))
	r := bytes.NewReader(text)
	messages := ipc.NewMessageReader(r)
	defer messages.Release()
	var out bytes.Buffer
	for at := int64(0); ; {
		fmt.Fprintln(&out, at)
		m, err := messages.Message()
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		head := int64(binary.LittleEndian.Uint32(text[at+4:]))
		at += 8 + head + m.BodyLen()
	}
	fmt.Fprintln(&out, len(text))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o666))
}

func TestScripts(t *testing.T) {
	p := params()
	scripts, err := filepath.Glob("../../testdata/scripts/*.txtar")
	if err != nil || len(scripts) < 20 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for i, path := range scripts {
		if !testing.Short() || i%2 == 0 { // each makes 120,000 orders, which takes long under the race detector
			p.Files = append(p.Files, path)
		}
	}
	testscript.Run(t, p)
}

// TestReadme runs the README's sh blocks, one after the other in one folder.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	script.WriteString("demo\n")
	var files bytes.Buffer
	n := 0
	for _, block := range strings.Split(string(text), "```sh\n")[1:] {
		code, _, ok := strings.Cut(block, "```")
		if !ok {
			t.Fatal("a block without an end")
		}
		n++
		fmt.Fprintf(&script, "exec bash -eo pipefail block%d.sh\n", n)
		fmt.Fprintf(&files, "-- block%d.sh --\n%s", n, code)
	}
	if n < 6 {
		t.Fatalf("%d blocks were found", n)
	}
	runText(t, script.String()+files.String())
}

// TestManuals runs the examples of each program's package comment, each in a folder of its own.
func TestManuals(t *testing.T) {
	for i, name := range programs {
		if testing.Short() && i%2 == 0 {
			continue // as scripts above
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../../cmd/" + name + "/main.go")
			if err != nil {
				t.Fatal(err)
			}
			examples := manualExamples(string(text))
			if len(examples) == 0 {
				t.Fatal("no examples were found")
			}
			var script, files bytes.Buffer
			script.WriteString("demo\n")
			for i, code := range examples {
				fmt.Fprintf(&script, "exec bash -eo pipefail example%d.sh\n", i)
				fmt.Fprintf(&files, "-- example%d.sh --\n%s", i, code)
			}
			runText(t, script.String()+files.String())
		})
	}
}

// manualExamples returns the commands of the part "Examples:" of a package comment.
func manualExamples(source string) []string {
	_, part, ok := strings.Cut(source, "// Examples:\n//\n")
	if !ok {
		return nil
	}
	var out []string
	for _, line := range strings.Split(part, "\n") {
		code, ok := strings.CutPrefix(line, "//\t")
		switch {
		case !ok:
			return out
		case strings.HasPrefix(code, " ") && len(out) > 0:
			out[len(out)-1] += code + "\n"
		default:
			out = append(out, code+"\n")
		}
	}
	return out
}

func runText(t *testing.T, text string) {
	file := t.TempDir() + "/script.txtar"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	p := params()
	p.Files = []string{file}
	testscript.Run(t, p)
}
