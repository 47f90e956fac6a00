//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An arena is where upserts meet others: a stand with both catalogs, the programs that can be held, and the party that
// makes tables, changes and judges them.
type arena struct {
	*stand
	party *party
	armed string
}

func newArena(t *testing.T) *arena {
	t.Helper()
	a := &arena{stand: newStand(t)}
	a.armed = filepath.Join(a.root, ".cache", "torture", "armed")
	call(t, exec.Command("go", "build", "-C", a.root, "-tags", "crash", "-ldflags", "-s -w", "-o", a.armed+"/", "./cmd/ice-write", "./cmd/ice-migrate"))
	config, err := json.Marshal(map[string]any{
		"catalogs": a.catalogs(),
		"spark":    map[string][]string{"rest": {filepath.Join(a.dir, "rest.db"), filepath.Join(a.dir, "rest")}, "sqlite": {a.sqlite(), filepath.Join(a.dir, "sqlite")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.party = newPartyOf(t, "upsert_party.py", string(config))
	return a
}

// A ground is a kind of destination, and how rows are taken out of it.
type ground struct {
	catalog string
	version int
	mode    string
}

func grounds() (list []ground) {
	for _, catalog := range []string{"rest", "sqlite"} {
		list = append(list, ground{catalog, 2, "position"}, ground{catalog, 3, "position"}, ground{catalog, 2, "copy-on-write"})
	}
	return list
}

func (g ground) String() string {
	return fmt.Sprintf("%s_v%d_%s", g.catalog, g.version, strings.ReplaceAll(g.mode, "-", "_"))
}

// A row is one of a table of the arena.
type idText struct {
	id   int
	text string
}

func (r idText) MarshalJSON() ([]byte, error) { return json.Marshal([]any{r.id, r.text}) }

// tenRows are those of a destination.
func tenRows() (rows []idText) {
	for i := range 10 {
		rows = append(rows, idText{i, fmt.Sprintf("row %d", i)})
	}
	return rows
}

// A heldJob is an upsert that waits before each of its commits until the test lets it go on. On REST the commit waits
// on its way to the server, on SQLite the process stands between the commit's files and the catalog.
type heldJob struct {
	job    job
	gate   *gate // REST
	socket net.Listener
	door   chan net.Conn // SQLite
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	ended  chan error
	atGate *heldCommit
	atDoor net.Conn
	runs   []run
}

// hold makes an upsert of a source into a ground's table, which runs when it is first asked for.
func (a *arena) hold(t *testing.T, g ground, source, table string, batchRows int) *heldJob {
	t.Helper()
	h := &heldJob{job: job{
		s: a.stand, src: tableSpec{Catalog: "sqlite", Identifier: source}, dst: tableSpec{Catalog: g.catalog, Identifier: table}, batchRows: batchRows,
		checkpoint: filepath.Join(a.dir, table+"."+source+".json"), more: []string{"--write-mode", "upsert", "--upsert-keys", "id", "--delete-mode", g.mode},
	}}
	if g.catalog == "rest" {
		h.gate = newGate(t, a.endpoint)
		h.job.endpoint = h.gate.URL
		return h
	}
	h.listen(t, a)
	return h
}

// listen makes the door of a job on SQLite.
func (h *heldJob) listen(t *testing.T, a *arena) {
	t.Helper()
	dir, err := os.MkdirTemp("", "held-") // a path short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	if h.socket, err = net.Listen("unix", filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	h.door = make(chan net.Conn)
	ended, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := h.socket.Accept()
			if err != nil {
				return
			}
			select {
			case h.door <- conn:
			case <-closed:
				conn.Close()
			}
		}
	}()
	t.Cleanup(func() {
		close(closed)
		h.socket.Close()
		<-ended
		os.RemoveAll(dir)
	})
	h.job.bin, h.job.env = a.armed, []string{"ICEPIPE_HOLD=lake.staged@" + h.socket.Addr().String()}
}

// comes waits until a commit of the job waits, and reports false when its run has ended instead. It starts a run where
// there is none.
func (h *heldJob) comes() (bool, error) {
	if h.atGate != nil || h.atDoor != nil {
		return true, nil
	}
	if h.cmd == nil {
		p := h.job.command()
		h.cmd, h.stderr, h.ended = exec.Command(p.args[0], p.args[1:]...), &bytes.Buffer{}, make(chan error, 1)
		h.cmd.Dir, h.cmd.Env, h.cmd.Stderr = p.dir, environment(p), h.stderr
		if err := h.cmd.Start(); err != nil {
			return false, err
		}
		go func(cmd *exec.Cmd, ended chan error) { ended <- cmd.Wait() }(h.cmd, h.ended)
	}
	var gate chan *heldCommit
	if h.gate != nil {
		gate = h.gate.held
	}
	select {
	case h.atGate = <-gate:
		return true, nil
	case h.atDoor = <-h.door:
		return true, nil
	case <-h.ended:
		h.end()
		return false, nil
	case <-time.After(moveTimeout):
		h.cmd.Process.Kill()
		<-h.ended
		return false, fmt.Errorf("neither a commit nor an end came\n%s", h.stderr)
	}
}

func (h *heldJob) end() {
	h.runs = append(h.runs, run{program: h.job.command(), code: h.cmd.ProcessState.ExitCode(), stderr: h.stderr.String()})
	h.cmd = nil
}

// pass lets the commit go that waits, and waits for what the job does next.
func (h *heldJob) pass() error {
	if h.atGate != nil {
		h.atGate.pass()
	} else {
		h.atDoor.Close()
	}
	h.atGate, h.atDoor = nil, nil
	_, err := h.comes()
	return err
}

// die kills the job where it waits: nobody hears of its commit.
func (h *heldJob) die() {
	h.cmd.Process.Kill()
	<-h.ended
	h.end()
	if h.atGate != nil {
		h.atGate.drop()
	} else {
		h.atDoor.Close()
	}
	h.atGate, h.atDoor = nil, nil
}

// done reports whether the last run completed the job.
func (h *heldJob) done() bool {
	return h.cmd == nil && len(h.runs) > 0 && h.runs[len(h.runs)-1].code == 0
}

// finish lets commits pass, and the job run again where it met a conflict, until it is complete.
func (h *heldJob) finish() error {
	for range 20 {
		if h.done() {
			return nil
		}
		waits, err := h.comes()
		if err != nil {
			return err
		}
		if waits {
			if err := h.pass(); err != nil {
				return err
			}
		}
	}
	return errors.New("no end")
}

const conflictText = "another writer changed rows that the batch was compared with: "

// judge returns how many runs ended with a conflict. Others that were not killed must have ended well.
func (h *heldJob) judge() (conflicts int, err error) {
	for _, r := range h.runs {
		switch lines := r.errorLines(); {
		case r.code == 0, r.code == -1:
		case r.code == 1 && len(lines) == 1 && strings.Contains(lines[0], conflictText) && strings.Contains(lines[0], "run again to compare them anew"):
			conflicts++
		default:
			return conflicts, fmt.Errorf("a run ended with code %d\n%s", r.code, told(h.runs))
		}
	}
	return conflicts, nil
}
