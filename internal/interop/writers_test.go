//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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
	if tortures() {
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

// TestConflictsKeepOthersWork: case 77. Deletes and a compaction of another program come between a batch and
// its commit: nothing that was deleted comes back, nothing is lost.
func TestConflictsKeepOthersWork(t *testing.T) {
	s := newStand(t)
	dst := tableSpec{Catalog: "rest", Identifier: "d.t"}
	s.make(thirty, dst)
	g := newGate(t, s.endpoint)
	j := &job{s: s, src: thirty, dst: dst, batchRows: 10, endpoint: g.URL}
	ended := j.start()
	g.next(t, ended).pass()
	for _, other := range []string{"delete", "compact"} { // each time the second batch's commit loses
		h := g.next(t, ended)
		s.tables(other, []tableSpec{dst})
		h.pass()
	}
	for range 2 {
		g.next(t, ended).pass()
	}
	if r := <-ended; r.code != 0 {
		t.Error(told([]run{r}))
	}
	var want []int
	for id := 5; id < 30; id++ {
		want = append(want, id)
	}
	if state := s.state(dst); !slices.Equal(state.IDs, want) || len(state.batches()) != 3 || len(state.Gone) > 0 {
		t.Errorf("it holds ids %v in batches %q; files gone: %s", state.IDs, state.batches(), state.Gone)
	}
	tries := slices.Sorted(maps.Values(s.sent(dst)))
	if !slices.Equal(tries, []int{1, 1, 3}) {
		t.Errorf("the batches were sent %v times, want one of them three times", tries)
	}
}

// mostTries is the bound that README.md states for a batch that loses to other writers.
const mostTries = 1 + 200

func eightWriters(t *testing.T, s *stand, sources []tableSpec, dst tableSpec, ours int) {
	kind, writers, batches := dst.Catalog, len(sources), sources[0].Rows
	theirs := min(batches, 10) // PyIceberg is slower, and each of them takes seconds to lose
	text, err := json.Marshal(s.catalogs()[kind])
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	took := make([]time.Duration, writers)
	runs := make([]run, writers)
	var wait sync.WaitGroup
	for i := range writers {
		p := program{dir: s.dir, args: []string{s.python, filepath.Join(s.root, "testdata", "interop", "rest_tables.py"), "append", kind, string(text), dst.Identifier, strconv.Itoa(i * batches), strconv.Itoa(theirs)}}
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
	var want []int
	for i := range writers {
		n := theirs
		if i < ours {
			n = batches
		}
		for k := range n {
			want = append(want, i*batches+k)
		}
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
	say("%5.1f s  8 writers, %d of ours, %d commits of each of ours to %s; the first ended after %.1f s",
		slices.Max(took).Seconds(), ours, batches, kind, slices.Min(took).Seconds())
	if kind != "rest" {
		return
	}
	most := slices.Max(slices.Collect(maps.Values(s.sent(dst))))
	if say("         a batch of ours was sent %d times at most", most); most > mostTries {
		t.Errorf("a batch was sent %d times", most)
	}
}

// sent counts the commits that the server was sent of each batch of ours.
func (s *stand) sent(dst tableSpec) map[string]int {
	out := map[string]int{}
	for _, r := range s.log() {
		if r.Op != "commit" || r.Table != dst.Identifier {
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
