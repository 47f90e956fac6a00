package migrate_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"icepipe/pkg/ckpt"
	"icepipe/pkg/migrate"
)

// everything is a clean of files however young.
func everything(remove bool) migrate.CleanOptions {
	return migrate.CleanOptions{Before: time.Now().Add(time.Hour), Remove: remove}
}

// allFiles are the paths of all files of a table, without those of its metadata.
func allFiles(t *testing.T, tbl *table.Table) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(strings.TrimPrefix(tbl.Location(), "file://"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".json") {
			out = append(out, path)
		}
		return err
	}))
	return out
}

// kinds counts files by kind.
func kinds(files []migrate.Orphan) map[string]int {
	out := map[string]int{}
	for _, f := range files {
		out[f.Kind]++
	}
	return out
}

func less(all, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(gone, s) })
}

// A lost attempt leaves a manifest list, a manifest and data files. Clean finds these alone: not those that
// the checkpoint will commit, nor what others left there, nor anything that a snapshot names (cases 71, 89).
func TestClean(t *testing.T) {
	from, want := source34(t)
	j := pending(t, from)
	dst := j.to.load(t, "dst")
	theirs := strangers(t, dst)
	before := allFiles(t, dst)

	// The next batches may be written already when the commit of one fails.
	var lost int
	for _, path := range dataFiles(t, dst) {
		if !slices.Contains(theirs, path) && !slices.Contains(j.to.files(t, "dst"), path) && !slices.Contains(j.to.files(t, "dst"), "file://"+path) {
			lost++
		}
	}
	listed, err := migrate.Clean(t.Context(), j.to.open(t, "dst"), everything(false))
	must(t, err)
	equal(t, "without the checkpoint", kinds(listed.Files), map[string]int{"data file": lost, "manifest": 1, "manifest list": 1})
	equal(t, "nothing is removed", allFiles(t, dst), before)

	young := everything(false)
	young.Before = time.Now().Add(-time.Hour)
	none, err := migrate.Clean(t.Context(), j.to.open(t, "dst"), young)
	must(t, err)
	equal(t, "young files", len(none.Files), 0)

	o := everything(true)
	o.Checkpoint = ckpt.Open(j.checkpoint)
	removed, err := migrate.Clean(t.Context(), j.to.open(t, "dst"), o)
	must(t, err)
	equal(t, "with the checkpoint", len(removed.Files), len(listed.Files)-1)
	equal(t, "kept", removed.Kept, []string{j.note(t).Pending.Files[0].Path})
	var gone []string
	for _, f := range removed.Files {
		gone = append(gone, f.Path)
	}
	equal(t, "what is left", allFiles(t, dst), less(before, gone))

	_, err = j.one(t.Context(), t)
	must(t, err)
	j.finished(t, want, 7)
	again, err := migrate.Clean(t.Context(), j.to.open(t, "dst"), everything(true))
	must(t, err)
	equal(t, "of a finished job", again.Files, []migrate.Orphan{})
	equal(t, "rows", j.to.content(t, "dst"), want)
	for _, path := range theirs {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// strangers puts files of other programs, and of doubtful names, into a table's folders.
func strangers(t *testing.T, tbl *table.Table) []string {
	t.Helper()
	base := strings.TrimPrefix(tbl.Location(), "file://")
	manifests, err := filepath.Glob(base + "/metadata/*-m*.avro")
	must(t, err)
	manifest, err := os.ReadFile(manifests[0])
	must(t, err)
	var out []string
	put := func(name string, text []byte) {
		path := filepath.Join(base, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, text, 0o600))
		out = append(out, path)
	}
	id := uuid.NewString()
	put("data/00000-0-"+id+".parquet", nil)                               // PyIceberg's and iceberg-go's
	put("data/00000-4-"+id+"-0-00001.parquet", nil)                       // Java's
	put("data/"+id+".parquet", nil)                                       // DuckDB's
	put("data/icepipe-00000000-00000000-"+id+".parquet", nil)             // of another table
	put("data/icepipe-"+id+".parquet", nil)                               // of no form of ours
	put("data/_tmp/.part=1/notes.txt", []byte("icepipe"))                 // case 93
	put("metadata/"+uuid.NewString()+"-m0.avro", []byte("no Avro"))       // cannot be read
	put("metadata/snap-1-1-"+uuid.NewString()+".avro", []byte("no Avro")) // cannot be read
	put("metadata/"+uuid.NewString()+"-m0.txt", manifest)
	return out
}

// What a tag, a branch or a snapshot without either names stays, wherever main stands. What an expired
// snapshot alone named goes, when it is ours.
func TestCleanKeepsWhatSnapshotsName(t *testing.T) {
	from := newStore(t)
	from.create(t, "src", people())
	from.insert(t, "src", ids(0, 9)...)
	to := newStore(t)
	to.create(t, "dst", people())
	to.insert(t, "dst", `{"id":-1,"name":"theirs"}`)
	j := newJob(from, to, 3)
	_, err := j.one(t.Context(), t)
	must(t, err)
	head := to.load(t, "dst").CurrentSnapshot().SnapshotID
	to.branch(t, "dst", "kept")
	for range 2 {
		to.rollBack(t, "dst")
	}
	before := allFiles(t, to.load(t, "dst"))
	for _, name := range []string{"held by a branch", "held by the metadata alone"} {
		c, err := migrate.Clean(t.Context(), to.open(t, "dst"), everything(true))
		must(t, err)
		equal(t, name, c.Files, []migrate.Orphan{})
		equal(t, name, allFiles(t, to.load(t, "dst")), before)
		if name == "held by a branch" {
			to.update(t, "dst", table.NewRemoveSnapshotRefUpdate("kept"))
		}
	}
	if to.load(t, "dst").SnapshotByID(head) == nil {
		t.Fatal("the snapshot is gone")
	}
	to.expire(t, "dst")
	c, err := migrate.Clean(t.Context(), to.open(t, "dst"), everything(true))
	must(t, err)
	// Two batches of three rows were rolled back: a list, a manifest and a file each; of the batch that main
	// holds nothing goes, and of the first snapshot, which is not ours, nothing either.
	equal(t, "expired", kinds(c.Files), map[string]int{"data file": 2, "manifest": 2, "manifest list": 2})
	var rows []string
	for _, path := range to.files(t, "dst") {
		rows = append(rows, fileRows(t, path)...)
	}
	slices.Sort(rows)
	equal(t, "rows", rows, append([]string{`{"id":-1,"name":"theirs"}`}, ids(0, 3)...))
}

// update changes a table's metadata as another program would.
func (s *store) update(t *testing.T, name string, u ...table.Update) {
	t.Helper()
	_, _, err := s.Catalog.CommitTable(t.Context(), table.Identifier{"ns", name}, nil, u)
	must(t, err)
}

func TestCleanRefused(t *testing.T) {
	from, _ := source34(t)
	j := pending(t, from)
	before := allFiles(t, j.to.load(t, "dst"))
	unread := func(texts ...string) {
		t.Helper()
		_, err := migrate.Clean(t.Context(), j.to.open(t, "dst"), everything(true))
		wantError(t, err, texts...)
		equal(t, "files", allFiles(t, j.to.load(t, "dst")), before)
	}
	j.to.update(t, "dst", table.NewSetPropertiesUpdate(iceberg.Properties{"gc.enabled": "false"}))
	unread(`table "ns.dst" has gc.enabled=false`, "set it to true")
	j.to.update(t, "dst", table.NewSetPropertiesUpdate(iceberg.Properties{"gc.enabled": "TRUE"}))

	o := everything(true)
	o.Checkpoint = ckpt.Open(filepath.Join(t.TempDir(), "none.json"))
	_, err := migrate.Clean(t.Context(), j.to.open(t, "dst"), o)
	wantError(t, err, "none.json", "is not there")
	o.Checkpoint = ckpt.Open(j.checkpoint)
	unlock, err := ckpt.Open(j.checkpoint).Lock()
	must(t, err)
	if _, err = migrate.Clean(t.Context(), j.to.open(t, "dst"), o); !errors.Is(err, ckpt.ErrLocked) {
		t.Errorf("error %v", err)
	}
	must(t, unlock())

	// A manifest that cannot be read could name any file.
	list := strings.TrimPrefix(j.to.load(t, "dst").CurrentSnapshot().ManifestList, "file://")
	text, err := os.ReadFile(list)
	must(t, err)
	must(t, os.WriteFile(list, text[:len(text)/2], 0o600))
	unread("manifests of snapshot ")
}
