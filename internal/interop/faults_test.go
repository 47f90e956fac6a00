//go:build interop

package interop

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// stallTimeout is the time in which a server that stalls is given up, in milliseconds.
const stallTimeout = 1500

// A fault is a way in which the server spoils commits.
type fault struct {
	name  string
	lands bool   // what was asked for is done before
	often bool   // tried in every way in CI too
	final string // what the error says of a fault that is not tried again
}

// commitFaults are all that the fixture can do to a commit.
var commitFaults = []fault{
	{name: "commit-then-400", lands: true}, {name: "commit-then-401", lands: true}, {name: "commit-then-403", lands: true},
	{name: "commit-then-404", lands: true}, {name: "commit-then-409", lands: true, often: true}, {name: "commit-then-419", lands: true},
	{name: "commit-then-429", lands: true}, {name: "commit-then-500", lands: true, often: true}, {name: "commit-then-502", lands: true},
	{name: "commit-then-503", lands: true}, {name: "commit-then-504", lands: true}, {name: "commit-then-close", lands: true, often: true},
	{name: "commit-then-stall", lands: true}, {name: "commit-then-cut", lands: true}, {name: "commit-then-twice", lands: true},
	{name: "commit-then-html", lands: true}, {name: "commit-then-replay", lands: true, often: true}, {name: "slow-commit", lands: true},
	{name: "400-before-commit"}, {name: "401-before-commit", final: "wants a token"}, {name: "403-before-commit", final: "forbids it"},
	{name: "404-before-commit", final: "does not exist|injected"}, {name: "409-before-commit", often: true}, {name: "419-before-commit", final: "wants a token"},
	{name: "429-before-commit"}, {name: "500-before-commit", often: true}, {name: "502-before-commit"}, {name: "503-before-commit"},
	{name: "504-before-commit"}, {name: "close-before-commit", often: true}, {name: "stall-before-commit"},
}

// A faultCase is a migration of three batches under one fault.
type faultCase struct {
	fault
	retries, times int // commit.retry.num-retries of the destination; times 0: for ever
	job            *job
	runs           []run
	receipts       []receipt
}

func (c *faultCase) table() string {
	return fmt.Sprintf("%s_%d_%d", strings.ReplaceAll(c.name, "-", "_"), c.retries, c.times)
}

// order is the fault as the server is told it.
func (c *faultCase) order() string {
	spec := fmt.Sprintf("%s times=%d table=f.%s", c.name, c.times, c.table())
	switch {
	case strings.Contains(c.name, "stall"):
		spec += " ms=3000" // longer than the client waits
	case strings.Contains(c.name, "slow"):
		spec += " ms=200"
	}
	return spec
}

// failing is the number of runs that fail before one succeeds.
func (c *faultCase) failing() int {
	switch {
	case c.lands:
		return 0
	case c.final != "":
		return c.times // one for each
	}
	return c.times / (c.retries + 1)
}

