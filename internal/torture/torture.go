// Package torture runs a program under ptrace and kills it at, or fails, one of its system calls: the
// K-th of a name, counted over all threads of the program in the order in which the kernel sees them.
//
// strace -e inject=CALL:when=K does not do: it counts each thread's calls for themselves, and the Go
// runtime moves the work between threads, so that many calls are never the K-th of theirs.
package torture

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// An Action is what becomes of a call.
type Action int

// The actions.
const (
	Count Action = iota // nothing: calls are counted
	Kill                // the program is killed before the call is made
	Tear                // a write of more than a byte is made for its first half, then the program is killed
	Fail                // the call is not made, and answers with an error
)

// A Fault is what is done to a program.
type Fault struct {
	Do    Action
	Call  string        // name of the call, one of Names
	K     int           // the K-th is meant, 1 the first
	On    bool          // with Fail: all from the K-th on
	Errno syscall.Errno // of Fail
	Under string        // a folder: only calls on files below it are counted and meant; "" for all calls
	Log   bool          // the calls that are counted are listed
}

// A Program is what is run.
type Program struct {
	Args           []string // the path of the program first
	Env            []string
	Dir            string
	Stdin          *os.File // nil for none
	Stdout, Stderr *os.File
	Timeout        time.Duration // it is killed then
}

// A Result is what became of a program.
type Result struct {
	Fired    bool     // the meant call was made
	Paths    []string // the files of the meant calls; of a rename, the new name
	Code     int      // exit code, -1 when a signal ended the program
	Signal   syscall.Signal
	TimedOut bool
	Calls    map[string]int // calls of each name that were counted
	Log      []Step         // the calls that were counted, in order, where they are to be listed
}

// A Step is a call that was counted.
type Step struct{ Call, Path string }

// ErrUnsupported says that programs cannot be traced here.
var ErrUnsupported = errors.New("system calls are counted on linux/amd64 alone")
