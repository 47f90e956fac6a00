package lake

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"weak"
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
