//go:build !noclouds

package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

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

// contentType is that of all that is written.
const contentType = "application/octet-stream"

// options are how an object is written.
func (o objects) options(b *blob.Bucket, name string) *blob.WriterOptions {
	before, key := o.before, keyOf(name)
	if oddKey(name, key) {
		before = func(as func(any) bool) error {
			if err := asItIs(b, key, as); err != nil || o.before == nil {
				return err
			}
			return o.before(as)
		}
	}
	return &blob.WriterOptions{ContentType: contentType, BeforeWrite: before}
}

// keyOf is the key of the object at a location.
func keyOf(location string) string {
	_, key, _ := split(location)
	return key
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
	f := &object{objects: o, location: name, key: keyOf(name)}
	if err := f.begin(); err != nil {
		return nil, failed("open", name, err)
	}
	return f, nil
}

// Remove implements iceio.IO. Of some storages nothing tells whether the object was there.
func (o objects) Remove(name string) error {
	key := keyOf(name)
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
	var w iceio.FileWriter
	err := o.request(func(b *blob.Bucket) error {
		if w = o.composed(b, name); w == nil {
			w = o.upload(b, name)
		}
		return nil
	})
	if err != nil {
		return nil, failed("create", name, err)
	}
	return w, nil
}

// WriteFile implements iceio.WriteFileIO.
func (o objects) WriteFile(name string, text []byte) error {
	err := o.request(func(b *blob.Bucket) error {
		return b.Upload(o.ctx, keyOf(name), bytes.NewReader(text), o.options(b, name))
	})
	if err == nil {
		err = o.kept(name, int64(len(text)))
	}
	if err != nil {
		return failed("write", name, err)
	}
	return nil
}

// WalkDir implements iceio.ListableIO, all that is below root in one go.
func (o objects) WalkDir(root string, visit fs.WalkDirFunc) error {
	place, key, _ := split(root)
	if key = strings.TrimRight(key, "/"); key != "" {
		key += "/"
	}
	var list *blob.ListIterator
	begun := false
	for {
		var found *blob.ListObject
		next := func(b *blob.Bucket) (err error) {
			if !begun {
				list = b.List(&blob.ListOptions{Prefix: key})
			}
			found, err = list.Next(o.ctx)
			begun = begun || err == nil
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
