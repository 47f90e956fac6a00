package lake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/datafile"
)

// Where rows of many data files of a partition go they share a delete file, sorted as the specification wants it.
func TestUpsertSharedDeleteFile(t *testing.T) {
	tbl := newTable(t, idAndText(), identity(2, "p"), "delete.parquet.compression-codec=gzip", "write.parquet.compression-level=19", "write.metadata.metrics.default=none", "write.target-file-size-bytes=1")
	var files []iceberg.DataFile
	var ids []int64
	for i := range deleteFilesMost + 1 {
		files = append(files, written(t, tbl, fmt.Sprintf(`[{"id":%d,"p":"x"},{"id":%d,"p":"x"},{"id":%d,"p":"x"}]`, 3*i, 3*i+1, 3*i+2))...)
		ids = append(ids, int64(3*i+2), int64(3*i))
	}
	files = append(files, written(t, tbl, `[{"id":1000,"p":"y"},{"id":1001,"p":"y"}]`)...)
	appendedFiles(t, tbl, 0, files)
	if _, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(1), Files: written(t, tbl, `[{"id":-1,"p":"x"}]`), Upsert: upsertOf(t, tbl, MergeOnRead, append(ids, 1001)...)}); err != nil {
		t.Fatal(err)
	}
	counts(t, load(t, tbl), deleteFilesMost+1+1+1)
	var rows []int64
	for _, e := range entriesOf(t, tbl, iceberg.ManifestContentDeletes) {
		f := e.DataFile()
		rows = append(rows, f.Count())
		reader, err := file.OpenParquetFile(local(t, f.FilePath()), false)
		if err != nil {
			t.Fatal(err)
		}
		chunk, err := reader.MetaData().RowGroup(0).ColumnChunk(0)
		if err != nil || chunk.Compression().String() != "GZIP" {
			t.Errorf("compressed with %v: %v", chunk.Compression(), err)
		}
		for i, id := range []int32{deletePathID, deletePositionID} {
			column := reader.MetaData().Schema.Column(i)
			if column.SchemaNode().FieldID() != id || column.MaxDefinitionLevel() != 0 {
				t.Errorf("column %d has field ID %d", i, column.SchemaNode().FieldID())
			}
		}
		reader.Close()
		if shared := f.Count() > 1; shared != (f.ReferencedDataFile() == nil) || shared == (dataFileOf(f) != "") {
			t.Errorf("%d rows for %v", f.Count(), f.ReferencedDataFile())
		}
		order := parquetRows(t, f.FilePath())
		if !slices.IsSorted(order) || int64(len(order)) != f.Count() {
			t.Errorf("%d rows, sorted %v", len(order), slices.IsSorted(order))
		}
	}
	slices.Sort(rows)
	if !slices.Equal(rows, []int64{1, int64(len(ids))}) {
		t.Errorf("delete files of %d rows", rows)
	}
}

// parquetRows are the rows of a file of position deletes, so that they sort as text.
func parquetRows(t *testing.T, location string) (out []string) {
	t.Helper()
	reader, err := file.OpenParquetFile(local(t, location), false)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	r, err := pqarrow.NewFileReader(reader, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	read, err := r.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer read.Release()
	batches := array.NewTableReader(read, 0)
	defer batches.Release()
	for batches.Next() {
		paths, positions := batches.RecordBatch().Column(0).(*array.String), batches.RecordBatch().Column(1).(*array.Int64)
		for i := range paths.Len() {
			out = append(out, fmt.Sprintf("%s %09d", paths.Value(i), positions.Value(i)))
		}
	}
	return out
}

// A row that is deleted already is none that can go, where the commit has to look.
func TestUpsertDeadRows(t *testing.T) {
	eachMode(t, func(t *testing.T, version string, mode DeleteMode) {
		if version == "version=1" || version == "version=2" && mode == MergeOnRead {
			return // there are no deletes; they add up, and are not read
		}
		tbl := newTable(t, idAndText(), unpartitioned(), version)
		appended(t, tbl, 0, `[{"id":1,"p":"x"},{"id":2,"p":"x"}]`)
		gone, err := goneOf(t, tbl, 1)(t.Context(), tbl.CurrentSnapshot())
		if err != nil {
			t.Fatal(err)
		}
		upserted(t, tbl, 1, MergeOnRead, `[{"id":1,"p":"y"}]`)
		u := upsertOf(t, tbl, mode)
		u.Gone = func(context.Context, *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) { return gone, nil }
		_, err = tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(2), Files: written(t, tbl, `[{"id":1,"p":"z"}]`), Upsert: u})
		fails(t, "a dead row", err, "deleted already")
		counts(t, load(t, tbl), 2)
	})
}

