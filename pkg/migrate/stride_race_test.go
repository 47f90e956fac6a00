//go:build race

package migrate_test

// stride is how many bytes lie between two places at which a stream is cut or damaged: the race detector
// makes it too slow to try each one.
const stride = 31

// thin leaves one case of a table, for the same reason.
func thin[T any](cases ...T) []T { return cases[len(cases)/2:][:1] }
