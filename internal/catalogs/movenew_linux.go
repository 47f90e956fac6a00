package catalogs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// moveNew gives a file another name, which must not be taken: fs.ErrExist else. The old name may stay. File
// systems without hard links have a rename that fails likewise.
func moveNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if failed := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE); failed == nil || errors.Is(failed, fs.ErrExist) {
		return failed
	}
	return err
}
