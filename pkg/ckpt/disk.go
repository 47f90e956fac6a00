package ckpt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// tmpInfix stands between a file's name and the random end of its temporary file's name.
const tmpInfix = ".tmp-"

// disk is what a Store needs of a file system; each call is a step that can fail.
type disk interface {
	Resolve(path string) (string, error) // follows symbolic links at the last element
	ReadFile(path string) ([]byte, error)
	Create(prefix string) (file, error) // a new file, for its owner alone
	Append(path string) (file, error)   // a file that is there, to write behind its end
	Rename(from, to string) error
	Remove(path string) error // never a directory
	SyncDir(dir string) error
}

type file interface {
	io.WriteCloser
	Name() string
	Sync() error
}

type osDisk struct{}

func (osDisk) Resolve(path string) (string, error) {
	for range 40 {
		st, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", errors.New("too many symbolic links")
}

func (osDisk) ReadFile(path string) ([]byte, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func (osDisk) Create(prefix string) (file, error) {
	dir := filepath.Dir(prefix)
	f, err := os.CreateTemp(dir, filepath.Base(prefix)+"*")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no directory %q: make it first", dir)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osDisk) Append(path string) (file, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
}

func (osDisk) Rename(from, to string) error {
	if err := regular(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

func (osDisk) Remove(path string) error {
	if err := regular(path); err != nil {
		return err
	}
	return os.Remove(path)
}

func (osDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		d.Close()
		return err
	}
	return d.Close()
}

// regular refuses what is not a plain file: reading a pipe would wait, and removing an empty
// directory would succeed.
func regular(path string) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%q is not a regular file", path)
	}
	return nil
}
