package catalogs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// crashed makes a database as a writer leaves it that is killed in the middle of a transaction: some of
// its pages are written, and the journal holds what they were. The transaction drops the table's row.
func crashed(t *testing.T, statements ...string) string {
	t.Helper()
	path := handmade(t, statements...)
	db := rawDB(t, path)
	db.SetMaxOpenConns(1)
	for _, s := range []string{
		`PRAGMA cache_size = 1`, // so that pages are written before the end
		`BEGIN IMMEDIATE`, `DELETE FROM iceberg_tables`,
		`CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT i, hex(randomblob(900)) AS x FROM n`,
	} {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	left := filepath.Join(t.TempDir(), "left.db")
	for _, suffix := range []string{"", journal} {
		text, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(left+suffix, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(`ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	return left
}

// A database whose writer was killed in the middle of a transaction is read as it was before, and not
// written; who opens it for writing rolls it back.
func TestReadCrashed(t *testing.T) {
	cat, _ := temporary(t)
	location := "'" + makeTable(t, cat, "a", "t").MetadataLocation() + "'"
	path := crashed(t, layoutV1, row("x", "a", "t", location))
	texts := func() (text []byte) {
		for _, suffix := range []string{"", journal} {
			part, err := os.ReadFile(path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, part...)
		}
		return text
	}
	before := texts()
	if o := mustOpen(t, at(path, "", "a", "t"), ReadOnly); o.Ref.Place.Name != "x" || o.Ref.Place.DBPath != path {
		t.Errorf("found under %q in %q, want x in %q", o.Ref.Place.Name, o.Ref.Place.DBPath, path)
	}
	if !bytes.Equal(before, texts()) {
		t.Error("reading changed the database or its journal")
	}
	mustOpen(t, at(path, "", "a", "t"), ReadWrite)
	if _, err := os.Stat(path + journal); err == nil {
		t.Error("opened for writing, it still has its journal")
	}
	mustOpen(t, at(path, "", "a", "t"), ReadOnly)
}

// What changes while it is copied is not copied.
func TestCopyCrashedWithoutJournal(t *testing.T) {
	path := handmade(t, layoutV1)
	copied, err := copyCrashed(path)
	if copied != "" || err != nil {
		t.Errorf("copied to %q, %v; want no copy, as the journal is gone", copied, err)
	}
}
