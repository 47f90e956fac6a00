//go:build interop

package interop

import (
	"fmt"
	"slices"
	"testing"

	"icepipe/internal/crash"
	"icepipe/internal/torture"
)

// A passage is a crash point in a scene, with all the times that it is passed.
type passage struct {
	scene
	point string
}

func (p passage) String() string { return fmt.Sprintf("%s, %s", p.scene, p.point) }

// testPoints lets a run die at each crash point, and at each time that it is passed, and lets the
// other form finish. A point that is never passed is a failure.
func testPoints(t *testing.T, r *rack, scenes []scene) {
	var trials []passage
	for _, s := range scenes {
		if s.before != "" || s.form == inThree && s.stage != 2 {
			continue
		}
		for _, point := range crash.Points {
			if s.mode == "" && point == "lake.deletes-written" {
				continue // no rows are taken out
			}
			if s.mode != "once" && point == "migrate.thinned" {
				continue // no staged row comes in the place of another
			}
			if s.mode != "" && point == "migrate.redone" {
				continue // the pending batch of an upsert is written again: what it changes hangs on the head
			}
			trials = append(trials, passage{s, point})
		}
	}
	if !r.all {
		trials = slices.DeleteFunc(trials, func(p passage) bool { return p.mode != "" && !slices.Contains(upsertSample[p.scene], p.point) })
	}
	before := r.trials.Load()
	each(t, r, trials, r.pass)
	say("torture: %d runs died at %d crash points, or passed them", r.trials.Load()-before, len(crash.Points))
}

// once are the points that a run passes once.
var once = []string{"migrate.begun", "lake.schema-changed", "migrate.arranged", "migrate.marks-found", "migrate.all-written", "migrate.completed"}

// pass lets runs die at a point, the first time that it is passed, the second time, and so on.
func (r *rack) pass(w *witness, p passage) error {
	before := ""
	if slices.Contains([]string{"migrate.marks-found", "migrate.redone"}, p.point) { // of a resume
		before = "migrate.pending-noted:2"
		if p.once() {
			before = "migrate.pending-noted:1"
		}
	}
	p.before = before
	n := 1
	if p.mode != "" && !r.all && !p.once() && !slices.Contains(once, p.point) {
		n = 2
	}
	for ; ; n++ {
		fired, err := r.crash(w, kill{scene: p.scene, point: fmt.Sprintf("%s:%d", p.point, n)})
		switch {
		case err != nil:
			return fmt.Errorf("passed %d times: %w", n, err)
		case !fired && (n == 1 || p.mode != "" && !r.all):
			return fmt.Errorf("it is not passed %d times", n)
		case !fired || !r.all && (p.form == inThree || p.mode != ""): // the sample goes on with one form, of appends
			return nil
		}
	}
}

// crash makes a trial with a crash point; fired tells whether it was passed that often.
func (r *rack) crash(w *witness, k kill) (fired bool, err error) {
	dir, err := r.scene(w, k.scene)
	if err != nil {
		return false, err
	}
	runs, _, err := r.hurt(r.programs(k.scene, r.armed, dir, "ICEPIPE_CRASH="+k.point), unhurt, torture.Fault{})
	if err != nil {
		return false, err
	}
	last := runs[len(runs)-1]
	if fired = last.code == -1; !fired && last.code != 0 {
		return false, fmt.Errorf("it failed:\n%s", told(runs))
	}
	return fired, r.mend(w, k.scene, dir, runs)
}
