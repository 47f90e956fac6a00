//go:build interop

package interop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	iceio "github.com/apache/iceberg-go/io"

	_ "icepipe/internal/localdisk" // the file system that is counted
)

// The sizes of TestFlatCost: batches, fewer and all of them (with ICEPIPE_TORTURE), rows of each, and
// commits of a window. Manifests merge about every hundredth commit, so that a window holds one merge.
const (
	flatBatches      = 300
	flatTortured     = 2000
	flatRows         = 1000
	flatWindow       = 100
	flatManifests    = 120
	flatFactor       = 1.5
	flatWorst        = 2.0
	flatCheckpoint   = 64 << 10
	flatRowsOfAppend = 100_000
)

// TestFlatCost moves many small batches and holds the cost of late commits against that of early ones,
// in bytes, never in time. Bytes of manifests, their lists and metadata files are counted by a file
// system that is put between the program and the disk; what the kernel says of the whole process is
// these and all else: the source, the data files, the checkpoint, the catalog's database. A commit is
// what happens from one metadata file to the next. The rows are read back by PyIceberg and compared by
// DuckDB, and in format version 3 Spark looks at the row IDs.
func TestFlatCost(t *testing.T) {
	root := checkout(t)
	python := filepath.Join(dependencies(t, root), "venv", "bin", "python")
	batches := flatBatches
	if tortures() {
		batches = flatTortured
	}
	disk := countDisk(t)
	dir := t.TempDir()
	source := flatTable(t, dir, "src", 2)
	for first := 0; first < batches*flatRows; first += flatRowsOfAppend {
		source = flatAppend(t, source, first, min(flatRowsOfAppend, batches*flatRows-first))
	}
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			name := fmt.Sprint("dst", version)
			flatTable(t, dir, name, version)
			path := filepath.Join(dir, name+".json")
			disk.begin(filepath.Join(dir, name+"_wh"))
			receipt := flatMove(t, dir, name, path)
			costs := disk.end(t)
			if receipt.RowsMoved != int64(batches*flatRows) || len(costs) != batches {
				t.Fatalf("%d rows in %d commits", receipt.RowsMoved, len(costs))
			}
			flatHolds(t, costs)
			if n := flatHead(t, dir, name); n > flatManifests {
				t.Errorf("%d manifests at the head, at most %d are allowed", n, flatManifests)
			}
			if size := flatSize(t, path); size > flatCheckpoint {
				t.Errorf("the checkpoint has %d bytes, at most %d are allowed", size, flatCheckpoint)
			}
			script := filepath.Join(root, "testdata", "interop", "read_flat.py")
			call(t, exec.Command(python, script, dir, name, fmt.Sprint(version), fmt.Sprint(batches), fmt.Sprint(flatRows)))
		})
	}
}

// flatHolds holds windows of commits, and the worst commit, against those around commit 100, and says
// what a commit costs.
func flatHolds(t *testing.T, costs []cost) {
	t.Helper()
	early := costs[flatWindow/2 : flatWindow*3/2]
	base, baseOwn := mean(early, cost.flat), mean(early, cost.manifests)
	for from := flatWindow; from+flatWindow <= len(costs); from += flatWindow {
		window := costs[from : from+flatWindow]
		flat, own := mean(window, cost.flat), mean(window, cost.manifests)
		say("flat: commits %4d to %4d: %3.0f KB each, %3.0f of them manifests and their lists; metadata.json %5.0f KB more, %2.0f %% of all",
			from, from+flatWindow, flat/1e3, own/1e3, mean(window, cost.metadata)/1e3, 100*mean(window, cost.metadata)/(mean(window, cost.metadata)+flat))
		if flat > flatFactor*base || own > flatFactor*baseOwn {
			t.Errorf("commits %d to %d take %.0f bytes each, %.0f of them manifests; those around commit 100 take %.0f and %.0f", from, from+flatWindow, flat, own, base, baseOwn)
		}
	}
	worst := func(c []cost) float64 {
		return slices.MaxFunc(c, func(a, b cost) int { return int(a.flat() - b.flat()) }).flat()
	}
	say("flat: the worst commit around commit 100 takes %.0f KB, the worst of all %.0f KB", worst(early)/1e3, worst(costs)/1e3)
	if worst(costs) > flatWorst*worst(early) {
		t.Errorf("the worst commit takes %.0f bytes; around commit 100 it is %.0f", worst(costs), worst(early))
	}
}

func mean(costs []cost, of func(cost) float64) float64 {
	sum := 0.0
	for _, c := range costs {
		sum += of(c)
	}
	return sum / float64(len(costs))
}

// The kinds of files of a table.
const (
	ofManifests = iota
	ofLists
	ofMetadata
	kinds
)

