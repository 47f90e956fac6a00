//go:build interop

package interop

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"icepipe/internal/torture"
)

// A form is a way to run the migration.
type form string

const (
	inOne   form = "ice-migrate"
	inThree form = "the pipe"
)

// other is the form that goes on where this one died.
func (f form) other() form {
	if f == inOne {
		return inThree
	}
	return inOne
}

// A rack is what trials share: the programs, a source of 12 rows, and those who look at what arrived.
type rack struct {
	root, python string
	bin          string // the programs as they are released
	armed        string // those of them that write, with crash points
	work         string // folder of the tables
	source       string // folder of the source
	all          bool   // ICEPIPE_TORTURE=1: every call, not a sample
	trials       atomic.Int64
	mu           sync.Mutex
	kept         []string // folders of trials that Spark is to read
	fired        int      // trials since tell whose call was made
	late         int      // and whose call was not: the run made fewer than the one before
}

// note counts a trial.
func (r *rack) note(result torture.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if result.Fired {
		r.fired++
	} else {
		r.late++
	}
}

// tell says how many trials there were, and counts anew.
func (r *rack) tell(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	say("torture: %d %s, and %d runs that ended before their call", r.fired, what, r.late)
	r.fired, r.late = 0, 0
}

// TestTorture runs the migration where programs die, disks fail and disks are full, as often as can be,
// and looks at what is there after one more run by the other form. It does all of it with
// ICEPIPE_TORTURE=1, else a sample.
func TestTorture(t *testing.T) {
	r := newRack(t)
	before, err := filesState(r.source)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("kill", func(t *testing.T) { testKill(t, r, r.scenes()) })
	t.Run("points", func(t *testing.T) { testPoints(t, r, r.scenes()) })
	t.Run("order", func(t *testing.T) { testOrder(t, r) })
	t.Run("fail", func(t *testing.T) { testFail(t, r, r.scenes()) })
	t.Run("disk", func(t *testing.T) { testFullDisk(t, r, r.scenes()) })
	t.Run("upsert", func(t *testing.T) { testUpserts(t, r) })
	t.Run("spark", func(t *testing.T) { r.spark(t) })
	after, err := filesState(r.source)
	if err != nil {
		t.Fatal(err)
	}
	if after != before {
		t.Errorf("the source changed:\n%s", firstChange(before, after))
	}
	say("torture: %d trials", r.trials.Load())
}

// newRack makes the programs and the source.
func newRack(t *testing.T) *rack {
	t.Helper()
	root := checkout(t)
	(&lab{out: filepath.Join(root, ".cache", "torture")}).lock(t)
	r := &rack{root: root, work: filepath.Join(root, ".cache", "torture", "tables"), all: tortures()}
	r.python = filepath.Join(dependencies(t, root), "venv", "bin", "python")
	r.bin = build(t, root)
	r.armed = filepath.Join(root, ".cache", "torture", "armed")
	r.source = filepath.Join(r.work, "source")
	if err := os.RemoveAll(r.work); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{r.source, r.armed} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-tags", "crash", "-ldflags", "-s -w", "-o", r.armed, "./cmd/ice-write", "./cmd/ice-migrate")
	cmd.Dir = root
	call(t, cmd)
	w := r.witness(t)
	if _, err := w.ask("source", r.source); err != nil {
		t.Fatal(err)
	}
	return r
}

