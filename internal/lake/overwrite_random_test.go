package lake

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
)

// A partitioning of the random test: how its spec comes about, and what of a row tells its partition.
type partitioning struct {
	name string
	to   func(*table.UpdateSpec) *table.UpdateSpec
	key  func(row) string
}

type row struct {
	ID int64   `json:"id"`
	P  *string `json:"p"`
	Q  int64   `json:"q"`
}

func (r row) text() string {
	b, _ := json.Marshal(r)
	return string(b)
}

func textOf(p *string) string {
	if p == nil {
		return "NULL"
	}
	return "=" + *p
}

// steps are evolutions of the partition spec, one after the other.
func steps() []partitioning {
	first := func(p *string) string {
		if p == nil || *p == "" {
			return textOf(p)
		}
		return "=" + (*p)[:1]
	}
	return []partitioning{
		{"p", func(u *table.UpdateSpec) *table.UpdateSpec { return u.AddIdentity("p") }, func(r row) string { return textOf(r.P) }},
		{"p, q", func(u *table.UpdateSpec) *table.UpdateSpec { return u.AddIdentity("q") }, func(r row) string { return fmt.Sprint(textOf(r.P), "/", r.Q) }},
		{"q", func(u *table.UpdateSpec) *table.UpdateSpec { return u.RemoveField("p") }, func(r row) string { return fmt.Sprint(r.Q) }},
		{"q, truncate p", func(u *table.UpdateSpec) *table.UpdateSpec {
			return u.AddField("p", iceberg.TruncateTransform{Width: 1}, "p1")
		}, func(r row) string { return fmt.Sprint(first(r.P), "/", r.Q) }},
		{"truncate p", func(u *table.UpdateSpec) *table.UpdateSpec { return u.RemoveField("q") }, func(r row) string { return first(r.P) }},
		{"none", func(u *table.UpdateSpec) *table.UpdateSpec { return u.RemoveField("p1") }, func(r row) string { return "" }},
	}
}

// Whatever specs and deletes a table has had, an overwrite replaces the rows of the partitions that it
// touches, and no other (cases 1, 2, 15); all rows of v3 have a row ID of their own, and keep it.
func TestOverwriteRandom(t *testing.T) {
	seeds := 4
	if testing.Short() {
		seeds = 1
	}
	met := map[string]bool{} // so that the test cannot lose its point
	for seed := range seeds {
		for version := 1; version <= 3; version++ {
			t.Run(fmt.Sprintf("seed %d, v%d", seed, version), func(t *testing.T) {
				overwriteRandom(t, rand.New(rand.NewPCG(uint64(seed), 7)), version, met)
			})
		}
	}
	for _, what := range []string{"deleted-records", "removed-position-delete-files", "removed-dvs", "removed-equality-delete-files", markKeptRecords} {
		if !met[what] && !testing.Short() {
			t.Errorf("no overwrite had %s", what)
		}
	}
}

