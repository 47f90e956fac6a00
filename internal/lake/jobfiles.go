package lake

import (
	"context"
	"fmt"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

// JobFiles are the data files that a job's snapshots added to a branch, as the last of them has them.
type JobFiles struct {
	Snapshot int64 // the job's last; -1 where the job has none
	Paths    map[string]bool
}

// JobFiles finds the files of a job by its marks. known is how many batches the job is known to have
// committed, -1 where nobody knows. Where snapshots expired, so that marks of the job may have gone with them,
// the job's rows are not told apart from others, and where a file of it was replaced, by another writer or by copies
// that the job itself made of it, nobody can say that they are in the table: that is an error.
func (t *Table) JobFiles(ctx context.Context, branch, job string, known int64) (JobFiles, error) {
	out := JobFiles{Snapshot: -1, Paths: map[string]bool{}}
	history, err := t.History(branch)
	if err != nil {
		return out, err
	}
	marks, err := history.MarksOf(job)
	if err != nil {
		return out, err
	}
	if !history.Whole && !complete(marks, known) {
		return out, fmt.Errorf("snapshots of table %q have expired, and with them those of batches of the job, so that its files are not told apart any more: compare the whole tables (--scope table)", t.Name())
	}
	if len(marks) == 0 {
		return out, nil
	}
	last := t.Metadata().SnapshotByID(marks[len(marks)-1].Snapshot)
	out.Snapshot = last.SnapshotID
	left := map[int64]int{} // files of each snapshot that are still to be found
	for _, m := range marks {
		n, err := strconv.Atoi(t.Metadata().SnapshotByID(m.Snapshot).Summary.Properties["added-data-files"])
		if err != nil {
			return out, fmt.Errorf("snapshot %d of table %q does not say how many files it added: %w", m.Snapshot, t.Name(), err)
		}
		left[m.Snapshot] = n - keptBy(t.Metadata().SnapshotByID(m.Snapshot)).files
	}
	for entry, err := range t.liveFiles(ctx, last, nil) {
		if err != nil {
			return out, err
		}
		if _, ours := left[entry.SnapshotID()]; ours && !t.isKept(job, entry.DataFile().FilePath()) {
			left[entry.SnapshotID()]--
			out.Paths[entry.DataFile().FilePath()] = true
		}
	}
	lost := 0
	for _, n := range left {
		lost += n
	}
	if lost > 0 {
		own, err := t.replacedBy(ctx, job, marks)
		if err != nil {
			return out, err
		}
		if own >= lost {
			return out, fmt.Errorf("of the files that the job added to table %q, it wrote %d anew itself, together with rows of others, to change rows of them; compare the whole tables (--scope table)", t.Name(), own)
		}
	}
	for snapshot, n := range left {
		if n != 0 {
			return out, fmt.Errorf("of the files that snapshot %d of table %q added for the job, %d are gone from its last snapshot %d: another writer replaced them; compare the whole tables (--scope table)", snapshot, t.Name(), n, last.SnapshotID)
		}
	}
	return out, t.stillThere(ctx, &history.Snapshots[0], out)
}

// replacedBy counts the data files of a job that its own snapshots took out.
func (t *Table) replacedBy(ctx context.Context, job string, marks []Mark) (n int, err error) {
	fs, err := t.FS(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range marks {
		manifests, err := t.Metadata().SnapshotByID(m.Snapshot).Manifests(fs)
		if err != nil {
			return 0, err
		}
		for _, file := range manifests {
			if file.ManifestContent() != iceberg.ManifestContentData || file.SnapshotID() != m.Snapshot {
				continue
			}
			for entry, err := range file.Entries(fs, false) {
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					return 0, fmt.Errorf("manifest %q: %w", file.FilePath(), err)
				}
				if entry.Status() == iceberg.EntryStatusDELETED && entry.SnapshotID() == m.Snapshot && t.isOf(job, entry.DataFile().FilePath()) {
					n++
				}
			}
		}
	}
	return n, nil
}

// stillThere refuses files of a job that are not at the head of its branch any more.
func (t *Table) stillThere(ctx context.Context, head *table.Snapshot, files JobFiles) error {
	if head.SnapshotID == files.Snapshot {
		return nil
	}
	n := 0
	for entry, err := range t.liveFiles(ctx, head, nil) {
		if err != nil {
			return err
		}
		if files.Paths[entry.DataFile().FilePath()] {
			n++
		}
	}
	if gone := len(files.Paths) - n; gone > 0 {
		return fmt.Errorf("of the %d files that the job added to table %q, %d are gone at snapshot %d: another writer replaced them since; compare the whole tables (--scope table)", len(files.Paths), t.Name(), gone, head.SnapshotID)
	}
	return nil
}

// complete reports whether marks are those of all batches of a job: from its first row on without a gap, and
// as many as are known.
func complete(marks []Mark, known int64) bool {
	if int64(len(marks)) < known || len(marks) == 0 {
		return known == 0
	}
	if marks[0].From.Compare(rows.Cursor{}) != 0 {
		return false
	}
	for i, m := range marks[1:] {
		if m.From.Compare(marks[i].To) != 0 {
			return false
		}
	}
	return true
}
