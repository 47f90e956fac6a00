//go:build interop

package interop

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"icepipe/internal/crash"
	"icepipe/internal/torture"
)

// A passage is a crash point in a scene, with all the times that it is passed.
type passage struct {
	version int
	form    form
	point   string
}

func (p passage) String() string { return fmt.Sprintf("v%d, %s, %s", p.version, p.form, p.point) }

// testPoints lets a run die at each crash point, and at each time that it is passed, and lets the
// other form finish. A point that is never passed is a failure.
func testPoints(t *testing.T, r *rack) {
	var trials []passage
	for _, s := range r.scenes() {
		if s.before != "" || s.form == inThree && s.stage != 2 {
			continue
		}
		for _, point := range crash.Points {
			if point == "lake.deletes-written" {
				continue // of upserts, which the scenes are not
			}
			trials = append(trials, passage{s.version, s.form, point})
		}
	}
	before := r.trials.Load()
	each(t, r, trials, r.pass)
	say("torture: %d runs died at %d crash points, or passed them", r.trials.Load()-before, len(crash.Points))
}

// pass lets runs die at a point, the first time that it is passed, the second time, and so on.
func (r *rack) pass(w *witness, p passage) error {
	before := ""
	if slices.Contains([]string{"migrate.marks-found", "migrate.redone"}, p.point) { // of a resume
		before = "migrate.pending-noted:2"
	}
	for n := 1; ; n++ {
		fired, err := r.crash(w, kill{scene: scene{version: p.version, form: p.form, before: before}, point: fmt.Sprintf("%s:%d", p.point, n)})
		switch {
		case err != nil:
			return fmt.Errorf("passed %d times: %w", n, err)
		case !fired && n == 1:
			return errors.New("it is never passed")
		case !fired || !r.all && p.form == inThree: // the sample goes on with one form
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
	runs, _, err := r.hurt(r.programs(k.form, r.armed, dir, "ICEPIPE_CRASH="+k.point), unhurt, torture.Fault{})
	if err != nil {
		return false, err
	}
	last := runs[len(runs)-1]
	if fired = last.code == -1; !fired && last.code != 0 {
		return false, fmt.Errorf("it failed:\n%s", told(runs))
	}
	return fired, r.mend(w, k.form, dir, runs)
}
