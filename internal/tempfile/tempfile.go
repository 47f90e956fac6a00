// Package tempfile makes temporary files that go with the process, also when it is killed.
package tempfile

import (
	"errors"
	"os"
)

// A File is a temporary file. It is gone when it is closed, or when the process ends.
type File struct {
	*os.File
	named bool // it has a name that is to be removed
}

// Create makes a file in a folder, os.TempDir() for "". pattern is that of os.CreateTemp. The caller closes the file.
func Create(dir, pattern string) (*File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	// Windows does not remove the name of an open file; there it goes when the file is closed.
	return &File{File: f, named: os.Remove(f.Name()) != nil}, nil
}

// Close closes the file and gives up what it holds.
func (f *File) Close() error {
	err := f.File.Close()
	if f.named {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
