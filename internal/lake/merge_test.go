package lake

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/twmb/avro/ocf"
)

// TestMergeBins: which manifests a commit merges. A manifest is said as spec:size, that of the
// snapshot itself with a +, one of deletes with a d; the newest comes first.
func TestMergeBins(t *testing.T) {
	many := strings.Repeat(" 0:1", mergeMost)
	for _, c := range []struct {
		name, list string
		rule       mergeRule
		want       string
	}{
		{"the first commit", "+0:1", mergeRule{1, 10}, ""},
		{"too few", "+0:1 0:1 0:1", mergeRule{4, 10}, ""},
		{"enough", "+0:1 0:1 0:2 0:3", mergeRule{4, 10}, "0:1 0:2 0:3"},
		{"one and the new one", "+0:1 0:5", mergeRule{2, 10}, ""},
		{"the large one is full", "+0:1 0:1 0:1 0:10", mergeRule{3, 10}, "0:1 0:1"},
		{"the large one has room", "+0:1 0:1 0:1 0:8", mergeRule{4, 11}, "0:1 0:1 0:8"},
		{"the older bin waits for nobody", "+0:1 0:4 0:3 0:3", mergeRule{100, 6}, "0:3 0:3"},
		{"the older bin is one", "+0:1 0:4 0:9", mergeRule{100, 6}, ""},
		{"another spec waits for nobody", "+1:1 0:1 1:1 0:2", mergeRule{100, 10}, "0:1 0:2"},
		{"a spec that cannot", "+1:1 7:1 7:1", mergeRule{1, 10}, ""},
		{"deletes stay", "+0:1 d0:1 d0:1 0:1", mergeRule{2, 10}, ""},
		{"no size", "+0:1 0:1 0:1", mergeRule{2, 0}, ""},
		{"very many", "+0:1" + many + many, mergeRule{100, 1 << 40}, many[1:]},
		{"very many wanted", "+0:1" + many, mergeRule{mergeMost + 1, 1 << 40}, many[1:]},
		{"one fewer than very many wanted", "+0:1" + many, mergeRule{mergeMost + 2, 1 << 40}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var manifests []iceberg.ManifestFile
			for i, word := range strings.Fields(c.list) {
				var spec int32
				var size int64
				if _, err := fmt.Sscanf(strings.TrimLeft(word, "+d"), "%d:%d", &spec, &size); err != nil {
					t.Fatal(err)
				}
				snapshot, content := int64(1), iceberg.ManifestContentData
				if word[0] == '+' {
					snapshot = 2
				}
				if word[0] == 'd' {
					content = iceberg.ManifestContentDeletes
				}
				manifests = append(manifests, iceberg.NewManifestFile(2, fmt.Sprint(i), size, spec, snapshot).Content(content).Build())
			}
			var got []string
			for _, m := range c.rule.bin(manifests, iceberg.ManifestContentData, 2, map[int]bool{0: true, 1: true}) {
				got = append(got, fmt.Sprintf("%d:%d", m.PartitionSpecID(), m.Length()))
			}
			equal(t, c.list[:min(80, len(c.list))], got, strings.Fields(c.want))
		})
	}
}

