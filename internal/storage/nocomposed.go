//go:build !noclouds && nos3

package storage

import (
	iceio "github.com/apache/iceberg-go/io"
	"gocloud.dev/blob"
)

func (o objects) composed(*blob.Bucket, string) iceio.FileWriter { return nil }

func s3IfMatch(string, func(any) bool) {}

func s3ETag(*blob.Reader) string { return "" }

func s3Range(*blob.Reader) (string, bool) { return "", false }
