//go:build !noclouds && !nogcs

package storage

import (
	"cloud.google.com/go/storage"
	_ "github.com/apache/iceberg-go/io/gocloud/gcs" // the storage of gs://
	"gocloud.dev/blob"
)

// gcsKey has a request to GCS use a key as it is.
func gcsKey(b *blob.Bucket, key string, as func(any) bool) bool {
	var client *storage.Client
	var handle **storage.ObjectHandle
	if !b.As(&client) || !as(&handle) {
		return false
	}
	*handle = client.Bucket((*handle).BucketName()).Object(key)
	return true
}
