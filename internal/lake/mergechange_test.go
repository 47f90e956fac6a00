package lake

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// changed commits a change of the table that is not an append.
func changed(t *testing.T, tbl *Table, change func(tx *table.Transaction) error) {
	t.Helper()
	tx := load(t, tbl).NewTransaction()
	if err := change(tx); err != nil {
		t.Fatal(err)
	}
	after, err := tx.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tbl.Table = after
}

// liveParts are the manifests of the head by spec, and the partitions of its files.
func liveParts(t *testing.T, tbl *Table) (manifests map[int]int, parts []string) {
	t.Helper()
	list, err := tbl.CurrentSnapshot().Manifests(mustFS(t, tbl))
	if err != nil {
		t.Fatal(err)
	}
	manifests = map[int]int{}
	for _, m := range list {
		manifests[int(m.PartitionSpecID())]++
		for e, err := range m.Entries(mustFS(t, tbl), true) {
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, fmt.Sprint(e.DataFile().Partition()))
		}
	}
	slices.Sort(parts)
	return manifests, parts
}

// TestMergeAfterPromotion: manifests whose partition values are of the narrower type are merged into
// one of the wider.
func TestMergeAfterPromotion(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to iceberg.PrimitiveType
		value    string
	}{
		{"int to long", prim.Int32, prim.Int64, "-7"},
		{"float to double", prim.Float32, prim.Float64, "0.5"},
		{"decimal", iceberg.DecimalTypeOf(9, 2), iceberg.DecimalTypeOf(30, 2), `"-12.50"`},
	} {
		for version := 1; version <= 3; version++ {
			t.Run(fmt.Sprintf("%s, v%d", c.name, version), func(t *testing.T) {
				tbl := newTable(t, schemaOf(opt(1, "id", prim.Int64), opt(2, "p", c.from)), identity(2, "p"), fmt.Sprint("version=", version), "commit.manifest.min-count-to-merge=3")
				row := `[{"id":1,"p":` + c.value + `}]`
				appended(t, tbl, 0, row)
				appended(t, tbl, 1, row)
				changed(t, tbl, func(tx *table.Transaction) error {
					return tx.UpdateSchema(true, false).UpdateColumn([]string{"p"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: c.to, Valid: true}}).Commit()
				})
				appended(t, tbl, 2, row)
				manifests, parts := liveParts(t, load(t, tbl))
				if manifests[0] != 2 {
					t.Errorf("manifests %v", manifests)
				}
				if len(parts) != 3 || parts[0] != parts[1] || parts[1] != parts[2] {
					t.Errorf("partitions %s", parts)
				}
				if rows := scanned(t, load(t, tbl), ScanOptions{}); len(rows) != 3 || rows[0] != rows[2] {
					t.Errorf("rows %s", rows)
				}
			})
		}
	}
}

// TestMergeLeavesLostColumns: the partition values of a column that is gone cannot be written again, so
// the manifests that hold them stay as they are.
func TestMergeLeavesLostColumns(t *testing.T) {
	tbl := newTable(t, schemaOf(opt(1, "id", prim.Int64), opt(2, "p", prim.String), opt(3, "q", prim.String)), identity(2, "p"), "commit.manifest.min-count-to-merge=3")
	for n := range int64(2) {
		appended(t, tbl, n, `[{"id":1,"p":"x","q":"y"}]`)
	}
	changed(t, tbl, func(tx *table.Transaction) error {
		return tx.UpdateSpec(true).RemoveField("p").AddIdentity("q").Commit()
	})
	changed(t, tbl, func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, false).DeleteColumn([]string{"p"}).Commit()
	})
	for n := range int64(4) {
		appended(t, tbl, n+2, `[{"id":1,"q":"y"}]`)
	}
	manifests, parts := liveParts(t, load(t, tbl))
	if manifests[0] != 2 || manifests[1] != 2 {
		t.Errorf("manifests %v", manifests)
	}
	equal(t, "partitions", parts, []string{"map[1000:x]", "map[1000:x]", "map[1001:y]", "map[1001:y]", "map[1001:y]", "map[1001:y]"})
}

// TestMergeOldSpec: manifests of a spec that is no more are merged with each other.
func TestMergeOldSpec(t *testing.T) {
	tbl := newTable(t, idAndText(), identity(2, "p"))
	for n := range int64(3) {
		appended(t, tbl, n, `[{"id":1,"p":"x"}]`)
	}
	changed(t, tbl, func(tx *table.Transaction) error { return tx.UpdateSpec(true).RemoveField("p").Commit() })
	for n := range int64(2) {
		appended(t, tbl, n+3, `[{"id":1,"p":"x"}]`)
	}
	manifests, parts := liveParts(t, load(t, tbl))
	if manifests[0] != 1 || manifests[1] != 2 {
		t.Errorf("manifests %v", manifests)
	}
	equal(t, "partitions", parts, []string{"map[1000:x]", "map[1000:x]", "map[1000:x]", "map[]", "map[]"})
}

