package migrate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/arrowipc"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// begun is a job of nine rows by four that stopped after its first batch, in a destination that had a
// snapshot before.
func begun(t *testing.T) *job {
	t.Helper()
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 9)...)
	to.create(t, "dst", people())
	to.insert(t, "dst", `{"id":-1,"name":"old"}`)
	j := newJob(from, to, 4)
	j.checkpoint = checkpointPath(t)
	j.spoil = brokenAfter(1, errPipe)
	if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
		t.Fatalf("error %v", err)
	}
	j.reset()
	return j
}

// refused holds a run to be refused with an error that says texts, and to change nothing.
func (j *job) refused(t *testing.T, f form, texts ...string) {
	t.Helper()
	checkpoint, err := os.ReadFile(j.checkpoint)
	must(t, err)
	before := j.to.load(t, j.dst).MetadataLocation()
	files := len(dataFiles(t, j.to.load(t, j.dst)))
	_, err = f.run(j, context.Background(), t)
	wantError(t, err, texts...)
	equal(t, "metadata of the destination", j.to.load(t, j.dst).MetadataLocation(), before)
	equal(t, "files of the destination", len(dataFiles(t, j.to.load(t, j.dst))), files)
	now, err := os.ReadFile(j.checkpoint)
	must(t, err)
	if !bytes.Equal(now, checkpoint) {
		t.Error("the checkpoint changed")
	}
}

// A resume is refused in one line that says why and, as batches were committed, which snapshot to roll
// the destination back to (case 83: the source snapshot expired). Nothing is changed by it.
func TestRefusedResume(t *testing.T) {
	tests := []struct {
		name   string
		change func(*testing.T, *job)
		one    string // what ice-migrate says, "" where it is not refused
		three  string
	}{
		{"completed", func(t *testing.T, j *job) {
			_, err := j.one(t.Context(), t)
			must(t, err)
		}, "completed migration", "completed migration"},
		{"undone", func(t *testing.T, j *job) {
			c := j.note(t)
			c.State = ckpt.Undone
			must(t, ckpt.Open(j.checkpoint).Save(c))
		}, "undone", "undone"},
		{"batch rows", func(_ *testing.T, j *job) { j.scan.BatchRows = 5 }, "batch_rows: 4 then, 5 now", "batch_rows: 4 then, 5 now"},
		{"selection", func(_ *testing.T, j *job) { j.scan.Select = []string{"id", "name"} }, `select: absent then, ["id","name"] now`, `select: absent then`},
		{"mapping", func(_ *testing.T, j *job) {
			j.reconcile.Mapping = []plan.Rename{{From: "id", To: "name"}, {From: "name", To: "id"}}
		},
			"reconciler.column_mapping", "reconcile: "},
		{"policy", func(_ *testing.T, j *job) { j.reconcile.MissingInSource = plan.PolicyNull },
			`reconciler.on_missing_in_source: "error" then, "null" now`, `reconciler.on_missing_in_source: "error" then, "null" now`},
		{"branch", func(t *testing.T, j *job) {
			j.to.branch(t, "dst", "dev")
			j.branch = "dev"
		}, `branch: "main" then, "dev" now`, `branch: "main" then, "dev" now`},
		{"source ref", func(_ *testing.T, j *job) { j.scan.Pin = migrate.Pin{Ref: "main"} },
			`source_ref: absent then, "main" now`, `source_ref: absent then, "main" now`},
		{"source moved on", func(t *testing.T, j *job) { j.from.insert(t, "src", ids(50, 1)...) }, "", `; go on with the same: ice-scan --checkpoint "`},
		{"source snapshot asked for", func(t *testing.T, j *job) {
			j.from.insert(t, "src", ids(50, 1)...)
			id := j.from.load(t, "src").CurrentSnapshot().SnapshotID
			j.scan.Pin = migrate.Pin{Snapshot: &id}
		}, "was asked for", "source_snapshot_id: "},
		{"source snapshot expired", func(t *testing.T, j *job) {
			j.from.insert(t, "src", ids(50, 1)...)
			j.from.expire(t, "src")
		}, "has expired", "source_snapshot_id: "},
		{"source made anew", func(t *testing.T, j *job) {
			must(t, j.from.DropTable(t.Context(), table.Identifier{"ns", "src"}))
			j.from.create(t, "src", people())
			j.from.insert(t, "src", ids(0, 9)...)
		}, "the source was dropped and made anew (UUID ", "the source was dropped and made anew (UUID "},
		{"another source", func(t *testing.T, j *job) {
			j.from.create(t, "other", people())
			j.src = "other"
		}, `table "ns.other" is another one`, `table "ns.other" is another one`},
		{"destination rolled back", func(t *testing.T, j *job) { j.to.rollBack(t, "dst") }, "the destination was rolled back: the history of its branch \"main\" no longer holds snapshot", "(0 batches of the job are in the destination's present history)"},
		{"destination made anew", func(t *testing.T, j *job) {
			must(t, j.to.DropTable(t.Context(), table.Identifier{"ns", "dst"}))
			j.to.create(t, "dst", people())
		}, "the job's rows are not in it; reset the checkpoint (delete the file ", "the destination was dropped and made anew (UUID "},
		{"damaged", func(t *testing.T, j *job) { must(t, os.WriteFile(j.checkpoint, []byte(`{"format":`), 0o600)) }, "corrupt", "corrupt"},
	}
	for _, test := range tests {
		for _, f := range []form{one, three} {
			said := test.one
			if f.name == three.name {
				said = test.three
			}
			if said == "" {
				continue
			}
			t.Run(test.name+", "+f.name, func(t *testing.T) {
				j := begun(t)
				before := *j.note(t).DestSnapshotBefore
				test.change(t, j)
				texts := []string{said}
				if test.name != "undone" && test.name != "damaged" && said != "reconcile: " {
					texts = append(texts, j.checkpoint)
					if !strings.HasPrefix(test.name, "destination") {
						texts = append(texts, "dest_snapshot_before, snapshot "+before, " in the destination: roll it back")
					}
				}
				j.refused(t, f, texts...)
				if f.name == one.name && test.name != "completed" {
					_, err := j.migrator(t).DryRun(t.Context())
					wantError(t, err, said)
				}
			})
		}
	}
}

