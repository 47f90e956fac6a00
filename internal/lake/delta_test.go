package lake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table/dv"
)

// fileAt is the manifest entry of a Parquet file of the table, which has no partitions.
func fileAt(t testing.TB, tbl *Table, content iceberg.ManifestEntryContent, path string, count int64) *iceberg.DataFileBuilder {
	t.Helper()
	b, err := iceberg.NewDataFileBuilder(tbl.Spec(), content, path, iceberg.ParquetFile, nil, nil, nil, count, 100)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// data writes a data file of row groups, with the table's own columns.
func data(t testing.TB, tbl *Table, groups ...string) iceberg.DataFile {
	t.Helper()
	n := int64(0)
	for _, g := range groups {
		batch := record(t, nil, arrowOf(t, tbl.Schema(), true), g)
		n += batch.NumRows()
		batch.Release()
	}
	return fileAt(t, tbl, iceberg.EntryContentData, parquetFile(t, tbl, arrowOf(t, tbl.Schema(), true), nil, groups...), n).Build()
}

// positionsOf writes a file of position deletes of data files.
func positionsOf(t testing.TB, tbl *Table, of map[string][]int64, order ...string) iceberg.DataFile {
	t.Helper()
	var lines []string
	for _, path := range order {
		for _, pos := range of[path] {
			lines = append(lines, fmt.Sprintf(`{"file_path":%q,"pos":%d}`, path, pos))
		}
	}
	path := parquetFile(t, tbl, arrowOf(t, iceberg.PositionalDeleteSchema, true), nil, "["+strings.Join(lines, ",")+"]")
	return fileAt(t, tbl, iceberg.EntryContentPosDeletes, path, int64(len(lines))).Build()
}

// keysOf writes a file of equality deletes by the fields of a schema.
func keysOf(t testing.TB, tbl *Table, schema *arrow.Schema, ids []int, text string) iceberg.DataFile {
	t.Helper()
	batch := record(t, nil, schema, text)
	defer batch.Release()
	return fileAt(t, tbl, iceberg.EntryContentEqDeletes, parquetFile(t, tbl, schema, nil, text), batch.NumRows()).EqualityFieldIDs(ids).Build()
}

// vectorsOf writes deletion vectors.
func vectorsOf(t testing.TB, tbl *Table, of map[string][]int64) []iceberg.DataFile {
	t.Helper()
	w := dv.NewDVWriter(mustFS(t, tbl).(iceio.WriteFileIO), func(id int32) *iceberg.PartitionSpec { return tbl.Metadata().PartitionSpecByID(int(id)) })
	for path, positions := range of {
		if err := w.Add(path, positions, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	files, err := w.Flush(t.Context(), fmt.Sprintf("%s/data/%d.puffin", tbl.Location(), len(of)))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// delta commits data files and deletes by the library, as another writer would.
func delta(t testing.TB, tbl *Table, files []iceberg.DataFile, deletes ...iceberg.DataFile) {
	t.Helper()
	tx := tbl.NewTransaction()
	if err := tx.NewRowDelta(nil).AddRows(files...).AddDeletes(deletes...).Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	loaded, err := tx.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tbl.Table = loaded
}
