//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestRESTMoves moves a table into, out of and between REST catalogs, by the pipe and by ice-migrate. The
// server wants a token, puts its routes below a prefix, gives lists out one by one, and tells clients to load
// heads alone. Everything about it is configured, as PyIceberg has it; the token is written nowhere.
func TestRESTMoves(t *testing.T) {
	s := newStand(t, "--token", "hunter2", "--prefix", "a b", "--page-size", "1", "--override", "snapshot-loading-mode=refs")
	s.client["token"] = "hunter2"
	env := []string{
		"PYICEBERG_CATALOG__REST__URI=" + s.endpoint, "PYICEBERG_CATALOG__REST__TOKEN=hunter2",
		"PYICEBERG_CATALOG__SQLITE__URI=sqlite:///" + s.sqlite(),
	}
	inREST := thirty
	inREST.Catalog = "rest"
	s.make(thirty, inREST)
	var runs []run
	for _, c := range []struct{ name, from, to, way string }{
		{"into, by the pipe", "sqlite", "rest", byPipe}, {"into, by ice-migrate", "sqlite", "rest", byMigrate},
		{"between, by the pipe", "rest", "rest", byPipe}, {"between, by ice-migrate", "rest", "rest", byMigrate},
		{"out of, by the pipe", "rest", "sqlite", byPipe},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := tableSpec{Catalog: c.to, Identifier: "d." + strings.Map(letters, c.name)}
			s.make(dst)
			checkpoint := filepath.Join(s.dir, dst.Identifier+".json")
			stage := func(name string, args ...string) program {
				return program{args: append([]string{filepath.Join(s.bin, name)}, args...), dir: s.dir, env: env}
			}
			end := []string{"--checkpoint", checkpoint, "--output", "json", "-q"}
			list := []program{
				stage("ice-scan", c.from+".s.src", "--batch-rows", "10"),
				stage("ice-reconcile", c.to+"."+dst.Identifier),
				stage("ice-write", end...), // the header says where to
			}
			if c.way == byMigrate {
				list = []program{stage("ice-migrate", append(end, "--src", c.from+".s.src", "--dst", c.to+"."+dst.Identifier, "--batch-rows", "10", "--verify", "row_count")...)}
			}
			status := []program{stage("ice-migrate", "status", "--checkpoint", checkpoint, "--output", "json")}
			var out, printed bytes.Buffer
			made := pipe(t, list, &out)
			made = append(made, pipe(t, status, &printed)...)
			runs = append(runs, made...)
			for _, r := range made {
				if r.code != 0 {
					t.Fatal(told(made))
				}
			}
			var got struct {
				State string
				Found int `json:"snapshots_found"`
			}
			if err := json.Unmarshal(printed.Bytes(), &got); err != nil || got.State != "complete" || got.Found != 3 {
				t.Errorf("status %s, %v", printed.String(), err)
			}
			if wrong := s.state(dst).once(30, 3); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	saved := program{args: []string{filepath.Join(s.bin, "ice-scan"), "rest.s.src", "-o", "saved.arrows"}, dir: s.dir, env: env}
	runs = append(runs, pipe(t, []program{saved}, nil)...)
	for _, r := range runs {
		if r.code != 0 {
			t.Error(told([]run{r}))
		}
	}
	s.keepsSecret("hunter2", runs...)
	all := 0
	for _, r := range s.log() {
		switch {
		case !strings.HasPrefix(r.Agent, "GoIceberg"): // PyIceberg does as it is told
		case r.Query["snapshots"] == "refs":
			t.Error("a load asked for the heads alone")
		case r.Query["snapshots"] == "all":
			all++
		}
	}
	if all == 0 {
		t.Error("no load asked for all snapshots, although the server's configuration asks for heads")
	}
}

func letters(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return '_'
}

// TestHiddenHistory: where a server hides all snapshots but the heads, a batch that landed without an answer
// and behind another writer's is found all the same.
func TestHiddenHistory(t *testing.T) {
	s := newStand(t, "--override", "snapshot-loading-mode=refs")
	dst := onceOnly("t")
	other := tableSpec{Catalog: "sqlite", Identifier: "s.other", First: 30, Rows: 10, Files: 1}
	s.make(thirty, other, dst)
	g := newGate(t, s.endpoint)
	j := &job{s: s, src: thirty, dst: dst, batchRows: 10, endpoint: g.URL}
	s.control("POST", "/_faults", "commit-then-500 skip=1 table="+dst.Identifier)
	ended := j.start()
	g.next(t, ended).pass()
	h := g.next(t, ended)
	h.land()
	second := &job{s: s, src: other, dst: dst, batchRows: 5} // two snapshots on top of it
	if r, _ := second.run(); r.code != 0 {
		t.Error(told([]run{r}))
	}
	close(h.release)
	g.next(t, ended).pass()
	if r := <-ended; r.code != 0 {
		t.Error(told([]run{r}))
	}
	if wrong := s.state(dst).once(40, 5); wrong != "" {
		t.Error(wrong)
	}
}