func overwriteRandom(t *testing.T, random *rand.Rand, version int, met map[string]bool) {
	schema := schemaOf(opt(1, "id", prim.Int64), opt(2, "p", prim.String), opt(3, "q", prim.Int64))
	tbl := newTable(t, schema, unpartitioned(), fmt.Sprintf("version=%d", version), "commit.manifest.min-count-to-merge=4")
	model := map[int64]row{}
	next, batch, slack := int64(0), int64(0), int64(0)
	values := []*string{nil, ptr(""), ptr("null"), ptr("a"), ptr("ab"), ptr("b")}
	some := func(n int) []row {
		var out []row
		for range n {
			out = append(out, row{next, values[random.IntN(len(values))], int64(random.IntN(2))})
			next++
		}
		return out
	}
	text := func(rows []row) string {
		var out []string
		for _, r := range rows {
			out = append(out, r.text())
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	holds := func(what string) {
		t.Helper()
		var want []string
		for _, r := range model {
			want = append(want, r.text())
		}
		equal(t, what, sorted(scanned(t, load(t, tbl), ScanOptions{})), sorted(want))
	}
	var key func(row) string
	for _, step := range steps() {
		for range 2 {
			rows := some(6)
			appended(t, tbl, batch, text(rows))
			batch++
			for _, r := range rows {
				model[r.ID] = r
			}
			if version > 1 && random.IntN(2) == 0 {
				slack += deleteSome(t, tbl, random, model)
			}
		}
		if random.IntN(3) > 0 {
			changed(t, tbl, func(tx *table.Transaction) error { return step.to(tx.UpdateSpec(true)).Commit() })
			key = step.key
		} else {
			changed(t, tbl, func(tx *table.Transaction) error { return step.to(tx.UpdateSpec(true)).Commit() })
			key = step.key
			rows := some(3)
			appended(t, tbl, batch, text(rows))
			batch++
			for _, r := range rows {
				model[r.ID] = r
			}
		}
		holds("before " + step.name)
		ids := rowIDsByID(t, tbl)
		rows := some(1 + random.IntN(2))
		touched := map[string]bool{}
		for _, r := range rows {
			touched[key(r)] = true
		}
		for id, r := range model {
			if touched[key(r)] {
				delete(model, id)
			}
		}
		for _, r := range rows {
			model[r.ID] = r
		}
		overwritten(t, tbl, batch, text(rows))
		batch++
		holds("after " + step.name)
		for what := range load(t, tbl).CurrentSnapshot().Summary.Properties {
			met[what] = true
		}
		soundSummary(t, tbl, slack)
		if version == 3 {
			sameRowIDs(t, ids, rowIDsByID(t, tbl), len(model))
		}
	}
}

func ptr[T any](v T) *T { return &v }

// deleteSome deletes the first row of a file of the head, by position where the table has deletion vectors or by an
// equality delete in the file's partition. It returns how many bytes the library's summary counts too many: of
// deletion vectors it counts the whole file.
func deleteSome(t *testing.T, tbl *Table, random *rand.Rand, model map[int64]row) (slack int64) {
	t.Helper()
	scan, err := tbl.PlanScan(t.Context(), ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := scan.files[random.IntN(len(scan.files))]
	if len(f.DeleteFiles)+len(f.EqualityDeleteFiles)+len(f.DeletionVectorFiles) > 0 {
		return 0
	}
	one, err := tbl.PlanScan(t.Context(), ScanOptions{Only: map[string]bool{f.File.FilePath(): true}})
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := all(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	var first row
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	delete(model, first.ID)
	spec := tbl.Metadata().PartitionSpecByID(int(f.File.SpecID()))
	build := func(content iceberg.ManifestEntryContent, path string) *iceberg.DataFileBuilder {
		b, err := iceberg.NewDataFileBuilder(*spec, content, path, iceberg.ParquetFile, f.File.Partition(), nil, nil, 1, 100)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var deletes []iceberg.DataFile
	switch {
	case random.IntN(2) == 0:
		arrowSchema := arrowOf(t, schemaOf(opt(1, "id", prim.Int64)), true)
		path := parquetFile(t, tbl, arrowSchema, nil, fmt.Sprintf(`[{"id":%d}]`, first.ID))
		deletes = []iceberg.DataFile{build(iceberg.EntryContentEqDeletes, path).EqualityFieldIDs([]int{1}).Build()}
	case tbl.Metadata().Version() == 2:
		path := parquetFile(t, tbl, arrowOf(t, iceberg.PositionalDeleteSchema, true), nil, fmt.Sprintf(`[{"file_path":%q,"pos":0}]`, f.File.FilePath()))
		deletes = []iceberg.DataFile{build(iceberg.EntryContentPosDeletes, path).Build()}
	default:
		w := dv.NewDVWriter(mustFS(t, tbl).(iceio.WriteFileIO), func(id int32) *iceberg.PartitionSpec { return tbl.Metadata().PartitionSpecByID(int(id)) })
		if err := w.Add(f.File.FilePath(), []int64{0}, f.File.SpecID(), f.File.Partition()); err != nil {
			t.Fatal(err)
		}
		if deletes, err = w.Flush(t.Context(), fmt.Sprintf("%s/data/%d.puffin", tbl.Location(), random.Uint64())); err != nil {
			t.Fatal(err)
		}
	}
	tbl.Table = load(t, tbl).Table
	delta(t, tbl, nil, deletes...)
	for _, d := range deletes {
		slack += d.FileSizeBytes() - sizeOf(d)
	}
	return slack
}

// rowIDsByID are the row IDs of a v3 table's live rows, by id, with the sequence number of their last change.
func rowIDsByID(t *testing.T, tbl *Table) map[int64][2]int64 {
	t.Helper()
	if tbl.Metadata().Version() < 3 {
		return nil
	}
	out := map[int64][2]int64{}
	fresh := load(t, tbl)
	records, err := fresh.Scan(table.WithSelectedFields("id", "_row_id", "_last_updated_sequence_number")).ToArrowTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer records.Release()
	for _, line := range tableLines(t, records) {
		var r struct {
			ID  int64  `json:"id"`
			Row *int64 `json:"_row_id"`
			Seq *int64 `json:"_last_updated_sequence_number"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Row == nil || r.Seq == nil {
			t.Fatalf("%s: %v", line, err)
		}
		out[r.ID] = [2]int64{*r.Row, *r.Seq}
	}
	return out
}

func sameRowIDs(t *testing.T, before, after map[int64][2]int64, n int) {
	t.Helper()
	seen := map[int64]bool{}
	for id, is := range after {
		if seen[is[0]] {
			t.Errorf("row ID %d is used twice", is[0])
		}
		seen[is[0]] = true
		if was, stayed := before[id]; stayed && was != is {
			t.Errorf("row %d had row ID and sequence number %v, and has %v", id, was, is)
		}
	}
	if len(after) != n {
		t.Errorf("%d rows have row IDs, want %d", len(after), n)
	}
}

// tableLines are the rows of an Arrow table as JSON.
func tableLines(t *testing.T, of arrow.Table) []string {
	t.Helper()
	reader := array.NewTableReader(of, 0)
	defer reader.Release()
	var out []string
	for reader.Next() {
		text, err := reader.RecordBatch().MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.Trim(string(text), "[]\n"), "\n") {
			out = append(out, strings.TrimPrefix(line, ","))
		}
	}
	return out
}
