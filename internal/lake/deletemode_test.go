package lake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"icepipe/internal/datafile"
)

// The mode that a job gets.
func TestDeleteMode(t *testing.T) {
	for _, c := range []struct {
		version, mode, props string
		want                 DeleteMode
		refused              string
	}{
		{"1", "auto", "", CopyOnWrite, ""},
		{"1", "auto", "write.merge.mode=merge-on-read", CopyOnWrite, ""},
		{"1", "position", "", 0, "upgrade the table to version 2"},
		{"1", "copy-on-write", "", CopyOnWrite, ""},
		{"2", "auto", "", MergeOnRead, ""},
		{"2", "position", "write.merge.mode=copy-on-write", MergeOnRead, ""},
		{"2", "auto", "write.merge.mode=Copy-On-Write", CopyOnWrite, ""},
		{"2", "auto", "write.update.mode=copy-on-write", CopyOnWrite, ""},
		{"2", "auto", "write.delete.mode=copy-on-write", MergeOnRead, ""},
		{"3", "auto", "write.merge.mode=MERGE-ON-READ,write.update.mode=copy-on-write", MergeOnRead, ""},
		{"3", "copy-on-write", "write.merge.mode=merge-on-read", CopyOnWrite, ""},
		{"3", "auto", "write.merge.mode=both", 0, `"both": want copy-on-write or merge-on-read`},
		{"3", "always", "", 0, "want auto, copy-on-write or position"},
	} {
		tbl := newTable(t, idAndText(), unpartitioned(), append(slices.DeleteFunc(strings.Split(c.props, ","), func(s string) bool { return s == "" }), "version="+c.version)...)
		got, err := tbl.DeleteMode(c.mode)
		if c.refused != "" {
			fails(t, fmt.Sprint(c), err, c.refused)
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%v: %s, %v", c, got, err)
		}
	}
}

// Data files that cannot be read for their keys are refused by name before anything is written.
func TestUpsertable(t *testing.T) {
	for _, format := range []iceberg.FileFormat{iceberg.OrcFile, iceberg.AvroFile, iceberg.ParquetFile} {
		tbl := newTable(t, idAndText(), unpartitioned())
		b, err := iceberg.NewDataFileBuilder(tbl.Spec(), iceberg.EntryContentData, tbl.Location()+"/data/x", format, nil, nil, nil, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(0), Files: []iceberg.DataFile{b.Build()}}); err != nil {
			t.Fatal(err)
		}
		err = load(t, tbl).Upsertable(t.Context(), "main", MergeOnRead)
		if format != iceberg.ParquetFile {
			fails(t, string(format), err, `/data/x" is `+string(format)+`, and has to be read for the keys of its rows: only Parquet`)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// A job that wrote files anew that it had added is not told that another writer did.
func TestJobFilesOfCopies(t *testing.T) {
	for _, others := range []bool{false, true} {
		tbl := newTable(t, idAndText(), unpartitioned())
		config, err := tbl.FileConfig(t.Context(), datafile.Resources{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		config.Name = tbl.FileNames("job")
		first := Commit{Branch: "main", Mark: markOf(0), Files: writtenAs(t, config, `[{"id":1,"p":"x"},{"id":2,"p":"y"}]`)}
		if others {
			first.Mark.Job = "another"
		}
		for _, c := range []Commit{first, {Branch: "main", Mark: markOf(1), Files: written(t, tbl, `[{"id":1,"p":"z"}]`), Upsert: &Upsert{Mode: CopyOnWrite, Job: "job", Resources: datafile.Resources{Jobs: 1}, Gone: goneOf(t, tbl, 1)}}} {
			head := tbl.CurrentSnapshot()
			if head != nil {
				c.Since = &head.SnapshotID
			}
			if _, err := tbl.Append(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		files, err := load(t, tbl).JobFiles(t.Context(), "main", "job", -1)
		if others {
			if err != nil || len(files.Paths) != 1 {
				t.Errorf("files %v: %v", files.Paths, err)
			}
			continue
		}
		fails(t, "files", err, "it wrote 1 anew itself, together with rows of others")
	}
}
