//go:build interop

package interop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"icepipe/internal/torture"
)

// A failure is a trial: a call of a program, or all calls from one on, answer with an error.
type failure struct {
	scene
	fault torture.Fault
	last  bool // calls after it are tried until none is left
}

func (f failure) String() string {
	onwards := ""
	if f.fault.On {
		onwards = " and all after it"
	}
	s := fmt.Sprintf("%s, program %d: %s %d%s: %v", f.scene, f.stage, f.fault.Call, f.fault.K, onwards, f.fault.Errno)
	if f.before != "" {
		s += ", after a run died at " + f.before
	}
	return s
}

// A way is how calls of a name fail.
type way struct {
	call  string
	errno syscall.Errno
	on    bool
}

// ways are the failures of a disk: it cannot be read, it cannot be written, it is full; once, or for
// good.
var ways = []way{
	{"read", syscall.EIO, false}, {"pread64", syscall.EIO, false}, {"pread64", syscall.EIO, true},
	{"write", syscall.EIO, false}, {"write", syscall.ENOSPC, true},
	{"pwrite64", syscall.EIO, false}, {"pwrite64", syscall.ENOSPC, true},
	{"copy_file_range", syscall.EIO, false}, {"copy_file_range", syscall.ENOSPC, true},
	{"fsync", syscall.EIO, false}, {"fsync", syscall.EIO, true},
	{"renameat", syscall.EIO, false}, {"openat", syscall.ENOSPC, false}, {"open", syscall.EIO, false},
	{"mkdirat", syscall.ENOSPC, false}, {"unlink", syscall.EIO, false}, {"unlink", syscall.EIO, true}, {"ftruncate", syscall.EIO, false},
}

// failures counts the calls on files that a program makes in a scene, and returns the failures to try.
func (r *rack) failures(t *testing.T, w *witness, s scene) []failure {
	t.Helper()
	calls := r.count(t, w, s, r.work)
	var out []failure
	for _, way := range ways {
		n := calls[way.call]
		if n == 0 {
			continue
		}
		faults, last := r.faults(s, n, torture.Fault{Do: torture.Fail, Call: way.call, On: way.on, Errno: way.errno, Under: r.work})
		for i, f := range faults {
			out = append(out, failure{s, f, last && i == len(faults)-1})
		}
	}
	return out
}

// testFail fails each program's k-th call on a file, for k = 1, 2, … until none is left: every run ends
// with the old state or the new one, says in one line what failed and where, and is finished by the
// other form.
func testFail(t *testing.T, r *rack, scenes []scene) {
	var trials []failure
	seen := map[string]bool{}
	w := r.witness(t)
	for _, s := range scenes {
		for _, f := range r.failures(t, w, s) {
			trials = append(trials, f)
			seen[f.fault.Call] = true
		}
	}
	copies := slices.ContainsFunc(scenes, func(s scene) bool { return s.copied })
	for _, way := range ways {
		if !seen[way.call] && (copies || way.call != "copy_file_range") {
			t.Errorf("no program calls %s", way.call)
		}
	}
	each(t, r, few(r, trials), r.fail)
	r.tell("failures")
}

// fail makes a trial, and those behind it where calls are left.
func (r *rack) fail(w *witness, f failure) error {
	for {
		dir, err := r.scene(w, f.scene)
		if err != nil {
			return err
		}
		runs, result, err := r.hurt(r.programs(f.scene, r.bin, dir), f.stage, f.fault)
		if err == nil {
			err = judgeFailure(runs, f.stage, result)
		}
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", dir, err, told(runs))
		}
		if err := r.mend(w, f.scene, dir, runs); err != nil {
			return err
		}
		r.note(result)
		if !result.Fired || !f.last {
			return nil
		}
		f.fault.K++
	}
}

