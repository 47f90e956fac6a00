package lake

import (
	"context"
	"fmt"
	"strconv"

	"github.com/apache/iceberg-go"
)

// JobFiles are the data files that a job's snapshots added to a branch, as the last of them has them.
type JobFiles struct {
	Snapshot int64 // the job's last; -1 where the job has none
	Paths    map[string]bool
}

// JobFiles finds the files of a job by its marks. A file that is not in the job's last snapshot any more was
// replaced by another writer: that is an error, since its rows are no longer told apart from others.
func (t *Table) JobFiles(ctx context.Context, branch, job string) (JobFiles, error) {
	out := JobFiles{Snapshot: -1, Paths: map[string]bool{}}
	history, err := t.History(branch)
	if err != nil {
		return out, err
	}
	marks, err := history.MarksOf(job)
	if err != nil || len(marks) == 0 {
		return out, err
	}
	last := t.Metadata().SnapshotByID(marks[len(marks)-1].Snapshot)
	out.Snapshot = last.SnapshotID
	left := map[int64]int{} // files of each snapshot that are still to be found
	for _, m := range marks {
		n, err := strconv.Atoi(t.Metadata().SnapshotByID(m.Snapshot).Summary.Properties["added-data-files"])
		if err != nil {
			return out, fmt.Errorf("snapshot %d of table %q does not say how many files it added: %w", m.Snapshot, t.Name(), err)
		}
		left[m.Snapshot] = n
	}
	fs, err := t.FS(ctx)
	if err != nil {
		return out, err
	}
	manifests, err := last.Manifests(fs)
	if err != nil {
		return out, err
	}
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		for entry, err := range m.Entries(fs, true) {
			if err != nil {
				return out, err
			}
			if _, ours := left[entry.SnapshotID()]; ours {
				left[entry.SnapshotID()]--
				out.Paths[entry.DataFile().FilePath()] = true
			}
		}
	}
	for snapshot, n := range left {
		if n != 0 {
			return out, fmt.Errorf("of the files that snapshot %d of table %q added for the job, %d are gone from its last snapshot %d: another writer replaced them; compare the whole tables (--scope table)", snapshot, t.Name(), n, last.SnapshotID)
		}
	}
	return out, nil
}
