package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
)

// onceJob moves 34 rows in seven batches of five that land as one snapshot.
func onceJob(t *testing.T, from *store) *job {
	t.Helper()
	to := newStore(t)
	to.create(t, "dst", people(), noRetries())
	j := newJob(from, to, 5)
	j.once = true
	j.checkpoint = checkpointPath(t)
	return j
}

// stagedFiles are the files that the checkpoint's side file names.
func (j *job) stagedFiles(t *testing.T) []string {
	t.Helper()
	batches, err := ckpt.Open(j.checkpoint).Staged(j.note(t).Job)
	must(t, err)
	var out []string
	for _, b := range batches {
		out = append(out, b.Paths()...)
	}
	return out
}

// All batches land as one snapshot, which stands for the first row to the last.
func TestOnce(t *testing.T) {
	from, want := source34(t)
	for _, f := range []form{one, three} {
		for _, checkpoint := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, checkpoint %v", f.name, checkpoint), func(t *testing.T) {
				j := onceJob(t, from)
				if !checkpoint {
					j.checkpoint = ""
				}
				r, err := f.run(j, t.Context(), t)
				must(t, err)
				j.finished(t, want, 1)
				equal(t, "batches", r.Batches, 1)
				equal(t, "rows", r.RowsInserted, 34)
				equal(t, "snapshots", len(r.NewSnapshots), 1)
				equal(t, "files", len(j.to.files(t, "dst")), 7)
				if _, err := os.Stat(j.checkpoint + ".staged"); checkpoint && !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the side file is there: %v", err)
				}
				_, err = f.run(j, t.Context(), t)
				if err == nil {
					t.Error("a second run was not refused")
				}
				j.finished(t, want, 1)
			})
		}
	}
}

// A job without rows makes no snapshot (case 19).
func TestOnceEmpty(t *testing.T) {
	from := newStore(t)
	from.create(t, "src", people())
	j := onceJob(t, from)
	r, err := j.one(t.Context(), t)
	must(t, err)
	equal(t, "batches", r.Batches, 0)
	equal(t, "complete", r.Complete, true)
	equal(t, "snapshots", len(j.to.snaps(t, "dst")), 0)
}

// Rows at the end none of which is left to write belong to the one snapshot too.
func TestOnceRejectedTail(t *testing.T) {
	from, want := source34(t)
	j := onceJob(t, from)
	gone := map[int]bool{}
	for i := 28; i < 34; i++ {
		gone[i] = true
	}
	stream, err := j.stream(t.Context(), t)
	must(t, err)
	_ = want
	r, err := j.writeRejecting(t, stream, gone)
	must(t, err)
	equal(t, "moved", r.RowsMoved, 34)
	equal(t, "rejected", r.RowsRejected, 6)
	snaps := j.to.snaps(t, "dst")
	equal(t, "snapshots", len(snaps), 1)
	equal(t, "source rows", snaps[0].mark["icepipe.source-rows"], "34")
	equal(t, "cursor", place(snaps[0].mark["icepipe.cursor"]), place(j.note(t).Cursor))
}

