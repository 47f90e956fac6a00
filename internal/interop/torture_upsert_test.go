//go:build interop

package interop

import (
	"maps"
	"slices"
	"testing"
)

// upsertModes are the ways to upsert in a scene: how rows are taken out, and which row of a key that is in several
// batches counts.
var upsertModes = map[string][]string{
	"":         nil,
	"copy":     upsertBy("--delete-mode", "copy-on-write"),
	"position": upsertBy("--delete-mode", "position"),   // deletion vectors in version 3
	"first":    upsertBy("--on-duplicate-key", "first"), // a resume must know the keys of former batches
}

func upsertBy(more ...string) []string {
	return append([]string{"--write-mode", "upsert", "--upsert-keys", "id"}, more...)
}

// upserts are the scenes of upserts: on a destination that holds some of the keys, and where a run before died with a
// batch written and not committed, or committed and not noted.
func upserts() (out []scene) {
	for version := 1; version <= 3; version++ {
		for _, mode := range []string{"copy", "position", "first"} {
			if version == 1 && mode == "position" {
				continue // it has none
			}
			for _, s := range []scene{
				{form: inOne}, {form: inThree, stage: 2},
				{form: inOne, before: "lake.sent:2"}, {form: inThree, stage: 2, before: "migrate.pending-noted:2"},
			} {
				s.version, s.mode = version, mode
				out = append(out, s)
			}
		}
	}
	return out
}

// The scenes of the sample, and the points at which runs of each die there: a commit and what is beside it. Points that
// are passed more than once are meant the second time.
var (
	positions    = scene{version: 2, mode: "position", form: inOne}
	vectors      = scene{version: 3, mode: "position", form: inThree, stage: 2}
	upsertSample = map[scene][]string{
		positions:                               {"migrate.arranged", "datafile.closed", "migrate.pending-noted", "lake.deletes-written", "lake.sent", "migrate.marks-found"},
		vectors:                                 {"lake.deletes-written", "lake.staged", "lake.sent", "migrate.landed-noted"},
		{version: 1, mode: "copy", form: inOne}: {"datafile.written", "lake.deletes-written", "lake.sent"},
		{version: 3, mode: "first", form: inThree, stage: 2}: {"migrate.pending-noted", "lake.sent", "migrate.landed-noted"},
	}
)

// testUpserts hurts upserts as the others do appends; in the sample, a few.
func testUpserts(t *testing.T, r *rack) {
	points, kills, fails := upserts(), upserts(), upserts()
	if !r.all {
		points, kills, fails = slices.Collect(maps.Keys(upsertSample)), []scene{vectors}, []scene{positions}
	}
	t.Run("points", func(t *testing.T) { testPoints(t, r, points) })
	t.Run("kill", func(t *testing.T) { testKill(t, r, kills) })
	t.Run("fail", func(t *testing.T) { testFail(t, r, fails) })
	if r.all {
		t.Run("disk", func(t *testing.T) { testFullDisk(t, r, upserts()) })
	}
}
