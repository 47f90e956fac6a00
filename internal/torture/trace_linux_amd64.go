package torture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// How a call names its file.
type naming int

const (
	byFD    naming = iota // descriptor in the first argument
	byPath                // path in the first argument
	byPath2               // path in the second argument, after a folder's descriptor
	byPath4               // path in the fourth argument: the new name of renameat
	byFD3                 // descriptor in the third argument: where copy_file_range writes
)

type call struct {
	name string
	file naming
}

// calls are the system calls that can be counted, by number. SYS_RENAMEAT2 and
// SYS_COPY_FILE_RANGE are missing in syscall.
var calls = map[uint64]call{
	syscall.SYS_READ:      {"read", byFD},
	syscall.SYS_PREAD64:   {"pread64", byFD},
	syscall.SYS_WRITE:     {"write", byFD},
	syscall.SYS_PWRITE64:  {"pwrite64", byFD},
	syscall.SYS_WRITEV:    {"writev", byFD},
	syscall.SYS_FSYNC:     {"fsync", byFD},
	syscall.SYS_FDATASYNC: {"fdatasync", byFD},
	syscall.SYS_FTRUNCATE: {"ftruncate", byFD},
	syscall.SYS_OPEN:      {"open", byPath},
	syscall.SYS_OPENAT:    {"openat", byPath2},
	syscall.SYS_MKDIR:     {"mkdir", byPath},
	syscall.SYS_MKDIRAT:   {"mkdirat", byPath2},
	syscall.SYS_UNLINK:    {"unlink", byPath},
	syscall.SYS_UNLINKAT:  {"unlinkat", byPath2},
	syscall.SYS_RENAME:    {"rename", byPath2},
	syscall.SYS_RENAMEAT:  {"renameat", byPath4},
	316:                   {"renameat2", byPath4},
	326:                   {"copy_file_range", byFD3},
}

