package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func ptr[T any](v T) *T { return &v }

// sample is a checkpoint with every member set.
func sample(t *testing.T) *Checkpoint {
	t.Helper()
	settings, err := NewSettings(map[string]any{
		"batch_rows":  50000,
		"row_filter":  "a < 3 and b <> '<&>'",
		"source_uuid": "5f0c9a3e-0000-4000-8000-000000000001",
		"reconciler":  map[string]any{"mapping": []string{"a:b"}, "missing_in_dest": "error"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &Checkpoint{
		Job:     "0b6d3c1e-7c53-4c59-9a40-53c1b1a7a001",
		State:   Running,
		Created: time.Date(2025, 3, 1, 12, 0, 0, 123456789, time.UTC),
		Updated: time.Date(2025, 3, 1, 12, 5, 0, 0, time.UTC),
		Source: Table{
			Identifier: []string{"sales", "orders"}, UUID: "5f0c9a3e-0000-4000-8000-000000000001",
			SnapshotID: "9007199254740993", Place: &Place{Kind: "sqlite", Name: "src", DBPath: "/data/src.db"},
		},
		Destination: Table{
			Identifier: []string{"warehouse", "orders"}, UUID: "5f0c9a3e-0000-4000-8000-000000000002",
			Location: "file:///data/wh/orders", Branch: "main",
			Place: &Place{Kind: "sqlite", Name: "dst", DBPath: "/data/dst.db", Warehouse: "/data/wh"},
		},
		Settings:           settings,
		Plan:               json.RawMessage(`{"columns":[{"to":"b","from":"a"}]}`),
		SchemaChanges:      []string{"add column region string"},
		DestSnapshotBefore: ptr("77"),
		Cursor:             "3/1/500 /data/f.parquet",
		Batches:            7,
		Totals:             Totals{RowsMoved: 350000, RowsInserted: 349990, RowsRejected: 10, BytesRead: 9, BytesWritten: 8},
		LastSnapshot:       "78",
		Pending: &Pending{
			Batch: 7, From: "3/1/500", To: "3/1/900", Rows: 400, Rejected: 1, BytesRead: 5, Base: ptr("78"),
			Stream: "5f0c9a3e-0000-4000-8000-000000000003",
			Files:  []PendingFile{{Path: "/data/wh/orders/data/x.parquet", Size: 1234, Rows: 399, Encoded: []byte{0, 1, 0xff}}},
		},
		Warnings: []string{"many small commits"},
	}
}

func mustSave(t *testing.T, s *Store, c *Checkpoint) {
	t.Helper()
	if err := s.Save(c); err != nil {
		t.Fatal(err)
	}
}

func TestSaveThenLoad(t *testing.T) {
	minimal := &Checkpoint{
		Job: "0b6d3c1e-7c53-4c59-9a40-53c1b1a7a001", State: Complete, Settings: Settings{},
		Source: Table{Identifier: []string{"a"}}, Destination: Table{Identifier: []string{"b"}},
	}
	for name, c := range map[string]*Checkpoint{"full": sample(t), "minimal": minimal} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "job.json")
			before := *c
			mustSave(t, Open(path), c)
			if !reflect.DeepEqual(*c, before) {
				t.Error("Save changed its argument")
			}
			got, err := Open(path).Load()
			if err != nil {
				t.Fatal(err)
			}
			want := *c
			want.Format, want.Version, want.SettingsDigest = Format, Version, c.Settings.Digest()
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if st.Mode().Perm() != 0o600 {
				t.Errorf("mode is %v, want 0600", st.Mode().Perm())
			}
		})
	}
}

func TestFileIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	c := sample(t)
	c.DestSnapshotBefore = nil
	mustSave(t, Open(path), c)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "{\n  \"format\": \"icepipe-checkpoint\",\n  \"version\": 4,\n") {
		t.Errorf("the file starts with %.80q", text)
	}
	for _, want := range []string{
		`"row_filter": "a < 3 and b <> '<&>'"`, // no escapes that people must decode
		`"snapshot_id": "9007199254740993"`,
		`"dest_snapshot_before": null`,
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the file lacks %s", want)
		}
	}
}

