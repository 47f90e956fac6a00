//go:build interop

package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"icepipe/internal/lake"
)

// A filterCase is a filter on a table, and the rows that DuckDB selects.
type filterCase struct {
	Table  string
	Filter string
	SQL    string
	IDs    []int64
}

// TestFilterRandom draws tables and filters and holds what is selected, pruned and not, against DuckDB.
// ICEPIPE_TORTURE=1 draws a hundred times as many; ICEPIPE_SEED repeats a run.
func TestFilterRandom(t *testing.T) {
	root := checkout(t)
	python := filepath.Join(dependencies(t, root), "venv", "bin", "python")
	const tables = 20 // of a round
	seed, rounds, filters := seedOf(t), 1, 50
	if tortures() {
		rounds, filters = 50, 100 // making a table takes as long as some twenty filters
	}
	var tally filterTally
	for round := range rounds {
		out := t.TempDir()
		round := seed + int64(round)
		cmd := exec.Command(python, "-W", "ignore", filepath.Join(root, "testdata", "interop", "filter_random.py"),
			strconv.FormatInt(round, 10), strconv.Itoa(tables), strconv.Itoa(filters), out)
		began := time.Now()
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("seed %d: %v\n%s", round, err, text)
		}
		made := time.Since(began)
		file, err := os.Open(filepath.Join(out, "cases.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		cases := map[string][]filterCase{} // by table
		opened := map[string]*lake.Table{}
		in := json.NewDecoder(bufio.NewReader(file))
		for in.More() {
			var c filterCase
			if err := in.Decode(&c); err != nil {
				t.Fatal(err)
			}
			if opened[c.Table] == nil {
				opened[c.Table] = sourceTable(t, filepath.Join(out, "src.db"), "src", c.Table)
			}
			cases[c.Table] = append(cases[c.Table], c)
		}
		inPairs(slices.Sorted(maps.Keys(cases)), func(name string) {
			for _, c := range cases[name] {
				tally.add(len(c.IDs), c.hold(t, opened[name], round))
			}
		})
		file.Close()
		say("%5.1f s, %5.1f of them to make them: seed %d", time.Since(began).Seconds(), made.Seconds(), round)
		if t.Failed() {
			break
		}
	}
	skipped := tally.skipped
	say("filters: %d of random tables select what DuckDB does, %d rows; %d manifests, %d files and %d row groups were not read; seed %d", tally.asked, tally.found, skipped.Manifests, skipped.Files, skipped.RowGroups, seed)
	if tally.asked != rounds*tables*filters && !t.Failed() || skipped.Manifests == 0 || skipped.Files == 0 || skipped.RowGroups == 0 {
		t.Errorf("%d filters were asked of %d, or nothing was pruned", tally.asked, rounds*tables*filters)
	}
}

// hold compares what a filter selects, with pruning and without, and says what the pruned scan did not read.
func (c filterCase) hold(t *testing.T, tbl *lake.Table, round int64) (skipped lake.Skipped) {
	for _, whole := range []bool{false, true} {
		lines, skip, err := selected(t.Context(), tbl, c.Filter, []string{"id"}, whole)
		if err != nil {
			t.Errorf("ICEPIPE_SEED=%d, table %s: %s: %v", round, c.Table, c.Filter, err)
			return skipped
		}
		if !sameIDs(lines, c.IDs) {
			t.Errorf("ICEPIPE_SEED=%d, table %s, whole plan %t: %s\nDuckDB: %s\n got %.400v\nwant %.400v", round, c.Table, whole, c.Filter, c.SQL, lines, c.IDs)
		}
		if !whole {
			skipped = skip
		}
	}
	return skipped
}

// A filterTally counts the filters that were asked, by several goroutines, and what was not read for them.
type filterTally struct {
	mu      sync.Mutex
	asked   int
	found   int // rows
	skipped lake.Skipped
}

func (c *filterTally) add(found int, s lake.Skipped) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	c.found += found
	c.skipped.Manifests += s.Manifests
	c.skipped.Files += s.Files
	c.skipped.RowGroups += s.RowGroups
}

func sameIDs(lines []string, ids []int64) bool {
	if len(lines) != len(ids) {
		return false
	}
	got := map[string]bool{}
	for _, line := range lines {
		got[line] = true
	}
	for _, id := range ids {
		if !got[fmt.Sprintf(`{"id":%d}`, id)] {
			return false
		}
	}
	return len(got) == len(ids)
}
