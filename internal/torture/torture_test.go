//go:build linux && amd64

package torture_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"icepipe/internal/torture"
)

const (
	writers = 4
	lines   = 5
)

// TestMain makes this binary the program that is tortured as well: in it some threads of its own each
// write some lines to a file.
func TestMain(m *testing.M) {
	path := os.Getenv("TORTURED")
	if path == "" {
		os.Exit(m.Run())
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	var wait sync.WaitGroup
	code := make(chan int, writers*lines)
	for range writers {
		wait.Go(func() {
			runtime.LockOSThread()
			for range lines {
				if _, err := f.WriteString("line\n"); err != nil {
					fmt.Fprintln(os.Stderr, err)
					code <- 1
				}
			}
		})
	}
	wait.Wait()
	os.Exit(len(code))
}

// tortured runs this binary as the program that writes lines, and returns what it left in its file.
func tortured(t *testing.T, f torture.Fault) (torture.Result, string, string) {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	if f.Under != "" {
		f.Under = dir
	}
	r, err := torture.Run(torture.Program{
		Args: []string{os.Args[0]}, Env: []string{"TORTURED=" + out}, Dir: dir, Stderr: stderr, Timeout: time.Minute,
	}, f)
	if err != nil {
		t.Fatal(err)
	}
	if r.TimedOut {
		t.Fatal("the program hung")
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(stderr.Name())
	if err != nil {
		t.Fatal(err)
	}
	return r, string(text), string(said)
}

func TestKillAtTheKth(t *testing.T) {
	const all = writers * lines
	for k := 1; ; k++ {
		r, text, _ := tortured(t, torture.Fault{Do: torture.Kill, Call: "write", K: k, Under: "file"})
		if !r.Fired {
			if k != all+1 || r.Code != 0 || text != strings.Repeat("line\n", all) || r.Calls["write"] != all {
				t.Errorf("call %d never came, the result is %+v, the file %q", k, r, text)
			}
			return
		}
		// Other threads' calls that were counted before may be made or not, those after it are not.
		if r.Signal != syscall.SIGKILL || len(text) > 5*(k-1) || len(text) < 5*(k-writers) || len(r.Paths) != 1 || filepath.Base(r.Paths[0]) != "out" {
			t.Errorf("killed at call %d: %+v, and %q was written", k, r, text)
		}
	}
}

func TestTearTheKth(t *testing.T) {
	r, text, _ := tortured(t, torture.Fault{Do: torture.Tear, Call: "write", K: 1, Under: "file"})
	if !r.Fired || r.Signal != syscall.SIGKILL || text != "li" && !strings.HasPrefix(text, "li") {
		t.Errorf("%+v, and %q was written", r, text)
	}
}

func TestFailTheKth(t *testing.T) {
	for _, on := range []bool{false, true} {
		r, text, said := tortured(t, torture.Fault{Do: torture.Fail, Call: "write", K: 18, On: on, Errno: syscall.ENOSPC, Under: "file"})
		failures := 1
		if on {
			failures = 3
		}
		if !r.Fired || r.Code != failures || strings.Count(said, "no space left on device") != failures || len(text) != 5*(writers*lines-failures) {
			t.Errorf("on %v: %+v, it said %q and wrote %q", on, r, said, text)
		}
	}
}

func TestCount(t *testing.T) {
	r, _, _ := tortured(t, torture.Fault{Under: "file", Log: true})
	if r.Fired || r.Code != 0 || r.Calls["write"] != writers*lines || r.Calls["openat"] != 1 {
		t.Errorf("%+v", r)
	}
	if len(r.Log) != 1+writers*lines || r.Log[0].Call != "openat" || r.Log[1].Call != "write" || filepath.Base(r.Log[0].Path) != "out" {
		t.Errorf("%+v", r.Log)
	}
}

// TestStopped: a program that does not end is killed.
func TestStopped(t *testing.T) {
	r, err := torture.Run(torture.Program{Args: []string{"/bin/sleep", "60"}, Dir: t.TempDir(), Timeout: time.Millisecond}, torture.Fault{})
	if err != nil || !r.TimedOut || r.Signal != syscall.SIGKILL {
		t.Errorf("%+v, %v", r, err)
	}
}
