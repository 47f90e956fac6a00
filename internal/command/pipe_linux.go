package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeBytes is how much a pipe between our programs holds: what the kernel gives to anybody who asks.
const pipeBytes = 1 << 20

// widen has the kernel hold more of a pipe than 64 KiB, so that the programs at its ends wait less for each other. What
// is no pipe, and a kernel that gives no more, stay as they are.
func widen(stream any) {
	f, ok := stream.(syscall.Conn)
	if !ok {
		return
	}
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) { // it is as it was
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes)
	})
}
