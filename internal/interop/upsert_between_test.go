//go:build interop

package interop

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// A meddling is what another writer does to the destination in the middle of an upsert, in Spark's words.
type meddling struct {
	name     string
	do       []string
	conflict bool // the batch that waits was compared with a row that is another by now
	ids      bool // its rows must get the IDs of rows that were not there, or have some that are gone: a conflict in version 3
}

// The rows that the job moves, in batches of four: new ones, others in the place of theirs, some that are there as
// they are. It is in its second batch when another writer comes.
var upsertedRows = []idText{
	{0, "row 0"}, {1, "ours"}, {20, "ours"}, {6, "ours"},
	{21, "ours"}, {2, "ours"}, {5, "row 5"}, {20, "ours again"},
	{22, "ours"}, {8, "ours"}, {3, "row 3"}, {23, "ours"},
}

var meddlings = []meddling{
	{name: "compaction", do: []string{"CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"}},
	{name: "append_beside", do: []string{"INSERT INTO {table} VALUES (50, 'theirs'), (51, 'theirs')"}},
	{name: "append_same_keys", do: []string{"INSERT INTO {table} VALUES (21, 'theirs'), (22, 'theirs'), (52, 'theirs')"}, ids: true},
	{name: "update_what_is_equal", do: []string{"UPDATE {table} SET text = 'theirs' WHERE id = 5"}, conflict: true},
	{name: "delete_what_is_equal", do: []string{"DELETE FROM {table} WHERE id = 5"}, conflict: true},
	{name: "update_same_rows", do: []string{"UPDATE {table} SET text = 'theirs' WHERE id IN (2, 3, 7, 8)"}},
	{name: "delete_same_rows", do: []string{"DELETE FROM {table} WHERE id IN (2, 3, 4, 8)"}, ids: true},
	{name: "append_and_compaction", do: []string{
		"INSERT INTO {table} VALUES (21, 'theirs'), (53, 'theirs')",
		"CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
		"CALL {catalog}.system.rewrite_manifests('{name}')",
	}, ids: true},
}

// An upsertBetween is a job, another writer in the middle of it, and where the middle is: between the look at the
// batch's keys and its commit, or between the death of a run and the next one, by the other form.
type upsertBetween struct {
	ground
	meddling
	died bool
	job  *heldJob
	err  error
}

func (b *upsertBetween) String() string {
	return fmt.Sprintf("%s_%s%s", b.ground, b.name, map[bool]string{true: "_died", false: ""}[b.died])
}

func (b *upsertBetween) table() string { return "m." + b.String() }

func upsertBetweens() (list []*upsertBetween) {
	for i, g := range grounds() {
		for j, m := range meddlings {
			for _, died := range []bool{false, true} {
				// CI has two of a ground: a compaction, and an append of the job's keys or an update of a row that it leaves.
				few := j == 0 && died == (i%2 == 1) || !died && (j == 2 && i%2 == 0 || j == 3 && i%2 == 1)
				if few || tortures() {
					list = append(list, &upsertBetween{ground: g, meddling: m, died: died})
				}
			}
		}
	}
	return list
}

// TestUpsertBetween: Spark compacts, appends, updates and deletes in the middle of an upsert, on SQLite and REST, in
// every mode to take rows out. The job goes on, or ends with the conflict and goes on when it is run again; each
// snapshot of it holds the rows of the one before with those of its batch in place, and in the end the source's rows
// are there once.
func TestUpsertBetween(t *testing.T) {
	a := newArena(t)
	list := upsertBetweens()
	final := map[int]string{}
	for _, r := range upsertedRows {
		final[r.id] = r.text
	}
	tables := []map[string]any{{"catalog": "sqlite", "identifier": "s.ours", "rows": upsertedRows}}
	var judged []map[string]any
	for _, b := range list {
		tables = append(tables, map[string]any{"catalog": b.catalog, "identifier": b.table(), "version": b.version, "rows": tenRows(), "files": 2})
		judged = append(judged, map[string]any{"catalog": b.catalog, "identifier": b.table(), "final": final})
		b.job = a.hold(t, b.ground, "s.ours", b.table(), 4)
	}
	a.party.do("make", "", "tables", tables)
	inPairs(list, func(b *upsertBetween) { b.err = b.begin() })
	for _, b := range list {
		a.party.do("act", "", "catalog", b.catalog, "identifier", b.table(), "statements", b.do)
	}
	inPairs(list, func(b *upsertBetween) {
		if b.err == nil {
			b.err = b.end(t, a)
		}
	})
	answer := a.party.do("judge", "", "tables", judged)
	wrong := answer["wrong"].(map[string]any)
	conflicts := 0
	for _, b := range list {
		t.Run(b.String(), func(t *testing.T) {
			if b.err != nil {
				t.Error(b.err)
			}
			n, err := b.job.judge()
			if err != nil {
				t.Error(err)
			}
			if (n > 0) != ((b.conflict || b.ids && b.version == 3) && !b.died) {
				t.Errorf("%d runs ended with a conflict\n%s", n, told(b.job.runs))
			}
			conflicts += n
			if text, ok := wrong[fmt.Sprintf("%s %s", b.catalog, b.table())]; ok {
				t.Errorf("%v\n%s", text, told(b.job.runs))
			}
		})
	}
	say("upsert: Spark came between %d times, %d times with a conflict; %v snapshots were right", len(list), conflicts, answer["snapshots"])
	if most := float64(3 * len(list)); answer["snapshots"] != most {
		t.Errorf("%v snapshots are of jobs, want %v", answer["snapshots"], most)
	}
}

// begin lets the job commit its first batch, and stops it with the second one before its commit.
func (b *upsertBetween) begin() error {
	for i := range 2 {
		waits, err := b.job.comes()
		if err != nil || !waits {
			return fmt.Errorf("commit %d did not come: %w\n%s", i, err, told(b.job.runs))
		}
		if i == 0 {
			if err := b.job.pass(); err != nil {
				return err
			}
		}
	}
	if b.died {
		b.job.die()
	}
	return nil
}

// end lets the job go on: the run that waits, or the pipe where it died.
func (b *upsertBetween) end(t *testing.T, a *arena) error {
	if b.died {
		b.job.runs = append(b.job.runs, pipe(t, a.pipe(b.job), nil)...)
		return nil
	}
	return b.job.finish()
}

// pipe are the programs that go on with a job of the arena.
func (a *arena) pipe(h *heldJob) []program {
	j := h.job
	stage := func(name string, args ...[]string) program {
		return program{args: slices.Concat(append([][]string{{filepath.Join(a.bin, name)}}, args...)...), dir: a.dir}
	}
	checkpoint := []string{"--checkpoint", j.checkpoint}
	return []program{
		stage("ice-scan", a.flags("", j.src, a.endpoint), []string{"--batch-rows", fmt.Sprint(j.batchRows)}, checkpoint),
		stage("ice-reconcile", a.flags("", j.dst, a.endpoint)),
		stage("ice-write", checkpoint, j.more, []string{"-q"}),
	}
}
