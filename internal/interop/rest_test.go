//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A stand is what a test with a REST catalog works with: the programs, PyIceberg, a folder, and a server
// that is Iceberg's own code with faults that a test orders (testdata/interop/rest/README.md).
type stand struct {
	t        *testing.T
	root     string
	bin      string
	python   string
	dir      string
	endpoint string
	client   map[string]string // how PyIceberg reaches the server
}

// newStand starts a server with these options beside the necessary ones.
func newStand(t *testing.T, options ...string) *stand {
	t.Helper()
	root := checkout(t)
	deps := dependencies(t, root)
	s := &stand{t: t, root: root, dir: t.TempDir(), python: filepath.Join(deps, "venv", "bin", "python"), bin: build(t, root)}
	args := append([]string{
		filepath.Join(deps, "jars"), filepath.Join(root, ".cache", "rest"),
		"--db", filepath.Join(s.dir, "rest.db"), "--warehouse", "file://" + filepath.Join(s.dir, "rest"),
	}, options...)
	s.endpoint = serve(t, filepath.Join(root, "testdata", "interop", "rest", "run.sh"), args...)
	s.client = map[string]string{"type": "rest", "uri": s.endpoint}
	return s
}

// serve starts a server of testdata/interop, which ends with the test, and returns the line that it prints.
func serve(t *testing.T, path string, args ...string) string {
	t.Helper()
	return begin(t, path, args...)()
}

// begin is serve for a server that is slow to start: the address comes when it is asked for.
func begin(t *testing.T, path string, args ...string) func() string {
	t.Helper()
	server := converse(t, exec.Command(path, args...), func(err error, said string) {
		if err != nil || said != "" {
			t.Logf("the server: %v\n%s", err, said)
		}
	})
	return func() string {
		t.Helper()
		line, err := server.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the server did not start: %v\n%s", err, server.said.String())
		}
		return strings.TrimSpace(line)
	}
}

// control steers the server or reads from it.
func (s *stand) control(method, path, body string) string {
	s.t.Helper()
	r, err := http.NewRequest(method, s.endpoint+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		s.t.Fatalf("%s %s: %s, %v", method, path, answer.Status, err)
	}
	return string(text)
}

// A request is an entry of the server's log.
type request struct {
	Op, Table, Fault string
	Query            map[string]string
	Agent            string `json:"user-agent"`
	Body             struct {
		Updates []struct {
			Snapshot struct{ Summary map[string]string }
		}
	}
}

