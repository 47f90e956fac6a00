package lake

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"icepipe/internal/localdisk"
)

// Permitted refuses a table that this user may not write, as far as permissions on this machine tell:
// the folders of its data and metadata, and the database file of its catalog with its folder, where
// SQLite makes its journal. Nothing is created or opened. What lies elsewhere is not looked at.
func (t *Table) Permitted() error {
	may := t.access
	if may == nil {
		may = access
	}
	base := strings.TrimRight(t.Location(), "/")
	for _, place := range []struct{ what, location string }{
		{"metadata folder", t.metadataFolder()},
		{"data folder", cmp.Or(t.Properties()["write.data.path"], base+"/data")},
	} {
		if path, local := localdisk.Path(place.location); local {
			if err := mayWriteFolder(path, may); err != nil {
				return fmt.Errorf("table %q: its %s %q cannot be written by this user: %w; see to its permissions, or run as its owner", t.Name(), place.what, path, err)
			}
		}
	}
	db := t.Place.DBPath
	if st, err := os.Stat(db); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	err := may(db, false)
	if err == nil {
		err = mayWriteFolder(filepath.Dir(db), may)
	}
	if err != nil {
		return fmt.Errorf("table %q: its catalog's database %q cannot be written by this user: %w; see to the permissions of the file and its folder, or run as its owner", t.Name(), db, err)
	}
	return nil
}

// mayWriteFolder asks for the folder at path or, where there is none yet, the one it would be made in.
func mayWriteFolder(path string, may func(string, bool) error) error {
	for {
		st, err := os.Stat(path)
		if (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && filepath.Dir(path) != path {
			path = filepath.Dir(path)
			continue
		}
		if err != nil {
			return err
		}
		if !st.IsDir() {
			return fmt.Errorf("%q is not a folder", path)
		}
		return may(path, true)
	}
}
