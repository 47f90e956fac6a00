//go:build interop

package interop

import (
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"icepipe/internal/torture"
)

// The system calls with which a program can change something outside of itself, or learn of it, but
// for reads: made are those that the program that writes makes, the others it does not.
var (
	changing = []string{
		"fsync", "fdatasync", "rename", "renameat", "renameat2", "open", "openat", "write", "writev", "pwrite64", "unlink", "unlinkat",
		"ftruncate", "mkdir", "mkdirat", "copy_file_range",
	}
	// Go renames with renameat, opens with openat and makes folders with mkdirat; SQLite in Go calls
	// open, unlink and pwrite64; both sync with fsync.
	made = map[string][]string{
		"ice-migrate":   {"fsync", "renameat", "open", "openat", "write", "pwrite64", "unlink", "ftruncate", "mkdirat"},
		"ice-write":     {"fsync", "renameat", "open", "openat", "write", "pwrite64", "unlink", "ftruncate", "mkdirat"},
		"ice-reconcile": {"open", "openat", "write"},
		"ice-scan":      {"open", "openat", "write"},
	}
)

// A kill is a trial: a program is killed at a call, or at a crash point.
type kill struct {
	scene
	fault torture.Fault
	last  bool   // calls after it are tried until none is left
	point string // instead of the fault: POINT:N
}

func (k kill) String() string {
	what := fmt.Sprintf("%s %d", k.fault.Call, k.fault.K)
	if k.fault.Do == torture.Tear {
		what += " torn"
	}
	if k.point != "" {
		what = k.point
	}
	s := fmt.Sprintf("%s, program %d killed at %s", k.scene, k.stage, what)
	if k.before != "" {
		s += ", after a run died at " + k.before
	}
	return s
}

// A scene is what a program is hurt in.
type scene struct {
	version int
	form    form
	stage   int    // of the form's programs
	before  string // the crash point at which a run before it died; "" for none
	mode    string // of upsertModes; "" rows are appended
	copied  bool   // rows lie so that ice-migrate copies their row groups
}

func (s scene) String() string {
	text := fmt.Sprintf("v%d, %s", s.version, s.form)
	if s.mode != "" {
		text += ", upsert (" + s.mode + ")"
	}
	if s.copied {
		text += ", copied"
	}
	return text
}

// other is the scene in the form that goes on where this one died.
func (s scene) other() scene {
	s.form = s.form.other()
	return s
}

// scenes are the states that programs are hurt in: on an empty destination, and where a run before
// died with a batch written and not committed, or committed and not noted. The sample has each of them
// with one version of the table format.
func (r *rack) scenes() []scene {
	var out []scene
	for i, s := range []scene{
		{form: inOne}, {form: inThree, stage: 2}, {form: inThree}, {form: inThree, stage: 1},
		{form: inOne, before: "migrate.pending-noted:2"}, {form: inThree, stage: 2, before: "lake.sent:2"},
		{form: inOne, copied: true},
	} {
		for version := 1; version <= 3; version++ {
			if s.version = version; r.all || version == 3-i%3 {
				out = append(out, s)
			}
		}
	}
	return out
}

// stride is the distance of the calls in a sample.
const stride = 61

// step is the distance of the calls that a fault is made at. Of those that make a change real the sample
// kills at each and fails every third, in appends. In upserts it has a few calls alone.
func (r *rack) step(s scene, f torture.Fault) int {
	switch {
	case r.all:
		return every()
	case s.mode != "":
		return 10 * stride
	case !slices.Contains([]string{"renameat", "unlink", "unlinkat"}, f.Call):
		return stride
	case f.Do == torture.Fail:
		return 3
	}
	return 1
}

// every is the distance of the calls that are tried where all are asked for: ICEPIPE_EVERY, for as much as time allows.
func every() int {
	n, err := strconv.Atoi(os.Getenv("ICEPIPE_EVERY"))
	if err != nil {
		return 1
	}
	return max(1, n)
}

// testKill kills each program at its k-th system call of a kind, for k = 1, 2, … until none is left,
// and lets the other form finish.
func testKill(t *testing.T, r *rack, scenes []scene) {
	var trials []kill
	w := r.witness(t)
	for _, s := range scenes {
		trials = append(trials, r.kills(t, w, s)...)
	}
	each(t, r, few(r, trials), r.kill)
	r.tell("kills")
}

// kills counts the calls that a program makes in a scene, and returns the kills to try.
func (r *rack) kills(t *testing.T, w *witness, s scene) []kill {
	t.Helper()
	calls := r.count(t, w, s, "")
	name := r.programs(s, "", "")[s.stage].name()
	want := slices.Clone(made[name])
	switch {
	case s.mode != "": // what is kept of rows is removed, and the last batch has a partition of its own
		want = append(want, "unlinkat")
	case s.before != "": // the temporary file of a checkpoint is removed, and folders are there
		want = append(slices.DeleteFunc(want, func(c string) bool { return c == "mkdirat" }), "unlinkat")
	}
	if s.copied && s.form == inOne {
		want = append(want, "copy_file_range")
	}
	found := slices.DeleteFunc(slices.Sorted(maps.Keys(calls)), func(c string) bool { return !slices.Contains(changing, c) })
	if s.once() && s.before != "" { // nothing may be left to write
		want = slices.DeleteFunc(want, func(c string) bool { return !slices.Contains(found, c) })
	}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("%s, %s, after %q: it makes the calls %v, want %v", s, name, s.before, found, want)
	}
	var out []kill
	for _, c := range found {
		for _, do := range []torture.Action{torture.Kill, torture.Tear} {
			if do == torture.Tear && !slices.Contains([]string{"write", "pwrite64"}, c) {
				continue
			}
			faults, last := r.faults(s, calls[c], torture.Fault{Do: do, Call: c})
			for i, f := range faults {
				out = append(out, kill{scene: s, fault: f, last: last && i == len(faults)-1})
			}
		}
	}
	return out
}

