//go:build interop

package interop

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"icepipe/internal/torture"
)

// unhurt is the place of no program.
const unhurt = -1

// hurt runs programs joined by pipes, the one at a place with a fault, and waits for all.
func (r *rack) hurt(programs []program, at int, fault torture.Fault) (_ []run, _ torture.Result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), moveTimeout)
	defer cancel()
	ins, outs := make([]*os.File, len(programs)), make([]*os.File, len(programs))
	open := map[*os.File]bool{}
	defer func() {
		for f := range open {
			f.Close()
		}
	}()
	for i := range programs[1:] {
		in, out, err := os.Pipe()
		if err != nil {
			return nil, torture.Result{}, err
		}
		outs[i], ins[i+1] = out, in
		open[in], open[out] = true, true
	}
	shut := func(i int) {
		for _, f := range []*os.File{ins[i], outs[i]} {
			if f != nil {
				f.Close()
				delete(open, f)
			}
		}
	}
	runs := make([]run, len(programs))
	cmds := make([]*exec.Cmd, len(programs))
	stderr := make([]bytes.Buffer, len(programs))
	for i, p := range programs {
		runs[i].program = p
		if i == at {
			continue
		}
		cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
		cmd.Dir, cmd.Env, cmd.Stderr = p.dir, environment(p), &stderr[i]
		if ins[i] != nil {
			cmd.Stdin = ins[i]
		}
		if outs[i] != nil {
			cmd.Stdout = outs[i]
		}
		if err := cmd.Start(); err != nil {
			return nil, torture.Result{}, errors.Join(err, r.reap(cmds, cancel))
		}
		cmds[i] = cmd
		shut(i)
	}
	var result torture.Result
	if at != unhurt {
		// Our copies of this program's ends are closed when it is over: the others see it end then.
		if result, err = r.trace(programs[at], fault, ins[at], outs[at], &stderr[at]); err != nil {
			cancel()
		}
		shut(at)
	}
	err = errors.Join(err, r.reap(cmds, func() {}))
	for i := range runs {
		runs[i].stderr = stderr[i].String()
		if i == at {
			runs[i].code = result.Code
			continue
		}
		runs[i].code = cmds[i].ProcessState.ExitCode()
		if status, ok := cmds[i].ProcessState.Sys().(syscall.WaitStatus); ok {
			runs[i].piped = status.Signaled() && status.Signal() == syscall.SIGPIPE
		}
	}
	if result.TimedOut {
		err = errors.Join(err, errors.New("the program did not end"))
	}
	return runs, result, err
}

// reap waits for programs; an exit code is no error of it.
func (r *rack) reap(cmds []*exec.Cmd, before func()) error {
	before()
	var failed error
	for _, cmd := range cmds {
		if cmd == nil {
			continue
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// trace runs one program with a fault; what it says goes to stderr.
func (r *rack) trace(p program, fault torture.Fault, in, out *os.File, stderr *bytes.Buffer) (torture.Result, error) {
	said, err := os.CreateTemp("", "said-")
	if err != nil {
		return torture.Result{}, err
	}
	defer os.Remove(said.Name())
	defer said.Close()
	result, err := torture.Run(torture.Program{
		Args: p.args, Env: environment(p), Dir: p.dir, Stdin: in, Stdout: out, Stderr: said, Timeout: moveTimeout,
	}, fault)
	if err != nil {
		return result, err
	}
	text, err := os.ReadFile(said.Name())
	stderr.Write(text)
	return result, err
}
