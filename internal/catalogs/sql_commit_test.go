package catalogs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// set commits one property.
func set(t *testing.T, o *Opened, key, value string, requirements ...table.Requirement) error {
	t.Helper()
	_, _, err := o.Catalog.CommitTable(t.Context(), o.Ref.Identifier, requirements,
		[]table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{key: value})})
	return err
}

// eightWriters has as many set properties of a table, so many each and no two of one name, and try again after a
// conflict. It returns how many commits they made.
func eightWriters(t *testing.T, ref Ref, each int) int {
	t.Helper()
	const writers = 8
	var wait sync.WaitGroup
	for w := range writers {
		o := mustOpen(t, ref, ReadWrite)
		wait.Go(func() {
			for i := range each {
				err := table.ErrCommitFailed
				for errors.Is(err, table.ErrCommitFailed) {
					err = set(t, o, fmt.Sprint("k", w, ".", i), "v")
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	return writers * each
}

// Commits on commits of our own and on those of others leave the table that the library's way leaves, in
// both layouts, whether or not the metadata before was read.
func TestCommitOnLast(t *testing.T) {
	for _, layout := range []string{layoutV0, layoutV1} {
		cat, _ := temporary(t)
		one := makeTable(t, cat, "a", "t")
		path := handmade(t, layout, row("x", "a", "t", "'"+one.MetadataLocation()+"'"), row("x", "b", "t", "'"+one.MetadataLocation()+"'"))
		ours, other := mustOpen(t, at(path, "", "a", "t"), ReadWrite), mustOpen(t, at(path, "", "a", "t"), ReadWrite)
		want := maps.Clone(one.Properties())
		if want == nil {
			want = iceberg.Properties{}
		}
		for i, by := range []*Opened{ours, ours, ours, other, other, ours, ours} {
			key := fmt.Sprintf("k%d", i)
			if err := set(t, by, key, "v", table.AssertTableUUID(one.Metadata().TableUUID())); err != nil {
				t.Fatalf("commit %d: %v", i, err)
			}
			want[key] = "v"
		}
		got := mustOpen(t, at(path, "", "a", "t"), ReadOnly).Table
		if !maps.Equal(got.Properties(), want) {
			t.Errorf("properties %v, want %v", got.Properties(), want)
		}
		if !strings.Contains(got.MetadataLocation(), "/00007-") {
			t.Errorf("metadata %s, want the number 7", got.MetadataLocation())
		}
		var log []string
		for e := range got.Metadata().PreviousFiles() {
			log = append(log, e.MetadataFile)
		}
		if len(log) != 7 || log[0] != one.MetadataLocation() {
			t.Errorf("former metadata %v", log)
		}
		var before string
		rawDB(t, path).QueryRow(`SELECT previous_metadata_location FROM iceberg_tables WHERE table_namespace = 'a'`).Scan(&before)
		if before != log[6] {
			t.Errorf("the row's former metadata is %s, want %s", before, log[6])
		}
		var untouched string
		rawDB(t, path).QueryRow(`SELECT metadata_location FROM iceberg_tables WHERE table_namespace = 'b'`).Scan(&untouched)
		if untouched != one.MetadataLocation() {
			t.Errorf("the table of the same name in another namespace is now at %s", untouched)
		}
	}
}

// A commit on a commit of ours does not read its metadata again, and still asks for what is required.
func TestCommitOnLastReadsNothing(t *testing.T) {
	cat, _ := temporary(t)
	one := makeTable(t, cat, "a", "t")
	path := handmade(t, layoutV1, row("x", "a", "t", "'"+one.MetadataLocation()+"'"))
	o := mustOpen(t, at(path, "", "a", "t"), ReadWrite)
	if err := set(t, o, "k", "1"); err != nil {
		t.Fatal(err)
	}
	now := mustOpen(t, at(path, "", "a", "t"), ReadOnly).Table.MetadataLocation()
	if err := os.Remove(strings.TrimPrefix(now, "file://")); err != nil {
		t.Fatal(err)
	}
	gone := int64(1)
	if err := set(t, o, "k", "2", table.AssertRefSnapshotID("main", &gone)); err == nil {
		t.Error("a requirement that does not hold was let through")
	}
	if err := set(t, o, "k", "3"); err != nil {
		t.Error(err)
	}
	if _, err := rawDB(t, path).Exec(`UPDATE iceberg_tables SET metadata_location = '/nowhere/00009-` + one.Metadata().TableUUID().String() + `.metadata.json'`); err != nil {
		t.Fatal(err)
	}
	if err := set(t, o, "k", "4"); err == nil {
		t.Error("a commit on metadata that another writer put in the row and that is not there")
	}
	if _, err := rawDB(t, path).Exec(`DELETE FROM iceberg_tables`); err != nil {
		t.Fatal(err)
	}
	if err := set(t, o, "k", "5", table.AssertTableUUID(one.Metadata().TableUUID())); err == nil {
		t.Error("a commit to a table that was dropped")
	}
}

// A writer that changes the row between our look and our update makes the commit fail as a conflict.
func TestCommitOnLastConflict(t *testing.T) {
	cat, _ := temporary(t)
	one := makeTable(t, cat, "a", "t")
	path := handmade(t, layoutV1, row("x", "a", "t", "'"+one.MetadataLocation()+"'"),
		`CREATE TRIGGER other BEFORE UPDATE ON iceberg_tables WHEN NEW.metadata_location LIKE '%/00002-%' BEGIN SELECT RAISE(IGNORE); END`)
	o := mustOpen(t, at(path, "", "a", "t"), ReadWrite)
	if err := set(t, o, "k", "1"); err != nil {
		t.Fatal(err)
	}
	if err := set(t, o, "k", "2"); !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("%v, want a conflict", err)
	}
}
