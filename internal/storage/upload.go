//go:build !noclouds

package storage

import (
	"context"
	"errors"
	"io"
	"time"

	"gocloud.dev/blob"
)

// errGivenUp ends an upload that is not to become an object.
var errGivenUp = errors.New("it was given up")

// lastWords is how long the client may take to drop what it sent of an object that is given up.
const lastWords = 10 * time.Second

// outliving is a context that ends some time after another, in which something can be brought to its end.
func outliving(ctx context.Context) (context.Context, func()) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

// An upload is an object in the making. Its client drops what it sent when the source of the text fails, but not when
// its context ends: so no context of a caller ends it.
type upload struct {
	objects // with the caller's context
	name    string
	size    int64 // of what was written
	pipe    *io.PipeWriter
	done    chan struct{} // closed when the client has ended, with err
	err     error
	release func() bool // the end of the caller's context no longer matters
}

// upload begins an object.
func (o objects) upload(b *blob.Bucket, name string) *upload {
	r, w := io.Pipe()
	ctx, ended := outliving(o.ctx)
	u := &upload{objects: o, name: name, pipe: w, done: make(chan struct{})}
	u.release = context.AfterFunc(o.ctx, func() { w.CloseWithError(o.ctx.Err()) })
	go func() { // Close and Abort wait for it
		defer close(u.done)
		defer ended()
		u.err = b.Upload(ctx, keyOf(name), r, o.options(b, name))
		r.CloseWithError(u.err) // who writes on is told
	}()
	return u
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	n, err := u.pipe.Write(p)
	u.size += int64(n)
	if err != nil {
		err = failed("write", u.name, err)
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom.
func (u *upload) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{u}, r)
}

// end waits for the client.
func (u *upload) end() error {
	<-u.done
	u.release()
	return u.err
}

// Close makes the object of what was written.
func (u *upload) Close() error {
	u.pipe.CloseWithError(u.ctx.Err()) // nil: the end
	err := u.end()
	if err == nil {
		err = u.kept(u.name, u.size)
	}
	if err != nil {
		return failed("write", u.name, err)
	}
	return nil
}

// Abort gives the object up: what was sent of it is dropped, and nothing is made.
func (u *upload) Abort() error {
	u.pipe.CloseWithError(errGivenUp)
	if err := u.end(); err != nil && !errors.Is(err, errGivenUp) && !errors.Is(err, context.Canceled) {
		return failed("give up", u.name, err)
	}
	return nil
}