// liveFiles is all that the head of a table says of its files, a line a file: by the library, and by
// Avro alone, whose lines lack what merging changes and what is inherited.
func liveFiles(t *testing.T, tbl *Table) (read, raw []string) {
	t.Helper()
	manifests, err := tbl.CurrentSnapshot().Manifests(mustFS(t, tbl))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifests {
		for e, err := range m.Entries(mustFS(t, tbl), true) {
			if err != nil {
				t.Fatal(err)
			}
			f, row := e.DataFile(), int64(-1)
			if id := f.FirstRowID(); id != nil {
				row = *id
			}
			read = append(read, fmt.Sprint(f.FilePath(), " snapshot ", e.SnapshotID(), " seq ", e.SequenceNum(), " ", *e.FileSequenceNum(), " row ", row, " spec ", f.SpecID(), " ",
				f.Partition(), f.Count(), f.FileSizeBytes(), f.ColumnSizes(), f.ValueCounts(), f.NullValueCounts(), f.NaNValueCounts(),
				f.LowerBoundValues(), f.UpperBoundValues(), f.KeyMetadata(), f.SplitOffsets(), *f.SortOrderID()))
		}
		text, err := os.ReadFile(local(t, m.FilePath()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := ocf.NewReader(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for {
			var entry map[string]any
			if r.Decode(&entry) != nil {
				break
			}
			file := entry["data_file"].(map[string]any)
			delete(file, "first_row_id")
			for name, v := range file { // maps are lists of pairs, in no order
				if pairs, ok := v.([]any); ok {
					slices.SortFunc(pairs, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
					file[name] = pairs
				}
			}
			raw = append(raw, fmt.Sprint(file))
		}
		r.Close()
	}
	slices.Sort(read)
	slices.Sort(raw)
	return read, raw
}

// everyPartition is a table partitioned by every type and transform, and two files of it.
func everyPartition(t *testing.T, version int) (*Table, []iceberg.DataFile) {
	t.Helper()
	types := []iceberg.Type{
		prim.Bool, prim.Int32, prim.Int64, prim.Float32, prim.Float64, prim.Bool, iceberg.DecimalTypeOf(38, 10),
		prim.Date, prim.Time, prim.Timestamp, prim.TimestampTz, prim.String, prim.UUID, iceberg.FixedTypeOf(16), prim.Binary, prim.Timestamp,
	}
	if version >= 3 {
		types = append(types, prim.TimestampNs, prim.TimestampTzNs)
	}
	var fields []iceberg.NestedField
	var parts []iceberg.PartitionField
	part := func(source int, transform iceberg.Transform) {
		parts = append(parts, iceberg.PartitionField{SourceIDs: []int{source}, FieldID: 1000 + len(parts), Name: fmt.Sprint("p", len(parts)), Transform: transform})
	}
	for i, typ := range types {
		fields = append(fields, opt(i+1, fmt.Sprint("c", i), typ))
		part(i+1, iceberg.IdentityTransform{})
	}
	part(12, iceberg.BucketTransform{NumBuckets: 8})
	part(12, iceberg.TruncateTransform{Width: 2})
	part(12, iceberg.VoidTransform{})
	part(8, iceberg.YearTransform{})
	part(10, iceberg.MonthTransform{})
	part(11, iceberg.DayTransform{})
	part(16, iceberg.HourTransform{})
	tbl := newTable(t, schemaOf(fields...), iceberg.NewPartitionSpec(parts...), fmt.Sprint("version=", version), "commit.manifest.min-count-to-merge=3")
	full := `{"c0":true,"c1":-5,"c2":9007199254740993,"c3":1.5,"c4":-2.25,"c5":false,"c6":"1234567890123456789012345678.0123456789",
		"c7":"1969-12-31","c8":"12:34:56.789012","c9":"1969-12-31 23:59:59.000001","c10":"2024-02-29 12:00:00.5Z","c11":"añ☃",
		"c12":"00112233-4455-6677-8899-aabbccddeeff","c13":"AAECAwQFBgcICQoLDA0ODw==","c14":"AP8=","c15":"1969-12-31 22:59:59.999999"}`
	if version >= 3 {
		full = strings.TrimSuffix(full, "}") + `,"c16":"1969-12-31 23:59:59.000000001","c17":"2024-02-29 12:00:00.5Z"}`
	}
	return tbl, written(t, tbl, "["+full+`,{"c0":null}]`)
}

// TestMergeLosesNothing: of every kind of partition value, metric and number that a manifest entry
// holds, all is there after merging, and after merging again.
func TestMergeLosesNothing(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			tbl, files := everyPartition(t, version)
			if len(files) != 2 {
				t.Fatalf("%d files", len(files))
			}
			for i, f := range files { // of the first, all metrics
				b, err := iceberg.NewDataFileBuilder(tbl.Spec(), f.ContentType(), f.FilePath(), f.FileFormat(), f.Partition(), nil, nil, f.Count(), f.FileSizeBytes())
				if err != nil {
					t.Fatal(err)
				}
				b.SortOrderID(i)
				if i == 0 {
					b.ColumnSizes(f.ColumnSizes()).ValueCounts(f.ValueCounts()).NullValueCounts(f.NullValueCounts()).NaNValueCounts(map[int]int64{4: 1}).
						LowerBoundValues(f.LowerBoundValues()).UpperBoundValues(f.UpperBoundValues()).KeyMetadata([]byte{0, 1}).SplitOffsets([]int64{4, 99})
				}
				files[i] = b.Build()
			}
			var wantRead, wantRaw []string
			merges := 0
			for n := range int64(7) {
				batch := slices.Clone(files)
				for i, f := range batch {
					batch[i] = renamed(t, tbl, f, fmt.Sprintf("%s/data/%d-%d.parquet", tbl.Location(), n, i))
				}
				if _, err := tbl.Append(t.Context(), Commit{Branch: "main", Mark: markOf(n), Files: batch}); err != nil {
					t.Fatal(err)
				}
				read, raw := liveFiles(t, load(t, tbl))
				for _, line := range wantRead {
					if !slices.Contains(read, line) {
						t.Errorf("after batch %d this is no more:\n%s\namong\n%s", n, line, strings.Join(read, "\n"))
					}
				}
				for _, line := range wantRaw {
					if !slices.Contains(raw, line) {
						t.Errorf("after batch %d this is no more:\n%s", n, line)
					}
				}
				if len(read) != 2*int(n+1) || len(raw) != len(read) {
					t.Fatalf("%d and %d files after batch %d", len(read), len(raw), n)
				}
				wantRead, wantRaw = read, raw
				manifests, err := load(t, tbl).CurrentSnapshot().Manifests(mustFS(t, tbl))
				if err != nil {
					t.Fatal(err)
				}
				if len(manifests) > 3 {
					t.Errorf("%d manifests", len(manifests))
				}
				for _, m := range manifests {
					if m.SnapshotID() == tbl.CurrentSnapshot().SnapshotID && m.ExistingDataFiles() > 0 {
						merges++
						if version > 1 && (m.MinSequenceNum() != 1 || m.SequenceNum() != n+1) {
							t.Errorf("sequence numbers %d from %d", m.SequenceNum(), m.MinSequenceNum())
						}
					}
				}
			}
			if merges != 5 { // from the third on there are three each time
				t.Errorf("%d merges", merges)
			}
			if _, set := load(t, tbl).Properties()[table.ManifestMergeEnabledKey]; set {
				t.Error("the table's properties were written to")
			}
			rowIDs(t, load(t, tbl))
		})
	}
}

// renamed is a data file under another path.
func renamed(t *testing.T, tbl *Table, f iceberg.DataFile, path string) iceberg.DataFile {
	t.Helper()
	b, err := iceberg.NewDataFileBuilder(tbl.Spec(), f.ContentType(), path, f.FileFormat(), f.Partition(), nil, nil, f.Count(), f.FileSizeBytes())
	if err != nil {
		t.Fatal(err)
	}
	b.ColumnSizes(f.ColumnSizes()).ValueCounts(f.ValueCounts()).NullValueCounts(f.NullValueCounts()).NaNValueCounts(f.NaNValueCounts()).
		LowerBoundValues(f.LowerBoundValues()).UpperBoundValues(f.UpperBoundValues()).SortOrderID(*f.SortOrderID())
	if k := f.KeyMetadata(); len(k) > 0 {
		b.KeyMetadata(k)
	}
	if s := f.SplitOffsets(); len(s) > 0 {
		b.SplitOffsets(s)
	}
	return b.Build()
}

// rowIDs are the first row IDs of the files of a table of format version 3 by path. Ranges that overlap,
// or that the table's next-row-id does not know of, fail the test.
func rowIDs(t *testing.T, tbl *Table) map[string]int64 {
	t.Helper()
	if tbl.Metadata().Version() < 3 {
		return nil
	}
	manifests, err := tbl.CurrentSnapshot().Manifests(mustFS(t, tbl))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]int64{}
	var ranges [][2]int64
	for _, m := range manifests {
		if m.ManifestContent() == iceberg.ManifestContentData && m.FirstRowID() == nil {
			t.Errorf("manifest %s has no row ID", m.FilePath())
		}
		for e, err := range m.Entries(mustFS(t, tbl), true) {
			if err != nil {
				t.Fatal(err)
			}
			id := e.DataFile().FirstRowID()
			if id == nil {
				t.Fatalf("%s has no row ID", e.DataFile().FilePath())
			}
			ids[e.DataFile().FilePath()] = *id
			ranges = append(ranges, [2]int64{*id, *id + e.DataFile().Count()})
		}
	}
	slices.SortFunc(ranges, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	end := int64(0)
	for _, r := range ranges {
		if r[0] < end {
			t.Errorf("rows have the same ID: %d", ranges)
		}
		end = r[1]
	}
	if next := tbl.Metadata().NextRowID(); end > next {
		t.Errorf("row IDs to %d, but the next is %d", end, next)
	}
	return ids
}