func TestOpenIsLazy(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "job.json"), filepath.Join(dir, "no", "such", "job.json")} {
		c, err := Open(path).Load()
		if c != nil || err != nil {
			t.Errorf("Load of %q: %v, %v; want nil, nil", path, c, err)
		}
		if err := Open(path).Reset(); err != nil {
			t.Errorf("Reset of %q: %v", path, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	err = Open(filepath.Join(dir, "no", "job.json")).Save(sample(t))
	if err == nil || !strings.Contains(err.Error(), "make it first") {
		t.Errorf("Save into a missing directory: %v", err)
	}
}

// edit returns the text of the sample with old replaced by new.
func edit(t *testing.T, old, new string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.json")
	mustSave(t, Open(path), sample(t))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("the sample lacks %q", old)
	}
	return strings.Replace(string(text), old, new, 1)
}

// TestOlderVersion: what an older program wrote is read.
func TestOlderVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	if err := os.WriteFile(path, []byte(edit(t, `"version": 4`, `"version": 1`)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(path).Load()
	if err != nil || c.Job != sample(t).Job {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       error
		says       string
	}{
		{"empty", "", ErrCorrupt, "empty"},
		{"blank", " \n\t", ErrCorrupt, "empty"},
		{"no JSON", "hello", ErrCorrupt, "invalid character"},
		{"array", "[]", ErrCorrupt, "array"},
		{"zeroes", "\x00\x00\x00", ErrCorrupt, "invalid character"},
		{"iceberg-ops", `{"version": 1, "batches": {"0": {"snapshot_id": 1}}, "completed": false}`, ErrForeign, "finish that job with iceberg-ops"},
		{"null", "null", ErrForeign, "another file"},
		{"other format", `{"format": "tar"}`, ErrForeign, `"tar"`},
		{"format not text", `{"format": 1}`, ErrForeign, "format is 1"},
		{"later version", edit(t, `"version": 4`, `"version": 5`), ErrVersion, "unknown version 5"},
		{"later version with other members", `{"format": "icepipe-checkpoint", "version": 9, "x": 1}`, ErrVersion, "unknown version 9"},
		{"version 0", edit(t, `"version": 4`, `"version": 0`), ErrCorrupt, "version"},
		{"no version", edit(t, `"version": 4,`, ``), ErrCorrupt, "version"},
		{"unknown member", edit(t, `"state"`, `"mood": "good", "state"`), ErrCorrupt, "mood"},
		{"wrong type", edit(t, `"batches": 7`, `"batches": "7"`), ErrCorrupt, "batches"},
		{"something behind", edit(t, "{", "{") + "{}", ErrCorrupt, "invalid character"},
		{"settings edited", edit(t, `50000`, `50001`), ErrCorrupt, "digest"},
		{"no job", edit(t, `0b6d3c1e-7c53-4c59-9a40-53c1b1a7a001`, `one`), ErrCorrupt, "UUID"},
		{"unknown state", edit(t, `"running"`, `"paused"`), ErrCorrupt, "paused"},
		{"complete with a batch pending", edit(t, `"running"`, `"complete"`), ErrCorrupt, "pending"},
		{"negative batches", edit(t, `"batches": 7`, `"batches": -7`), ErrCorrupt, "-7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "job.json")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := Open(path).Load()
			if c != nil || !errors.Is(err, tt.want) {
				t.Fatalf("got %v, %v; want %v", c, err, tt.want)
			}
			msg := err.Error()
			if !strings.Contains(msg, tt.says) || !strings.Contains(msg, path) || strings.Contains(msg, "\n") {
				t.Errorf("message %q: want one line with the path and %q", msg, tt.says)
			}
		})
	}
}

func TestLoadTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	mustSave(t, Open(path), sample(t))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// All but the closing line feed is needed.
	for n := range len(text) - 1 {
		if c, err := parse(text[:n]); c != nil || !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut at byte %d of %d: %v, %v", n, len(text), c, err)
		}
	}
}

func TestNotAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	s := Open(path)
	if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Load: %v", err)
	}
	if err := s.Save(sample(t)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Save: %v", err)
	}
	if err := s.Reset(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Reset: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || !entries[0].IsDir() {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	// An element of the path that is a file is no missing checkpoint.
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(plain, "job.json")).Load(); err == nil {
		t.Error("Load below a file: no error")
	}
}

func TestSymbolicLink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	if err := os.Symlink("real.json", link); err != nil {
		t.Fatal(err)
	}
	mustSave(t, Open(link), sample(t)) // the link dangles at first
	mustSave(t, Open(link), sample(t))
	if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", st, err)
	}
	if c, err := Open(real).Load(); c == nil || err != nil {
		t.Errorf("the file behind the link: %v, %v", c, err)
	}
}

func TestSaveRefusesWhatLoadWould(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	c := sample(t)
	c.State = "paused"
	if err := Open(path).Save(c); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is there: %v", err)
	}
}

func TestReset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	s := Open(path)
	mustSave(t, s, sample(t))
	for range 2 {
		if err := s.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := s.Load(); c != nil || err != nil {
		t.Errorf("after Reset: %v, %v", c, err)
	}
}

func TestFileStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.json")
	c := sample(t)
	s := &Store{path: path, disk: osDisk{}}
	for n := range int64(10000) {
		c.Batches = n + 1
		c.Pending.Batch = n + 1
		c.Cursor = fmt.Sprintf("%d/0/1 /data/%d.parquet", n, n)
		c.Totals.RowsMoved += 50000
		c.LastSnapshot = fmt.Sprint(1<<62 + n)
		if n%1000 == 999 { // the bytes depend on the last state alone
			mustSave(t, s, c)
		}
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Size() > 64<<10 {
		t.Errorf("%d bytes after 10,000 batches", st.Size())
	}
}