// log are the requests so far.
func (s *stand) log() (list []request) {
	s.t.Helper()
	for line := range strings.Lines(s.control("GET", "/_log", "")) {
		var r request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// A tableSpec is a table to make or to look at.
type tableSpec struct {
	Catalog    string            `json:"catalog"` // rest, or sqlite: a catalog in the stand's folder
	Identifier string            `json:"identifier"`
	First      int               `json:"first"` // its lowest id
	Rows       int               `json:"rows"`
	Files      int               `json:"files"`
	Properties map[string]string `json:"properties,omitempty"`
}

// sqlite is the path of the stand's other catalog.
func (s *stand) sqlite() string { return filepath.Join(s.dir, "sqlite.db") }

// catalogs are those of the stand as PyIceberg knows them.
func (s *stand) catalogs() map[string]map[string]string {
	return map[string]map[string]string{
		"rest":   s.client,
		"sqlite": {"type": "sql", "uri": "sqlite:///" + s.sqlite(), "warehouse": "file://" + filepath.Join(s.dir, "sqlite")},
	}
}

// tables runs rest_tables.py over tables.
func (s *stand) tables(command string, list []tableSpec) []byte {
	s.t.Helper()
	input, err := json.Marshal(map[string]any{"catalogs": s.catalogs(), "tables": list})
	if err != nil {
		s.t.Fatal(err)
	}
	var out, said bytes.Buffer
	cmd := exec.Command(s.python, filepath.Join(s.root, "testdata", "interop", "rest_tables.py"), command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &said
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s tables: %v\n%s", command, err, said.String())
	}
	return out.Bytes()
}

// make makes tables.
func (s *stand) make(list ...tableSpec) {
	s.t.Helper()
	s.tables("make", list)
}

// A tableState is what PyIceberg finds in a table.
type tableState struct {
	IDs        []int `json:"ids"`
	Snapshots  []snapshotState
	Head       string
	Gone       []string // files that the table names and that are not there
	Properties map[string]string
}

type snapshotState struct {
	ID, Parent string
	Summary    map[string]string
}

// states reads tables.
func (s *stand) states(list ...tableSpec) map[string]tableState {
	s.t.Helper()
	out := map[string]tableState{}
	if err := json.Unmarshal(s.tables("state", list), &out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// state reads a table.
func (s *stand) state(table tableSpec) tableState {
	s.t.Helper()
	return s.states(table)[table.Identifier]
}

// batches are the ranges of a job's snapshots, in order.
func (t tableState) batches() (ranges []string) {
	for _, s := range t.Snapshots {
		if s.Summary["iceberg-ops.migration-job"] != "" {
			ranges = append(ranges, s.Summary["icepipe.cursor-from"]+" - "+s.Summary["icepipe.cursor"])
		}
	}
	return ranges
}

// once tells what is wrong with a table that shall hold ids 0 to rows - 1, each once, from commits of
// single batches that follow one another; "" when nothing is.
func (t tableState) once(rows, commits int) string {
	want := make([]int, rows)
	for i := range want {
		want[i] = i
	}
	ranges := t.batches()
	distinct := slices.Compact(slices.Sorted(slices.Values(ranges)))
	switch {
	case !slices.Equal(t.IDs, want):
		return fmt.Sprintf("it holds ids %v", t.IDs)
	case len(ranges) != commits || len(distinct) != commits:
		return fmt.Sprintf("%d snapshots are of %d batches, want %d of each: %q", len(ranges), len(distinct), commits, ranges)
	case len(t.Gone) > 0:
		return fmt.Sprintf("it names files that are gone: %s", t.Gone)
	}
	return ""
}

// flags name a table for a program; prefix is src-, dst- or none.
func (s *stand) flags(prefix string, table tableSpec, endpoint string) []string {
	dot := strings.LastIndex(table.Identifier, ".")
	flags := []string{"--" + prefix + "namespace", table.Identifier[:dot], "--" + prefix + "table", table.Identifier[dot+1:]}
	if table.Catalog == "sqlite" {
		return append(flags, "--"+prefix+"catalog", "sqlite", "--"+prefix+"db-path", s.sqlite(), "--"+prefix+"catalog-name", "sqlite")
	}
	return append(flags, "--"+prefix+"catalog", "rest", "--"+prefix+"uri", endpoint)
}

// A job is a migration of the stand's.
type job struct {
	s          *stand
	src, dst   tableSpec
	batchRows  int
	checkpoint string
	endpoint   string // of the destination, "" for the stand's
	bin        string // folder of the program, "" for the stand's
	more       []string
	env        []string
}

// command is ice-migrate for the job.
func (j *job) command() program {
	bin := j.s.bin
	if j.bin != "" {
		bin = j.bin
	}
	args := []string{filepath.Join(bin, "ice-migrate")}
	args = append(args, j.s.flags("src-", j.src, j.s.endpoint)...)
	endpoint := j.s.endpoint
	if j.endpoint != "" {
		endpoint = j.endpoint
	}
	args = append(args, j.s.flags("dst-", j.dst, endpoint)...)
	args = append(args, "--batch-rows", strconv.Itoa(j.batchRows), "--output", "json", "-q")
	if j.checkpoint != "" {
		args = append(args, "--checkpoint", j.checkpoint)
	}
	return program{args: append(args, j.more...), dir: j.s.dir, env: j.env}
}

// run runs ice-migrate once and returns its receipt, where it printed one.
func (j *job) run() (run, receipt) {
	j.s.t.Helper()
	var out bytes.Buffer
	r := pipe(j.s.t, []program{j.command()}, &out)[0]
	var got receipt
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			j.s.t.Errorf("receipt: %v\n%s", err, out.String())
		}
	}
	return r, got
}
