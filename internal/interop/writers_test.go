//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestEightWriters: cases 73, 77. Four jobs of ours and four programs of PyIceberg's append to one table at
// the same time: all rows of all are there once, and nobody gives up.
func TestEightWriters(t *testing.T) {
	batches := 4
	if os.Getenv("ICEPIPE_TORTURE") == "1" {
		batches = 40
	}
	s := newStand(t)
	var sources []tableSpec
	for i := range 8 {
		sources = append(sources, tableSpec{Catalog: "sqlite", Identifier: fmt.Sprintf("s.w%d", i), First: i * batches, Rows: batches, Files: 1})
	}
	s.make(sources...)
	for _, kind := range []string{"rest", "sqlite"} {
		for _, ours := range []int{4, 8} {
			dst := tableSpec{Catalog: kind, Identifier: fmt.Sprint("d.t", ours)}
			s.make(dst)
			t.Run(fmt.Sprintf("%s, %d of ours", kind, ours), func(t *testing.T) { eightWriters(t, s, sources, dst, ours) })
		}
	}
}

// mostTries is the bound that README.md states for a batch that loses to other writers.
const mostTries = 1 + 200

func eightWriters(t *testing.T, s *stand, sources []tableSpec, dst tableSpec, ours int) {
	kind, writers, batches := dst.Catalog, len(sources), sources[0].Rows
	text, err := json.Marshal(s.catalogs()[kind])
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	took := make([]time.Duration, writers)
	runs := make([]run, writers)
	var wait sync.WaitGroup
	for i := range writers {
		p := program{dir: s.dir, args: []string{s.python, filepath.Join(s.root, "testdata", "interop", "rest_tables.py"), "append", kind, string(text), dst.Identifier, strconv.Itoa(i * batches), strconv.Itoa(batches)}}
		if i < ours {
			p = (&job{s: s, src: sources[i], dst: dst, batchRows: 1, checkpoint: filepath.Join(s.dir, fmt.Sprint(kind, ours, i, ".json"))}).command()
		}
		wait.Go(func() {
			var out bytes.Buffer
			runs[i] = pipe(t, []program{p}, &out)[0]
			took[i] = time.Since(began)
		})
	}
	wait.Wait()
	for _, r := range runs {
		if r.code != 0 {
			t.Error(told([]run{r}))
		}
	}
	state := s.state(dst)
	want := make([]int, writers*batches)
	for i := range want {
		want[i] = i
	}
	if !slices.Equal(state.IDs, want) {
		t.Errorf("it holds ids %v, want %d", state.IDs, len(want))
	}
	if len(state.Snapshots) != len(want) || len(state.Gone) > 0 {
		t.Errorf("%d snapshots, want %d; files gone: %s", len(state.Snapshots), len(want), state.Gone)
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(perJob(state))))); n != ours*batches {
		t.Errorf("%d batches of ours, want %d", n, ours*batches)
	}
	most := 0 // of the server; SQLite keeps no log
	for _, n := range s.sent(dst) {
		most = max(most, n)
	}
	if most > mostTries {
		t.Errorf("a batch was sent %d times", most)
	}
	say("%5.1f s  8 writers, %d of ours, %d commits each to %s; the first ended after %.1f s; a batch of ours was sent %d times at most",
		slices.Max(took).Seconds(), ours, batches, kind, slices.Min(took).Seconds(), most)
}

// sent counts the commits that the server was sent of each batch of ours.
func (s *stand) sent(dst tableSpec) map[string]int {
	out := map[string]int{}
	for _, r := range s.log() {
		if dst.Catalog != "rest" || r.Op != "commit" || r.Table != dst.Identifier {
			continue
		}
		for _, u := range r.Body.Updates {
			if job := u.Snapshot.Summary["iceberg-ops.migration-job"]; job != "" {
				out[job+" "+u.Snapshot.Summary["icepipe.cursor-from"]]++
			}
		}
	}
	return out
}

// perJob are the batches of all jobs, by job and range.
func perJob(state tableState) (list []string) {
	for _, s := range state.Snapshots {
		if job := s.Summary["iceberg-ops.migration-job"]; job != "" {
			list = append(list, job+" "+s.Summary["icepipe.cursor-from"])
		}
	}
	return list
}
