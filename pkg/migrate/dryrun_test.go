package migrate_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// A dry run makes the checks, counts what is to come, and changes nothing (case 91).
func TestDryRun(t *testing.T) {
	from, want := source34(t)
	to := newStore(t)
	to.create(t, "dst", numbers())
	j := newJob(from, to, 5)
	j.checkpoint, j.reconcile.MissingInDest = checkpointPath(t), plan.PolicyAutoAdd
	at := to.load(t, "dst").MetadataLocation()
	v, err := j.migrator(t).DryRun(t.Context())
	must(t, err)
	equal(t, "rows", v.Rows >= int64(len(want)), true)
	equal(t, "files", v.Files, 3)
	equal(t, "commits", v.Commits, (v.Rows+4)/5)
	equal(t, "batch rows", v.BatchRows, 5)
	equal(t, "resumes", v.Resumes, false)
	equal(t, "changes", v.SchemaChanges, []string{"add column name string"})
	var text bytes.Buffer
	must(t, v.WriteText(&text))
	if !strings.Contains(text.String(), "nothing: this was a dry run") {
		t.Errorf("text %s", &text)
	}
	equal(t, "metadata", to.load(t, "dst").MetadataLocation(), at)
	entries, err := os.ReadDir(strings.TrimSuffix(j.checkpoint, "/job.json"))
	must(t, err)
	equal(t, "files beside the checkpoint", len(entries), 0)

	k := begun(t)
	before, err := os.ReadFile(k.checkpoint)
	must(t, err)
	v, err = k.migrator(t).DryRun(t.Context())
	must(t, err)
	equal(t, "resumes", v.Resumes, true)
	equal(t, "cursor", place(v.Cursor), "0/0/4")
	after, err := os.ReadFile(k.checkpoint)
	must(t, err)
	equal(t, "checkpoint", string(after), string(before))
	equal(t, "rows, files and commits to come", []int64{v.Rows, v.Files, v.Commits}, []int64{5, 1, 2})
	equal(t, "part of the bytes", v.Bytes > 0 && v.Bytes < fileBytes(t, k.from.load(t, "src")), true)
}

func fileBytes(t *testing.T, tbl *table.Table) (n int64) {
	t.Helper()
	for _, path := range dataFiles(t, tbl) {
		st, err := os.Stat(path)
		must(t, err)
		n += st.Size()
	}
	return n
}

// A dry run of a resume does not claim the schema changes that are made, nor the batches that landed
// without a note.
func TestDryRunOfAResume(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 9)...)
	to.create(t, "dst", numbers(), noRetries())
	j := newJob(from, to, 4)
	j.checkpoint, j.reconcile.MissingInDest = checkpointPath(t), plan.PolicyAutoAdd
	to.commit = failAt(1, true, to)
	_, err := j.one(t.Context(), t)
	wantError(t, err, errLost.Error())
	j.reset()
	v, err := j.migrator(t).DryRun(t.Context())
	must(t, err)
	equal(t, "rows and commits to come", []int64{v.Rows, v.Commits}, []int64{1, 1})
	equal(t, "cursor", place(v.Cursor), "0/0/8")
	equal(t, "changes", v.SchemaChanges, []string{})
	equal(t, "changes of the whole plan", len(v.Plan.Changes), 1)
	var text bytes.Buffer
	must(t, v.WriteText(&text))
	if !strings.Contains(text.String(), "Schema changes of the destination: none") {
		t.Errorf("text %s", &text)
	}
	equal(t, "batches noted", j.note(t).Batches, 1)
}

// Many small commits to come are a hint with the number and what auto would make of it (case 80). A job
// that goes on, at its very start too, keeps its batch size.
func TestHints(t *testing.T) {
	from, to := newStore(t), newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 120)...)
	to.create(t, "dst", people(), noRetries())
	j := newJob(from, to, 1)
	j.checkpoint = checkpointPath(t)
	var hints []string
	j.begin = func(texts []string) { hints = texts }
	to.commit = failAt(0, false, to)
	_, err := j.one(t.Context(), t)
	wantError(t, err, errLost.Error())
	if len(hints) != 1 || !strings.Contains(hints[0], "120 commits of 1 row are") || !strings.Contains(hints[0], "auto would make 1 of 50,000 rows") {
		t.Errorf("hints %q", hints)
	}
	for _, f := range []form{three, one} {
		j.reset()
		equal(t, "cursor", place(j.note(t).Cursor), "0/0/0")
		hints = nil
		to.commit = failAt(0, false, to)
		_, err = f.run(j, t.Context(), t)
		wantError(t, err, errLost.Error())
		if f.name == three.name && hints != nil {
			t.Errorf("%s: hints %q although the pending batch failed first", f.name, hints)
		}
	}
	c := j.note(t)
	c.Pending = nil // as if its files had been removed
	must(t, ckpt.Open(j.checkpoint).Save(c))
	j.reset()
	to.commit = failAt(0, false, to)
	_, err = j.one(t.Context(), t)
	wantError(t, err, errLost.Error())
	if len(hints) != 1 || strings.Contains(hints[0], "--batch-rows") {
		t.Errorf("hints of a resume at the start %q", hints)
	}
}

// The number of rows on auto is recorded and taken again by the resume.
func TestAutoBatchRows(t *testing.T) {
	from, want := source34(t)
	to := newStore(t)
	to.create(t, "dst", people())
	j := newJob(from, to, migrate.AutoBatchRows)
	j.checkpoint = checkpointPath(t)
	v, err := j.migrator(t).DryRun(t.Context())
	must(t, err)
	equal(t, "batch rows", v.BatchRows, v.AutoBatchRows)
	_, err = j.one(t.Context(), t)
	must(t, err)
	j.finished(t, want, 1)
}
