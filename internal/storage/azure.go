//go:build !noclouds && !noazure

package storage

import _ "github.com/apache/iceberg-go/io/gocloud/azure" // the storage of abfs://, abfss://, wasb:// and wasbs://
