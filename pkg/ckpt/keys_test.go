package ckpt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func keysOf(batch int64, text string) BatchKeys { return BatchKeys{batch, []byte(text)} }

// Of a batch that was noted twice the last note counts, batches that did not land count for nothing, a batch
// without a note is an error, and so is damage; another job's keys are no one's.
func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	s := Open(path)
	wantKeys := func(before int64, want ...string) {
		t.Helper()
		got, err := s.Keys(stagedJob, before)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for i, k := range got {
			if k.Batch != int64(i) {
				t.Errorf("batch %d stands at %d", k.Batch, i)
			}
			texts = append(texts, string(k.Keys))
		}
		if strings.Join(texts, " ") != strings.Join(want, " ") {
			t.Errorf("keys %q, want %q", texts, want)
		}
	}
	wantKeys(0)
	if err := s.RestartKeys(stagedJob, nil); err != nil {
		t.Fatal(err)
	}
	for _, k := range []BatchKeys{keysOf(0, "aa"), keysOf(1, "bb"), keysOf(1, "cc"), keysOf(2, "")} {
		if err := s.AddKeys(k); err != nil {
			t.Fatal(err)
		}
	}
	wantKeys(2, "aa", "cc")
	wantKeys(3, "aa", "cc", "")
	if _, err := s.Keys(stagedJob, 4); err == nil || !strings.Contains(err.Error(), "batch 3") {
		t.Errorf("a batch that was not noted: %v", err)
	}
	if _, err := s.Keys(strings.Replace(stagedJob, "0", "1", 1), 1); err == nil {
		t.Error("another job's keys are taken")
	}
	had, err := s.Keys(stagedJob, 2)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path+".keys", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"batch":2,"ke`); err != nil { // a crash
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.RestartKeys(stagedJob, had); err != nil {
		t.Fatal(err)
	}
	if err := s.AddKeys(keysOf(2, "dd")); err != nil {
		t.Fatal(err)
	}
	wantKeys(3, "aa", "cc", "dd")
	if err := s.DropKeys(); err != nil {
		t.Fatal(err)
	}
	wantKeys(0)
	if err := s.DropKeys(); err != nil {
		t.Error(err)
	}
}