// TestMergeOfDeleted: manifests of nothing but deleted files vanish, and of others those files.
func TestMergeOfDeleted(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned(), "commit.manifest.min-count-to-merge=3")
	for n := range int64(3) {
		appended(t, tbl, n, `[{"id":1,"p":"x"}]`) // the last merges the others
		changed(t, tbl, func(tx *table.Transaction) error {
			return tx.Delete(t.Context(), iceberg.EqualTo(iceberg.Reference("id"), int64(1)), nil)
		})
	}
	head := tbl.CurrentSnapshot()
	text, err := os.ReadFile(local(t, head.ManifestList))
	if err != nil {
		t.Fatal(err)
	}
	list, err := readList(text)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := tbl.mergedManifest(t.Context(), mustFS(t, tbl).(iceio.WriteFileIO), head, list.manifests)
	if err != nil || merged != nil || len(list.manifests) == 0 {
		t.Errorf("%v of %d manifests: %v", merged, len(list.manifests), err)
	}
	if err := list.replace(list.manifests, merged, head, 2); err != nil || len(list.manifests) != 0 || len(list.entries) != 0 {
		t.Errorf("%d manifests are left: %v", len(list.manifests), err)
	}
	appended(t, tbl, 3, `[{"id":2,"p":"x"}]`)
	appended(t, tbl, 4, `[{"id":3,"p":"x"}]`)
	appended(t, tbl, 5, `[{"id":4,"p":"x"}]`)
	if manifests, parts := liveParts(t, load(t, tbl)); manifests[0] > 3 || len(parts) != 3 {
		t.Errorf("manifests %v, %d files", manifests, len(parts))
	}
	if rows := scanned(t, load(t, tbl), ScanOptions{}); len(rows) != 3 {
		t.Errorf("rows %s", rows)
	}
}

// TestMergeOfUpgradedTable: spec, First Row ID Inheritance. The files of a table that was of format
// version 2 get row IDs of their own with the first commit, which merges them, and keep them.
func TestMergeOfUpgradedTable(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned(), "commit.manifest.min-count-to-merge=3")
	for n := range int64(2) {
		appended(t, tbl, n, `[{"id":1,"p":"x"},{"id":2,"p":"y"}]`)
	}
	changed(t, tbl, func(tx *table.Transaction) error { return tx.UpgradeFormatVersion(3) })
	want := map[string]int64{}
	for n := range int64(6) {
		appended(t, tbl, n+2, `[{"id":1,"p":"x"},{"id":2,"p":"y"},{"id":3,"p":"z"}]`)
		got := rowIDs(t, load(t, tbl))
		if len(got) != int(n)+3 {
			t.Errorf("%d files", len(got))
		}
		for path, id := range want {
			if got[path] != id {
				t.Errorf("the first row ID of %s was %d and is %d", path, id, got[path])
			}
		}
		want = got
	}
	if manifests, _ := liveParts(t, load(t, tbl)); manifests[0] > 3 {
		t.Errorf("manifests %v", manifests)
	}
	if next := load(t, tbl).Metadata().NextRowID(); next != 2*2+6*3 {
		t.Errorf("the next row ID is %d", next)
	}
}

// TestMergeOwnersWill: a table's owner who wants no merging gets none, whatever the property's case.
func TestMergeOwnersWill(t *testing.T) {
	for value, want := range map[string]int{"false": 5, "no": 5, "true": 2, "TRUE": 2} {
		tbl := newTable(t, idAndText(), unpartitioned(), "commit.manifest.min-count-to-merge=2", table.ManifestMergeEnabledKey+"="+value)
		for n := range int64(5) {
			appended(t, tbl, n, `[{"id":1,"p":"x"}]`)
		}
		if manifests, _ := liveParts(t, load(t, tbl)); manifests[0] != want {
			t.Errorf("%s: manifests %v", value, manifests)
		}
		if now := load(t, tbl).Properties()[table.ManifestMergeEnabledKey]; now != value {
			t.Errorf("%s is %q now", value, now)
		}
	}
}

// TestMergeRefuses: a manifest that does not hold what the list says is not merged, and the refusal
// names the manifest and the cure; what is committed stays.
func TestMergeRefuses(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned(), "commit.manifest.min-count-to-merge=3", "commit.retry.num-retries=1")
	appended(t, tbl, 0, `[{"id":1,"p":"x"}]`)
	first := manifestAt(t, tbl)
	appended(t, tbl, 1, `[{"id":1,"p":"x"},{"id":2,"p":"x"}]`)
	second := manifestAt(t, tbl)
	text, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first, text, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(2), Files: written(t, tbl, `[{"id":3,"p":"x"}]`)})
	fails(t, "merge", err, `it has 1 live files of 2 rows, but the manifest list says 1 of 1`)
	fails(t, "merge", err, `commit.manifest-merge.enabled=false`)
	fails(t, "merge", err, first)
	if n := len(load(t, tbl).Metadata().Snapshots()); n != 2 {
		t.Errorf("%d snapshots", n)
	}
}

// manifestAt is the path on disk of the newest manifest.
func manifestAt(t *testing.T, tbl *Table) string {
	t.Helper()
	manifests, err := load(t, tbl).CurrentSnapshot().Manifests(mustFS(t, tbl))
	if err != nil {
		t.Fatal(err)
	}
	return local(t, manifests[0].FilePath())
}

// TestMergeWritable: what Avro does not take as a field's name cannot be written.
func TestMergeWritable(t *testing.T) {
	for name, want := range map[string]bool{"p": true, "a.b": false, "1": false} {
		if got := newTable(t, idAndText(), identity(2, name)).writable(0); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
