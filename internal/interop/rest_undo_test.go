//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRESTUndoRaces: what another writer appends between the look of an undo or a redo and its commit, or on top
// of a commit of it that nobody answered, is never lost, and the checkpoint tells what became of the job.
func TestRESTUndoRaces(t *testing.T) {
	s := newStand(t)
	cases := []struct {
		name  string
		redo  bool
		lands bool // the commit, before the other writer's; its answer is 500
		empty bool // the destination, before the job
	}{
		{name: "undo_loses"}, {name: "undo_to_none_loses", empty: true}, {name: "redo_loses", redo: true}, {name: "redo_from_none_loses", redo: true, empty: true},
		{name: "undo_lands", lands: true}, {name: "undo_to_none_lands", lands: true, empty: true},
		{name: "redo_lands", redo: true, lands: true}, {name: "redo_from_none_lands", redo: true, lands: true, empty: true},
	}
	theirs := tableSpec{Catalog: "sqlite", Identifier: "s.theirs", First: 200, Rows: 5, Files: 1}
	var dests []tableSpec
	for _, c := range cases {
		dst := tableSpec{Catalog: "rest", Identifier: "d." + c.name, First: 100, Rows: 5, Files: 1}
		if c.empty {
			dst.Rows, dst.Files = 0, 0
		}
		dests = append(dests, dst)
	}
	s.make(append(dests, thirty, theirs)...)
	wants := map[string][]int{}
	for i, c := range cases {
		dst := dests[i]
		t.Run(c.name, func(t *testing.T) {
			j := &job{s: s, src: thirty, dst: dst, batchRows: 10, checkpoint: filepath.Join(s.dir, c.name+".json")}
			if r, _ := j.run(); r.code != 0 {
				t.Fatal(told([]run{r}))
			}
			back := func(endpoint, command string) program {
				args := append([]string{filepath.Join(s.bin, "ice-migrate"), command, "--checkpoint", j.checkpoint}, s.flags("dst-", dst, endpoint)...)
				return program{args: args, dir: s.dir}
			}
			do := func(code int, command, want string) {
				t.Helper()
				var out bytes.Buffer
				if r := pipe(t, []program{back(s.endpoint, command)}, &out)[0]; r.code != code || !strings.Contains(out.String()+r.stderr, want) {
					t.Errorf("%s%s\nwant exit %d and %q", told([]run{r}), out.String(), code, want)
				}
			}
			raced := "undo"
			if c.redo {
				do(0, "undo", "3 snapshots of the job taken back")
				raced = "redo"
			}

			g := newGate(t, s.endpoint)
			if c.lands {
				s.control("POST", "/_faults", "commit-then-500 table="+dst.Identifier)
			}
			ended := make(chan run, 1)
			go func() {
				ended <- pipe(t, []program{back(g.URL, raced)}, &bytes.Buffer{})[0]
			}()
			h := g.next(t, ended)
			if c.lands {
				h.land()
			}
			foreign := &job{s: s, src: theirs, dst: dst, batchRows: 5}
			if r, _ := foreign.run(); r.code != 0 {
				t.Error(told([]run{r}))
			}
			if c.lands {
				close(h.release)
			} else {
				h.pass()
			}
			r := <-ended
			code, said := 1, "another writer has moved it meanwhile; nothing was changed"
			if c.lands {
				code, said = 0, ""
			}
			if r.code != code || !strings.Contains(r.stderr, said) {
				t.Errorf("%swant exit %d and %q", told([]run{r}), code, said)
			}

			want := ids(200, 5)
			if !c.empty {
				want = append(want, ids(100, 5)...)
			}
			if c.redo == c.lands { // the job's rows are there
				want = append(want, ids(0, 30)...)
			}
			slices.Sort(want)
			wants[dst.Identifier] = want
			state := "complete"
			if c.redo != c.lands {
				state = "undone"
			}
			if got := j.state(); got != state {
				t.Errorf("the job is %s, want %s", got, state)
			}
			if state == "undone" {
				do(1, "redo", "another writer has moved it since")
			} else {
				do(1, "undo", "1 snapshot of other writers came after the job's first batch")
			}
		})
	}
	for name, got := range s.states(dests...) {
		if !slices.Equal(got.IDs, wants[name]) || len(got.Gone) > 0 {
			t.Errorf("%s: ids %v, gone %v; want %v", name, got.IDs, got.Gone, wants[name])
		}
	}
}

// state is what ice-migrate status says that the job is.
func (j *job) state() string {
	j.s.t.Helper()
	var out bytes.Buffer
	r := pipe(j.s.t, []program{{args: []string{filepath.Join(j.s.bin, "ice-migrate"), "status", "--checkpoint", j.checkpoint, "--output", "json"}, dir: j.s.dir}}, &out)[0]
	var got struct{ State string }
	if err := json.Unmarshal(out.Bytes(), &got); r.code != 0 || err != nil {
		j.s.t.Errorf("%s%v", told([]run{r}), err)
	}
	return got.State
}

func ids(first, n int) (list []int) {
	for i := range n {
		list = append(list, first+i)
	}
	return list
}
