package migrate_test

import (
	"os"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"

	"icepipe/pkg/migrate"
)

// TestCountsLiveRows: rows that deletes took out do not count, though total-records has them (case 27).
func TestCountsLiveRows(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		s := newStore(t)
		s.create(t, "src", people())
		s.insert(t, "src", ids(0, 3)...)
		s.create(t, "dst", people(), catalog.WithProperties(iceberg.Properties{"format-version": version, "write.delete.mode": "merge-on-read"}))
		s.insert(t, "dst", ids(0, 4)...)
		_, err := s.load(t, "dst").Delete(t.Context(), iceberg.EqualTo(iceberg.Reference("id"), int64(3)), nil)
		must(t, err)
		equal(t, "total-records", s.load(t, "dst").CurrentSnapshot().Summary.Properties["total-records"], "4")
		for _, method := range methods {
			v := verify(t, s.open(t, "src"), s.open(t, "dst"), migrate.VerifyOptions{Method: method})
			equal(t, "v"+version+", "+method+" agrees", v.Matches, true)
			equal(t, "counts", []int64{*v.SourceCount, *v.DestCount}, []int64{3, 3})
		}
	}
}

// TestExpiredWhileVerifying: files of the source that are removed while they are compared, as an expiry does, are
// an error, and neither tables that agree nor tables that differ (case 90).
func TestExpiredWhileVerifying(t *testing.T) {
	for _, method := range []string{migrate.MethodPartitionHash, migrate.MethodSample, migrate.MethodDiff} {
		for _, equal := range []bool{false, true} {
			s := newStore(t)
			s.create(t, "src", people())
			s.put(t, "src", ids(0, 40), 20)
			s.create(t, "dst", people())
			if equal {
				s.insert(t, "dst", ids(0, 40)...)
			}
			gone := false
			v, err := migrate.Verify(t.Context(), s.open(t, "src"), s.open(t, "dst"), migrate.VerifyOptions{Method: method, Observe: func(int64) {
				if gone {
					return
				}
				gone = true
				for _, path := range s.files(t, "src") {
					must(t, os.Remove(strings.TrimPrefix(path, "file://")))
				}
			}})
			if err == nil {
				t.Errorf("%s, equal %v: %+v", method, equal, v)
				continue
			}
			wantError(t, err, "no such file")
		}
	}
}
