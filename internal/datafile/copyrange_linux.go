package datafile

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// rangeStep is how much the kernel is asked to copy at a time, so that it can be given up.
const rangeStep = 64 << 20

// copyRange lets the kernel copy n bytes of in, from byte off on, to the place where out is written next:
// file systems that can share the blocks of both do. It returns how many were copied; fewer without an error where
// the kernel cannot do it between these files, or not to the end.
func copyRange(out, in *os.File, off, n int64, stop func() error) (done int64, err error) {
	from, err := in.SyscallConn()
	if err != nil {
		return 0, err
	}
	to, err := out.SyscallConn()
	if err != nil {
		return 0, err
	}
	for done < n {
		if err := stop(); err != nil {
			return done, err
		}
		var k int
		var failed error
		err := from.Control(func(source uintptr) {
			err = to.Control(func(target uintptr) {
				at := off + done
				for failed = unix.EINTR; errors.Is(failed, unix.EINTR); {
					k, failed = unix.CopyFileRange(int(source), &at, int(target), nil, int(min(n-done, rangeStep)), 0)
				}
			})
		})
		switch {
		case err != nil:
			return done, err
		case cannot(failed):
			return done, nil // in blocks, which tell what is wrong
		case failed != nil:
			return done, writeError{os.NewSyscallError("copy_file_range", failed)}
		case k == 0:
			return done, io.ErrUnexpectedEOF
		}
		done += int64(k)
	}
	return done, nil
}

// cannot reports whether the kernel or the file systems do not know how to copy.
func cannot(err error) bool {
	for _, e := range []error{unix.ENOSYS, unix.EXDEV, unix.EINVAL, unix.EOPNOTSUPP, unix.EPERM, unix.EBADF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
