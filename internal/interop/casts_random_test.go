//go:build interop

package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestRandomMigrations moves random tables by ice-migrate and by the pipe, and holds every row, rejected row
// and refusal to an oracle in plain Python.
func TestRandomMigrations(t *testing.T) {
	root := checkout(t)
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	call(t, exec.Command("go", "build", "-C", root, "-ldflags", "-s -w", "-o", bin+"/", "./cmd/ice-migrate", "./cmd/ice-scan", "./cmd/ice-reconcile", "./cmd/ice-write"))
	cmd := exec.Command(filepath.Join(dependencies(t, root), "venv", "bin", "python"), "-W", "ignore", "casts_random.py", bin, filepath.Join(dir, "tables"), "100", "25")
	cmd.Dir = filepath.Join(root, "testdata", "interop")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