// A cost is the bytes that were read and written from one metadata file to the next.
type cost struct {
	of    [kinds]float64 // of the table's files
	total float64        // of the process
}

func (c cost) manifests() float64 { return c.of[ofManifests] + c.of[ofLists] }
func (c cost) metadata() float64  { return c.of[ofMetadata] }
func (c cost) flat() float64      { return c.total - c.of[ofMetadata] }

// A counter counts the bytes of files below a folder.
type counter struct {
	mu    sync.Mutex
	under string
	now   cost
	marks []cost // sums, at each new metadata file
}

// countDisk puts a counter between the library and the local file system, for the rest of the test.
func countDisk(t *testing.T) *counter {
	t.Helper()
	plain, err := iceio.LoadFS(t.Context(), nil, "file:///")
	if err != nil {
		t.Fatal(err)
	}
	disk, ok := plain.(wholeIO)
	if !ok {
		t.Fatalf("the local file system is a %T", plain)
	}
	c := &counter{}
	register := func(made iceio.IO) {
		for _, scheme := range []string{"file", ""} {
			iceio.Unregister(scheme)
			iceio.Register(scheme, func(context.Context, *url.URL, map[string]string) (iceio.IO, error) { return made, nil })
		}
	}
	register(countedIO{disk, c})
	t.Cleanup(func() { register(disk) })
	return c
}

func (c *counter) begin(under string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under, c.now, c.marks = under, cost{}, nil
}

// end returns what each commit took.
func (c *counter) end(t *testing.T) []cost {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]cost, len(c.marks))
	for i, mark := range c.marks {
		if mark.total == 0 {
			t.Fatal("the kernel says nothing of the process's bytes")
		}
		out[i] = mark
		if i > 0 {
			out[i].total -= c.marks[i-1].total
			for kind := range kinds {
				out[i].of[kind] -= c.marks[i-1].of[kind]
			}
		}
	}
	if len(out) > 0 { // of the time before it began, the kernel's number alone
		out[0].total = 0
	}
	return out
}

// add counts bytes of a file; created: it is new.
func (c *counter) add(name string, n int, created bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.under == "" || !strings.Contains(name, c.under) {
		return
	}
	kind, base := ofMetadata, filepath.Base(name)
	switch {
	case strings.HasPrefix(base, "snap-") && strings.HasSuffix(base, ".avro"):
		kind = ofLists
	case strings.HasSuffix(base, ".avro"):
		kind = ofManifests
	case !strings.HasSuffix(base, ".metadata.json"):
		return // what the kernel says is enough
	}
	c.now.of[kind] += float64(n)
	if created && kind == ofMetadata {
		c.now.total = processBytes()
		c.marks = append(c.marks, c.now)
	}
}

// processBytes are all bytes that the process read and wrote, as the kernel counts them; 0: unknown.
func processBytes() float64 {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	var read, written float64
	if _, err := fmt.Fscanf(bytes.NewReader(text), "rchar: %g\nwchar: %g\n", &read, &written); err != nil {
		return 0
	}
	return read + written
}

// A wholeIO is what the local file system can do.
type wholeIO interface {
	iceio.ReadFileIO
	iceio.WriteFileIO
	iceio.StatIO
}

type countedIO struct {
	wholeIO
	c *counter
}

func (io countedIO) Open(name string) (iceio.File, error) {
	f, err := io.wholeIO.Open(name)
	if err != nil {
		return nil, err
	}
	return countedFile{f, name, io.c}, nil
}

func (io countedIO) ReadFile(name string) ([]byte, error) {
	text, err := io.wholeIO.ReadFile(name)
	io.c.add(name, len(text), false)
	return text, err
}

func (io countedIO) Create(name string) (iceio.FileWriter, error) {
	f, err := io.wholeIO.Create(name)
	if err != nil {
		return nil, err
	}
	io.c.add(name, 0, true)
	return countedWriter{f, name, io.c}, nil
}

func (io countedIO) WriteFile(name string, text []byte) error {
	io.c.add(name, len(text), true)
	return io.wholeIO.WriteFile(name, text)
}

type countedFile struct {
	iceio.File
	name string
	c    *counter
}

func (f countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.c.add(f.name, n, false)
	return n, err
}

func (f countedFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	f.c.add(f.name, n, false)
	return n, err
}

type countedWriter struct {
	iceio.FileWriter
	name string
	c    *counter
}

func (w countedWriter) Write(p []byte) (int, error) {
	n, err := w.FileWriter.Write(p)
	w.c.add(w.name, n, false)
	return n, err
}

func (w countedWriter) ReadFrom(r io.Reader) (int64, error) {
	n, err := w.FileWriter.ReadFrom(r)
	w.c.add(w.name, int(n), false)
	return n, err
}
