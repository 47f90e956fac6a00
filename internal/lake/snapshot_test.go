package lake

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"
)

// A snapshot that names no manifest list is no empty table: it is not read, and nothing is committed on it.
func TestSnapshotWithoutManifests(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	appended(t, tbl, 0, ids(1, 3))
	tbl = load(t, tbl)
	text, err := json.Marshal(tbl.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	list := `"manifest-list":"` + tbl.CurrentSnapshot().ManifestList + `"`
	if !strings.Contains(string(text), list) {
		t.Fatalf("no %s in %s", list, text)
	}
	meta, err := table.ParseMetadataBytes([]byte(strings.Replace(string(text), list, `"manifest-list":""`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	damaged := &Table{Catalog: tbl.Catalog, Table: table.New(tbl.Identifier(), meta, tbl.MetadataLocation(), tbl.FS, nil)}
	const says = "names no manifest list: the table's metadata is damaged"
	if _, err := damaged.PlanScan(t.Context(), ScanOptions{BatchRows: 1}); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("a scan: %v", err)
	}
	if _, err := damaged.Count(t.Context(), Pin{}, nil, nil); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("a count: %v", err)
	}
	if _, err := damaged.Branch(table.MainBranch); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("a branch: %v", err)
	}
}
