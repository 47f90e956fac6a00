package lake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/crash"
	"icepipe/internal/datafile"
)

// A DeleteMode says how rows are taken out of a table.
type DeleteMode int

const (
	// CopyOnWrite writes the other rows of a data file anew, and takes the file out.
	CopyOnWrite DeleteMode = iota
	// MergeOnRead writes the positions of the rows down: in position delete files in format version 2, in
	// deletion vectors in version 3. Version 1 has neither.
	MergeOnRead
)

func (m DeleteMode) String() string {
	if m == MergeOnRead {
		return "merge-on-read"
	}
	return "copy-on-write"
}

// Table properties that say how row-level changes are made; the names and values are those of Iceberg's Java
// library. The first that is set counts.
var modeProperties = []string{"write.merge.mode", "write.update.mode"}

// DeleteMode is the mode that a user means by "auto", "copy-on-write" or "position". "auto" is what the table's
// properties say, and position deletes where they say nothing; format version 1 knows copies alone.
func (t *Table) DeleteMode(mode string) (DeleteMode, error) {
	m, _, err := t.DeleteModeWhy(mode)
	return m, err
}

// DeleteModeWhy is DeleteMode, and says what decided.
func (t *Table) DeleteModeWhy(mode string) (m DeleteMode, why string, err error) {
	version := t.Metadata().Version()
	switch mode {
	case "copy-on-write":
		return CopyOnWrite, "--delete-mode copy-on-write", nil
	case "position":
		return MergeOnRead, "--delete-mode position", t.bears(MergeOnRead)
	case "auto":
	default:
		return 0, "", fmt.Errorf("delete mode %q: want auto, copy-on-write or position", mode)
	}
	if version < 2 {
		return CopyOnWrite, "format version 1 has no deletes", nil
	}
	for _, name := range modeProperties {
		value, set := t.Properties()[name]
		switch {
		case !set:
		case strings.EqualFold(value, "copy-on-write"):
			return CopyOnWrite, name + "=" + value, nil
		case strings.EqualFold(value, "merge-on-read"):
			return MergeOnRead, name + "=" + value, nil
		default:
			return 0, "", fmt.Errorf("table %q: property %q is %q: want copy-on-write or merge-on-read; --delete-mode says it for this job", t.Name(), name, value)
		}
	}
	return MergeOnRead, "the table's properties do not say", nil
}

// bears refuses a mode that the table's format version does not have.
func (t *Table) bears(mode DeleteMode) error {
	if mode == MergeOnRead && t.Metadata().Version() < 2 {
		return lasting{fmt.Errorf("table %q has format version 1, which has no position deletes: use --delete-mode copy-on-write, or upgrade the table to version 2", t.Name())}
	}
	return nil
}

// An Upsert makes a commit take rows out of the table in the same snapshot as its files bring others. It is of
// one commit, and may be used for all tries of it.
type Upsert struct {
	Mode      DeleteMode
	Job       string
	Resources datafile.Resources

	// Gone says which rows go: the positions, in data files by their paths, of rows that live in head, nil for a
	// branch without a snapshot. It is asked at each try. An error of it ends the try, and the commit if it is
	// lasting. What it returns is not changed.
	Gone func(ctx context.Context, head *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error)

	kept map[string]*replacement // by what they were written for, at an earlier try
	mem  memory.Allocator
}

func (u *Upsert) memory() memory.Allocator {
	if u.mem == nil {
		return memory.DefaultAllocator
	}
	return u.mem
}

// keep keeps what was written for another try.
func (u *Upsert) keep(key string, r *replacement) {
	if u.kept == nil {
		u.kept = map[string]*replacement{}
	}
	u.kept[key] = r
}

// Lasting marks an error as one that asking again does not mend, so that a commit that it ends is not tried
// again.
func Lasting(err error) error { return lasting{err} }

