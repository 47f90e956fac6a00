//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A twin is one of two processes that have a copy each of a job's checkpoint, and a gate each.
type twin struct {
	job    *job
	gate   *gate
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan error
	held   *heldCommit // what waits at the gate
	runs   []run
}

// wake starts the process unless it runs.
func (w *twin) wake(t *testing.T) {
	t.Helper()
	if w.cmd != nil {
		return
	}
	p := w.job.command()
	w.cmd = exec.Command(p.args[0], p.args[1:]...)
	w.stderr.Reset()
	w.cmd.Dir, w.cmd.Env, w.cmd.Stderr = p.dir, environment(p), &w.stderr
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.ended = make(chan error, 1)
	go func(cmd *exec.Cmd) { w.ended <- cmd.Wait() }(w.cmd)
}

// comes waits until a commit of the process is at the gate, or the process has ended; it reports the first.
func (w *twin) comes(t *testing.T) bool {
	t.Helper()
	if w.held != nil {
		return true
	}
	select {
	case w.held = <-w.gate.held:
		return true
	case <-w.ended:
		w.end()
		return false
	case <-time.After(moveTimeout):
		w.cmd.Process.Kill()
		t.Fatalf("neither a commit nor an end came\n%s", w.stderr.String())
		return false
	}
}

// end notes what became of the process.
func (w *twin) end() {
	w.runs = append(w.runs, run{program: w.job.command(), code: w.cmd.ProcessState.ExitCode(), stderr: w.stderr.String()})
	w.cmd, w.held = nil, nil
}

// done reports whether the last run completed the job.
func (w *twin) done() bool { return w.cmd == nil && len(w.runs) > 0 && w.runs[len(w.runs)-1].code == 0 }

// step makes the process do what a letter says: c: its commit passes; d: it dies before its commit; l: it
// dies after the commit landed, without an answer.
func (w *twin) step(t *testing.T, what byte) {
	t.Helper()
	if w.done() {
		return
	}
	w.wake(t)
	if !w.comes(t) {
		return
	}
	switch what {
	case 'c':
		w.held.pass()
		w.held = nil
		return
	case 'l':
		w.held.land()
		defer close(w.held.release)
	case 'd':
		defer w.held.drop()
	}
	w.cmd.Process.Kill()
	<-w.ended
	w.end()
}

// schedules are the words of n letters: who goes on, A or B, and what it does. By symmetry A is first.
func schedules(n int) (words []string) {
	letters := []string{"Ac", "Ad", "Al", "Bc", "Bd", "Bl"}
	words = []string{""}
	for i := range n {
		var longer []string
		for _, w := range words {
			for _, l := range letters {
				if i > 0 || l[0] == 'A' {
					longer = append(longer, w+l)
				}
			}
		}
		words = longer
	}
	return words
}

// TestTwoCopies: two processes with two copies of one checkpoint, held before each commit: whoever of them
// commits, dies before or after a commit, and resumes, in whatever order, no batch is there twice and no file
// is lost.
func TestTwoCopies(t *testing.T) {
	words := schedules(3)
	if !tortures() {
		// A commits, B loses and goes on; one is a batch ahead; one dies before or after a commit, and the
		// other, or it again, goes on.
		words = []string{"AcBcAc", "AcAcBc", "AcAcAc", "AcBcBc", "AdBcAc", "AlBcAc", "AcBlAc", "AcBdBc", "AlAlBc", "AdAdBl", "AlBlAl", "AcAlBc"}
	}
	s := newStand(t)
	source := tableSpec{Catalog: "sqlite", Identifier: "s.src", Rows: 40, Files: 3}
	s.make(source)
	for _, pending := range []bool{true, false} {
		t.Run(map[bool]string{true: "with a pending batch", false: "without"}[pending], func(t *testing.T) {
			list := []tableSpec{}
			for _, word := range words {
				list = append(list, tableSpec{Catalog: "rest", Identifier: fmt.Sprintf("d%v.%s", pending, strings.ToLower(word)), Properties: map[string]string{"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "5"}})
			}
			s.make(list...)
			twins := map[string][2]*twin{}
			for _, dst := range list {
				twins[dst.Identifier] = runSchedule(t, s, source, dst, pending)
			}
			states := s.states(list...)
			for i, dst := range list {
				t.Run(words[i], func(t *testing.T) {
					if wrong := states[dst.Identifier].once(40, 4); wrong != "" {
						t.Error(wrong)
					}
					for _, w := range twins[dst.Identifier] {
						for _, r := range w.runs {
							if r.code != 0 && r.code != -1 {
								t.Errorf("a process that was not killed ended with code %d", r.code)
							}
						}
						if t.Failed() {
							t.Log(told(w.runs))
						}
					}
				})
			}
		})
	}
}

// runSchedule lets two processes go on with a job whose first batch is committed, as the destination's name
// says, and then to their ends.
func runSchedule(t *testing.T, s *stand, source, dst tableSpec, pending bool) [2]*twin {
	t.Helper()
	checkpoint := filepath.Join(s.dir, dst.Identifier+".json")
	j := job{s: s, src: source, dst: dst, batchRows: 10, checkpoint: checkpoint}
	s.control("POST", "/_faults", "403-before-commit skip=1 table="+dst.Identifier)
	if r, _ := j.run(); r.code != 1 {
		t.Fatalf("the first run did not stop\n%s", told([]run{r}))
	}
	note := noteOf(t, checkpoint)
	if note["pending"] == nil {
		t.Fatal("the first run left no pending batch")
	}
	if !pending {
		delete(note, "pending")
	}
	text, err := json.Marshal(note)
	if err != nil {
		t.Fatal(err)
	}
	var both [2]*twin
	for i := range both {
		mine := j
		g := newGate(t, s.endpoint)
		mine.endpoint, mine.checkpoint = g.URL, fmt.Sprintf("%s.%d", checkpoint, i)
		if err := os.WriteFile(mine.checkpoint, text, 0o600); err != nil {
			t.Fatal(err)
		}
		both[i] = &twin{job: &mine, gate: g}
		both[i].wake(t) // both are at work from the start
	}
	word := strings.ToUpper(dst.Identifier[strings.Index(dst.Identifier, ".")+1:])
	for ; word != ""; word = word[2:] {
		both[word[0]-'A'].step(t, word[1]+'a'-'A')
	}
	for !both[0].done() || !both[1].done() {
		for _, w := range both {
			if w.step(t, 'c'); len(w.runs) > 20 {
				t.Fatalf("no end\n%s", told(w.runs))
			}
		}
	}
	return both
}

// noteOf reads a checkpoint as JSON.
func noteOf(t *testing.T, path string) (note map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &note)
	}
	if err != nil {
		t.Fatal(err)
	}
	return note
}
