//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ckpt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Lock keeps every other process, and every other Store of this one, from working on the job until
// unlock is called or the process ends, however it ends. It does not wait: where the lock is taken
// it returns an error that wraps ErrLocked and names the other process where that is known. unlock
// may be called more than once.
//
// The lock is flock on FILE.lock. That file is never renamed or removed, since a lock on a file
// that another process no longer finds keeps nobody out. Readers need no lock.
func (s *Store) Lock() (unlock func() error, err error) {
	path, err := s.disk.Resolve(s.path)
	if err != nil {
		return nil, fmt.Errorf("lock checkpoint %q: %w", s.path, err)
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lock checkpoint %q: there is no directory %q: make it first", s.path, filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("lock checkpoint %q: %w", s.path, err)
	}
	if err := flock(f); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("checkpoint %q: %w by %s: wait for it to end", s.path, ErrLocked, holder(f))
		}
		return nil, fmt.Errorf("lock checkpoint %q: %w", s.path, err)
	}
	// The process number is for people only: a failure to write it changes nothing.
	if f.Truncate(0) == nil {
		f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	sweep(path)

	closed := false
	return func() error {
		if closed {
			return nil
		}
		closed = true
		f.Truncate(0)
		return f.Close()
	}, nil
}

// flock takes the lock, once more where a signal came between.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// holder names the process that wrote its number into the lock file.
func holder(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return fmt.Sprintf("process %d", pid)
		}
	}
	return "another process"
}

// sweep removes the temporary files of processes that were killed during a Save. The caller holds
// the lock, so none is in use.
func sweep(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	prefix := filepath.Base(path) + tmpInfix
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), prefix) {
			os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}