// judgeFailure holds the exit codes and the message against what must be: a failure that the program
// gets over is none.
func judgeFailure(runs []run, at int, result torture.Result) error {
	for i, r := range runs {
		switch {
		case i < at && r.code != 0 && r.code != 141 && !r.piped:
			return fmt.Errorf("program %d ended with %d, though nobody reads it", i, r.code)
		case i == at && r.code != 0 && r.code != 1:
			return fmt.Errorf("program %d ended with %d", i, r.code)
		case i > at && r.code != 0 && (r.code != 3 || runs[at].code == 0):
			return fmt.Errorf("program %d ended with %d", i, r.code)
		}
	}
	hurt := runs[at]
	if hurt.code == 0 {
		return nil
	}
	if !result.Fired {
		return errors.New("a run without a fault failed")
	}
	if len(hurt.errorLines()) != 1 {
		return errors.New("the message is not one line")
	}
	for line := range strings.Lines(hurt.stderr) {
		if !strings.HasPrefix(line, "Error: ") && !strings.HasPrefix(line, "Hint: ") {
			return fmt.Errorf("it says %q beside its message", line)
		}
	}
	if !slices.ContainsFunc(result.Paths, func(path string) bool { return strings.Contains(hurt.errorLines()[0], fileOf(path)) }) {
		return fmt.Errorf("the message names none of %q", result.Paths)
	}
	return nil
}

// fileOf is the name that people know a file by: a database's for its journal, a checkpoint's for what
// it is written to at first.
func fileOf(path string) string {
	file, _, _ := strings.Cut(filepath.Base(path), ".tmp-")
	return strings.TrimSuffix(file, "-journal")
}

// testFullDisk runs the migration on disks that are full sooner or later: file systems in memory, each
// a page larger than the one before it, until there is room for all. The disk is then made larger, and
// the other form finishes.
func testFullDisk(t *testing.T, r *rack, scenes []scene) {
	w := r.witness(t)
	step := int64(4 << 10)
	if !r.all {
		step *= 5
	}
	for _, s := range scenes {
		if s.form == inThree && s.stage != 2 || s.before != "" {
			continue
		}
		full := 0
		for size := int64(32 << 10); ; size += step {
			fits, err := r.fill(w, s, size)
			if errors.Is(err, errNoRoom) {
				continue
			}
			if err != nil {
				t.Errorf("%s, a disk of %d bytes: %v", s, size, err)
			}
			if fits || err != nil {
				break
			}
			full++
		}
		if full == 0 {
			t.Errorf("%s: no disk was too small", s)
		}
		say("torture: %s: %d disks were full", s, full)
	}
}

// errNoRoom says that a disk is too small for an empty destination.
var errNoRoom = errors.New("no room for the destination")

// fill makes a trial on a disk of a size, and tells whether the migration fits.
func (r *rack) fill(w *witness, s scene, size int64) (fits bool, err error) {
	dir := filepath.Join(r.work, fmt.Sprintf("disk-%d", size))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	defer os.Remove(dir)
	room := func(size int64, flags uintptr) error {
		err := syscall.Mount("torture", dir, "tmpfs", flags, fmt.Sprintf("size=%d", size))
		if err != nil {
			return fmt.Errorf("mount a small disk, which needs root: %w", err)
		}
		return nil
	}
	if err := room(size, 0); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, syscall.Unmount(dir, syscall.MNT_DETACH)) }()
	if err := w.fresh(dir, s); err != nil {
		return false, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	runs, _, err := r.hurt(r.programs(s, r.bin, dir), unhurt, torture.Fault{})
	if err != nil {
		return false, err
	}
	last := runs[len(runs)-1]
	if last.code == 0 {
		_, err := w.ask("check", dir)
		return true, err
	}
	if last.code != 1 || len(last.errorLines()) != 1 || !strings.Contains(last.stderr, "no space left on device") && !strings.Contains(last.stderr, "full") {
		return false, fmt.Errorf("it does not say that the disk is full:\n%s", told(runs))
	}
	if err := room(64<<20, syscall.MS_REMOUNT); err != nil {
		return false, err
	}
	left, err := w.ask("state", dir)
	if err != nil {
		return false, fmt.Errorf("left behind: %w\n%s", err, told(runs))
	}
	return false, r.finish(w, s.other(), dir, left.Noted)
}