// faults are a fault at each of n calls, or at a sample of them. last tells whether the last one is
// behind all calls that were counted: threads take turns differently in each run, so that there may be
// more of them then.
func (r *rack) faults(s scene, n int, f torture.Fault) (out []torture.Fault, last bool) {
	step := r.step(s, f)
	begin := fnv.New32() // a sample begins at another call in each scene
	fmt.Fprint(begin, s, f.Do, f.Call, f.On)
	f.K = 1 + int(begin.Sum32())%min(step, n)
	for ; f.K <= n || step == 1 && f.K == n+1; f.K += step {
		out = append(out, f)
	}
	return out, step == 1
}

// count runs a program in a scene and returns how often it makes each call, on files below a folder.
func (r *rack) count(t *testing.T, w *witness, s scene, under string) map[string]int {
	t.Helper()
	dir, err := r.scene(w, s)
	if err != nil {
		t.Fatal(err)
	}
	runs, result, err := r.hurt(r.programs(s, r.bin, dir), s.stage, torture.Fault{Under: under})
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("the run failed:\n%s", told(runs))
	}
	if err == nil {
		_, err = w.ask("check", dir)
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return result.Calls
}

// scene makes a destination, and lets a run die in it where the scene says so.
func (r *rack) scene(w *witness, s scene) (string, error) {
	dir, err := r.folder(w, s)
	if err != nil || s.before == "" {
		return dir, err
	}
	runs, _, err := r.hurt(r.programs(s, r.armed, dir, "ICEPIPE_CRASH="+s.before), unhurt, torture.Fault{})
	if err != nil {
		return dir, err
	}
	if last := runs[len(runs)-1]; last.code != -1 {
		return dir, fmt.Errorf("no run died at %s:\n%s", s.before, told(runs))
	}
	return dir, os.WriteFile(filepath.Join(dir, "job.json.tmp-123"), []byte("{"), 0o600)
}

// kill makes a trial, and those behind it where calls are left.
func (r *rack) kill(w *witness, k kill) error {
	for {
		dir, err := r.scene(w, k.scene)
		if err != nil {
			return err
		}
		runs, result, err := r.hurt(r.programs(k.scene, r.bin, dir), k.stage, k.fault)
		if err == nil {
			err = k.judge(runs, result)
		}
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", dir, err, told(runs))
		}
		if err := r.mend(w, k.scene, dir, runs); err != nil {
			return err
		}
		r.note(result)
		if !result.Fired || !k.last {
			return nil
		}
		k.fault.K++
	}
}

// mend looks at what a hurt run left, and lets the other form finish it.
func (r *rack) mend(w *witness, s scene, dir string, runs []run) error {
	left, err := w.ask("state", dir)
	if err != nil {
		return fmt.Errorf("%s: left behind: %w\n%s", dir, err, told(runs))
	}
	if last := runs[len(runs)-1]; last.code == 0 && left.Noted != "complete" {
		return fmt.Errorf("%s: done, says the program, and the checkpoint says %q\n%s", dir, left.Noted, told(runs))
	}
	if err := r.finish(w, s.other(), dir, left.Noted); err != nil {
		return fmt.Errorf("%s: %w\nbefore it:\n%s", dir, err, told(runs))
	}
	return r.keep(dir, 41)
}

// judge holds what became of the programs against what must.
func (k kill) judge(runs []run, result torture.Result) error {
	if !result.Fired {
		for _, r := range runs {
			if r.code != 0 {
				return fmt.Errorf("a run without a fault failed")
			}
		}
		return nil
	}
	if result.Signal != syscall.SIGKILL {
		return fmt.Errorf("it was not killed: %+v", result)
	}
	for i, r := range runs {
		switch {
		case i < k.stage && r.code != 0 && r.code != 141 && !r.piped:
			return fmt.Errorf("program %d ended with %d, though nobody reads it", i, r.code)
		case i > k.stage && r.code != 0 && r.code != 3:
			return fmt.Errorf("program %d ended with %d, though its input broke off", i, r.code)
		}
	}
	return nil
}

// few is a third of the sample's trials of upserts, and all others.
func few[T interface{ upserts() bool }](r *rack, trials []T) (out []T) {
	for i, trial := range trials {
		if r.all || !trial.upserts() || i%3 == 0 {
			out = append(out, trial)
		}
	}
	return out
}

// upserts reports whether the scene is one of an upsert.
func (s scene) upserts() bool { return s.mode != "" }
