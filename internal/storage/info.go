//go:build !noclouds

package storage

import (
	"io/fs"
	"time"
)

// info is what is known of an object.
type info struct {
	name     string
	size     int64
	modified time.Time
	etag     string // of its content; "" for one that is not known
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
