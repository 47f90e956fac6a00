//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ckpt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const holdEnv = "CKPT_TEST_HOLD_LOCK"

// TestMain lets this binary be the other process: it locks the file that the environment names,
// says so, and holds the lock until its input ends.
func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		if _, err := Open(path).Lock(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockOfAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holdEnv+"="+path)
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}

	s := Open(path)
	if _, err := s.Lock(); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", other.Process.Pid)) {
		t.Errorf("got %v; want ErrLocked that names process %d", err, other.Process.Pid)
	} else if !strings.HasSuffix(err.Error(), ": wait for it to end") { // another file would begin another job
		t.Errorf("error %q gives another advice than to wait", err)
	}
	if _, err := s.Load(); err != nil {
		t.Errorf("Load needs the lock: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	other.Wait()
	unlock, err := s.Lock()
	if err != nil {
		t.Fatalf("the lock of a killed process is still held: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func TestLockInOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	unlock, err := Open(path).Lock()
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path).Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	s := Open(path)
	mustSave(t, s, sample(t))
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("Save and Reset gave the lock away: %v", err)
	}
	for range 2 {
		if err := unlock(); err != nil {
			t.Errorf("unlock: %v", err)
		}
	}
	unlock, err = s.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if after, err := os.Stat(path + ".lock"); err != nil || !os.SameFile(before, after) {
		t.Errorf("the lock file is another one: %v", err)
	}
}

func TestLockThroughLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink("real.json", link); err != nil {
		t.Fatal(err)
	}
	unlock, err := Open(link).Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := Open(filepath.Join(dir, "real.json")).Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("two names of one file take two locks: %v", err)
	}
}

func TestLockSweeps(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "job.json")
	for _, name := range []string{"job.json.tmp-123", "job.json.bak", "other.json.tmp-123"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half a doc"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := Open(path).Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "job.json.bak job.json.lock other.json.tmp-123" {
		t.Errorf("left: %s", got)
	}
}

func TestLockWithoutDirectory(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "no", "job.json")).Lock()
	if err == nil || !strings.Contains(err.Error(), "make it first") {
		t.Errorf("got %v", err)
	}
}
