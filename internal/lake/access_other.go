//go:build !unix

package lake

// access takes everything as permitted: the first write will tell.
func access(string, bool) error { return nil }
