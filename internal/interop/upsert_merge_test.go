//go:build interop

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestUpsertMerge upserts random rows into random tables that Spark made, of all format versions, with specs and
// schemas that changed and deletes of every kind, and holds the rows against those of Spark's MERGE. Keys and row IDs
// are unique at every snapshot, and rows keep their row IDs. ICEPIPE_TORTURE=1 draws many more;
// ICEPIPE_SEED repeats a run, and ONLY some of its upserts by number.
func TestUpsertMerge(t *testing.T) {
	root := checkout(t)
	seed, count := seedOf(t), 6
	if tortures() {
		count = 240
	}
	began := time.Now()
	args := []string{filepath.Join(root, "testdata", "interop", "upsert_merge.py"), build(t, root), t.TempDir(), strconv.FormatInt(seed, 10), strconv.Itoa(count)}
	cmd := exec.Command(filepath.Join(dependencies(t, root), "venv", "bin", "python"), append(args, strings.Fields(os.Getenv("ONLY"))...)...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("ICEPIPE_SEED=%d: %v", seed, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	say("%5.1f s  as Spark's MERGE does: %s", time.Since(began).Seconds(), lines[len(lines)-1])
}
