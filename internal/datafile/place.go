package datafile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/localdisk"
)

// dataLocation is the folder of a table's data files.
func dataLocation(cfg Config) string {
	base := cfg.Properties.Get(propDataPath, "")
	if base == "" {
		base = strings.TrimRight(cfg.Location, "/") + "/data"
	}
	return strings.TrimRight(base, "/")
}

// checkLocation refuses a data folder of which some libraries see only a part: PyIceberg cuts a URI at # and ?. Where
// the table itself lies in such a place they do not see the table either, and its owner knows.
func checkLocation(cfg Config, base string) error {
	if !strings.Contains(base, ":") || strings.ContainsAny(cfg.Location, "#?") {
		return nil
	}
	if i := strings.IndexAny(base, "#?"); i >= 0 {
		return fmt.Errorf("data location %q holds %q, where PyIceberg cuts it off: set table property %q to a location without it", base, base[i], propDataPath)
	}
	return nil
}

// fileLocation places a new data file. The folders of its partition are for people: what counts is
// the partition in the metadata.
func fileLocation(cfg Config, base, partition, name string) string {
	if !strings.HasSuffix(name, ".parquet") && !strings.HasSuffix(name, ".puffin") {
		name += ".parquet"
	}
	if !javaTrue(cfg.Properties, propObjectStore, false) {
		return base + "/" + joinPath(partition, name)
	}
	// Hashed folders in front, so that an object store spreads the files of a partition.
	h := fnv.New32a()
	h.Write([]byte(joinPath(partition, name)))
	bits := fmt.Sprintf("%020b", h.Sum32()&(1<<20-1))
	hashed := joinPath(bits[:4], bits[4:8], bits[8:12], bits[12:])
	if javaTrue(cfg.Properties, propObjectPaths, true) {
		return base + "/" + joinPath(hashed, partition, name)
	}
	return base + "/" + hashed + "-" + name
}

func joinPath(parts ...string) string {
	kept := parts[:0:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "/")
}

func javaTrue(props iceberg.Properties, key string, unset bool) bool {
	v, ok := props[key]
	if !ok {
		return unset
	}
	return strings.EqualFold(v, "true")
}

// maxFolder is how long a folder's name may get; file systems end at 255 bytes (case 64).
const maxFolder = 200

// folder is the path component of a partition value, name=value. Java escapes odd characters with
// percent signs. Those are what libraries resolve differently in file: URIs, so here they become _,
// and a hash behind them tells values apart.
func folder(name, value string) string {
	whole := name + "=" + value
	odd := false
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.=", r):
			return r
		}
		odd = true
		return '_'
	}, whole)
	// Clients of object stores take two dots at the end of a folder's name for what leads out of it.
	odd = odd || strings.HasSuffix(plain, "..")
	if !odd && len(plain) <= maxFolder {
		return plain
	}
	h := fnv.New64a()
	h.Write([]byte(whole))
	return fmt.Sprintf("%s-%016x", plain[:min(len(plain), maxFolder-17)], h.Sum64())
}

// places creates files and remembers which folders must be synced so that the files last.
type places struct {
	fs iceio.WriteFileIO

	mu      sync.Mutex
	folders map[string]bool
}

// create opens a new file; one that is there already is an error.
func (p *places) create(location string) (Output, error) {
	path, local := localdisk.Path(location)
	if local {
		return p.createLocal(path)
	}
	if p.fs == nil {
		scheme, _, _ := strings.Cut(location, "://")
		return nil, fmt.Errorf("no file system for %s: locations", scheme)
	}
	w, err := p.fs.Create(location)
	if err != nil {
		return nil, err
	}
	return remote{w}, nil
}

func (p *places) createLocal(path string) (Output, error) {
	dir := filepath.Dir(path)
	made, err := makeFolders(dir)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.folders == nil {
		p.folders = map[string]bool{}
	}
	p.folders[dir] = true
	for _, d := range made {
		p.folders[filepath.Dir(d)] = true
	}
	return onDisk{f}, nil
}

// makeFolders makes dir and what lacks above it, and gives what it made.
func makeFolders(dir string) ([]string, error) {
	var made []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || filepath.Dir(d) == d {
			break
		}
		made = append(made, d)
	}
	return made, os.MkdirAll(dir, 0o777)
}

// sync makes the names of the files made so far last.
func (p *places) sync() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for dir := range p.folders {
		if err := localdisk.SyncDir(dir); err != nil {
			return fmt.Errorf("sync folder %q: %w", dir, err)
		}
	}
	p.folders = nil
	return nil
}

// Location is where a file of a name that says its format lies beside the data files of a table.
func Location(cfg Config, name string) (string, error) {
	base := dataLocation(cfg)
	return fileLocation(cfg, base, "", name), checkLocation(cfg, base)
}

// WriteFile writes a new file. Once it returns the file with its name survives a crash, as a Writer's files do. fs
// may be nil for a local location.
func WriteFile(fs iceio.WriteFileIO, location string, text []byte) error {
	p := places{fs: fs}
	out, err := p.create(location)
	if err != nil {
		return fmt.Errorf("create %s: %w", location, err)
	}
	if _, err = out.Write(text); err == nil {
		err = out.Sync()
	}
	if err != nil {
		err = errors.Join(err, out.Abort())
	} else if err = out.Close(); err == nil {
		err = p.sync()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", location, err)
	}
	return nil
}

// onDisk is a file on the local disk: one that is given up stays, for a clean to find.
type onDisk struct{ *os.File }

func (f onDisk) Abort() error { return f.Close() }

// remote is a file in a store that keeps what was closed.
type remote struct{ iceio.FileWriter }

func (remote) Sync() error { return nil }

func (r remote) CopyRange(from any, off, n int64) (bool, error) {
	if c, ok := r.FileWriter.(composer); ok {
		return c.CopyRange(from, off, n)
	}
	return false, nil
}

func (r remote) CopiedByStore() int64 {
	if c, ok := r.FileWriter.(composer); ok {
		return c.CopiedByStore()
	}
	return 0
}

func (r remote) Abort() error {
	if a, ok := r.FileWriter.(interface{ Abort() error }); ok {
		return a.Abort()
	}
	return r.Close()
}
