package migrate_test

import "testing"

// stride is how many bytes lie between two places at which a stream is cut or damaged: each one is tried, but
// with -short, which the race detector is run with.
func stride() int {
	if testing.Short() {
		return 31
	}
	return 1
}

// thin leaves all cases of a table, and one with -short.
func thin[T any](cases ...T) []T {
	if testing.Short() {
		return cases[len(cases)/2:][:1]
	}
	return cases
}
