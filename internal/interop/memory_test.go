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
	b := newBig(t)
	peaks := map[string]map[int]float64{}
	for _, size := range []int{smallMB, largeMB} {
		source := b.source(t, size, "many")
		for _, way := range []string{"scan", "pipe", "migrate", "partition_hash", "diff"} {
			if way == "scan" || way == "pipe" || way == "migrate" { // a verification reads what was migrated
				b.empty(t, "many")
			}
			for _, r := range pipe(t, bigWay(way, b.bin, source, b.work), nil) {
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
// many columns and of one that is nearly all of it, with few workers and many: two of these without ICEPIPE_TORTURE.
func TestMemoryAsAsked(t *testing.T) {
	b := newBig(t)
	for _, shape := range []string{"many", "one"} {
		source := b.source(t, smallMB, shape)
		for _, asked := range []int{128, 256} {
			for _, jobs := range []int{2, 8} {
				sample := shape == "many" && asked == 128 && jobs == 8 || shape == "one" && asked == 256 && jobs == 2
				if !sample && !tortures() {
					continue
				}
				b.empty(t, shape)
				p := bigWay("migrate", b.bin, source, b.work)
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
}

// A big has the programs, and the tables that they go through: make_big.py makes them.
type big struct {
	bin, deps, script, work string
}

func newBig(t *testing.T) *big {
	t.Helper()
	root := checkout(t)
	b := &big{build(t, root), dependencies(t, root), filepath.Join(root, "bench", "make_big.py"), filepath.Join(root, ".cache", "memory")}
	t.Cleanup(func() {
		if err := os.RemoveAll(b.work); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *big) make(t *testing.T, args ...string) {
	t.Helper()
	call(t, exec.Command(filepath.Join(b.deps, "venv", "bin", "python"), append([]string{b.script}, args...)...))
}

// source is the folder of a table of a size and a shape; it stays for the next time.
func (b *big) source(t *testing.T, megabytes int, shape string) string {
	t.Helper()
	name := fmt.Sprintf("big_%d", megabytes)
	if shape != "many" {
		name = fmt.Sprintf("big_%s_%d", shape, megabytes)
	}
	folder := filepath.Join(b.deps, name)
	b.make(t, folder, "--megabytes", fmt.Sprint(megabytes), "--shape", shape)
	return folder
}

// empty makes a destination of a shape, in place of the one before.
func (b *big) empty(t *testing.T, shape string) {
	t.Helper()
	if err := os.RemoveAll(b.work); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(b.work, 0o755); err != nil {
		t.Fatal(err)
	}
	b.make(t, b.work, "--destination", b.work, "--shape", shape)
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
