package lake

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
)

// summaries are the partition bounds in the manifest list of the table's head, one line a manifest.
func summaries(t *testing.T, tbl *Table) []string {
	t.Helper()
	text, err := os.ReadFile(local(t, tbl.CurrentSnapshot().ManifestList))
	if err != nil {
		t.Fatal(err)
	}
	list, err := readList(text)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, entry := range list.entries {
		line := ""
		for _, p := range entry["partitions"].([]any) {
			summary := p.(map[string]any)
			line += fmt.Sprintf("%s..%s null=%v ", bound(summary["lower_bound"]), bound(summary["upper_bound"]), summary["contains_null"])
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

func bound(v any) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprintf("%q", v)
}

// TestEmptyBounds: case 61. An empty partition value has a bound in the manifest list, also when
// manifests are merged and when a later commit carries them over.
func TestEmptyBounds(t *testing.T) {
	batches := []struct{ rows, want string }{
		{`[{"id":1,"p":""},{"id":2,"p":"b"}]`, `"".."b" null=false `},
		{`[{"id":3,"p":""}]`, `"".."" null=false `},
		{`[{"id":4,"p":""},{"id":5,"p":null}]`, `"".."" null=true `},
		{`[{"id":6,"p":null}]`, `none..none null=true `},
		{`[{"id":7,"p":"c"}]`, `"c".."c" null=false `},
	}
	for version := 1; version <= 3; version++ {
		for _, merge := range []string{"100", "2"} {
			t.Run(fmt.Sprintf("v%d, merged from %s on", version, merge), func(t *testing.T) {
				tbl := newTable(t, idAndText(), identity(2, "p"), fmt.Sprint("version=", version), "commit.manifest.min-count-to-merge="+merge)
				var want []string
				var ids []int64
				for i, b := range batches {
					appended(t, tbl, int64(i), b.rows)
					want = append(want, b.want)
					slices.Sort(want)
					if merge == "2" && i > 1 { // all before it are one
						want = []string{[]string{"", "", `"".."b" null=false `, `"".."b" null=true `, `"".."b" null=true `}[i], b.want}
						slices.Sort(want)
					}
					equal(t, fmt.Sprint("bounds after batch ", i), summaries(t, load(t, tbl)), want)
				}
				manifests, err := load(t, tbl).CurrentSnapshot().Manifests(mustFS(t, tbl))
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range manifests {
					if id := m.FirstRowID(); id != nil {
						ids = append(ids, *id)
					}
				}
				slices.Sort(ids)
				wantIDs := []int64{0, 2, 3, 5, 6}
				if merge == "2" {
					wantIDs = []int64{6, 7} // no file of the merged one takes its ID from there
				}
				if version == 3 && !slices.Equal(ids, wantIDs) {
					t.Errorf("first row IDs %d", ids)
				}
				if lines := scanned(t, load(t, tbl), ScanOptions{}); len(lines) != 7 {
					t.Errorf("%d rows: %s", len(lines), lines)
				}
			})
		}
	}
}

// TestEmptyBoundsOfOthers: a list that another program wrote without bounds is mended by the next
// commit, where it is plain that they are missing.
func TestEmptyBoundsOfOthers(t *testing.T) {
	tbl := newTable(t, idAndText(), identity(2, "p"))
	for i, text := range []string{`[{"id":1,"p":""},{"id":2,"p":"b"}]`, `[{"id":3,"p":""}]`} {
		tx := tbl.NewTransaction()
		if err := tx.AddDataFiles(t.Context(), written(t, tbl, text), nil); err != nil {
			t.Fatal(err)
		}
		loaded, err := tx.Commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tbl.Table = loaded
		if i == 0 {
			equal(t, "what the library writes", summaries(t, tbl), []string{`none.."b" null=false `})
		}
	}
	appended(t, tbl, 0, `[{"id":4,"p":"c"}]`)
	equal(t, "bounds", summaries(t, tbl), []string{`"".."" null=false `, `"".."b" null=false `, `"c".."c" null=false `})
}

// TestEmptyBoundsOfBytes: binary values and truncated ones, two partition fields.
func TestEmptyBoundsOfBytes(t *testing.T) {
	schema := schemaOf(opt(1, "b", prim.Binary), opt(2, "s", prim.String), opt(3, "n", prim.Int64))
	spec := iceberg.NewPartitionSpec(
		iceberg.PartitionField{SourceIDs: []int{3}, FieldID: 1000, Name: "n", Transform: iceberg.IdentityTransform{}},
		iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1001, Name: "b", Transform: iceberg.IdentityTransform{}},
		iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1002, Name: "s2", Transform: iceberg.TruncateTransform{Width: 2}},
	)
	tbl := newTable(t, schema, spec, "commit.manifest.min-count-to-merge=2")
	appended(t, tbl, 0, `[{"b":"","s":"","n":1},{"b":"eA==","s":"abc","n":1}]`)
	appended(t, tbl, 1, `[{"b":null,"s":"","n":2}]`)
	appended(t, tbl, 2, `[{"b":"eA==","s":"b","n":3}]`)
	equal(t, "bounds", summaries(t, tbl), []string{
		`"\x01\x00\x00\x00\x00\x00\x00\x00".."\x02\x00\x00\x00\x00\x00\x00\x00" null=false "".."x" null=true "".."ab" null=false `,
		`"\x03\x00\x00\x00\x00\x00\x00\x00".."\x03\x00\x00\x00\x00\x00\x00\x00" null=false "x".."x" null=false "b".."b" null=false `,
	})
	fs := mustFS(t, tbl)
	manifests, err := tbl.CurrentSnapshot().Manifests(fs)
	if err != nil {
		t.Fatal(err)
	}
	empty := 0
	for entry, err := range manifests[1].Entries(fs, true) {
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := entry.DataFile().Partition()[1001].([]byte); ok && len(v) == 0 {
			empty++
		}
	}
	if empty != 1 {
		t.Errorf("%d entries with empty bytes after the merge", empty)
	}
}