// Names are the system calls that can be counted, in order.
func Names() []string {
	var names []string
	for _, c := range calls {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}

const (
	anyThread   = 0x40000000 // __WALL
	syscallStop = syscall.SIGTRAP | 0x80
	dieWithUs   = 0x00100000 // PTRACE_O_EXITKILL
)

// Run runs a program to its end, with a fault. Its goroutine holds its thread meanwhile, as ptrace
// wants all requests from one. An error is of the tracing, never the program's.
func Run(p Program, f Fault) (Result, error) {
	if f.Do != Count && !slices.Contains(Names(), f.Call) {
		return Result{}, fmt.Errorf("system call %q cannot be counted, these can: %s", f.Call, strings.Join(Names(), ", "))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t := &tracer{fault: f, dir: p.Dir, threads: map[int]*thread{}, result: Result{Calls: map[string]int{}}}
	if err := t.start(p); err != nil {
		return Result{}, fmt.Errorf("trace %s: %w", filepath.Base(p.Args[0]), err)
	}
	watch := time.AfterFunc(p.Timeout, func() {
		t.late.Store(true)
		syscall.Kill(-t.pid, syscall.SIGKILL)
	})
	defer watch.Stop()
	if err := t.follow(); err != nil {
		syscall.Kill(-t.pid, syscall.SIGKILL)
		return t.result, fmt.Errorf("trace %s: %w", filepath.Base(p.Args[0]), err)
	}
	t.result.TimedOut = t.late.Load()
	return t.result, nil
}

type tracer struct {
	fault   Fault
	dir     string
	pid     int
	threads map[int]*thread
	seen    int // calls that the fault is about
	late    atomic.Bool
	result  Result
}

// A thread is in a call, or not.
type thread struct {
	inside bool
	fails  bool // the call that it is in answers with an error
	torn   bool // the program is killed once the call is over
}

func (t *tracer) start(p Program) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	files := []*os.File{p.Stdin, p.Stdout, p.Stderr}
	for i, f := range files {
		if f == nil {
			files[i] = null
		}
	}
	process, err := os.StartProcess(p.Args[0], p.Args, &os.ProcAttr{
		Dir: p.Dir, Env: p.Env, Files: files, Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if err != nil {
		return err
	}
	t.pid = process.Pid
	if err := process.Release(); err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := wait(t.pid, &status); err != nil {
		return err
	}
	if !status.Stopped() {
		return fmt.Errorf("it did not start: %#x", status)
	}
	if err := syscall.PtraceSetOptions(t.pid, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|dieWithUs); err != nil {
		return err
	}
	t.threads[t.pid] = &thread{}
	return syscall.PtraceSyscall(t.pid, 0)
}

func wait(pid int, status *syscall.WaitStatus) (int, error) {
	for {
		id, err := syscall.Wait4(pid, status, anyThread, nil)
		if !errors.Is(err, syscall.EINTR) {
			return id, err
		}
	}
}

// follow takes every stop of every thread, until the program has ended.
func (t *tracer) follow() error {
	for {
		var status syscall.WaitStatus
		id, err := wait(-t.pid, &status)
		if err != nil {
			return err
		}
		if status.Exited() || status.Signaled() {
			if id != t.pid {
				delete(t.threads, id)
				continue
			}
			t.result.Code = status.ExitStatus()
			if status.Signaled() {
				t.result.Signal = status.Signal()
			}
			return nil
		}
		signal, err := t.stopped(id, status)
		if err == nil {
			err = syscall.PtraceSyscall(id, signal)
		}
		// A thread that was killed meanwhile is no error: its end is yet to be told.
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
}

// stopped looks at a thread that stopped, and returns the signal that it is to get.
func (t *tracer) stopped(id int, status syscall.WaitStatus) (signal int, err error) {
	at := t.threads[id]
	if at == nil {
		at = &thread{}
		t.threads[id] = at
	}
	switch {
	case status.StopSignal() == syscall.SIGSTOP: // of a new thread
		return 0, nil
	case status.StopSignal() == syscallStop:
		at.inside = !at.inside
		if at.inside {
			return 0, t.enter(id, at)
		}
		return 0, t.leave(id, at)
	case status.StopSignal() == syscall.SIGTRAP: // of a thread that made a new one
		return 0, nil
	}
	return int(status.StopSignal()), nil
}

// enter looks at a call that is about to be made.
func (t *tracer) enter(id int, at *thread) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(id, &regs); err != nil {
		return err
	}
	c, ok := calls[regs.Orig_rax]
	if !ok {
		return nil
	}
	path := ""
	if t.fault.Under != "" || t.fault.Log || c.name == t.fault.Call {
		path = t.path(id, c, &regs)
		if t.fault.Under != "" && !strings.HasPrefix(path, t.fault.Under+"/") && path != t.fault.Under {
			return nil
		}
	}
	t.result.Calls[c.name]++
	if t.fault.Log {
		t.result.Log = append(t.result.Log, Step{c.name, path})
	}
	if c.name != t.fault.Call || t.fault.Do == Count {
		return nil
	}
	t.seen++
	if t.seen != t.fault.K && !(t.fault.On && t.seen > t.fault.K) {
		return nil
	}
	t.result.Fired = true
	t.result.Paths = append(t.result.Paths, path)
	switch t.fault.Do {
	case Fail:
		at.fails = true
		regs.Orig_rax = ^uint64(0) // no call
		return syscall.PtraceSetRegs(id, &regs)
	case Tear:
		if regs.Rdx > 1 {
			at.torn = true
			regs.Rdx /= 2
			return syscall.PtraceSetRegs(id, &regs)
		}
	}
	return syscall.Kill(t.pid, syscall.SIGKILL)
}

// leave looks at a call that was made.
func (t *tracer) leave(id int, at *thread) error {
	switch {
	case at.torn:
		return syscall.Kill(t.pid, syscall.SIGKILL)
	case at.fails:
		at.fails = false
		var regs syscall.PtraceRegs
		if err := syscall.PtraceGetRegs(id, &regs); err != nil {
			return err
		}
		regs.Rax = uint64(-int64(t.fault.Errno))
		return syscall.PtraceSetRegs(id, &regs)
	}
	return nil
}

// path returns the file that a call is about; "" where it cannot be told.
func (t *tracer) path(id int, c call, regs *syscall.PtraceRegs) string {
	switch c.file {
	case byFD, byFD3:
		fd := regs.Rdi
		if c.file == byFD3 {
			fd = regs.Rdx
		}
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.pid, int32(fd)))
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(path, " (deleted)") // it has no name any more
	case byPath:
		return t.text(id, regs.Rdi)
	case byPath2:
		return t.text(id, regs.Rsi)
	}
	return t.text(id, regs.R10)
}

// text reads a path from the program's memory, and makes it absolute.
func (t *tracer) text(id int, address uint64) string {
	var out []byte
	var word [8]byte
	for len(out) < 4096 {
		n, err := syscall.PtracePeekData(id, uintptr(address)+uintptr(len(out)), word[:])
		if err != nil || n == 0 {
			return ""
		}
		if i := strings.IndexByte(string(word[:n]), 0); i >= 0 {
			out = append(out, word[:i]...)
			break
		}
		out = append(out, word[:n]...)
	}
	path := string(out)
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.dir, path)
	}
	return filepath.Clean(path)
}
