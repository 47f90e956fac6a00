//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A commit is a snapshot that a move made.
type commit struct {
	from, to string // cursors
	batch    string
	records  string // added-records
}

// commitsOf reads the snapshots with a job's marks out of the destination's metadata, oldest first.
func commitsOf(o *outcome) ([]commit, error) {
	content, err := os.ReadFile(localPath(o.after))
	if err != nil {
		return nil, err
	}
	var metadata struct {
		Snapshots []struct {
			Sequence int64             `json:"sequence-number"`
			Time     int64             `json:"timestamp-ms"`
			Summary  map[string]string `json:"summary"`
		} `json:"snapshots"`
	}
	if err := json.Unmarshal(content, &metadata); err != nil {
		return nil, fmt.Errorf("%s: %w", o.after, err)
	}
	var commits []commit // metadata lists snapshots in the order in which they were made
	for _, s := range metadata.Snapshots {
		if s.Summary["iceberg-ops.migration-job"] == "" {
			continue
		}
		commits = append(commits, commit{
			from: s.Summary["icepipe.cursor-from"], to: s.Summary["icepipe.cursor"],
			batch: s.Summary["iceberg-ops.migration-batch"], records: s.Summary["added-records"],
		})
	}
	return commits, nil
}

// byDuckDB are the moves whose commits DuckDB compares row by row: partitions, deletes of every
// kind, nested columns, several row groups, specs and schemas that changed. That DuckDB reads by
// name asks for plain names.
var byDuckDB = []string{
	"codecs_spark", "dv_five", "eq_and_dv", "eq_key_sets", "mor_file_partitioned", "mor_row_groups", "nested_v2", "part_bucket",
	"part_multi", "part_text_spark", "rows_20k", "schema_defaults", "schema_nested", "spec_evolved_spark",
}

// compareWays holds what the pipe did against what ice-migrate did: per commit the same part of
// the source and the same rows, and the same receipt.
func (l *lab) compareWays(t *testing.T, db string, outcomes []*outcome) {
	pairs := map[string][]*outcome{}
	var names []string
	for _, o := range outcomes {
		if o.err != nil || !o.succeeded() {
			continue
		}
		name := strings.TrimSuffix(o.move.id(), "__"+o.move.way)
		if pairs[name] = append(pairs[name], o); len(pairs[name]) == 2 {
			names = append(names, name)
		}
	}
	var asked []*outcome
	for _, name := range names {
		if slices.Contains(byDuckDB, name) {
			asked = append(asked, pairs[name]...)
		}
	}
	if len(asked) != 2*len(byDuckDB) && len(l.only) == 0 {
		t.Errorf("%d of the %d moves that DuckDB shall compare were made", len(asked), 2*len(byDuckDB))
	}
	out := filepath.Join(l.out, "cases", "commits")
	call(t, l.script("read_commits.py", l.list(t, "commits.tsv", db, asked), out))
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			compareReceipts(t, pairs[name])
			compareCommits(t, pairs[name])
			if slices.Contains(byDuckDB, name) {
				compareRows(t, out, pairs[name])
			}
		})
	}
}

// compareCommits compares the parts of the source that the commits hold.
func compareCommits(t *testing.T, pair []*outcome) {
	t.Helper()
	var commits [2][]commit
	for i, o := range pair {
		found, err := commitsOf(o)
		if err != nil {
			t.Fatal(err)
		}
		commits[i] = found
	}
	if !slices.Equal(commits[0], commits[1]) {
		t.Errorf("the commits differ:\n%s %v\n%s %v", pair[0].move.way, commits[0], pair[1].move.way, commits[1])
	}
}

// ownOfARun are the members of a receipt in which two runs may differ: IDs and bytes written; and
// the verification, for which ice-write is not asked.
var ownOfARun = []string{"job", "destination.snapshot_id", "bytes_written", "bytes_copied", "bytes_copied_by_store", "bytes_transcoded", "bytes_encoded", "verification"}

// compareReceipts compares the receipts but for what is a run's own.
func compareReceipts(t *testing.T, pair []*outcome) {
	t.Helper()
	var receipts [2]string
	for i, o := range pair {
		var members map[string]any
		if err := json.Unmarshal(o.stdout, &members); err != nil {
			t.Fatal(err)
		}
		members["new_snapshots"] = len(members["new_snapshots"].([]any))
		for _, path := range ownOfARun {
			in := members
			outer, name, nested := strings.Cut(path, ".")
			if nested {
				in = members[outer].(map[string]any)
			} else {
				name = outer
			}
			delete(in, name)
		}
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		receipts[i] = string(text)
	}
	if receipts[0] != receipts[1] {
		t.Errorf("the receipts differ:\n%s %s\n%s %s", pair[0].move.way, receipts[0], pair[1].move.way, receipts[1])
	}
}

// compareRows compares the rows that each commit added, as DuckDB finds them in its files.
func compareRows(t *testing.T, dir string, pair []*outcome) {
	t.Helper()
	var added [2][]struct {
		Rows    []string          `json:"rows"`
		Summary map[string]string `json:"summary"`
	}
	for i, o := range pair {
		content, err := os.ReadFile(filepath.Join(dir, o.move.id()+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, &added[i]); err != nil {
			t.Fatal(err)
		}
	}
	if len(added[0]) != len(added[1]) {
		t.Fatalf("%d and %d snapshots", len(added[0]), len(added[1]))
	}
	total := 0
	for k := range added[0] {
		if !slices.Equal(added[0][k].Rows, added[1][k].Rows) {
			t.Errorf("commit %d holds other rows", k)
		}
		total += len(added[0][k].Rows)
	}
	if total != pair[0].move.rows {
		t.Errorf("the commits add %d rows, want %d", total, pair[0].move.rows)
	}
}

// firstChange shows where two texts of lines part.
func firstChange(a, b string) string {
	before, after := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(before), len(after)) {
		if before[i] != after[i] {
			return "- " + before[i] + "\n+ " + after[i]
		}
	}
	return fmt.Sprintf("%d lines became %d", len(before), len(after))
}
