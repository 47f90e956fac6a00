//go:build !noclouds && nogcs

package storage

import "gocloud.dev/blob"

func gcsKey(*blob.Bucket, string, func(any) bool) bool { return false }
