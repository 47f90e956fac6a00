//go:build !noclouds

package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// attempts is how often a body is asked for that breaks off without a byte. A request that is refused was tried
// again by the storage's client already.
const attempts = 3

// An object is open for reading. ReadAt may be used by several goroutines, Read and Seek by one.
type object struct {
	objects
	location, key string
	about         info
	unchanged     bool // what is read is refused if it is not of about.etag

	at     int64        // of Read
	stream *blob.Reader // stands at at; nil for none
	broke  int          // how often it broke since the last byte
}

// begin finds out how large the object is. Files that are read from their ends are asked about; others are read from
// their beginning to their end, so that the first request for them is for that.
func (f *object) begin() error {
	f.about.name = path.Base(f.key)
	fromItsEnd := strings.HasSuffix(f.key, ".parquet") || strings.HasSuffix(f.key, ".puffin")
	switch {
	case !fromItsEnd:
		first, err := f.reader(0, -1)
		if err != nil {
			return err
		}
		f.stream = first
		f.about.size, f.about.modified = first.Size(), first.ModTime()
		return nil
	case oddKey(f.location, f.key): // for which the question has no hook
		first, err := f.reader(0, 1)
		if err != nil {
			return err
		}
		f.about.size, f.about.modified = first.Size(), first.ModTime()
		f.about.etag, _, _ = s3Answer(first)
		return first.Close()
	}
	return f.request(func(b *blob.Bucket) error {
		attributes, err := b.Attributes(f.ctx, f.key)
		if err == nil {
			f.about.size, f.about.modified, f.about.etag = attributes.Size, attributes.ModTime, attributes.ETag
		}
		return err
	})
}

// Stat implements fs.File.
func (f *object) Stat() (fs.FileInfo, error) { return f.about, nil }

// Read implements io.Reader.
func (f *object) Read(p []byte) (int, error) {
	for {
		if f.at >= f.about.size {
			return 0, io.EOF
		}
		if len(p) == 0 {
			return 0, nil
		}
		err := f.follow()
		n := 0
		if err == nil {
			n, err = f.stream.Read(p)
		}
		if n > 0 {
			f.at += int64(n)
			f.broke = 0
			return n, nil // an error comes again
		}
		if err == nil {
			continue
		}
		f.drop()
		if f.broke++; f.broke >= attempts || f.lasting(err) {
			return 0, failed("read", f.location, broken(err))
		}
	}
}

// follow makes the stream one from where Read stands.
func (f *object) follow() (err error) {
	if f.stream == nil {
		f.stream, err = f.reader(f.at, -1)
	}
	return err
}

// reader asks for a range of the object.
func (f *object) reader(off, length int64) (r *blob.Reader, err error) {
	err = f.request(func(b *blob.Bucket) (err error) {
		var options blob.ReaderOptions
		if odd := oddKey(f.location, f.key); odd || f.unchanged {
			options.BeforeRead = func(as func(any) bool) error {
				if f.unchanged {
					s3IfMatch(f.about.etag, as)
				}
				if odd {
					return asItIs(b, f.key, as)
				}
				return nil
			}
		}
		r, err = b.NewRangeReader(f.ctx, f.key, off, length, &options)
		return err
	})
	if err == nil {
		if err = f.asked(r, off, length); err != nil {
			_ = r.Close() // it was opened for reading
			return nil, err
		}
	}
	return r, err
}

// asked refuses an answer that holds another range of the object than was asked for, or all of it: the client takes
// whatever comes for the range.
func (f *object) asked(r *blob.Reader, off, length int64) error {
	_, got, ok := s3Answer(r)
	if !ok || off == 0 && length < 0 {
		return nil
	}
	want := fmt.Sprintf("bytes %d-", off)
	if length > 0 {
		end := off + length
		if f.about.size > 0 {
			end = min(end, f.about.size)
		}
		want += fmt.Sprintf("%d/", end-1)
	}
	if !strings.HasPrefix(got, want) {
		return fmt.Errorf("the server answered a request for %s with %s: it does not read ranges as S3 does", strings.TrimSuffix(want, "/"), cmp.Or(got, "the whole object"))
	}
	return nil
}

func (f *object) drop() {
	if f.stream != nil {
		_ = f.stream.Close() // it was opened for reading
		f.stream = nil
	}
}

// lasting tells whether asking again is of no use.
func (f *object) lasting(err error) bool {
	switch gcerrors.Code(err) {
	case gcerrors.NotFound, gcerrors.PermissionDenied, gcerrors.InvalidArgument:
		return true
	}
	return f.ctx.Err() != nil || codeOf(err) != ""
}

// broken says that a body ended early, which is not the end of the file.
func broken(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ReadAt implements io.ReaderAt, by one request for the range.
func (f *object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, failed("read", f.location, errors.New("a place before the beginning"))
	}
	if off >= f.about.size {
		return 0, io.EOF
	}
	want := int(min(int64(len(p)), f.about.size-off))
	n := 0
	for broke := 0; n < want; {
		k, err := f.readRange(p[n:want], off+int64(n))
		n += k
		if err == nil {
			continue
		}
		if k > 0 {
			broke = 0
		}
		if broke++; broke >= attempts || f.lasting(err) {
			return n, failed("read", f.location, broken(err))
		}
	}
	if want < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *object) readRange(p []byte, off int64) (int, error) {
	r, err := f.reader(off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	defer r.Close() // it was opened for reading
	return io.ReadFull(r, p)
}

// Seek implements io.Seeker.
func (f *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.about.size
	}
	if offset < 0 {
		return 0, failed("seek", f.location, errors.New("a place before the beginning"))
	}
	if offset != f.at {
		f.drop()
	}
	f.at = offset
	return offset, nil
}

// Close implements io.Closer.
func (f *object) Close() error {
	f.drop()
	return nil
}
