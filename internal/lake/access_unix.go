//go:build unix

package lake

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// access tells whether this user may write a file, or make files in a folder.
func access(path string, folder bool) error {
	mode := uint32(unix.W_OK)
	if folder {
		mode |= unix.X_OK
	}
	if err := unix.Access(path, mode); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
