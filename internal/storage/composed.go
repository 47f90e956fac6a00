//go:build !noclouds && !nos3

package storage

import (
	"bytes"
	"errors"
	"io"
	"slices"

	iceio "github.com/apache/iceberg-go/io"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
)

// longestMagic is how many bytes at the beginning of an object may be those of a source's beginning.
const longestMagic = 16

// A composed is an object of S3 in the making: of bytes, and of ranges of other objects that the store copies. It is
// decided late how it is sent, since what is smaller than a part is one request: by the client's own way of uploading
// once it has more bytes than that and no range was asked for, else in parts. One goroutine uses it.
type composed struct {
	objects
	name string
	size int64     // of all, next and all
	held []byte    // the last bytes, which no part has yet
	next byteRange // behind them

	whole *upload    // by the client's own way
	parts *multipart // since ranges were asked for

	from   any     // what was asked for ranges last
	source *object // the same, to copy from; nil where that cannot be
}

// A byteRange is a part of an object as it was when it was opened.
type byteRange struct {
	from   *object
	off, n int64
	ours   int64 // at its beginning, so many bytes that were written and are the same
}

// cut takes the first n bytes off.
func (r *byteRange) cut(n int64) byteRange {
	first := byteRange{from: r.from, off: r.off, n: n, ours: min(n, r.ours)}
	r.off, r.n, r.ours = r.off+n, r.n-n, r.ours-first.ours
	return first
}

// composed begins an object; nil where the storage is not S3.
func (o objects) composed(b *blob.Bucket, name string) iceio.FileWriter {
	if client := (*awss3.Client)(nil); !b.As(&client) {
		return nil
	}
	return &composed{objects: o, name: name}
}

// Write implements io.Writer.
func (c *composed) Write(p []byte) (int, error) {
	if c.parts == nil && c.whole == nil && len(c.held)+len(p) > leastPart {
		if err := c.request(func(b *blob.Bucket) error { c.whole = c.upload(b, c.name); return nil }); err != nil {
			return 0, failed("write", c.name, err)
		}
		if _, err := c.whole.Write(c.held); err != nil {
			return 0, err
		}
		c.held = nil
	}
	switch {
	case c.whole != nil:
		return c.whole.Write(p)
	case c.parts == nil:
		c.held = append(c.held, p...)
	default:
		err := c.settle()
		if err == nil {
			err = c.hold(p)
		}
		if err != nil {
			return 0, failed("write", c.name, err)
		}
	}
	c.size += int64(len(p))
	return len(p), nil
}

// ReadFrom implements io.ReaderFrom.
func (c *composed) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

// CopyRange appends n bytes of an open object, from byte off on, by letting the store copy them. It gives false where
// that cannot be: the caller reads them. From then on the range is the object's, which may be closed: what could not be
// copied after all is read, and an error may come as late as by Close. CopyRange of no bytes asks whether ranges of the
// object can be copied into this one, and makes ready for it.
func (c *composed) CopyRange(from any, off, n int64) (bool, error) {
	f := c.sourceOf(from)
	if c.whole != nil || f == nil {
		return false, nil
	}
	if off < 0 || n < 0 || off > f.about.size || n > f.about.size-off {
		return false, failed("copy", f.location, errors.New("the range does not lie in it"))
	}
	if c.parts == nil {
		c.parts = newMultipart(c.objects, c.name)
	}
	if n == 0 {
		return true, nil
	}
	if c.next.n > 0 && c.next.from == f && c.next.off+c.next.n == off {
		c.next.n += n
		c.size += n
		return true, nil
	}
	err := c.settle()
	if err == nil {
		c.next = byteRange{from: f, off: off, n: n}
		err = c.begunAlike()
	}
	if err != nil {
		return false, failed("write", c.name, err)
	}
	c.size += n
	return true, nil
}