// Upsertable refuses a branch that an upsert could not find rows in, or take them out of. It changes nothing.
func (t *Table) Upsertable(ctx context.Context, branch string, mode DeleteMode) error {
	if err := t.bears(mode); err != nil {
		return err
	}
	head, err := t.Branch(branch)
	if err != nil || head == nil {
		return err
	}
	fs, err := t.FS(ctx)
	if err != nil {
		return err
	}
	manifests, err := head.Manifests(fs)
	if err != nil {
		return fmt.Errorf("table %q: %w", t.Name(), err)
	}
	for _, m := range manifests {
		if err := t.rewritable(int(m.PartitionSpecID())); err != nil {
			return fmt.Errorf("table %q: %w", t.Name(), err)
		}
	}
	for entry, err := range t.liveFiles(ctx, head, nil) {
		if err != nil {
			return fmt.Errorf("table %q: %w", t.Name(), err)
		}
		switch f := entry.DataFile(); {
		case f.FileFormat() != iceberg.ParquetFile:
			return fmt.Errorf("table %q: file %q is %s, and has to be read for the keys of its rows: only Parquet can be; rewrite it with another engine first, for example by Spark's rewrite_data_files with write.format.default=parquet", t.Name(), f.FilePath(), f.FileFormat())
		case len(f.KeyMetadata()) > 0:
			return fmt.Errorf("table %q: file %q is encrypted, and has to be read for the keys of its rows, which is not possible", t.Name(), f.FilePath())
		}
	}
	return nil
}

// stageUpsert makes an attempt that adds the commit's files and takes rows out. Where no row goes it is an
// append.
func (t *Table) stageUpsert(ctx context.Context, c Commit) (attempt, error) {
	u := c.Upsert
	if err := t.bears(u.Mode); err != nil {
		return attempt{}, err
	}
	head, err := t.Branch(c.Branch)
	if err != nil {
		return attempt{}, err
	}
	gone, err := u.Gone(ctx, head)
	if err != nil {
		return attempt{}, err
	}
	gone = maps.Clone(gone)
	maps.DeleteFunc(gone, func(_ string, bits *dv.RoaringPositionBitmap) bool { return bits == nil || bits.IsEmpty() })
	if len(gone) == 0 {
		return t.stageAppend(ctx, c)
	}
	if c.Overwrite != nil {
		return attempt{}, lasting{fmt.Errorf("a commit cannot both replace partitions and upsert")}
	}
	live, err := t.living(ctx, head, gone)
	if err != nil {
		return attempt{}, err
	}
	var r *replacement
	switch {
	case u.Mode == CopyOnWrite:
		r, err = t.copied(ctx, u, head, live, gone)
	case t.Metadata().Version() == 2:
		r, err = t.positionDeletes(ctx, u, live.named, gone)
	default:
		r, err = t.vectors(ctx, u, live.named, gone)
	}
	if err != nil {
		return attempt{}, fmt.Errorf("take rows out (%s): %w", u.Mode, err)
	}
	crash.Here("lake.deletes-written")
	again := *r // what the attempt finds out about the manifests is its own
	return t.stageReplacement(ctx, c, &again)
}

// A liveness is what lives in a snapshot.
type liveness struct {
	all   []iceberg.DataFile
	named []table.FileScanTask // the data files of which rows go, by path, and their deletes
}

// living finds the data files that rows go of. A file that does not live in the snapshot is an error, and so is a
// position behind its end: whoever asked knows another table.
func (t *Table) living(ctx context.Context, head *table.Snapshot, gone map[string]*dv.RoaringPositionBitmap) (liveness, error) {
	var out liveness
	if head == nil {
		return out, lasting{fmt.Errorf("rows are to go of a branch that has no snapshot")}
	}
	plan := &Scan{table: t, snapshot: head}
	tasks, err := plan.tasks(ctx)
	if err != nil {
		return out, fmt.Errorf("plan snapshot %d: %w%s", head.SnapshotID, err, plan.oddPartitionNames())
	}
	seen := map[string]bool{}
	for _, task := range tasks {
		if task.Start != 0 {
			continue // a later part of a file that is taken whole
		}
		f := task.File
		out.all = append(out.all, f)
		bits := gone[f.FilePath()]
		if bits == nil {
			continue
		}
		if seen[f.FilePath()] {
			return out, lasting{fmt.Errorf("data file %q is in snapshot %d twice, so that its rows cannot be told apart: rewrite the table's manifests first", f.FilePath(), head.SnapshotID)}
		}
		seen[f.FilePath()] = true
		if last := lastOf(bits); last >= uint64(f.Count()) {
			return out, lasting{fmt.Errorf("row %d is to go of data file %q, which has %d rows", last, f.FilePath(), f.Count())}
		}
		out.named = append(out.named, task)
	}
	for path := range gone {
		if !seen[path] {
			return out, lasting{fmt.Errorf("rows are to go of data file %q, which is not in snapshot %d", path, head.SnapshotID)}
		}
	}
	slices.SortFunc(out.named, func(a, b table.FileScanTask) int { return strings.Compare(a.File.FilePath(), b.File.FilePath()) })
	return out, nil
}

func lastOf(bits *dv.RoaringPositionBitmap) (last uint64) {
	for at := range bits.Positions() {
		last = at
	}
	return last
}
