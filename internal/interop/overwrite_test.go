//go:build interop

package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOverwrite overwrites partitions of random tables that Spark made, whose specs changed and that have deletes of
// every kind, and holds the rows against Spark's INSERT OVERWRITE, Spark's partition functions and PyIceberg's
// dynamic_partition_overwrite; both engines read the tables.
func TestOverwrite(t *testing.T) {
	root := checkout(t)
	deps := dependencies(t, root)
	call(t, exec.Command(filepath.Join(deps, "venv", "bin", "python"), filepath.Join(root, "testdata", "interop", "overwrite.py"), build(t, root), t.TempDir()))
}
