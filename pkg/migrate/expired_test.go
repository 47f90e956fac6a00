package migrate_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
)

// compact writes all rows of a table anew, as one file in place of the others.
func (s *store) compact(t *testing.T, name string) {
	t.Helper()
	tbl := s.load(t, name)
	schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	must(t, err)
	record := fromJSON(t, memory.DefaultAllocator, schema, s.rows(t, name))
	defer record.Release()
	all := array.NewTableFromRecords(schema, []arrow.RecordBatch{record})
	defer all.Release()
	tx := tbl.NewTransaction()
	must(t, tx.OverwriteTable(t.Context(), all, 1000, nil))
	_, err = tx.Commit(t.Context())
	must(t, err)
}

// rows are all rows of a table without deletes, also where snapshots have expired.
func (s *store) rows(t *testing.T, name string) []string {
	t.Helper()
	out := []string{}
	for _, path := range s.files(t, name) {
		out = append(out, fileRows(t, path)...)
	}
	slices.Sort(out)
	return out
}

// mark appends a row in a snapshot with the given marks.
func (s *store) mark(t *testing.T, name, object string, marks iceberg.Properties) {
	t.Helper()
	tbl := s.load(t, name)
	schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	must(t, err)
	record := fromJSON(t, memory.DefaultAllocator, schema, []string{object})
	defer record.Release()
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{record})
	must(t, err)
	defer reader.Release()
	_, err = tbl.Append(t.Context(), reader, marks)
	must(t, err)
}

const theirs = `{"id":-1,"name":"theirs"}`

// stoppedAfter is a job of 34 rows by five that stopped after n batches, none pending.
func stoppedAfter(t *testing.T, n int) (*job, []string) {
	t.Helper()
	from, want := source34(t)
	to := newStore(t)
	to.create(t, "dst", people(), noRetries())
	j := newJob(from, to, 5)
	j.checkpoint = checkpointPath(t)
	j.spoil = brokenAfter(n, errPipe)
	if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
		t.Fatalf("error %v", err)
	}
	j.reset()
	return j, want
}

// Between a crash and the resume others append, compact and expire. What shows that the job's batches are
// still in the branch lets the job go on; where nothing shows it the user is asked; where the branch
// was rolled back for certain the flag does not help.
func TestBetweenCrashAndResume(t *testing.T) {
	tests := []struct {
		name    string
		between func(*testing.T, *job)
		refusal string // without the flag; "" where the job goes on
		always  bool   // refused with the flag too
		others  int    // rows of others
	}{
		{"expired up to the last batch", func(t *testing.T, j *job) { j.to.expire(t, "dst") }, "", false, 0},
		{"expired behind an append", func(t *testing.T, j *job) {
			j.to.insert(t, "dst", theirs)
			j.to.expire(t, "dst")
		}, "", false, 1},
		{"expired with the last batch, whose file is there", func(t *testing.T, j *job) {
			j.to.insert(t, "dst", theirs)
			j.to.insert(t, "dst", theirs)
			j.to.expire(t, "dst")
		}, "", false, 2},
		{"appended and compacted", func(t *testing.T, j *job) {
			j.to.insert(t, "dst", theirs)
			j.to.compact(t, "dst")
		}, "", false, 1},
		{"compacted and expired", func(t *testing.T, j *job) {
			j.to.compact(t, "dst")
			j.to.insert(t, "dst", theirs)
			j.to.expire(t, "dst")
		}, "which nothing tells apart; if nothing was rolled back go on with --accept-expired-history, else delete the ", false, 1},
		{"rolled back", func(t *testing.T, j *job) { j.to.rollBack(t, "dst") }, "the destination was rolled back", true, 0},
		{"rolled back, then appended and expired", func(t *testing.T, j *job) {
			j.to.rollBack(t, "dst")
			j.to.insert(t, "dst", theirs)
			j.to.insert(t, "dst", theirs)
			j.to.expire(t, "dst")
		}, "or rolled back, which nothing tells apart", false, -1},
		{"rolled back, the batch held by a tag, and expired", func(t *testing.T, j *job) {
			j.to.update(t, "dst", table.NewSetSnapshotRefUpdate("held", j.to.load(t, "dst").CurrentSnapshot().SnapshotID, table.TagRef, 0, 0, 0))
			j.to.rollBack(t, "dst")
			j.to.expire(t, "dst")
		}, "the destination was rolled back", true, 0},
		{"switched to a branch from before", func(t *testing.T, j *job) {
			head := j.to.load(t, "dst").CurrentSnapshot()
			j.to.branch(t, "dst", "old")
			j.to.update(t, "dst", table.NewSetSnapshotRefUpdate("main", *head.ParentSnapshotID, table.BranchRef, 0, 0, 0))
		}, "the destination was rolled back", true, 0},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j, want := stoppedAfter(t, 3)
			test.between(t, j)
			f := []form{one, three}[i%2]
			if test.refusal != "" {
				j.refused(t, f, test.refusal, j.checkpoint)
				_, err := j.migrator(t).DryRun(t.Context())
				wantError(t, err, test.refusal)
				s, err := migrate.StatusOf(t.Context(), ckpt.Open(j.checkpoint), j.note(t), j.to.open(t, "dst"))
				must(t, err)
				if !strings.HasPrefix(s.Next, "refuse: ") || !strings.Contains(s.Next, test.refusal) {
					t.Errorf("status: next run %q", s.Next)
				}
				j.expired = true
			}
			if test.always {
				j.refused(t, f, test.refusal)
				return
			}
			if test.others < 0 {
				return // the flag would be a lie
			}
			_, err := f.run(j, t.Context(), t)
			must(t, err)
			for range test.others {
				want = append(want, theirs)
			}
			slices.Sort(want)
			equal(t, "rows", j.to.rows(t, "dst"), want)
			equal(t, "state", j.note(t).State, ckpt.Complete)
			equal(t, "batches", j.note(t).Batches, 7)
		})
	}
}

