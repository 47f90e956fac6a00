package lake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

// A job of many commits leaves few delete files of a data file, and few manifests.
func TestUpsertMany(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 12
	}
	for version := 2; version <= 3; version++ {
		tbl := newTable(t, idAndText(), unpartitioned(), fmt.Sprintf("version=%d", version), "commit.manifest.min-count-to-merge=5")
		appended(t, tbl, 0, ids(1, n))
		for i := 1; i <= n; i++ {
			upserted(t, tbl, int64(i), MergeOnRead, fmt.Sprintf(`[{"id":%d,"p":"new"}]`, i))
			soundSummary(t, tbl, 0)
		}
		var want []string
		for i := range n {
			want = append(want, fmt.Sprintf(`{"id":%d,"p":"new"}`, i+1))
		}
		equal(t, "rows", sorted(scanned(t, load(t, tbl), ScanOptions{})), sorted(want))
		counts(t, load(t, tbl), n)
		soundDeletes(t, tbl)
		deletes := entriesOf(t, tbl, iceberg.ManifestContentDeletes)
		if most := map[int]int{2: ownDeleteFilesMost, 3: 1}[version]; len(deletes) > most {
			t.Errorf("v%d: %d delete files", version, len(deletes))
		}
		manifests, err := load(t, tbl).CurrentSnapshot().Manifests(mustFS(t, tbl))
		if err != nil {
			t.Fatal(err)
		}
		if len(manifests) > 15 {
			t.Errorf("v%d: %d manifests", version, len(manifests))
		}
		ids := rowIDsByID(t, tbl)
		sameRowIDs(t, nil, ids, len(ids))
		if got := summaryOf(t, tbl, "total-records", "total-position-deletes"); !strings.Contains(got, fmt.Sprintf("total-records=%d total-position-deletes=%d", 2*n, n)) {
			t.Errorf("v%d: %s", version, got)
		}
	}
}
