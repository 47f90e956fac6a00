//go:build interop

package interop

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopyRandom moves random tables, whose files PyArrow writes in all its ways, with their columns copied and without,
// and lets PyIceberg, PyArrow and DuckDB, and of some Spark, vectorised and not, read both: rows, field IDs, counts,
// bounds and filters. ICEPIPE_TORTURE=1 makes many of them, and an older
// PyIceberg reads them too.
func TestCopyRandom(t *testing.T) {
	root := checkout(t)
	dir := t.TempDir()
	bin := filepath.Join(dir, "ice-migrate")
	call(t, exec.Command("go", "build", "-C", root, "-ldflags", "-s -w", "-o", bin, "./cmd/ice-migrate"))
	seed, count, spark := "3", "12", "3"
	if tortures() {
		seed, count, spark = "1000", "400", "40"
	}
	args := []string{"-W", "ignore", "copy_random.py", bin, filepath.Join(dir, "tables"), seed, count, "--spark", spark}
	deps := dependencies(t, root)
	if tortures() {
		older, err := exec.Command(filepath.Join(root, "testdata", "interop", "older.sh"), filepath.Join(deps, "older")).Output()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--older", strings.TrimSpace(string(older)))
	}
	cmd := exec.Command(filepath.Join(deps, "venv", "bin", "python"), args...)
	cmd.Dir = filepath.Join(root, "testdata", "interop")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
