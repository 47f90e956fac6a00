// Package substrait stands in the place of github.com/substrait-io/substrait. Every program that links iceberg-go's
// tables reads the definitions of functions in it when it starts; there they are those of all of Substrait, half a
// million allocations and four fifths of the time that a program takes to start. Here they are those that
// iceberg-go's filters use and Arrow computes. The programs filter by internal/lake and use none.
package substrait

import "embed"

//go:embed extensions
var definitions embed.FS

// GetSubstraitExtensionsFS returns the definitions of functions, in the folder extensions.
func GetSubstraitExtensionsFS() embed.FS { return definitions }
