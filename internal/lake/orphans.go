package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/localdisk"
)

// Kinds of orphans, in the order in which they are removed: what names others goes first, so that
// a removal that broke off can be gone on with.
const (
	OrphanList     = "manifest list"
	OrphanManifest = "manifest"
	OrphanDeletes  = "delete file"
	OrphanData     = "data file"
)

// An Orphan is a file that a job of ours made and that no retained snapshot names.
type Orphan struct {
	Kind     string    `json:"kind"`
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// Files of commits are named by the library as Java names them.
var (
	listName     = regexp.MustCompile(`^snap-[0-9]+-[0-9]+-[0-9a-f-]{36}\.avro$`)
	manifestName = regexp.MustCompile(`^[0-9a-f-]{36}-m[0-9]+\.avro$`)
)

// Orphans returns the files that jobs of ours left in the table's folders, that were last changed before
// a time, and that no snapshot of the table's metadata names: not one that a branch or tag holds, nor any
// other that is retained. What is ours data files say by their names, manifests and manifest lists by what
// they name; where that is in doubt a file is not ours. Other files that a manifest names, in whatever
// status, are kept (case 93: manifests alone decide what is data).
//
// Nothing is removed. Where a manifest cannot be read it is an error: it could name any of the files.
func (t *Table) Orphans(ctx context.Context, before time.Time) ([]Orphan, error) {
	if err := t.Collectable(); err != nil {
		return nil, err
	}
	files, err := t.FS(ctx)
	if err != nil {
		return nil, err
	}
	named, err := t.named(ctx, files)
	if err != nil {
		return nil, err
	}
	s := sorter{table: t, files: files, ours: map[string]bool{}}
	var out []Orphan
	for _, root := range t.roots() {
		err := eachFile(files, root, func(location string, info fs.FileInfo) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if named[path.Base(location)] || !info.ModTime().Before(before) {
				return nil
			}
			if kind := kindOf(location); kind != "" {
				out = append(out, Orphan{Kind: kind, Path: location, Size: info.Size(), Modified: info.ModTime().UTC()})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("table %q: list the files of %q: %w", t.Name(), root, err)
		}
	}
	return s.ofOurs(out)
}

// Collectable refuses a table whose owner wants none of its files removed.
func (t *Table) Collectable() error {
	if strings.EqualFold(t.Properties().Get("gc.enabled", "true"), "false") {
		return fmt.Errorf("table %q has gc.enabled=false: its files may belong to another table too, and none is removed; set it to true where that is not so", t.Name())
	}
	return nil
}

// named are the names, without folders, of all files that a snapshot of the metadata names. Those of ours
// are unique whatever the folder, so that other spellings of a location cannot hide one.
func (t *Table) named(ctx context.Context, files iceio.IO) (map[string]bool, error) {
	named := map[string]bool{}
	read := map[string]bool{}
	for _, s := range t.Metadata().Snapshots() {
		named[path.Base(s.ManifestList)] = true
		manifests, err := s.Manifests(files)
		if err != nil {
			return nil, fmt.Errorf("table %q: manifests of snapshot %d: %w", t.Name(), s.SnapshotID, err)
		}
		for _, m := range manifests {
			if read[m.FilePath()] {
				continue
			}
			read[m.FilePath()] = true
			named[path.Base(m.FilePath())] = true
			for entry, err := range m.Entries(files, false) {
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					return nil, fmt.Errorf("table %q: manifest %q: %w", t.Name(), m.FilePath(), err)
				}
				named[path.Base(entry.DataFile().FilePath())] = true
			}
		}
	}
	return named, nil
}

// roots are the folders in which files of the table lie.
func (t *Table) roots() []string {
	out := []string{strings.TrimRight(t.Location(), "/")}
	for _, key := range []string{"write.data.path", "write.metadata.path"} {
		folder := strings.TrimRight(t.Properties()[key], "/")
		if folder != "" && !slices.ContainsFunc(out, func(root string) bool { return folder == root || strings.HasPrefix(folder, root+"/") }) {
			out = append(out, folder)
		}
	}
	return out
}

// eachFile calls f for each file below a folder. A folder that is not there is empty.
func eachFile(files iceio.IO, root string, f func(location string, info fs.FileInfo) error) error {
	visit := func(location string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return f(location, info)
	}
	if folder, local := localdisk.Path(root); local {
		return filepath.WalkDir(folder, visit)
	}
	listable, ok := files.(iceio.ListableIO)
	if !ok {
		return errors.New("this store cannot be listed; list and remove them with its own tools")
	}
	return listable.WalkDir(root, visit)
}

func kindOf(location string) string {
	switch name := path.Base(location); {
	case listName.MatchString(name):
		return OrphanList
	case manifestName.MatchString(name):
		return OrphanManifest
	case ours.MatchString(name) && strings.Contains(name, deletesSuffix+"."):
		return OrphanDeletes
	case ours.MatchString(name):
		return OrphanData
	}
	return ""
}

// Remove removes files that Orphans found, in its order. The table is loaded again first: what a snapshot
// has come to name meanwhile stays. It returns those that are gone, also with an error.
func (t *Table) Remove(ctx context.Context, orphans []Orphan) ([]Orphan, error) {
	if err := t.Reload(ctx); err != nil {
		return nil, err
	}
	if err := t.Collectable(); err != nil {
		return nil, err
	}
	files, err := t.FS(ctx)
	if err != nil {
		return nil, err
	}
	named, err := t.named(ctx, files)
	if err != nil {
		return nil, err
	}
	var gone []Orphan
	var failed error
	for _, o := range orphans {
		if err := ctx.Err(); err != nil {
			return gone, err
		}
		if named[path.Base(o.Path)] {
			continue
		}
		if err := files.Remove(o.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("remove %q: %w", o.Path, err))
			continue
		}
		gone = append(gone, o)
	}
	return gone, failed
}
