package lake

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// liveFiles yields the entries of the data files that live in a snapshot, manifest by manifest. Manifests that skip
// says are left out are not read; nil leaves none out.
func (t *Table) liveFiles(ctx context.Context, s *table.Snapshot, skip func(iceberg.ManifestFile) bool) iter.Seq2[iceberg.ManifestEntry, error] {
	return func(yield func(iceberg.ManifestEntry, error) bool) {
		fs, err := t.FS(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		manifests, err := s.Manifests(fs)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, m := range manifests {
			if m.ManifestContent() != iceberg.ManifestContentData || skip != nil && skip(m) {
				continue
			}
			for entry, err := range m.Entries(fs, true) {
				if err != nil {
					err = fmt.Errorf("manifest %q: %w", m.FilePath(), err)
				} else {
					err = ctx.Err()
				}
				if !yield(entry, err) || err != nil {
					return
				}
			}
		}
	}
}