// The hint at what is in the destination counts what is there now, and fits a table that was empty.
func TestUndoHint(t *testing.T) {
	from, _ := source34(t)
	j := pending(t, from)
	j.scan.BatchRows = 6
	j.refused(t, one, "2 batches, and perhaps a pending one, are in the destination: empty it (dest_snapshot_before is none: the table had no snapshot) first")
	var text bytes.Buffer
	s, err := migrate.StatusOf(t.Context(), ckpt.Open(j.checkpoint), j.note(t), j.to.open(t, "dst"))
	must(t, err)
	must(t, s.WriteText(&text))
	if !strings.Contains(text.String(), "none: the table had no snapshot") {
		t.Errorf("text %s", &text)
	}
	j.to.rollBack(t, "dst")
	j.scan.BatchRows = 5
	j.refused(t, three, "rolled back", "1 batch, and perhaps a pending one, are in the destination")
}

// expire takes all snapshots but the current one out of a table.
func (s *store) expire(t *testing.T, name string) {
	t.Helper()
	tx := s.load(t, name).NewTransaction()
	must(t, tx.ExpireSnapshots(table.WithOlderThan(0), table.WithRetainLast(1), table.WithPostCommit(false)))
	_, err := tx.Commit(t.Context())
	must(t, err)
}

// rollBack takes a table back to the snapshot before the current one.
func (s *store) rollBack(t *testing.T, name string) {
	t.Helper()
	tbl := s.load(t, name)
	tx := tbl.NewTransaction()
	must(t, tx.RollbackToSnapshot(*tbl.CurrentSnapshot().ParentSnapshotID))
	_, err := tx.Commit(t.Context())
	must(t, err)
}

func TestRefusedStreams(t *testing.T) {
	j := begun(t)
	t.Run("locked", func(t *testing.T) {
		unlock, err := ckpt.Open(j.checkpoint).Lock()
		must(t, err)
		defer unlock()
		for _, f := range []form{one, three} {
			_, err := f.run(j, t.Context(), t)
			if !errors.Is(err, ckpt.ErrLocked) {
				t.Errorf("error %v", err)
			}
			wantError(t, err, j.checkpoint, "locked by process")
		}
	})
	t.Run("trial", func(t *testing.T) {
		k := *j
		k.scan.Limit = 3
		k.refused(t, one, "a trial of 3 rows takes no checkpoint")
		k.refused(t, three, "a trial stream (--limit) takes no checkpoint")
	})
	t.Run("gap", func(t *testing.T) {
		k := begun(t)
		older, err := os.ReadFile(k.checkpoint)
		must(t, err)
		k.spoil = brokenAfter(2, errPipe)
		if _, err := k.three(t.Context(), t); !errors.Is(err, errPipe) {
			t.Fatal(err)
		}
		k.reset()
		k.shortcut = true
		stream, err := k.stream(t.Context(), t) // from the second batch on
		must(t, err)
		k.to.rollBack(t, "dst")
		must(t, os.WriteFile(k.checkpoint, older, 0o600))
		_, err = k.writeStream(t.Context(), t, stream)
		wantError(t, err, k.checkpoint, "starts at cursor 0/0/8", "missing from 0/0/4", "scan again")
		must(t, os.Remove(k.checkpoint))
		_, err = k.writeStream(t.Context(), t, stream)
		wantError(t, err, "starts at cursor 0/0/8", "without a checkpoint")
	})
	t.Run("not reconciled", func(t *testing.T) {
		in, err := migrate.Scan(t.Context(), j.from.open(t, "src"), migrate.ScanOptions{})
		must(t, err)
		_, err = migrate.Write(t.Context(), in, j.to.open(t, "dst"), migrate.WriteOptions{})
		wantError(t, err, "ice-reconcile")
	})
	t.Run("another destination", func(t *testing.T) {
		j.to.create(t, "other", people())
		k := *j
		stream, err := k.stream(t.Context(), t)
		must(t, err)
		k.dst = "other"
		_, err = k.writeStream(t.Context(), t, stream)
		wantError(t, err, "ns.dst", "ns.other")
	})
	t.Run("no such branch", func(t *testing.T) {
		k := *j
		k.branch = "dev"
		k.checkpoint = checkpointPath(t)
		for _, f := range []form{one, three} {
			_, err := f.run(&k, t.Context(), t)
			wantError(t, err, `no branch "dev"`)
		}
	})
}

