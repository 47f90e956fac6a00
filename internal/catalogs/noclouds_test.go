//go:build noclouds

package catalogs

var cloudSchemes []string
