//go:build !noclouds

package catalogs

var cloudSchemes = []string{"s3", "gs", "abfss"}
