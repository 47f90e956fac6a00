//go:build !noclouds

package catalogs

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"
)

// A commit changes where the metadata is, and leaves what others have noted.
func TestGlueCommit(t *testing.T) {
	f := newFakeGlue(t)
	o := mustOpen(t, f.ref("t"), ReadWrite)
	before := o.Table.MetadataLocation()
	if err := set(t, o, "k", "1"); err != nil {
		t.Fatal(err)
	}
	entry := f.tables["a.t"]
	p := f.parameters("a.t")
	if p["metadata_location"] == before || p["previous_metadata_location"] != before || p["noted"] != "by another" || p["table_type"] != "ICEBERG" {
		t.Errorf("parameters %v", p)
	}
	storage := entry["StorageDescriptor"].(map[string]any)
	if entry["Owner"] != "somebody" || entry["Retention"] != 7.0 || entry["Description"] != "told" || storage["SerdeInfo"].(map[string]any)["Name"] != "kept" {
		t.Errorf("entry %v", entry)
	}
	if c := storage["Columns"].([]any)[0].(map[string]any); c["Name"] != "id" || c["Type"] != "bigint" {
		t.Errorf("columns %v", c)
	}
	again, err := o.Catalog.LoadTable(t.Context(), o.Table.Identifier())
	if err != nil || again.Properties()["k"] != "1" || again.MetadataLocation() != p["metadata_location"] {
		t.Errorf("loaded %v, %v", again, err)
	}
	// A second one, on what is known; and one on the other's.
	other := mustOpen(t, f.ref("t"), ReadWrite)
	if err := errors.Join(set(t, o, "k", "2"), set(t, other, "l", "3"), set(t, o, "k", "4")); err != nil {
		t.Fatal(err)
	}
	if again, err = o.Catalog.LoadTable(t.Context(), o.Table.Identifier()); err != nil || again.Properties()["k"] != "4" || again.Properties()["l"] != "3" {
		t.Errorf("loaded %v, %v", again.Properties(), err)
	}
	if strings.Contains(before, "00005") || !strings.Contains(again.MetadataLocation(), "/00004-") {
		t.Errorf("the metadata is at %q", again.MetadataLocation())
	}
}

// A table in one gzip-compressed file stays readable.
func TestGlueCompressed(t *testing.T) {
	f := newFakeGlue(t)
	o := mustOpen(t, f.ref("t"), ReadWrite)
	for _, codec := range []string{"gzip", "zstd", "none"} {
		if err := set(t, o, "write.metadata.compression-codec", codec); err != nil {
			t.Fatal(err)
		}
		at := f.parameters("a.t")["metadata_location"].(string)
		if mark := map[string]string{"gzip": ".gz.", "zstd": ".zstd.", "none": "-"}[codec]; !strings.Contains(at, mark) {
			t.Errorf("%s: metadata at %q", codec, at)
		}
		if again, err := o.Catalog.LoadTable(t.Context(), o.Table.Identifier()); err != nil || again.Properties()["write.metadata.compression-codec"] != codec {
			t.Errorf("%s: %v", codec, err)
		}
	}
}

// Glue's own check of the version decides a race: the loser is told so, and what the winner did stays.
func TestGlueConflict(t *testing.T) {
	f := newFakeGlue(t)
	o := mustOpen(t, f.ref("t"), ReadWrite)
	f.spoil("UpdateTable", fault{status: 400, code: "ConcurrentModificationException", text: "moved on"})
	if err := set(t, o, "k", "1"); !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("got %v, want a conflict", err)
	}
	stale := newStaleStore(t, f)
	if err := set(t, o, "k", "2"); err != nil {
		t.Fatal(err)
	}
	was := f.parameters("a.t")["metadata_location"]
	if err := stale(); !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("got %v, want a conflict", err)
	}
	if is := f.parameters("a.t")["metadata_location"]; is != was {
		t.Errorf("the loser took %q to %q", was, is)
	}
}

// newStaleStore returns a change of the entry as it is now.
func newStaleStore(t *testing.T, f *fakeGlue) func() error {
	c := mustOpen(t, f.ref("t"), ReadWrite).Catalog.(*metastoreCatalog)
	old, location, err := c.find(t.Context(), table.Identifier{"a", "t"})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := c.load(t.Context(), table.Identifier{"a", "t"}, location)
	if err != nil {
		t.Fatal(err)
	}
	return func() error { return c.swap(t.Context(), old, loaded.Metadata(), "/stale.metadata.json") }
}

// Eight writers, each of which tries again after a conflict: no commit is lost.
func TestGlueWriters(t *testing.T) {
	f := newFakeGlue(t)
	n := eightWriters(t, f.ref("t"), 5)
	found := 0
	for key := range mustOpen(t, f.ref("t"), ReadOnly).Table.Properties() {
		if strings.HasPrefix(key, "k") {
			found++
		}
	}
	if found != n || f.version["a.t"] != n {
		t.Errorf("%d of %d commits, version %d", found, n, f.version["a.t"])
	}
}

// What may have landed is neither a conflict nor a refusal, and is asked for once; what was not done is asked for
// again.
func TestGlueOutcome(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  fault
		lands  bool
		calls  int
		wanted bool // the commit is a success
	}{
		{"500 behind it", fault{land: true, status: 500, code: "InternalServiceException"}, true, 1, false},
		{"503 before it", fault{status: 503, code: "ServiceUnavailable"}, false, 1, false},
		{"closed behind it", fault{land: true}, true, 1, false},
		{"closed before it", fault{}, false, 1, false},
		{"timeout of Glue's", fault{land: true, status: 400, code: "OperationTimeoutException"}, true, 1, false},
		{"throttled", fault{status: 400, code: "ThrottlingException", text: "Rate exceeded"}, true, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeGlue(t)
			o := mustOpen(t, f.ref("t"), ReadWrite)
			f.spoil("UpdateTable", tt.fault)
			err := set(t, o, "k", "1")
			var lasting interface{ Lasting() bool }
			switch {
			case tt.wanted:
				if err != nil {
					t.Error(err)
				}
			case err == nil, errors.Is(err, table.ErrCommitFailed), errors.As(err, &lasting):
				t.Errorf("got %v, want an outcome that is unknown", err)
			}
			if n := f.count("UpdateTable"); n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
			if again := mustOpen(t, f.ref("t"), ReadOnly).Table; (again.Properties()["k"] == "1") != tt.lands {
				t.Errorf("properties %v", again.Properties())
			}
		})
	}
}
