//go:build !noclouds && !nogcs

package storage

import _ "github.com/apache/iceberg-go/io/gocloud/gcs" // the storage of gs://
