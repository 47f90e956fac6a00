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

// TestMemoryAsAsked holds ice-migrate, which writes all anew, to --memory and 150 MB: over row groups of 128 MB, of
// many columns and of one that is nearly all of it, with few workers and many.
func TestMemoryAsAsked(t *testing.T) {
	root := checkout(t)
	bin := build(t, root)
	deps := dependencies(t, root)
	python := filepath.Join(deps, "venv", "bin", "python")
	script := filepath.Join(root, "bench", "make_big.py")
	work := filepath.Join(root, ".cache", "memory")
	for shape, folder := range map[string]string{"many": fmt.Sprintf("big_%d", smallMB), "one": fmt.Sprintf("big_one_%d", smallMB)} {
		source := filepath.Join(deps, folder)
		call(t, exec.Command(python, script, source, "--megabytes", fmt.Sprint(smallMB), "--shape", shape))
		for _, asked := range []int{128, 256} {
			for _, jobs := range []int{2, 8} {
				if err := os.RemoveAll(work); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(work, 0o755); err != nil {
					t.Fatal(err)
				}
				call(t, exec.Command(python, script, source, "--destination", work, "--shape", shape))
				p := bigWay("migrate", bin, source, work)
				p[0].args = append(p[0].args, "--copy", "never", "--batch-rows", "auto", "--memory", fmt.Sprintf("%dMiB", asked), "--jobs", fmt.Sprint(jobs))
				r := pipe(t, p, nil)[0]
				if r.code != 0 {
					t.Fatal(told([]run{r}))
				}
				peak := float64(r.maxRSS) / (1 << 20)
				say("memory: %-4s columns, %3d MiB asked for, %d jobs: %4.0f MB", shape, asked, jobs, peak)
				if peak > float64(asked+150) {
					t.Errorf("%s columns, %d jobs: %.0f MB, where --memory %dMiB allows 150 MB more than that", shape, jobs, peak, asked)
				}
			}
		}
	}
	if err := os.RemoveAll(work); err != nil {
		t.Error(err)
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
