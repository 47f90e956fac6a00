package ckpt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const stagedJob = "0b6d3c1e-7c53-4c59-9a40-53c1b1a7a001"

func stagedBatch(n int64) *Pending {
	return &Pending{Batch: n, From: fmt.Sprintf("%d/0/0", n), To: fmt.Sprintf("%d/0/0", n+1), Rows: 5, Stream: "s",
		Files: []PendingFile{{Path: fmt.Sprintf("/wh/<%d>.parquet", n), Size: 7, Rows: 5, Encoded: []byte{1}}}}
}

func staged(t *testing.T, s *Store) int64 {
	t.Helper()
	got, err := s.Staged(stagedJob)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range got {
		if b.Batch != int64(i) || len(b.Files) != 1 || b.Files[0].Path != stagedBatch(b.Batch).Files[0].Path {
			t.Fatalf("batch %d is %+v", i, b)
		}
	}
	return int64(len(got))
}

func TestStaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	s := Open(path)
	if n := staged(t, s); n != 0 {
		t.Errorf("%d batches without a file", n)
	}
	if err := s.Stage(stagedBatch(0)); err == nil {
		t.Error("a batch was staged in no file")
	}
	if err := s.Restage(stagedJob, nil); err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		if err := s.Stage(stagedBatch(n)); err != nil {
			t.Fatal(err)
		}
	}
	if n := staged(t, s); n != 3 {
		t.Errorf("%d batches, want 3", n)
	}
	if st, err := os.Stat(path + ".staged"); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if other, err := s.Staged("another"); err != nil || other != nil {
		t.Errorf("another job has %v, %v", other, err)
	}
	batches, _ := s.Staged(stagedJob)
	if err := s.Restage(stagedJob, batches[:2]); err != nil {
		t.Fatal(err)
	}
	if n := staged(t, s); n != 2 {
		t.Errorf("%d batches, want 2", n)
	}
	for range 2 {
		if err := s.Unstage(); err != nil {
			t.Fatal(err)
		}
	}
	if n := staged(t, s); n != 0 {
		t.Errorf("%d batches after Unstage", n)
	}
}

// What a crash leaves of the last line does not count; damage before it is told.
func TestStagedTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	s := Open(path)
	first := *stagedBatch(0)
	if err := s.Restage(stagedJob, []Pending{first, *stagedBatch(1)}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path + ".staged")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	head := len(lines[0])
	for n := head; n <= len(text); n++ {
		if err := os.WriteFile(path+".staged", text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := int64(0)
		if n >= head+len(lines[1]) {
			want++
		}
		if n == len(text) {
			want++
		}
		if got := staged(t, s); got != want {
			t.Fatalf("cut at byte %d: %d batches, want %d", n, got, want)
		}
	}
	for _, damaged := range []string{"", lines[0][:5], "{}\n", lines[0] + "x\n" + lines[1], strings.Replace(lines[0], ":2", ":9", 1)} {
		if err := os.WriteFile(path+".staged", []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Staged(stagedJob); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v, %v", damaged, got, err)
		}
	}
}

// A batch of an upsert says what it was compared with; files of before there were such are read.
func TestStagedUpsert(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	s := Open(path)
	base := "17"
	want := stagedBatch(0)
	want.Base, want.Upserted = &base, &Upserted{Inserted: 2, Updated: 1, Unchanged: 1, Surplus: 1}
	want.Compared = &Compared{Schema: 3, Taken: map[string][]byte{"/wh/a.parquet": {1, 2}}, Same: map[string][]byte{"/wh/b.parquet": {3}}}
	if err := s.Restage(stagedJob, []Pending{*want}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Staged(stagedJob)
	if err != nil || len(got) != 1 || !reflect.DeepEqual(&got[0], want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if err := s.Restage(stagedJob, []Pending{*stagedBatch(0)}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path + ".staged")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".staged", []byte(strings.Replace(string(text), `"version":2`, `"version":1`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := staged(t, s); n != 1 {
		t.Errorf("%d batches of version 1, want 1", n)
	}
}

// Each step of staging fails in turn, power is lost: batches that were said to be staged are there.
func TestStagedPowerLoss(t *testing.T) {
	const path = "/job.json"
	for k := 1; ; k++ {
		mem := &memory{live: map[string]*inode{}, durable: map[string]*inode{}}
		d := &failing{disk: mem, k: k, dead: true}
		s := &Store{path: path, disk: d}
		said := int64(0)
		err := s.Restage(stagedJob, nil)
		for err == nil && said < 2 {
			if err = s.Stage(stagedBatch(said)); err == nil {
				said++
			}
		}
		for _, names := range []bool{false, true} {
			for _, contents := range []bool{false, true} {
				found := &Store{path: path, disk: mem.afterPowerLoss(names, contents)}
				got, err := found.Staged(stagedJob)
				if err != nil || int64(len(got)) < said || int64(len(got)) > said+1 {
					t.Fatalf("step %d, names kept %v, contents kept %v: %d of %d batches, %v", k, names, contents, len(got), said, err)
				}
			}
		}
		if d.n < k {
			if said != 2 {
				t.Fatalf("%d batches without a failure", said)
			}
			return
		}
	}
}
