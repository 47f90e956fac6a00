//go:build memory

package interop

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// The bounds of resident memory, in MB of 2^20 bytes: of any program over the large table, and of
// what the large table may take more than the small one of the same shape.
const (
	mostMB   = 400
	mostMore = 40
)

// The sizes of the tables' one Parquet file, in MB.
const (
	largeMB = 1000
	smallMB = 250
)

// TestMemoryIsBounded runs the programs with default settings over a Parquet file of 1 GB with row
// groups of 128 MB, and over one of a quarter, and looks at what the kernel says of each program's
// peak. The test itself holds little: a program that is started through vfork begins with its peak.
func TestMemoryIsBounded(t *testing.T) {
	root := checkout(t)
	bin := build(t, root)
	deps := dependencies(t, root)
	python := filepath.Join(deps, "venv", "bin", "python")
	work := filepath.Join(root, ".cache", "memory")
	peaks := map[string]map[int]float64{}
	for _, size := range []int{smallMB, largeMB} {
		source := filepath.Join(deps, fmt.Sprintf("big_%d", size))
		script := filepath.Join(root, "bench", "make_big.py")
		call(t, exec.Command(python, script, source, "--megabytes", fmt.Sprint(size)))
		for _, way := range []string{"scan", "pipe", "migrate", "partition_hash", "diff"} {
			if way == "scan" || way == "pipe" || way == "migrate" { // a verification reads what was migrated
				if err := os.RemoveAll(work); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(work, 0o755); err != nil {
					t.Fatal(err)
				}
				call(t, exec.Command(python, script, source, "--destination", work))
			}
			for _, r := range pipe(t, bigWay(way, bin, source, work), nil) {
				name := way + ": " + filepath.Base(r.program.args[0])
				if r.code != 0 {
					t.Fatalf("%s\n%s", name, told([]run{r}))
				}
				if peaks[name] == nil {
					peaks[name] = map[int]float64{}
				}
				peaks[name][size] = float64(r.maxRSS) / (1 << 20)
			}
		}
	}
	if err := os.RemoveAll(work); err != nil {
		t.Error(err)
	}
	for _, name := range slices.Sorted(maps.Keys(peaks)) {
		peak := peaks[name]
		small, large := peak[smallMB], peak[largeMB]
		say("memory: %-24s %4.0f MB over %d MB, %4.0f MB over %d MB", name, small, smallMB, large, largeMB)
		if large > mostMB {
			t.Errorf("%s takes %.0f MB, at most %d are allowed", name, large, mostMB)
		}
		if large-small > mostMore {
			t.Errorf("%s takes %.0f MB more over %d MB than over %d MB, at most %d are allowed", name, large-small, largeMB, smallMB, mostMore)
		}
	}
}

// bigWay is one of the ways to go through the table.
func bigWay(way, bin, source, work string) []program {
	place := func(prefix, dir, side string) []string {
		return []string{
			"--" + prefix + "catalog", "sqlite", "--" + prefix + "catalog-name", "default",
			"--" + prefix + "db-path", filepath.Join(dir, side+".db"), "--" + prefix + "warehouse", filepath.Join(dir, side+"_wh"),
			"--" + prefix + "namespace", "bench", "--" + prefix + "table", "big",
		}
	}
	stage := func(name string, args []string) program {
		return program{args: append([]string{filepath.Join(bin, name)}, args...), dir: work}
	}
	scan := stage("ice-scan", place("", source, "src"))
	switch way {
	case "scan":
		return []program{scan}
	case "pipe":
		return []program{scan, stage("ice-write", place("", work, "dst"))}
	case "partition_hash", "diff":
		return []program{stage("ice-verify", append(append(place("src-", source, "src"), place("dst-", work, "dst")...), "--method", way))}
	}
	return []program{stage("ice-migrate", append(place("src-", source, "src"), place("dst-", work, "dst")...))}
}
