//go:build interop

package interop

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// workers is how many things are done at once.
const workers = 2

// inPairs does something for each of a list, two of them at a time, and waits for all.
func inPairs[T any](list []T, do func(T)) {
	next := make(chan T)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for one := range next {
				do(one)
			}
		})
	}
	for _, one := range list {
		next <- one
	}
	close(next)
	wait.Wait()
}

// seedOf is what random cases begin with: always the same, another one each time where tortures are asked for,
// and ICEPIPE_SEED where it is set.
func seedOf(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("ICEPIPE_SEED")
	if text == "" && tortures() {
		return rand.Int64N(1 << 31)
	}
	seed, err := strconv.ParseInt(cmp.Or(text, "1"), 10, 64)
	if err != nil {
		t.Fatalf("ICEPIPE_SEED: %v", err)
	}
	return seed
}

// programsOf are command lines as programs like one: those named without a folder are in bin.
func programsOf(bin string, like program, lines [][]string) (list []program) {
	for _, args := range lines {
		if !filepath.IsAbs(args[0]) {
			args = append([]string{filepath.Join(bin, args[0])}, args[1:]...)
		}
		like.args = args
		list = append(list, like)
	}
	return list
}
