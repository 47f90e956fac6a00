//go:build interop

package interop

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// A witness is a Python process, torture.py, that makes tables and reads them by PyIceberg and DuckDB.
// One goroutine at a time asks it.
type witness struct{ *conversation }

// A testimony is what it answers.
type testimony struct {
	Wrong   string
	Batches int    // that the destination holds
	Noted   string // state of the checkpoint, "" where there is none
}

// witness starts one; it ends with the test.
func (r *rack) witness(t *testing.T) *witness {
	t.Helper()
	cmd := exec.Command(r.python, filepath.Join(r.root, "testdata", "interop", "torture.py"))
	return &witness{converse(t, cmd, func(err error, said string) {
		if err != nil {
			t.Errorf("torture.py: %v\n%s", err, said)
		}
	})}
}

// ask makes a request about a folder. What is wrong there is an error.
func (w *witness) ask(do, dir string) (testimony, error) {
	return w.request(map[string]any{"do": do, "dir": dir})
}

// fresh makes the destination of a scene.
func (w *witness) fresh(dir string, s scene) error {
	_, err := w.request(map[string]any{"do": "fresh", "dir": dir, "version": s.version, "mode": s.mode})
	return err
}

func (w *witness) request(what map[string]any) (testimony, error) {
	var said testimony
	request, err := json.Marshal(what)
	if err != nil {
		return said, err
	}
	if _, err := fmt.Fprintf(w.in, "%s\n", request); err != nil {
		return said, err
	}
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		return said, fmt.Errorf("torture.py %s: %w", what["do"], err)
	}
	if err := json.Unmarshal(line, &said); err != nil {
		return said, err
	}
	if said.Wrong != "" {
		return said, errors.New(said.Wrong)
	}
	return said, nil
}

// spark lets Spark read the rows, the row IDs and the metadata tables of the trials that were kept.
func (r *rack) spark(t *testing.T) {
	t.Helper()
	if len(r.kept) == 0 {
		t.Fatal("no table was kept for Spark")
	}
	db := filepath.Join(r.work, "kept.db")
	if err := copyFile(filepath.Join(r.kept[0], "dst.db"), db); err != nil {
		t.Fatal(err)
	}
	conn, err := sql.Open("sqlite", "file:"+db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Exec("DELETE FROM iceberg_tables"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range r.kept {
		if _, err := conn.Exec("ATTACH DATABASE ? AS one", filepath.Join(dir, "dst.db")); err != nil {
			t.Fatal(err)
		}
		_, err := conn.Exec("INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) SELECT 'dst', 'lab', ?, metadata_location, 'TABLE' FROM one.iceberg_tables",
			"trial_"+filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec("DETACH DATABASE one"); err != nil {
			t.Fatal(err)
		}
	}
	call(t, exec.Command(r.python, filepath.Join(r.root, "testdata", "interop", "torture_spark.py"), db, fmt.Sprint(len(r.kept))))
	say("torture: Spark opened %d tables with their metadata tables", len(r.kept))
}
