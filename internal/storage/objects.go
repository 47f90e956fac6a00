//go:build !noclouds

package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/io/gocloud/blobfs"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// objects are the files of a bucket. Beside the library's, they are read by ranges, where that begins with a
// request for the whole object; a body that breaks off is asked for again; keys are what the location says,
// empty parts and all; a folder is listed with all below it; and a file that is given up is not made.
type objects struct {
	files
	place  string                     // the bucket
	before func(func(any) bool) error // done to what is written
}

// objectsOf are the objects of a bucket of the library's; nil where it is something else.
func objectsOf(f files, place string, store iceio.IO) iceio.WriteFileIO {
	if _, ok := store.(*blobfs.FileIO); !ok {
		return nil
	}
	return objects{files: f, place: place, before: beforeWrite(f.properties)}
}

// request makes a request. Where the catalog vended the keys and the storage refuses them, it is made again with
// others (case 86): no time may have been told for their end, or a wrong one.
func (o objects) request(do func(*blob.Bucket) error) error {
	for again := false; ; again = true {
		store, err := o.bucket(o.ctx, o.place)
		if err != nil {
			return err
		}
		b, ok := store.(*blobfs.FileIO)
		if !ok {
			return fmt.Errorf("the storage became a %T", store)
		}
		err = do(b.Bucket)
		if err == nil || again || o.own == nil || o.place != o.home || !refusesKeys(err) {
			return err
		}
		if renewed := o.own.Renew(o.ctx, store); renewed != nil {
			return fmt.Errorf("%w; and for other keys: %w", explain(err), renewed)
		}
	}
}

// oddKey tells whether the library's client would use another key than this one: of S3 and GCS where a part of it ends
// in two dots, as the folder of a partition of that value does, of Azure where it holds what is no letter.
func oddKey(location, key string) bool {
	odd := func(r rune) bool { return r < ' ' }
	if strings.HasPrefix(location, "abfs") || strings.HasPrefix(location, "wasb") {
		odd = func(r rune) bool { return r < ' ' || strings.ContainsRune("\\\"#%?\x7f", r) }
	}
	return strings.Contains(key, "../") || strings.IndexFunc(key, odd) >= 0
}

// asItIs has a request use the key as it is.
func asItIs(b *blob.Bucket, key string, as func(any) bool) error {
	if s3Key(key, as) || gcsKey(b, key, as) {
		return nil
	}
	return fmt.Errorf("key %q: the client of this storage would use another name in its place", key)
}

// failed says what could not be done, in one line, with the cure where there is one.
func failed(op, location string, err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound && codeOf(err) != "NoSuchBucket" {
		err = fs.ErrNotExist
	}
	return &fs.PathError{Op: op, Path: location, Err: explain(err)}
}

// Open implements iceio.IO.
func (o objects) Open(name string) (iceio.File, error) {
	_, key, _ := split(name)
	f := &object{objects: o, location: name, key: key}
	if err := f.begin(); err != nil {
		return nil, failed("open", name, err)
	}
	return f, nil
}

// Remove implements iceio.IO. Of some storages nothing tells whether the object was there.
func (o objects) Remove(name string) error {
	_, key, _ := split(name)
	if oddKey(name, key) {
		return failed("remove", name, errors.New("the client of this storage would use another name in its place: remove it with the storage's own tools"))
	}
	if err := o.request(func(b *blob.Bucket) error { return b.Delete(o.ctx, key) }); err != nil {
		return failed("remove", name, err)
	}
	return nil
}

// Create implements iceio.WriteFileIO. The object is there once Close returns nil, whole, and never before.
func (o objects) Create(name string) (iceio.FileWriter, error) {
	var u *upload
	err := o.request(func(b *blob.Bucket) (err error) {
		u, err = o.upload(b, name)
		return err
	})
	if err != nil {
		return nil, failed("create", name, err)
	}
	return u, nil
}

// WriteFile implements iceio.WriteFileIO.
func (o objects) WriteFile(name string, text []byte) error {
	err := o.request(func(b *blob.Bucket) error {
		u, err := o.upload(b, name)
		if err != nil {
			return err
		}
		if _, err := u.Writer.Write(text); err != nil {
			return errors.Join(err, u.Abort())
		}
		defer u.cancel()
		return u.Writer.Close()
	})
	if err != nil {
		return failed("write", name, err)
	}
	return nil
}

// upload begins an object.
func (o objects) upload(b *blob.Bucket, name string) (*upload, error) {
	_, key, _ := split(name)
	before := o.before
	if oddKey(name, key) {
		before = func(as func(any) bool) error {
			if err := asItIs(b, key, as); err != nil || o.before == nil {
				return err
			}
			return o.before(as)
		}
	}
	ctx, cancel := context.WithCancel(o.ctx)
	w, err := b.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream", BeforeWrite: before})
	if err != nil {
		cancel()
		return nil, err
	}
	return &upload{Writer: w, name: name, cancel: cancel}, nil
}

// An upload is an object in the making.
type upload struct {
	*blob.Writer
	name   string
	cancel context.CancelFunc
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	n, err := u.Writer.Write(p)
	if err != nil {
		err = failed("write", u.name, err)
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom.
func (u *upload) ReadFrom(r io.Reader) (int64, error) {
	n, err := u.Writer.ReadFrom(r)
	if err != nil {
		err = failed("write", u.name, err)
	}
	return n, err
}

// Close makes the object of what was written.
func (u *upload) Close() error {
	defer u.cancel()
	if err := u.Writer.Close(); err != nil {
		return failed("write", u.name, err)
	}
	return nil
}

// Abort gives the object up: what was sent of it is dropped, and nothing is made.
func (u *upload) Abort() error {
	u.cancel()
	err := u.Writer.Close()
	if err == nil || errors.Is(err, context.Canceled) || gcerrors.Code(err) == gcerrors.Canceled {
		return nil
	}
	return failed("give up", u.name, err)
}

// WalkDir implements iceio.ListableIO, all that is below root in one go.
func (o objects) WalkDir(root string, visit fs.WalkDirFunc) error {
	place, key, _ := split(root)
	if key = strings.TrimRight(key, "/"); key != "" {
		key += "/"
	}
	var list *blob.ListIterator
	for {
		var found *blob.ListObject
		next := func(b *blob.Bucket) (err error) {
			if list == nil {
				list = b.List(&blob.ListOptions{Prefix: key})
			}
			found, err = list.Next(o.ctx)
			return err
		}
		if err := o.request(next); err == io.EOF {
			return nil
		} else if err != nil {
			return failed("list", root, err)
		}
		if strings.HasSuffix(found.Key, "/") {
			continue // stands for a folder
		}
		about := info{name: path.Base(found.Key), size: found.Size, modified: found.ModTime}
		switch err := visit(place+"/"+found.Key, fs.FileInfoToDirEntry(about), nil); err {
		case nil, fs.SkipDir:
		case fs.SkipAll:
			return nil
		default:
			return err
		}
	}
}

// info is what is known of an object.
type info struct {
	name     string
	size     int64
	modified time.Time
}

// Name implements fs.FileInfo.
func (i info) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i info) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (i info) Mode() fs.FileMode { return 0 }

// ModTime implements fs.FileInfo.
func (i info) ModTime() time.Time { return i.modified }

// IsDir implements fs.FileInfo.
func (i info) IsDir() bool { return false }

// Sys implements fs.FileInfo.
func (i info) Sys() any { return nil }