// sourceOf is an object that is asked for ranges, to copy from; nil where they cannot be copied.
func (c *composed) sourceOf(from any) *object {
	f, ok := from.(*object)
	if !ok || c.refusedFrom(f) {
		return nil
	}
	if c.from != from {
		c.from, c.source = from, nil
		if c.reaches(f) {
			c.source = f.asItWas()
		}
	}
	return c.source
}

// begunAlike has next begin at its object's beginning, where the bytes in front of it are the same there as here: a
// part of its own would be too small for them.
func (c *composed) begunAlike() error {
	n := len(c.held)
	if n == 0 || n > longestMagic || c.size != int64(n) || c.next.off != int64(n) {
		return nil
	}
	head := make([]byte, n)
	if _, err := c.next.from.ReadAt(head, 0); err != nil {
		return err
	}
	if bytes.Equal(head, c.held) {
		c.held = c.held[:0]
		c.next.off, c.next.n, c.next.ours = 0, c.next.n+int64(n), int64(n)
	}
	return nil
}

// settle makes parts of next. What is too small for a part is read, and so is as much of its beginning as the bytes in
// front of it lack.
func (c *composed) settle() error {
	r := c.next
	c.next = byteRange{}
	if r.n == 0 {
		return nil
	}
	least := c.parts.scaled(leastPart)
	head := int64(0)
	if held := int64(len(c.held)); held > 0 {
		head = max(0, least-held)
	}
	if r.n-head < least {
		head = r.n
	}
	if err := c.read(r.cut(head)); err != nil || r.n == 0 {
		return err
	}
	if err := c.send(); err != nil {
		return err
	}
	refused, err := c.parts.copy(r)
	if err != nil {
		return err
	}
	return c.read(refused)
}

// hold takes bytes, and sends them as they fill a part.
func (c *composed) hold(p []byte) error {
	for len(p) > 0 {
		n := min(c.room(), len(p))
		c.held = append(c.held, p[:n]...)
		p = p[n:]
		if err := c.sendFull(); err != nil {
			return err
		}
	}
	return nil
}

// read is hold for bytes of another object.
func (c *composed) read(r byteRange) error {
	for r.n > 0 {
		block := r.cut(min(r.n, int64(c.room())))
		at := len(c.held)
		c.held = slices.Grow(c.held, int(block.n))[:at+int(block.n)]
		if _, err := block.from.ReadAt(c.held[at:], block.off); err != nil {
			return err
		}
		if err := c.sendFull(); err != nil {
			return err
		}
	}
	return nil
}

// room is how many bytes a part still takes.
func (c *composed) room() int { return int(c.parts.scaled(partSize)) - len(c.held) }

func (c *composed) sendFull() error {
	if c.room() > 0 {
		return nil
	}
	return c.send()
}

// send makes a part of what is held, if anything is.
func (c *composed) send() error {
	if len(c.held) == 0 {
		return nil
	}
	text := c.held
	c.held = nil
	return c.parts.send(text)
}

// Close makes the object of what was written and copied.
func (c *composed) Close() error {
	switch {
	case c.whole != nil:
		return c.whole.Close()
	case c.parts == nil:
		return c.WriteFile(c.name, c.held)
	}
	err := c.settle()
	if err == nil && !c.parts.begun() {
		c.parts.end()
		return c.WriteFile(c.name, c.held)
	}
	if err == nil {
		err = c.send()
	}
	if err == nil {
		err = c.parts.complete(c.size)
	}
	if err != nil {
		_ = c.parts.drop() // what went wrong first is told
		return failed("write", c.name, err)
	}
	return nil
}

// CopiedByStore is how many bytes of ranges the store has copied, once the object is there.
func (c *composed) CopiedByStore() int64 {
	if c.parts == nil {
		return 0
	}
	return c.parts.copied.Load()
}

// Abort gives the object up: what was sent of it is dropped, and nothing is made.
func (c *composed) Abort() error {
	switch {
	case c.whole != nil:
		return c.whole.Abort()
	case c.parts == nil:
		return nil
	}
	if err := c.parts.drop(); err != nil {
		return failed("give up", c.name, err)
	}
	return nil
}