// programs are those of a scene's form, over the destination in a folder; bin has the one that writes.
func (r *rack) programs(s scene, bin, dir string, env ...string) []program {
	checkpoint := []string{"--checkpoint", filepath.Join(dir, "job.json")}
	write := append(slices.Clone(checkpoint), upsertModes[s.mode]...)
	from := "rows"
	switch {
	case s.mode != "":
		from = "changes"
	case s.copied:
		from = "copied"
	}
	scan := []string{"--batch-rows", "4"}
	reconcile := []string{"--on-missing-in-dest", "auto_add"}
	place := func(prefix, name, dir, table string) []string {
		return []string{
			"--" + prefix + "catalog", "sqlite", "--" + prefix + "catalog-name", name, "--" + prefix + "db-path", filepath.Join(dir, name+".db"),
			"--" + prefix + "namespace", "lab", "--" + prefix + "table", table,
		}
	}
	stage := func(bin, name string, args ...[]string) program {
		p := program{args: slices.Concat(append([][]string{{filepath.Join(bin, name)}}, args...)...), dir: dir, env: env}
		if s.mode != "" {
			p.temp = dir // an upsert keeps rows there
		}
		return p
	}
	if s.form == inOne {
		return []program{stage(bin, "ice-migrate", place("src-", "src", r.source, from), place("dst-", "dst", dir, "rows"), scan, reconcile, write)}
	}
	return []program{
		stage(r.bin, "ice-scan", place("", "src", r.source, from), scan, checkpoint),
		stage(r.bin, "ice-reconcile", place("", "dst", dir, "rows"), reconcile),
		stage(bin, "ice-write", write),
	}
}

// folder makes the folder of a trial, with the destination of a scene.
func (r *rack) folder(w *witness, s scene) (string, error) {
	dir := filepath.Join(r.work, fmt.Sprintf("%05d", r.trials.Add(1)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, w.fresh(dir, s)
}

// each does the work of all trials, two at a time, each with a witness of its own, and reports those
// that went wrong.
func each[T fmt.Stringer](t *testing.T, r *rack, trials []T, do func(*witness, T) error) {
	t.Helper()
	idle := make(chan *witness, workers)
	for range workers {
		idle <- r.witness(t)
	}
	inPairs(trials, func(trial T) {
		w := <-idle
		defer func() { idle <- w }()
		if err := do(w, trial); err != nil {
			say("torture: wrong: %s", trial) // hours before the test ends
			t.Errorf("%s: %v", trial, err)
		}
	})
}

// finish runs a scene's form to the end, and lets the witness look. A job that was complete already
// must be refused. Of an upsert ice-migrate clean must then find all that no snapshot names.
func (r *rack) finish(w *witness, s scene, dir string, noted string) error {
	runs, _, err := r.hurt(r.programs(s, r.bin, dir), unhurt, torture.Fault{})
	if err != nil {
		return err
	}
	if noted == "complete" {
		if !slices.ContainsFunc(runs, func(r run) bool { return r.code == 1 && strings.Contains(r.stderr, "complete") }) {
			return fmt.Errorf("the complete job was not refused:\n%s", told(runs))
		}
	} else if slices.ContainsFunc(runs, func(r run) bool { return r.code != 0 }) {
		return fmt.Errorf("the resume failed:\n%s", told(runs))
	}
	if s.mode != "" {
		clean := program{args: []string{filepath.Join(r.bin, "ice-migrate"), "clean", "--checkpoint", filepath.Join(dir, "job.json"), "--older-than", "0s", "--yes"}, dir: dir}
		cleaned, _, err := r.hurt([]program{clean}, unhurt, torture.Fault{})
		if err != nil {
			return err
		}
		if runs = append(runs, cleaned...); cleaned[0].code != 0 {
			return fmt.Errorf("after the resume:\n%s", told(runs))
		}
		if _, err := w.ask("orphans", dir); err != nil {
			return fmt.Errorf("after the resume: %w\n%s", err, told(runs))
		}
	}
	what := "check"
	if noted == "complete" { // the refused run has swept nothing
		what = "check unswept"
	}
	if _, err = w.ask(what, dir); err != nil {
		return fmt.Errorf("after the resume: %w\n%s", err, told(runs))
	}
	return nil
}

// keep leaves every n-th trial's folder for Spark and removes the others. The folder of a trial that
// went wrong stays, to be looked at.
func (r *rack) keep(dir string, n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, err := strconv.Atoi(filepath.Base(dir)); err == nil && at%n == 1 {
		r.kept = append(r.kept, dir)
		return nil
	}
	return os.RemoveAll(dir)
}

// filesState lists the files below a folder with their contents' digests.
func filesState(dir string) (string, error) {
	files, err := filesUnder(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %x\n", name, sha256.Sum256(content))
	}
	return b.String(), nil
}
