//go:build !noclouds

package catalogs

// The storages of S3, GCS and Azure, whose SDKs are most of the binary.
import _ "github.com/apache/iceberg-go/io/gocloud"
