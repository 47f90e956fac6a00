package catalogs

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// emptyTable is metadata of a table without a snapshot.
func emptyTable(t *testing.T, version int) table.Metadata {
	t.Helper()
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a<b>&\u2028", Type: iceberg.PrimitiveTypes.Int64})
	meta, err := table.NewMetadata(schema, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, "file:///t<&>", iceberg.Properties{
		table.PropertyFormatVersion: fmt.Sprint(version), "snapshots": `"snapshots":[{`,
	})
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// updated is metadata with updates.
func updated(t *testing.T, meta table.Metadata, updates ...table.Update) table.Metadata {
	t.Helper()
	next, err := table.UpdateTableMetadata(meta, updates, "file:///t/metadata/before.json")
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// withSnapshot is metadata whose main branch has one more snapshot.
func withSnapshot(t *testing.T, meta table.Metadata, id int64, summary *table.Summary) table.Metadata {
	t.Helper()
	s := &table.Snapshot{SnapshotID: id, TimestampMs: meta.LastUpdatedMillis() + 1, ManifestList: fmt.Sprintf("file:///t/<&>\u2029é/%d.avro", id), Summary: summary}
	if now := meta.CurrentSnapshot(); now != nil {
		s.ParentSnapshotID = &now.SnapshotID
	}
	if meta.Version() > 1 {
		s.SequenceNumber = meta.LastSequenceNumber() + 1
	}
	if schema := 0; id%2 == 0 {
		s.SchemaID = &schema
	}
	if meta.Version() > 2 {
		first, added := meta.NextRowID(), int64(7)
		s.FirstRowID, s.AddedRows = &first, &added
	}
	return updated(t, meta, table.NewAddSnapshotUpdate(s), table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, -1, -1, -1))
}

// checkText holds the text of metadata against the library's, twice.
func checkText(t *testing.T, what string, texts *snapshotTexts, meta table.Metadata) {
	t.Helper()
	want, err := wholeText(meta)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := texts.text(meta)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Fatalf("version %d, %s:\n%s\nthe library:\n%s", meta.Version(), what, got, want)
		}
	}
}

// The text of metadata is the library's, whatever was written before: snapshots are added, removed, and changed
// behind our back, and tables take turns.
func TestMetadataText(t *testing.T) {
	var shared snapshotTexts
	summaries := []*table.Summary{
		nil, {}, {Operation: table.OpAppend}, {Properties: iceberg.Properties{}},
		{Operation: table.OpAppend, Properties: iceberg.Properties{"z": "<&>\u2028\"\\", "a": "\x7f é", "": "empty"}},
		{Operation: table.OpReplace, Properties: iceberg.Properties{"operation": "another"}},
	}
	for version := 1; version <= 3; version++ {
		var texts snapshotTexts
		check := func(what string, meta table.Metadata) {
			t.Helper()
			checkText(t, what, &texts, meta)
			checkText(t, what, &shared, meta)
		}
		meta := emptyTable(t, version)
		check("without snapshots", meta)
		for id := range int64(12) {
			meta = withSnapshot(t, meta, id+1, summaries[int(id)%len(summaries)])
			check(fmt.Sprint("snapshot ", id+1), meta)
			if _, frame, err := framed(meta); err != nil || frame == nil {
				t.Fatalf("version %d: the library keeps snapshots in another way: %v", version, err)
			}
		}
		if len(texts.known) != 12 {
			t.Errorf("version %d: %d texts are known, want 12", version, len(texts.known))
		}
		text, err := wholeText(meta)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := table.ParseMetadataBytes(text)
		if err != nil {
			t.Fatal(err)
		}
		check("as it was read", parsed)
		check("with a property", updated(t, parsed, table.NewSetPropertiesUpdate(iceberg.Properties{"k": "v"})))
		if version == 1 {
			old := regexp.MustCompile(`"manifest-list":"[^"]*"`).ReplaceAll(text, []byte(`"manifests":["file:///t/<m>.avro"]`))
			embedded, err := table.ParseMetadataBytes(old)
			if err != nil {
				t.Fatal(err)
			}
			embedded = updated(t, embedded, table.NewSetPropertiesUpdate(iceberg.Properties{"k": "v"}))
			if _, frame, err := framed(embedded); err != nil || frame == nil || len(embedded.CurrentSnapshot().ManifestLocations) != 1 {
				t.Fatalf("manifests in snapshots: %v", err)
			}
			check("manifests in snapshots", embedded)
		}
		fewer := updated(t, parsed, table.NewRemoveSnapshotsUpdate([]int64{1, 5}, false))
		check("without two of them", fewer)
		if len(texts.known) != 10 {
			t.Errorf("version %d: %d texts are known, want 10", version, len(texts.known))
		}
		check("with all again", meta)
		other := emptyTable(t, version)
		for id := range int64(4) {
			other = withSnapshot(t, other, id+1, summaries[(int(id)+1)%len(summaries)])
		}
		check("another table with the same IDs", other)
		check("the first one again", meta)
	}
}

