package command

import (
	"context"
	"io"
)

// chunkBytes is what is read from stdin at once.
const chunkBytes = 1 << 20

// interruptible reads r until ctx ends: a program that waits for a stalled one before it can still be
// interrupted. What reads r is a goroutine that nobody can wait for, since no read of a pipe can be called
// off; it holds nothing and ends with r or with the process.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	s := &stdin{ctx: ctx, full: make(chan chunk), empty: make(chan []byte, 2)}
	s.empty <- make([]byte, chunkBytes)
	s.empty <- make([]byte, chunkBytes)
	go s.pump(r)
	return s
}

type chunk struct {
	bytes []byte
	err   error
}

type stdin struct {
	ctx   context.Context
	full  chan chunk
	empty chan []byte
	now   chunk
	whole []byte // the buffer that now lies in
}

func (s *stdin) pump(r io.Reader) {
	for {
		select {
		case buffer := <-s.empty:
			n, err := r.Read(buffer[:cap(buffer)])
			select {
			case s.full <- chunk{buffer[:n], err}:
			case <-s.ctx.Done():
				return
			}
			if err != nil {
				return
			}
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *stdin) Read(p []byte) (int, error) {
	for len(s.now.bytes) == 0 {
		if s.now.err != nil {
			return 0, s.now.err
		}
		if s.whole != nil {
			s.empty <- s.whole
			s.whole = nil
		}
		select {
		case s.now = <-s.full:
			s.whole = s.now.bytes
		case <-s.ctx.Done():
			s.now = chunk{err: s.ctx.Err()}
		}
	}
	n := copy(p, s.now.bytes)
	s.now.bytes = s.now.bytes[n:]
	return n, nil
}
