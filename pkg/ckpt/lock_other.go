//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package ckpt

import (
	"fmt"
	"runtime"
)

// Lock fails: this system has no flock, and two processes on one job would write rows twice.
func (s *Store) Lock() (unlock func() error, err error) {
	return nil, fmt.Errorf("lock checkpoint %q: not supported on %s", s.path, runtime.GOOS)
}