// Snapshots that differ in anything that the text says are not taken for the same.
func TestSameSnapshot(t *testing.T) {
	n, m, i, j := int64(1), int64(2), 1, 2
	whole := table.Snapshot{SnapshotID: 1, ParentSnapshotID: &n, SequenceNumber: 1, TimestampMs: 1, ManifestList: "l", ManifestLocations: []string{"m"},
		Summary: &table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{"a": "b"}}, SchemaID: &i, FirstRowID: &n, AddedRows: &n}
	others := map[string][]any{
		"SnapshotID": {m}, "ParentSnapshotID": {(*int64)(nil), &m}, "SequenceNumber": {m}, "TimestampMs": {m}, "ManifestList": {"", "k"},
		"ManifestLocations": {[]string(nil), []string{}, []string{"n"}}, "SchemaID": {(*int)(nil), &j},
		"FirstRowID": {(*int64)(nil), &m}, "AddedRows": {(*int64)(nil), &m},
		"Summary": {(*table.Summary)(nil), &table.Summary{}, &table.Summary{Properties: iceberg.Properties{}}, &table.Summary{Operation: table.OpAppend},
			&table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{}},
			&table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{"a": "c"}},
			&table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{"a": "b", "c": "d"}},
			&table.Summary{Operation: table.OpDelete, Properties: iceberg.Properties{"a": "b"}}},
	}
	all := []table.Snapshot{whole, {}}
	typ := reflect.TypeFor[table.Snapshot]()
	if fields := slices.Sorted(maps.Keys(others)); len(fields) != typ.NumField() {
		t.Fatalf("a snapshot has %d fields, of which %v are known", typ.NumField(), fields)
	}
	for name, values := range others {
		for _, v := range values {
			s := whole
			reflect.ValueOf(&s).Elem().FieldByName(name).Set(reflect.ValueOf(v))
			all = append(all, s)
		}
	}
	for a := range all {
		for b := range all {
			if got := same(all[a], all[b]); got != (a == b) {
				t.Errorf("same(%v, %v) = %v", all[a], all[b], got)
			}
		}
	}
}

// What is known of a snapshot is not changed with the snapshot.
func TestClonedSnapshot(t *testing.T) {
	n, i := int64(1), 1
	s := table.Snapshot{SnapshotID: 1, ParentSnapshotID: &n, ManifestLocations: []string{"m"}, SchemaID: &i, FirstRowID: &n, AddedRows: &n,
		Summary: &table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{"a": "b"}}}
	c := cloned(s)
	if !reflect.DeepEqual(c, s) {
		t.Errorf("%v, want %v", c, s)
	}
	n, i, s.ManifestLocations[0], s.Summary.Properties["a"], s.Summary.Operation = 2, 2, "n", "c", table.OpDelete
	if *c.ParentSnapshotID != 1 || *c.SchemaID != 1 || *c.FirstRowID != 1 || *c.AddedRows != 1 || c.ManifestLocations[0] != "m" ||
		c.Summary.Properties["a"] != "b" || c.Summary.Operation != table.OpAppend {
		t.Errorf("changed: %v", c)
	}
	if e := cloned(table.Snapshot{}); !reflect.DeepEqual(e, table.Snapshot{}) {
		t.Errorf("of nothing: %v", e)
	}
}