// Position deletes of format version 2 go into the first deletion vector; files of them that are for that data file
// alone, which its bounds may tell, go, and those of others too stay.
func TestUpsertVectorsAfterUpgrade(t *testing.T) {
	tbl, paths := threeFiles(t)
	one := positionsOf(t, tbl, map[string][]int64{paths[0]: {0}}, paths[0])
	b := fileAt(t, tbl, iceberg.EntryContentPosDeletes, one.FilePath(), 1)
	whole := map[int][]byte{deletePathID: []byte(paths[0])}
	delta(t, tbl, nil, b.LowerBoundValues(whole).UpperBoundValues(whole).Build())
	delta(t, tbl, nil, positionsOf(t, tbl, map[string][]int64{paths[0]: {1}, paths[1]: {0}}, paths[0], paths[1]))
	upserted(t, tbl, 1, MergeOnRead, `[{"id":3,"p":"a2"}]`)
	changed(t, tbl, func(tx *table.Transaction) error { return tx.UpgradeFormatVersion(3) })
	upserted(t, tbl, 2, MergeOnRead, `[{"id":4,"p":"a3"}]`)
	soundDeletes(t, tbl)
	counts(t, load(t, tbl), 17)
	var kinds []string
	for _, e := range entriesOf(t, tbl, iceberg.ManifestContentDeletes) {
		kinds = append(kinds, fmt.Sprint(e.DataFile().FileFormat(), " ", e.DataFile().Count()))
	}
	equal(t, "deletes", sorted(kinds), []string{"PARQUET 2", "PUFFIN 4"})
	equal(t, "summary", []string{summaryOf(t, tbl, "added-dvs", "added-position-deletes", "removed-position-delete-files", "removed-position-deletes", "total-delete-files")},
		[]string{"overwrite added-dvs=1 added-position-deletes=4 removed-position-delete-files=2 removed-position-deletes=2 total-delete-files=2"})
}

// What a run that died left is found by its names: delete files, and manifests that add nothing else.
func TestUpsertOrphans(t *testing.T) {
	eachMode(t, func(t *testing.T, version string, mode DeleteMode) {
		tbl := newTable(t, idAndText(), identity(2, "p"), version)
		appended(t, tbl, 0, `[{"id":1,"p":"x"},{"id":2,"p":"x"},{"id":3,"p":"y"}]`)
		lost := errors.New("lost")
		catalog := tbl.Catalog
		tbl.Catalog = &faulty{Catalog: catalog, commit: func(int, func() error) error { return lasting{lost} }}
		config, err := tbl.FileConfig(t.Context(), datafile.Resources{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		config.Name = tbl.FileNames("job")
		_, err = tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(1), Files: writtenAs(t, config, `[{"id":1,"p":"y"}]`), Upsert: upsertOf(t, tbl, mode, 1)})
		if !errors.Is(err, lost) {
			t.Fatal(err)
		}
		tbl.Catalog = catalog
		orphans, err := load(t, tbl).Orphans(t.Context(), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for _, o := range orphans {
			kinds[o.Kind]++
		}
		want := map[string]int{OrphanList: 1, OrphanManifest: 2, OrphanDeletes: 1, OrphanData: 1}
		if mode == CopyOnWrite {
			want = map[string]int{OrphanList: 1, OrphanManifest: 2, OrphanData: 2}
		}
		if !maps.Equal(kinds, want) {
			t.Errorf("orphans %v, want %v", kinds, want)
		}
		if gone, err := load(t, tbl).Remove(t.Context(), orphans); err != nil || len(gone) != len(orphans) {
			t.Errorf("%d of %d removed: %v", len(gone), len(orphans), err)
		}
		counts(t, load(t, tbl), 3)
	})
}
