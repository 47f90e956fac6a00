//go:build interop

package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"icepipe/internal/torture"
)

// A ledger follows what a program does to files, and knows what of it a loss of power may take away:
// contents that were not synced, and names in folders that were not synced since.
type ledger struct {
	dir     string
	known   map[string]bool // written by the program
	dirty   map[string]bool // written since the last sync
	unnamed map[string]bool // made or renamed, its folder not synced since
	commits int             // of the catalog's database
	saves   int             // of the checkpoint
	wrong   []string
}

func newLedger(dir string) *ledger {
	return &ledger{dir: dir, known: map[string]bool{}, dirty: map[string]bool{}, unnamed: map[string]bool{}}
}

// unsafe lists what may be lost of the files whose paths begin so.
func (l *ledger) unsafe(prefix string) []string {
	var out []string
	for _, of := range []map[string]bool{l.dirty, l.unnamed} {
		for path := range of {
			if strings.HasPrefix(path, l.dir+"/"+prefix) {
				out = append(out, path)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// safe notes what may be lost where nothing may.
func (l *ledger) safe(when string, prefixes ...string) {
	for _, prefix := range prefixes {
		for _, path := range l.unsafe(prefix) {
			l.wrong = append(l.wrong, fmt.Sprintf("%s is not safe %s", path, when))
		}
	}
}

// take follows a call. A commit of SQLite is the removal of its journal: a loss of power before it
// rolls back.
func (l *ledger) take(s torture.Step) {
	switch s.Call {
	case "write", "pwrite64", "ftruncate", "copy_file_range":
		if strings.HasSuffix(s.Path, ".lock") {
			return // it holds nothing
		}
		if !l.known[s.Path] && s.Path != filepath.Join(l.dir, "dst.db") { // the database is there before
			l.unnamed[s.Path] = true
		}
		l.dirty[s.Path], l.known[s.Path] = true, true
	case "mkdirat":
		l.unnamed[s.Path] = true
	case "fsync":
		delete(l.dirty, s.Path)
		for path := range l.unnamed {
			if filepath.Dir(path) == s.Path {
				delete(l.unnamed, path)
			}
		}
	case "renameat":
		l.saves++
		for path := range l.unnamed { // the temporary file's name goes
			if strings.HasPrefix(path, s.Path+".tmp-") {
				delete(l.unnamed, path)
			}
		}
		l.safe(fmt.Sprintf("when the checkpoint is saved for the %d. time", l.saves), "job.json.tmp-", "dst/data")
		l.unnamed[s.Path] = true
	case "unlink":
		l.commits++
		l.safe(fmt.Sprintf("at commit %d", l.commits), "dst/", "job.json")
		delete(l.unnamed, s.Path) // the journal is gone
		delete(l.dirty, s.Path)
		l.safe(fmt.Sprintf("at commit %d", l.commits), "dst.db")
	}
}

// testOrder follows the calls of a run with one batch, and holds them against what a loss of power may
// take: what a commit or the checkpoint names is on the disk, with its name, before it is named.
func testOrder(t *testing.T, r *rack) {
	w := r.witness(t)
	for _, s := range r.scenes() {
		if s.before != "" || s.form == inThree && s.stage != 2 {
			continue
		}
		dir, err := r.folder(w, s)
		if err != nil {
			t.Fatal(err)
		}
		programs := r.programs(s, r.bin, dir)
		for _, p := range programs {
			if i := slices.Index(p.args, "--batch-rows"); i >= 0 {
				p.args[i+1] = "1000"
			}
		}
		runs, result, err := r.hurt(programs, s.stage, torture.Fault{Under: dir, Log: true})
		if err != nil || result.Code != 0 {
			t.Fatalf("%v\n%s", err, told(runs))
		}
		l := newLedger(dir)
		for _, step := range result.Log {
			l.take(step)
		}
		l.safe("at the end", "dst/", "dst.db", "job.json")
		if len(l.wrong) > 0 {
			t.Errorf("%s:\n%s", s, strings.Join(l.wrong, "\n"))
		}
		if l.commits != 2 || l.saves < 4 || result.Calls["mkdirat"] == 0 {
			t.Errorf("%s: %d commits, %d saves, %d folders were seen", s, l.commits, l.saves, result.Calls["mkdirat"])
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

// The ledger is sharp enough to tell a run that leaves out a sync.
func TestLedger(t *testing.T) {
	whole := []torture.Step{
		{Call: "mkdirat", Path: "/d/dst/data"}, {Call: "fsync", Path: "/d/dst"},
		{Call: "write", Path: "/d/dst/data/a.parquet"}, {Call: "fsync", Path: "/d/dst/data/a.parquet"}, {Call: "fsync", Path: "/d/dst/data"},
		{Call: "write", Path: "/d/job.json.tmp-1"}, {Call: "fsync", Path: "/d/job.json.tmp-1"}, {Call: "renameat", Path: "/d/job.json"}, {Call: "fsync", Path: "/d"},
		{Call: "pwrite64", Path: "/d/dst.db-journal"}, {Call: "fsync", Path: "/d/dst.db-journal"},
		{Call: "pwrite64", Path: "/d/dst.db"}, {Call: "fsync", Path: "/d/dst.db"}, {Call: "unlink", Path: "/d/dst.db-journal"},
	}
	for left := -1; left < len(whole); left++ {
		if left >= 0 && whole[left].Call != "fsync" || left == 10 { // the journal's sync is SQLite's own matter
			continue
		}
		l := newLedger("/d")
		for i, step := range whole {
			if i != left {
				l.take(step)
			}
		}
		if l.safe("at the end", "dst/", "dst.db", "job.json"); (len(l.wrong) > 0) != (left >= 0) {
			t.Errorf("without step %d: %q", left, l.wrong)
		}
	}
}