// TestCommitFaults: cases 70, 71, 72, 76. Whatever a server answers to a commit, and however often the
// destination's owner lets it be tried, each batch is committed once; a run that gives up says so, and the
// next goes on where it stopped.
func TestCommitFaults(t *testing.T) {
	s := newStand(t)
	whole := tortures()
	source := tableSpec{Catalog: "sqlite", Identifier: "s.src", Rows: 30, Files: 2}
	var cases []*faultCase
	list := []tableSpec{source}
	for _, f := range commitFaults {
		for _, retries := range []int{0, 5} {
			times := []int{1, 3, 0}
			if !f.lands {
				times = []int{1, 3, 2 * (retries + 1)} // the last: never in one run
			}
			for _, n := range times {
				if !whole && !f.often && (retries == 5) != (n == 3) {
					continue // in CI two of six
				}
				if strings.Contains(f.name, "stall") && (n == 0 || n > 3) || f.final != "" && n > 3 {
					continue // takes long, or shows nothing more
				}
				c := &faultCase{fault: f, retries: retries, times: n}
				dst := tableSpec{Catalog: "rest", Identifier: "f." + c.table(), Properties: map[string]string{
					"commit.retry.num-retries": fmt.Sprint(retries), "commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "20",
				}}
				c.job = &job{s: s, src: source, dst: dst, batchRows: 10, checkpoint: filepath.Join(s.dir, c.table()+".json")}
				if strings.Contains(f.name, "stall") {
					c.job.more = []string{"--dst-property", fmt.Sprint("rest.client.socket-timeout-ms=", stallTimeout)}
				}
				list, cases = append(list, dst), append(cases, c)
			}
		}
	}
	s.make(list...)
	var orders []string
	for _, c := range cases {
		orders = append(orders, c.order())
	}
	s.control("POST", "/_faults", strings.Join(orders, "\n"))

	began := time.Now()
	inPairs(cases, (*faultCase).move)
	say("%5.1f s  %d migrations under faults", time.Since(began).Seconds(), len(cases))

	s.control("DELETE", "/_faults", "")
	states, log := s.states(list[1:]...), s.log()
	for _, c := range cases {
		t.Run(c.table(), func(t *testing.T) {
			c.judge(t, states[c.job.dst.Identifier])
			met := 0
			for _, r := range log {
				if r.Table == c.job.dst.Identifier && r.Fault == c.name {
					met++
				}
			}
			if met != c.times && (c.times > 0 || met < 3) {
				t.Errorf("it met the fault %d times", met)
			}
		})
	}
}

// move runs the migration until a run succeeds, or fails in a way that the next would fail in too.
func (c *faultCase) move() {
	for len(c.runs) <= c.failing()+1 {
		r, got := c.job.run()
		c.runs, c.receipts = append(c.runs, r), append(c.receipts, got)
		if r.code == 0 {
			return
		}
	}
}

var givenUp = regexp.MustCompile(`given up after (\d+) tries \(the table's commit\.retry\.num-retries is (\d+)\)`)

// judge holds what the runs said and what is in the table against what must be.
func (c *faultCase) judge(t *testing.T, state tableState) {
	defer func() {
		if t.Failed() {
			t.Log(told(c.runs))
		}
	}()
	last := len(c.runs) - 1
	if last != c.failing() || c.runs[last].code != 0 {
		t.Errorf("%d runs, the last with code %d; want %d that fail and one that succeeds", len(c.runs), c.runs[last].code, c.failing())
	}
	if wrong := state.once(30, 3); wrong != "" {
		t.Error(wrong)
	}
	if r := c.receipts[last]; !r.Complete || r.Resumed != (last > 0) || r.RowsMoved != 30 {
		t.Errorf("receipt %+v", r)
	}
	if n := state.Properties["commit.retry.num-retries"]; n != fmt.Sprint(c.retries) || state.Properties["commit.manifest-merge.enabled"] != "" {
		t.Errorf("the table's properties are now %v", state.Properties)
	}
	for _, r := range c.runs[:last] {
		lines := r.errorLines()
		// A resume that cannot commit its pending batch says so in the error itself.
		advice := strings.Contains(r.stderr, "run the same command again to resume") || strings.Contains(r.stderr, "a run with the checkpoint commits them")
		if r.code != 1 || len(lines) != 1 || !advice {
			t.Errorf("exit code %d, want 1 with one error and how to go on", r.code)
			continue
		}
		if c.final != "" {
			if !regexp.MustCompile(c.final).MatchString(lines[0]) {
				t.Errorf("%s, want %q in it", lines[0], c.final)
			}
			continue
		}
		if m := givenUp.FindStringSubmatch(lines[0]); m == nil || m[1] != fmt.Sprint(c.retries+1) || m[2] != fmt.Sprint(c.retries) {
			t.Errorf("%s, want given up after %d tries", lines[0], c.retries+1)
		}
	}
}
