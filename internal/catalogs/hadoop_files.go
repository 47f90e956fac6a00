package catalogs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/localdisk"
)

// The files of a table in a file system: v3.metadata.json is version 3, version-hint.text names a version that
// was once the newest (Iceberg's specification, "File System Tables").
const (
	metadataFolder = "metadata"
	hintName       = "version-hint.text"
)

// versionName is a metadata file's name: plain, or compressed, which older versions wrote behind .json.
var versionName = regexp.MustCompile(`^v(\d+)(\.gz)?\.metadata\.json(\.gz)?$`)

// versionForms are the names that the metadata of a version can have, the first that is there being read, as
// Java does it (HadoopTableOperations.getMetadataFile).
func versionForms(version int) []string {
	return []string{
		fmt.Sprintf("v%d.metadata.json", version), fmt.Sprintf("v%d.gz.metadata.json", version), fmt.Sprintf("v%d.metadata.json.gz", version),
	}
}

// A tableFolder is the folder of a table's metadata.
type tableFolder struct {
	location string // with the warehouse as the user gave it
	path     string // on the local disk; else empty
	files    readable
}

// readable is what the files of a storage.Store can do beside being opened.
type readable interface {
	iceio.ReadFileIO
	iceio.ListableIO
}

// folder is that of a table's metadata.
func (c *hadoopCatalog) folder(ctx context.Context, identifier []string) (tableFolder, error) {
	f := tableFolder{location: c.location(identifier) + "/" + metadataFolder}
	if c.local {
		f.path, _ = localdisk.Path(f.location)
		return f, nil
	}
	files, err := c.files.FS(ctx)
	if err == nil {
		f.files = files.(readable)
	}
	return f, err
}

// location is that of a table: its folder, named by the levels of its namespace and its name.
func (c *hadoopCatalog) location(identifier []string) string {
	return c.ref.Place.Warehouse + "/" + strings.Join(identifier, "/")
}

func (f tableFolder) read(name string) ([]byte, error) {
	if f.path != "" {
		return os.ReadFile(path.Join(f.path, name))
	}
	return f.files.ReadFile(f.location + "/" + name)
}

func (f tableFolder) has(name string) (bool, error) {
	var err error
	if f.path != "" {
		_, err = os.Stat(path.Join(f.path, name))
	} else {
		var file iceio.File
		if file, err = f.files.Open(f.location + "/" + name); err == nil {
			err = file.Close()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// names are those of the files in the folder; fs.ErrNotExist where there is none.
func (f tableFolder) names() (names []string, err error) {
	if f.path != "" {
		entries, err := os.ReadDir(f.path)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	}
	err = f.files.WalkDir(f.location, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path.Base(at) != metadataFolder:
			return fs.SkipDir
		case !d.IsDir():
			names = append(names, path.Base(at))
		}
		return nil
	})
	return names, err
}

// form is the name under which the metadata of a version is there; empty if it is not.
func (f tableFolder) form(version int) (string, error) {
	for _, name := range versionForms(version) {
		there, err := f.has(name)
		if err != nil || there {
			return name, err
		}
	}
	return "", nil
}

// hint is the version that the hint names; 0 where there is none that can be read.
func (f tableFolder) hint() int {
	text, err := f.read(hintName)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// newest is the newest version, and the name of its file: the hint's, or, where there is none or what it names
// is gone, the highest that is listed; and from there on while there is a next one. Java goes the same way
// (HadoopTableOperations.refresh). The version is 0 where there is no table.
func (f tableFolder) newest() (version int, name string, err error) {
	if version = f.hint(); version > 0 {
		if name, err = f.form(version); err != nil {
			return 0, "", err
		}
	}
	if name == "" {
		if version, err = f.highest(); err != nil || version == 0 {
			return 0, "", err
		}
		if name, err = f.form(version); err != nil {
			return 0, "", err
		}
	}
	for {
		next, err := f.form(version + 1)
		if err != nil {
			return 0, "", err
		}
		if next == "" {
			return version, name, nil
		}
		version, name = version+1, next
	}
}

// highest is the highest version in the folder.
func (f tableFolder) highest() (int, error) {
	names, err := f.names()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	most := 0
	for _, name := range names {
		if m := versionName.FindStringSubmatch(name); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				most = max(most, n)
			}
		}
	}
	return most, err
}
