package command

import (
	"cmp"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"icepipe/pkg/migrate"
)

// memoryFlag bounds what is on its way.
type memoryFlag struct {
	Memory string `placeholder:"SIZE" help:"Memory that rows on their way may take, such as 512MiB (default 256MiB, at least 128MiB). The process takes up to 150 MB more."`
}

// leastMemory is about what the columns of a row group and their buffers take anyway.
const leastMemory = 128 << 20

// bytes is the size that was asked for, 0 for the default.
func (f memoryFlag) bytes() (int64, error) {
	if f.Memory == "" {
		return 0, nil
	}
	n, ok := parseSize(f.Memory)
	switch {
	case !ok:
		return 0, usagef("--memory %q: want a size such as 256MiB or 1GB", f.Memory)
	case n < leastMemory:
		return 0, usagef("--memory %s: want at least 128MiB", f.Memory)
	}
	return n, nil
}

// parseSize reads a number of bytes, with a unit of 1000s (KB, MB, GB, TB) or 1024s (KiB, MiB, GiB, TiB).
func parseSize(text string) (int64, bool) {
	number := strings.TrimRight(text, "KMGTiBkmgtb")
	unit, ok := map[string]int64{
		"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	}[strings.ToLower(text[len(number):])]
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(x >= 0 && x*float64(unit) < 1<<62) {
		return 0, false
	}
	return int64(x * float64(unit)), true
}

// collectEarly has garbage collected earlier than Go would by itself once the heap nears a size that goes with that
// much memory, 0 for the default. What is alive stays below it, so that it costs no time: an index of keys, or rows to
// compare, are most of it; of row groups on their way less than half is alive.
func collectEarly(memory int64, index bool) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	memory = cmp.Or(memory, migrate.DefaultMemory)
	if index {
		debug.SetMemoryLimit(memory + 24<<20)
	} else {
		debug.SetMemoryLimit(memory/2 + 64<<20)
	}
}
