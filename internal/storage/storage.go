// Package storage is where the files of tables are: on the local disk, or as objects of S3, GCS and Azure. A
// location is taken as it stands, as Iceberg's Java library and PyIceberg take it: no percent sign is decoded,
// nothing is cut off at a question mark, and what is joined to it is joined as text. The library parses
// locations as URLs.
//
// Importing the package registers the storages that the library knows, but for those that a build tag leaves
// out: noclouds all that are not local, nos3, nogcs and noazure one each.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"strings"
	"sync"

	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/localdisk"
)

// A Store opens files by their locations, whatever storage they are in, with the properties of a catalog. The
// client of a bucket is made once, when its first file is asked for, and kept. Several goroutines may use it.
type Store struct {
	properties map[string]string
	home       string // the bucket that own is for; "" for none
	own        Vendor // gives its client, whose credentials the catalog renews

	mu     sync.Mutex
	opened map[string]iceio.IO // by bucket
	ready  context.Context     // what own is asked with; nil before the first time

	copies sync.Map // by the buckets from and to: whether the store copies between them; unknown before it was asked
}

// New returns the files that are reached with properties as PyIceberg and the library name them.
func New(properties map[string]string) *Store {
	return &Store{properties: maps.Clone(properties), opened: map[string]iceio.IO{}}
}

// A Vendor is a catalog that gives out credentials for a table's files.
type Vendor interface {
	// Open returns the library's client of the bucket. It is asked with each request, and renews credentials before
	// they end.
	Open(ctx context.Context) (iceio.IO, error)
	// Renew replaces a client whose credentials were refused, unless that has been done since it was given out.
	Renew(ctx context.Context, refused iceio.IO) error
}

// Vended returns the files of a table whose catalog may give out credentials for them: those in the bucket of a
// location are reached by what it opens; others with the properties, and so are those of a location that is no URL,
// which the library's catalogs cannot open.
func Vended(properties map[string]string, location string, by Vendor) *Store {
	s := New(properties)
	if _, err := url.Parse(location); err == nil {
		s.home, _, _ = split(location)
		s.own = by
	}
	return s
}

// FS returns the files for as long as ctx lives.
func (s *Store) FS(ctx context.Context) (iceio.IO, error) {
	return files{ctx: ctx, Store: s}, ctx.Err()
}

// bucket is the library's client of a bucket, given as scheme://authority.
func (s *Store) bucket(ctx context.Context, place string) (iceio.IO, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own != nil && place == s.home {
		if s.ready == nil {
			ready, _, err := configured(context.WithoutCancel(ctx), s.properties, place)
			if err != nil {
				return nil, explain(err)
			}
			s.ready = ready
		}
		store, err := s.own.Open(s.ready)
		return store, explain(err)
	}
	if had, ok := s.opened[place]; ok {
		return had, nil
	}
	fresh, err := load(context.WithoutCancel(ctx), s.properties, place)
	if err != nil {
		scheme, _, _ := strings.Cut(place, "://")
		if errors.Is(err, iceio.ErrIOSchemeNotFound) {
			return nil, fmt.Errorf("this build has no storage for %s:// locations", scheme)
		}
		return nil, explain(err)
	}
	s.opened[place] = fresh
	return fresh, nil
}

// load makes the library's client of a bucket.
func load(ctx context.Context, properties map[string]string, place string) (iceio.IO, error) {
	properties = Settled(properties, place)
	ctx, properties, err := configured(ctx, properties, place)
	if err != nil {
		return nil, err
	}
	return iceio.LoadFS(ctx, properties, place+"/")
}

// split takes a location apart: the bucket with its scheme, and the key of the object.
func split(location string) (place, key string, ok bool) {
	scheme, rest, ok := strings.Cut(location, "://")
	if !ok {
		return "", "", false
	}
	authority, key, _ := strings.Cut(rest, "/")
	return strings.ToLower(scheme) + "://" + authority, key, authority != ""
}

// files are those of a Store.
type files struct {
	ctx context.Context
	*Store
}

// at is the storage of a location.
func (f files) at(op, location string) (iceio.WriteFileIO, error) {
	if _, local := localdisk.Path(location); local {
		return localdisk.Files(), nil
	}
	place, _, ok := split(location)
	if !ok {
		return nil, &fs.PathError{Op: op, Path: location, Err: errors.New("want a path, or SCHEME://BUCKET/KEY")}
	}
	store, err := f.bucket(f.ctx, place)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: location, Err: err}
	}
	if o := objectsOf(f, place, store); o != nil {
		return o, nil
	}
	w, ok := store.(iceio.WriteFileIO)
	if !ok {
		return nil, &fs.PathError{Op: op, Path: location, Err: errors.New("this storage cannot be written")}
	}
	return w, nil
}

// Open implements iceio.IO.
func (f files) Open(name string) (iceio.File, error) {
	s, err := f.at("open", name)
	if err != nil {
		return nil, err
	}
	return s.Open(name)
}

// ReadFile implements iceio.ReadFileIO.
func (f files) ReadFile(name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	return text, errors.Join(err, file.Close())
}

// Remove implements iceio.IO.
func (f files) Remove(name string) error {
	s, err := f.at("remove", name)
	if err != nil {
		return err
	}
	return s.Remove(name)
}

// Create implements iceio.WriteFileIO.
func (f files) Create(name string) (iceio.FileWriter, error) {
	s, err := f.at("create", name)
	if err != nil {
		return nil, err
	}
	return s.Create(name)
}

// WriteFile implements iceio.WriteFileIO.
func (f files) WriteFile(name string, text []byte) error {
	s, err := f.at("create", name)
	if err != nil {
		return err
	}
	return s.WriteFile(name, text)
}

// WalkDir implements iceio.ListableIO, for objects.
func (f files) WalkDir(root string, visit fs.WalkDirFunc) error {
	s, err := f.at("list", root)
	if err != nil {
		return err
	}
	listable, ok := s.(iceio.ListableIO)
	if !ok {
		return &fs.PathError{Op: "list", Path: root, Err: errors.New("this storage cannot be listed")}
	}
	return listable.WalkDir(root, visit)
}

// MetadataFolder is the folder of a table's metadata, by the table's location and properties.
func MetadataFolder(location string, properties map[string]string) string {
	if folder := strings.TrimRight(properties["write.metadata.path"], "/"); folder != "" {
		return folder
	}
	return strings.TrimRight(location, "/") + "/metadata"
}