// A table is not moved into itself.
func TestRefusedSameTable(t *testing.T) {
	s := newStore(t)
	s.create(t, "src", people())
	s.insert(t, "src", ids(0, 3)...)
	j := newJob(s, s, 2)
	j.dst = "src"
	for _, f := range []form{one, three} {
		_, err := f.run(j, t.Context(), t)
		wantError(t, err, "source and destination are the same table (ns.src", "name another destination")
	}
	_, err := j.migrator(t).DryRun(t.Context())
	wantError(t, err, "the same table")
	equal(t, "rows", s.content(t, "src"), ids(0, 3))
}

// A destination whose folders cannot be written is refused by the dry run and before the first write.
func TestRefusedFolder(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 3)...)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	to.create(t, "dst", numbers(), catalog.WithProperties(iceberg.Properties{"write.data.path": file + "/data"}))
	j := newJob(from, to, 2)
	j.checkpoint, j.reconcile.MissingInDest = checkpointPath(t), plan.PolicyAutoAdd
	at := to.load(t, "dst").MetadataLocation()
	_, err := j.migrator(t).DryRun(t.Context())
	wantError(t, err, `table "ns.dst": its data folder`, file, "is not a folder")
	for _, f := range []form{one, three} {
		_, err := f.run(j, t.Context(), t)
		wantError(t, err, "its data folder", "is not a folder")
	}
	equal(t, "metadata", to.load(t, "dst").MetadataLocation(), at)
	if _, err := os.Stat(j.checkpoint); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("checkpoint: %v", err)
	}
}

// foreign is the stream of another program: record batches of so many rows each.
func foreign(t *testing.T, sizes ...int) rows.Stream {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String}}, nil)
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	at := 0
	for _, n := range sizes {
		record := fromJSON(t, memory.DefaultAllocator, schema, ids(at, n))
		must(t, w.Write(record))
		record.Release()
		at += n
	}
	must(t, w.Close())
	in, err := arrowipc.Read(&b, arrowipc.WithUnsealedOK())
	must(t, err)
	return in
}

// A stream of another program is cut into batches, whatever its record batches are, and takes no checkpoint.
func TestForeignStream(t *testing.T) {
	for _, sizes := range [][]int{{10}, {3, 3, 4}, {1, 9}, {0, 4, 0, 6, 0}, {4, 4, 2}} {
		for _, n := range thin[int64](1, 3, 4, 10, 11) {
			t.Run(fmt.Sprintf("%v by %d", sizes, n), func(t *testing.T) {
				to := newStore(t)
				to.create(t, "dst", people())
				dst := to.open(t, "dst")
				in, err := migrate.Reconcile(t.Context(), migrate.Cut(foreign(t, sizes...), n), dst, plan.Options{}, nil)
				must(t, err)
				r, err := migrate.Write(t.Context(), in, dst, migrate.WriteOptions{Jobs: 1})
				must(t, err)
				snaps := to.snaps(t, "dst")
				for i, s := range snaps {
					first := i * int(n)
					equal(t, fmt.Sprintf("batch %d", i), s.rows, ids(first, min(int(n), 10-first)))
				}
				equal(t, "batches", len(snaps), (10+n-1)/n)
				equal(t, "rows moved", r.RowsMoved, 10)
				equal(t, "complete", r.Complete, true)
			})
		}
	}
	to := newStore(t)
	to.create(t, "dst", people())
	dst := to.open(t, "dst")
	in, err := migrate.Reconcile(t.Context(), migrate.Cut(foreign(t, 5), 0), dst, plan.Options{}, nil)
	must(t, err)
	equal(t, "batch rows unless said", in.Header.BatchRows, migrate.DefaultBatchRows)
	path := checkpointPath(t)
	_, err = migrate.Write(t.Context(), in, dst, migrate.WriteOptions{Checkpoint: ckpt.Open(path)})
	wantError(t, err, "another program", "no checkpoint")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || strings.TrimSpace(path) == "" {
		t.Errorf("checkpoint: %v", err)
	}
}
