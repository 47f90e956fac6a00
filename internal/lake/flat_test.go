package lake

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"weak"

	"github.com/apache/iceberg-go"
)

// TestCommitsForget: a table that goes on from the catalog's answer to a commit keeps none of those
// before it alive, and reads no metadata of its own.
func TestCommitsForget(t *testing.T) {
	for version := 2; version <= 3; version++ {
		tbl := newTable(t, idAndText(), unpartitioned(), fmt.Sprint("version=", version))
		var former []weak.Pointer[byte] // the metadata itself, whose type is the library's own
		for n := range int64(12) {
			former = append(former, weak.Make((*byte)(reflect.ValueOf(tbl.Metadata()).UnsafePointer())))
			appended(t, tbl, n, `[{"id":1,"p":"x"}]`)
		}
		runtime.GC()
		alive := 0
		for _, p := range former {
			if p.Value() != nil {
				alive++
			}
		}
		if alive > 1 { // the first may hold the file system
			t.Errorf("v%d: the metadata of %d of %d former tables is alive", version, alive, len(former))
		}
		runtime.KeepAlive(tbl)
	}
}

// BenchmarkCommits commits one file after another on a table of its own: what grows with the history
// that the table keeps. The data file is not written.
func BenchmarkCommits(b *testing.B) {
	for _, commits := range []int64{200, 1000} {
		b.Run(fmt.Sprint(commits), func(b *testing.B) {
			for b.Loop() {
				tbl := newTable(b, idAndText(), unpartitioned())
				var since *int64
				for n := range commits {
					f := fileAt(b, tbl, iceberg.EntryContentData, fmt.Sprintf("%s/data/%d.parquet", tbl.Location(), n), 1).Build()
					c, err := tbl.Append(b.Context(), Commit{Branch: "main", Mark: markOf(n), Files: []iceberg.DataFile{f}, Since: since})
					if err != nil {
						b.Fatal(err)
					}
					since = &c.Snapshot
				}
			}
		})
	}
}
