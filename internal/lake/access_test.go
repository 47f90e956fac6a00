package lake

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPermitted: folders and databases that this user may not write are named before anything is written.
// The permissions are pretended, since some users may write everything.
func TestPermitted(t *testing.T) {
	for _, c := range []struct {
		name   string
		denied string // end of a path
		props  []string
		want   string
	}{
		{name: "all may be written"},
		{name: "metadata", denied: "/metadata", want: `its metadata folder "`},
		{name: "data", denied: "/data", want: `its data folder "`},
		{name: "another data folder, not there yet", denied: "/far", props: []string{"write.data.path=FAR/a/b"}, want: `/far/a/b" cannot be written`},
		{name: "another metadata folder", denied: "/far", props: []string{"write.metadata.path=FAR"}, want: `its metadata folder "`},
		{name: "elsewhere", props: []string{"write.data.path=s3://bucket/data"}},
		{name: "below a file", props: []string{"write.data.path=FAR/file/data"}, want: `/far/file" is not a folder`},
		{name: "database", denied: "/cat.db", want: `its catalog's database "`},
		{name: "folder of the database", denied: "/db", want: `/db/cat.db" cannot be written`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			far, db := filepath.Join(dir, "far"), filepath.Join(dir, "db")
			for _, folder := range []string{far, db} {
				if err := os.Mkdir(folder, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{filepath.Join(far, "file"), filepath.Join(db, "cat.db")} {
				if err := os.WriteFile(file, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var props []string
			for _, p := range c.props {
				props = append(props, strings.ReplaceAll(p, "FAR", far))
			}
			tbl := newTable(t, idAndText(), unpartitioned(), props...)
			if err := os.MkdirAll(local(t, tbl.Location())+"/data", 0o755); err != nil {
				t.Fatal(err)
			}
			tbl.Place.DBPath = filepath.Join(db, "cat.db")
			var asked int
			tbl.access = func(path string, folder bool) error {
				asked++
				if st, err := os.Stat(path); err != nil || st.IsDir() != folder {
					t.Errorf("asked for %q, a folder %v", path, folder)
				}
				if c.denied != "" && strings.HasSuffix(path, c.denied) {
					return &fs.PathError{Op: "write", Path: path, Err: syscall.EACCES}
				}
				return nil
			}
			err := tbl.Permitted()
			if c.want != "" {
				fails(t, "permitted", err, c.want)
				return
			}
			if err != nil || asked == 0 {
				t.Errorf("error %v after %d questions", err, asked)
			}
		})
	}
	tbl := newTable(t, idAndText(), unpartitioned())
	if err := tbl.Permitted(); err != nil {
		t.Errorf("the system's own answer: %v", err)
	}
	if err := access(filepath.Join(t.TempDir(), "none"), false); err == nil && os.PathSeparator == '/' {
		t.Error("a file that is not there may be written")
	}
}