// A checkpoint that is several batches behind goes on although the snapshots between have expired: a
// batch that is there shows that those before it are.
func TestOlderCheckpointAfterExpiry(t *testing.T) {
	j, want := stoppedAfter(t, 1)
	older, err := os.ReadFile(j.checkpoint)
	must(t, err)
	j.spoil = brokenAfter(4, errPipe)
	if _, err := j.three(t.Context(), t); !errors.Is(err, errPipe) {
		t.Fatal(err)
	}
	j.reset()
	j.to.expire(t, "dst")
	must(t, os.WriteFile(j.checkpoint, older, 0o600))
	r, err := j.one(t.Context(), t)
	must(t, err)
	equal(t, "rows", j.to.rows(t, "dst"), want)
	equal(t, "batches", j.note(t).Batches, 7)
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "the snapshots of batches 1 to 2 have expired") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// In a history that is unbroken a batch that is missing before one that is there was taken out.
func TestGapInTheHistory(t *testing.T) {
	j, _ := stoppedAfter(t, 1)
	c := j.note(t)
	j.to.mark(t, "dst", theirs, iceberg.Properties{
		"iceberg-ops.migration-job": c.Job, "iceberg-ops.migration-batch": "2",
		"icepipe.cursor-from": "1/1/0", "icepipe.cursor": "1/1/5", "icepipe.source-rows": "5",
	})
	for _, f := range []form{one, three} {
		j.refused(t, f, j.checkpoint, "holds rows 1/1/0 to 1/1/5 of the job", "snapshots between were taken out", "dest_snapshot_before is none")
	}
}

// Of a pending batch whose base has expired, and whose files no manifest names, nobody can tell whether it
// landed. Where a manifest names them it did.
func TestPendingAfterExpiry(t *testing.T) {
	for _, lands := range []bool{false, true} {
		t.Run(fmt.Sprintf("landed %v", lands), func(t *testing.T) {
			from, want := source34(t)
			to := newStore(t)
			to.create(t, "dst", people(), noRetries())
			j := newJob(from, to, 5)
			j.checkpoint = checkpointPath(t)
			to.commit = failAt(2, lands, to)
			_, err := j.one(t.Context(), t)
			wantError(t, err, errLost.Error())
			j.reset()
			to.insert(t, "dst", theirs)
			to.insert(t, "dst", theirs)
			to.expire(t, "dst")
			if !lands {
				j.refused(t, three, j.checkpoint, "pending batch 2: cannot tell whether the commit landed", "have expired", "look for its files in the destination", "empty it (dest_snapshot_before is none")
				return
			}
			_, err = j.three(t.Context(), t)
			must(t, err)
			want = append(want, theirs, theirs)
			slices.Sort(want)
			equal(t, "rows", to.rows(t, "dst"), want)
		})
	}
}
