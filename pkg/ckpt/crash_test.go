package ckpt

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var errStep = errors.New("step failed")

// failing is a disk whose k-th changing step fails, and, where dead is set, all later ones too, as
// when the process is killed at that step.
type failing struct {
	disk
	k, n int
	dead bool
}

func (d *failing) step() error {
	d.n++
	if d.n == d.k || d.dead && d.n > d.k {
		return errStep
	}
	return nil
}

func (d *failing) Create(prefix string) (file, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	f, err := d.disk.Create(prefix)
	return &failingFile{f, d}, err
}

func (d *failing) Append(path string) (file, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	f, err := d.disk.Append(path)
	return &failingFile{f, d}, err
}

func (d *failing) Rename(from, to string) error {
	if err := d.step(); err != nil {
		return err
	}
	return d.disk.Rename(from, to)
}

func (d *failing) Remove(path string) error {
	if err := d.step(); err != nil {
		return err
	}
	return d.disk.Remove(path)
}

func (d *failing) SyncDir(dir string) error {
	if err := d.step(); err != nil {
		return err
	}
	return d.disk.SyncDir(dir)
}

type failingFile struct {
	file
	d *failing
}

func (f *failingFile) Write(p []byte) (int, error) {
	if err := f.d.step(); err != nil {
		n, _ := f.file.Write(p[:len(p)/2]) // a write that fails may have written
		return n, err
	}
	return f.file.Write(p)
}

func (f *failingFile) Sync() error {
	if err := f.d.step(); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *failingFile) Close() error {
	if err := f.d.step(); err != nil {
		f.file.Close()
		return err
	}
	return f.file.Close()
}

// Each step of Save fails in turn, on a real disk, with and without an old document: what Load
// finds is the old document or the new one.
func TestSaveFailsAtEachStep(t *testing.T) {
	for _, dead := range []bool{false, true} {
		for _, hadOld := range []bool{false, true} {
			t.Run(fmt.Sprintf("dead=%v old=%v", dead, hadOld), func(t *testing.T) {
				for k := 1; ; k++ {
					if k > 20 {
						t.Fatal("Save has no end of steps")
					}
					path := filepath.Join(t.TempDir(), "job.json")
					c := sample(t)
					if hadOld {
						mustSave(t, Open(path), c)
					}
					c.Batches++
					d := &failing{disk: osDisk{}, k: k, dead: dead}
					saveErr := (&Store{path: path, disk: d}).Save(c)
					if saveErr != nil && !errors.Is(saveErr, errStep) {
						t.Fatalf("step %d: %v", k, saveErr)
					}
					got, err := Open(path).Load()
					switch {
					case err != nil:
						t.Fatalf("step %d: the document is lost: %v", k, err)
					case saveErr == nil && (got == nil || got.Batches != c.Batches):
						t.Fatalf("step %d: Save returned nil, but the document is %+v", k, got)
					case hadOld && got == nil:
						t.Fatalf("step %d: the old document is gone", k)
					case got != nil && got.Batches != c.Batches && !(hadOld && got.Batches == c.Batches-1):
						t.Fatalf("step %d: a third document: batch %d", k, got.Batches)
					}
					if !dead && saveErr != nil { // cleaned up
						entries, err := os.ReadDir(filepath.Dir(path))
						if err != nil {
							t.Fatal(err)
						}
						for _, e := range entries {
							if e.Name() != "job.json" {
								t.Errorf("step %d: left %s behind", k, e.Name())
							}
						}
					}
					mustSave(t, Open(path), c) // and the next Save works
					if d.n < k {
						if k < 7 {
							t.Errorf("Save has only %d steps: a sync is missing", k-1)
						}
						return
					}
				}
			})
		}
	}
}

// memory is a disk that can lose power. What was not synced may be on it afterwards or not.
type memory struct {
	live    map[string]*inode // names as the process sees them
	durable map[string]*inode // names that survive a loss of power
	created int
}

