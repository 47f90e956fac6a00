//go:build interop

package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"icepipe/internal/torture"
)

// upsertModes are the ways to upsert in a scene: how rows are taken out, and which row of a key that is in several
// batches counts.
var upsertModes = map[string][]string{
	"":         nil,
	"copy":     upsertBy("--delete-mode", "copy-on-write"),
	"position": upsertBy("--delete-mode", "position"),   // deletion vectors in version 3
	"first":    upsertBy("--on-duplicate-key", "first"), // a resume must know the keys of former batches

	"once":       upsertBy("--commit", "once"),
	"first-once": upsertBy("--on-duplicate-key", "first", "--commit", "once"),
}

// once reports whether all batches of the scene land as one snapshot.
func (s scene) once() bool { return strings.HasSuffix(s.mode, "once") }

func upsertBy(more ...string) []string {
	return append([]string{"--write-mode", "upsert", "--upsert-keys", "id"}, more...)
}

// upserts are the scenes of upserts: on a destination that holds some of the keys, and where a run before died with a
// batch written and not committed, or committed and not noted. ONLY names some modes.
func upserts() (out []scene) {
	only := strings.Fields(os.Getenv("ONLY"))
	for version := 1; version <= 3; version++ {
		for _, mode := range []string{"copy", "position", "first", "once", "first-once"} {
			if version == 1 && mode == "position" || len(only) > 0 && !slices.Contains(only, mode) {
				continue // it has none
			}
			for _, s := range []scene{
				{form: inOne}, {form: inThree, stage: 2},
				{form: inOne, before: "lake.sent:2"}, {form: inThree, stage: 2, before: "migrate.pending-noted:2"},
			} {
				s.version, s.mode = version, mode
				if s.before != "" && s.once() {
					s.before = strings.TrimSuffix(s.before, "2") + "1"
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// The scenes of the sample.
var (
	positions = scene{version: 2, mode: "position", form: inOne}
	vectors   = scene{version: 3, mode: "position", form: inThree, stage: 2}
	copies    = scene{version: 1, mode: "copy", form: inOne}
	firsts    = scene{version: 3, mode: "first", form: inThree, stage: 2}
	onces     = scene{version: 2, mode: "first-once", form: inOne}
)

// upsertSample are the points at which runs of the sample die: those of a commit and what is beside it. Points that
// are passed more than once are meant the second time.
var upsertSample = map[scene][]string{
	positions: {"migrate.arranged", "datafile.closed", "migrate.pending-noted", "lake.deletes-written", "lake.sent", "migrate.marks-found"},
	vectors:   {"lake.deletes-written", "lake.staged", "lake.sent", "migrate.landed-noted"},
	copies:    {"datafile.written", "lake.deletes-written", "lake.sent"},
	firsts:    {"migrate.pending-noted", "lake.sent", "migrate.landed-noted"},
	onces:     {"datafile.written", "migrate.pending-noted", "lake.sent"},
}

// testUpserts hurts upserts as the others do appends; in the sample, a few.
func testUpserts(t *testing.T, r *rack) {
	points, kills, fails, undone := upserts(), upserts(), upserts(), upserts()
	if !r.all {
		points, kills, fails = []scene{positions, vectors, copies, firsts, onces}, []scene{vectors}, []scene{positions}
		undone = []scene{positions, {version: 3, mode: "copy", form: inOne, before: "lake.sent:2"}}
	}
	t.Run("points", func(t *testing.T) { testPoints(t, r, points) })
	t.Run("undo", func(t *testing.T) {
		each(t, r, undone, r.undo)
		say("torture: %d upserts were undone and redone", len(undone))
	})
	t.Run("kill", func(t *testing.T) { testKill(t, r, kills) })
	t.Run("fail", func(t *testing.T) { testFail(t, r, fails) })
	if r.all {
		t.Run("disk", func(t *testing.T) { testFullDisk(t, r, upserts()) })
	}
}

// undo takes back an upsert, that is complete or that stopped in its middle, and puts it back; the other form then
// finishes what is not complete. The witness reads the rows each time. A verification of the job's files alone is
// refused.
func (r *rack) undo(w *witness, s scene) error {
	dir, err := r.scene(w, s)
	if err != nil {
		return err
	}
	if s.before == "" {
		runs, _, err := r.hurt(r.programs(s, r.bin, dir), unhurt, torture.Fault{})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(runs, func(r run) bool { return r.code != 0 }) {
			return fmt.Errorf("the job failed:\n%s", told(runs))
		}
	}
	checkpoint := filepath.Join(dir, "job.json")
	do := func(code int, says string, args ...string) error {
		runs, _, err := r.hurt([]program{{args: append(args, "--checkpoint", checkpoint), dir: dir}}, unhurt, torture.Fault{})
		if err == nil && (runs[0].code != code || !strings.Contains(runs[0].stderr, says)) {
			err = fmt.Errorf("want exit %d and %q:\n%s", code, says, told(runs))
		}
		return err
	}
	migrate := filepath.Join(r.bin, "ice-migrate")
	left, err := w.ask("state", dir)
	if err != nil {
		return err
	}
	if err := do(0, "", migrate, "undo"); err != nil {
		return err
	}
	if err := do(0, "", migrate, "clean", "--older-than", "0s", "--yes"); err != nil { // what was undone is kept for the redo
		return err
	}
	undone, err := w.ask("state", dir)
	if err != nil || undone.Batches != 0 || undone.Noted != "undone" {
		return fmt.Errorf("undone: %+v, %w", undone, err)
	}
	if err := do(0, "", migrate, "redo"); err != nil {
		return err
	}
	redone, err := w.ask("state", dir)
	if err != nil || redone.Noted != left.Noted || redone.Batches < left.Batches {
		return fmt.Errorf("redone: %+v after %+v, %w", redone, left, err)
	}
	if err := r.finish(w, s.other(), dir, redone.Noted); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	verify := []string{filepath.Join(r.bin, "ice-verify")}
	for _, side := range [][3]string{{"src", r.source, "changes"}, {"dst", dir, "rows"}} {
		at := "--" + side[0] + "-"
		verify = append(verify, at+"catalog", "sqlite", at+"catalog-name", side[0], at+"db-path", filepath.Join(side[1], side[0]+".db"), at+"namespace", "lab", at+"table", side[2])
	}
	if err := do(1, "upserted: rows that were there already are in no file of it", verify...); err != nil {
		return err
	}
	return r.keep(dir, 41)
}
