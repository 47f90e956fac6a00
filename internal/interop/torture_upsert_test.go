//go:build interop

package interop

import "testing"

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
// batch written and not committed, or committed and not noted. The sample has each mode and each version.
func (r *rack) upserts() (out []scene) {
	for _, s := range []scene{
		{version: 2, mode: "position", form: inOne}, {version: 3, mode: "position", form: inThree, stage: 2}, {version: 1, mode: "copy", form: inOne},
		{version: 3, mode: "first", form: inThree, stage: 2},
	} {
		if !r.all {
			out = append(out, s)
			continue
		}
	}
	if !r.all {
		return out
	}
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

// testUpserts hurts upserts as the others do appends.
func testUpserts(t *testing.T, r *rack) {
	t.Run("points", func(t *testing.T) { testPoints(t, r, r.upserts()) })
	t.Run("kill", func(t *testing.T) { testKill(t, r, r.upserts()) })
	t.Run("fail", func(t *testing.T) { testFail(t, r, r.upserts()) })
	t.Run("disk", func(t *testing.T) { testFullDisk(t, r, r.upserts()) })
}
