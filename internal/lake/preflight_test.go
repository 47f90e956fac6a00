package lake

import (
	"testing"

	"github.com/apache/iceberg-go"
)

// TestRefusals: what cannot be read is named before anything is read, files with no cure included.
func TestRefusals(t *testing.T) {
	encrypted := newTable(t, idAndText(), unpartitioned(), "encryption.key-id=k")
	_, err := encrypted.PlanScan(t.Context(), ScanOptions{})
	fails(t, "encrypted table", err, `encrypted with key "k"`)

	for _, c := range []struct {
		name string
		file func(t *testing.T, tbl *Table) iceberg.DataFile
		want string
	}{
		{"ORC", func(t *testing.T, tbl *Table) iceberg.DataFile {
			b, err := iceberg.NewDataFileBuilder(tbl.Spec(), iceberg.EntryContentData, tbl.Location()+"/data/x.orc", iceberg.OrcFile, nil, nil, nil, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			return b.Build()
		}, "1 ORC of its 2 data files cannot be read"},
		{"encrypted file", func(t *testing.T, tbl *Table) iceberg.DataFile {
			return fileAt(t, tbl, iceberg.EntryContentData, tbl.Location()+"/data/x.parquet", 1).KeyMetadata([]byte{1}).Build()
		}, "x.parquet\" is encrypted"},
		{"not there", func(t *testing.T, tbl *Table) iceberg.DataFile {
			return fileAt(t, tbl, iceberg.EntryContentData, tbl.Location()+"/data/x.parquet", 1).Build()
		}, "x.parquet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tbl := newTable(t, idAndText(), unpartitioned())
			delta(t, tbl, []iceberg.DataFile{data(t, tbl, ids(1, 1)), c.file(t, tbl)})
			_, err := tbl.PlanScan(t.Context(), ScanOptions{})
			fails(t, "plan", err, c.want)
			if open := openFiles(t); len(open) > 0 {
				t.Errorf("open files: %s", open)
			}
		})
	}
}

// TestDigest: it tells lists of files apart, and deletes on them.
func TestDigest(t *testing.T) {
	tbl, paths := threeFiles(t)
	digest := func() string {
		s, err := tbl.PlanScan(t.Context(), ScanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Header().Files
	}
	first := digest()
	if again := digest(); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	delta(t, tbl, nil, positionsOf(t, tbl, map[string][]int64{paths[0]: {0}}, paths[0]))
	if now := digest(); now == first {
		t.Error("deletes do not change it")
	}
}
