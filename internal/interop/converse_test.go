//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"testing"
)

// A conversation is with a process that answers what it reads from its stdin by lines on its stdout.
type conversation struct {
	in   io.WriteCloser
	out  *bufio.Reader
	said bytes.Buffer // its stderr
}

// converse starts a process, which ends with the test, by the end of its stdin; ended is told how.
func converse(t *testing.T, cmd *exec.Cmd, ended func(err error, said string)) *conversation {
	t.Helper()
	c := &conversation{}
	cmd.Stderr = &c.said
	out, err := cmd.StdoutPipe()
	if err == nil {
		c.in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	t.Cleanup(func() {
		c.in.Close()
		ended(cmd.Wait(), c.said.String())
	})
	return c
}