// A job that stops after k batches, in whatever way, goes on by the other form with the files that it has,
// and lands once.
func TestOnceResume(t *testing.T) {
	from, want := source34(t)
	for _, k := range []int{0, 1, 3, 6} {
		for _, f := range []form{one, three} {
			for _, shortcut := range []bool{false, true} {
				t.Run(fmt.Sprintf("broken after %d, then %s, short cut %v", k, f.name, shortcut), func(t *testing.T) {
					j := onceJob(t, from)
					j.spoil = brokenAfter(k, errPipe)
					if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
						t.Fatalf("error %v", err)
					}
					j.reset()
					equal(t, "snapshots", len(j.to.snaps(t, "dst")), 0)
					staged := j.stagedFiles(t)
					equal(t, "staged", len(staged), k)
					equal(t, "noted as done", j.note(t).Batches, 0)
					j.shortcut = shortcut
					r, err := f.run(j, t.Context(), t)
					must(t, err)
					equal(t, "resumed", r.Resumed, k > 0)
					j.finished(t, want, 1)
					files := j.to.files(t, "dst")
					for _, path := range staged {
						if !slices.Contains(files, path) {
							t.Errorf("staged file %s was not committed", path)
						}
					}
				})
			}
		}
	}
	for _, lands := range []bool{false, true} {
		for _, f := range []form{one, three} {
			t.Run(fmt.Sprintf("commit lost, landed %v, then %s", lands, f.name), func(t *testing.T) {
				j := onceJob(t, from)
				j.to.commit = failAt(0, lands, j.to)
				if _, err := other(f, []form{one, three}).run(j, t.Context(), t); !errors.Is(err, errLost) {
					t.Fatalf("error %v", err)
				}
				j.reset()
				c := j.note(t)
				if c.Pending == nil || c.Pending.Staged != 7 || len(c.Pending.Files) != 0 {
					t.Fatalf("pending %+v", c.Pending)
				}
				status, err := migrate.StatusOf(t.Context(), ckpt.Open(j.checkpoint), c, j.to.open(t, "dst"))
				must(t, err)
				says := "commit pending batch 0, 7 files"
				if lands {
					says = "note 1 batch that landed"
				}
				if !strings.Contains(status.Next, says) {
					t.Errorf("next is %q, want %q", status.Next, says)
				}
				j.shortcut = true
				_, err = f.run(j, t.Context(), t)
				must(t, err)
				j.finished(t, want, 1)
			})
		}
	}
}

// A run that is interrupted leaves what it staged.
func TestOnceInterrupted(t *testing.T) {
	from, want := source34(t)
	j := onceJob(t, from)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	j.observe = func(migrate.Event) {
		if n++; n == 4 {
			cancel()
		}
	}
	if _, err := j.one(ctx, t); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	j.reset()
	equal(t, "snapshots", len(j.to.snaps(t, "dst")), 0)
	_, err := j.three(t.Context(), t)
	must(t, err)
	j.finished(t, want, 1)
}

// Batches whose files are gone or cut short are staged again, those before them are not.
func TestOnceStagedAgain(t *testing.T) {
	from, want := source34(t)
	for _, pending := range []bool{false, true} {
		for name, spoil := range map[string]func(string) error{
			"gone":    os.Remove,
			"cut off": func(path string) error { return os.Truncate(path, 100) },
		} {
			for _, f := range []form{one, three} {
				t.Run(fmt.Sprintf("%s, pending %v, %s", name, pending, f.name), func(t *testing.T) {
					j := onceJob(t, from)
					if pending {
						j.to.commit = failAt(0, false, j.to)
						if _, err := j.one(t.Context(), t); !errors.Is(err, errLost) {
							t.Fatal(err)
						}
					} else {
						j.spoil = brokenAfter(5, errPipe)
						if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
							t.Fatal(err)
						}
					}
					j.reset()
					staged := j.stagedFiles(t)
					must(t, spoil(strings.TrimPrefix(staged[2], "file://")))
					j.shortcut = true
					r, err := f.run(j, t.Context(), t)
					if err != nil && f.name == three.name { // the scan could not know
						wantError(t, err, "the staged batches from batch 2 on are written again", "scan again with this checkpoint")
						r, err = f.run(j, t.Context(), t)
					} else if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "the staged batches from batch 2 on are written again") {
						t.Errorf("warnings %q", r.Warnings)
					}
					must(t, err)
					j.finished(t, want, 1)
					files := j.to.files(t, "dst")
					equal(t, "the first ones are kept", slices.Contains(files, staged[1]) && !slices.Contains(files, staged[2]), true)
				})
			}
		}
	}
}

// The mode is a setting of the job.
func TestOnceIsASetting(t *testing.T) {
	from, _ := source34(t)
	j := onceJob(t, from)
	j.spoil = brokenAfter(2, errPipe)
	if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
		t.Fatal(err)
	}
	j.reset()
	j.once = false
	j.refused(t, one, "settings differ", `commit: "once" then, absent now`)
	j.refused(t, three, "settings differ", `commit: "once" then, absent now`)
}