type inode struct{ written, synced []byte }

func (d *memory) Resolve(path string) (string, error) { return path, nil }

func (d *memory) ReadFile(path string) ([]byte, error) {
	if f, ok := d.live[path]; ok {
		return slices.Clone(f.written), nil
	}
	return nil, fs.ErrNotExist
}

func (d *memory) Create(prefix string) (file, error) {
	d.created++
	name := fmt.Sprintf("%s%d", prefix, d.created)
	d.live[name] = new(inode)
	return &memoryFile{d.live[name], name}, nil
}

func (d *memory) Append(path string) (file, error) {
	f, ok := d.live[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return &memoryFile{f, path}, nil
}

func (d *memory) Rename(from, to string) error {
	d.live[to] = d.live[from]
	delete(d.live, from)
	return nil
}

func (d *memory) Remove(path string) error {
	delete(d.live, path)
	return nil
}

func (d *memory) SyncDir(string) error {
	d.durable = maps.Clone(d.live)
	return nil
}

type memoryFile struct {
	*inode
	name string
}

func (f *memoryFile) Name() string { return f.name }
func (f *memoryFile) Close() error { return nil }
func (f *memoryFile) Write(p []byte) (int, error) {
	f.written = append(f.written, p...)
	return len(p), nil
}

func (f *memoryFile) Sync() error {
	f.synced = slices.Clone(f.written)
	return nil
}

// afterPowerLoss returns the disk as it may be found: with the names that were not synced or
// without, with contents that were not synced or without.
func (d *memory) afterPowerLoss(keepNames, keepContents bool) *memory {
	names := d.durable
	if keepNames {
		names = d.live
	}
	out := &memory{live: map[string]*inode{}}
	for name, f := range names {
		text := f.synced
		if keepContents {
			text = f.written
		}
		out.live[name] = &inode{written: text, synced: text}
	}
	out.durable = maps.Clone(out.live)
	return out
}

func TestPowerLossAtEachStep(t *testing.T) {
	const path = "/job.json"
	for k := 1; ; k++ {
		mem := &memory{live: map[string]*inode{}, durable: map[string]*inode{}}
		c := sample(t)
		mustSave(t, &Store{path: path, disk: mem}, c)
		c.Batches++
		d := &failing{disk: mem, k: k, dead: true}
		saveErr := (&Store{path: path, disk: d}).Save(c)
		for _, names := range []bool{false, true} {
			for _, contents := range []bool{false, true} {
				found := &Store{path: path, disk: mem.afterPowerLoss(names, contents)}
				got, err := found.Load()
				where := fmt.Sprintf("step %d, names kept %v, contents kept %v", k, names, contents)
				if err != nil || got == nil {
					t.Fatalf("%s: the document is lost: %v", where, err)
				}
				if got.Batches != c.Batches && (saveErr == nil || got.Batches != c.Batches-1) {
					t.Fatalf("%s: Save returned %v, and batch %d is found", where, saveErr, got.Batches)
				}
			}
		}
		if d.n < k {
			return
		}
	}
}

// The model of the disk is sharp enough to tell a Save without its syncs.
func TestPowerLossModel(t *testing.T) {
	mem := &memory{live: map[string]*inode{}, durable: map[string]*inode{}}
	f, err := mem.Create("/job.json" + tmpInfix)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := mem.Rename(f.Name(), "/job.json"); err != nil {
		t.Fatal(err)
	}
	if text, err := mem.afterPowerLoss(true, false).ReadFile("/job.json"); err != nil || len(text) != 0 {
		t.Errorf("without Sync: %q, %v; want an empty file", text, err)
	}
	if _, err := mem.afterPowerLoss(false, true).ReadFile("/job.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without SyncDir: %v; want no file", err)
	}
	if !strings.HasPrefix(f.Name(), "/job.json.tmp-") {
		t.Errorf("temporary file %q is not beside the document", f.Name())
	}
}
