package lake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/datafile"
)

// An Overwrite makes a commit replace the partitions, by value under the table's current spec, that its files
// lie in. It is of one commit, and may be used for all tries of it.
type Overwrite struct {
	Base       *int64 // head of the branch when the job began: what others did since is looked at
	Concurrent bool   // what they did in these partitions is replaced too, and no conflict
	Job        string
	Resources  datafile.Resources

	kept map[string]rewritten // by the files that were read, and their deletes
}

// What an overwrite says of rows that it moved and did not change, in the summary of its snapshot.
const (
	markKeptFiles   = "icepipe.kept-files"
	markKeptRecords = "icepipe.kept-records"
	markKeptSize    = "icepipe.kept-files-size"
)

// A replacement is what one snapshot takes out of the head of a branch, and puts back.
type replacement struct {
	data    map[string]bool // paths of data files that go
	deletes map[string]bool // of delete files: deleteKey
	kept    []iceberg.DataFile
	added   []iceberg.DataFile // delete files that come
	removed []iceberg.DataFile // all that go, as the manifests have them
}

// stageOverwrite makes an attempt that replaces partitions. The rows are added by the library; what goes is
// marked as deleted in manifests that are written anew, entry by entry, so that all else of them stays as
// it is: the library's own overwrites lose rows (cases 1 and 2).
func (t *Table) stageOverwrite(ctx context.Context, c Commit) (attempt, error) {
	head, err := t.Branch(c.Branch)
	if err != nil {
		return attempt{}, err
	}
	touched, err := t.touched(c.Files)
	if err != nil {
		return attempt{}, lasting{err}
	}
	if err := t.conflict(ctx, c, head, touched); err != nil {
		return attempt{}, err
	}
	r, err := t.replacement(ctx, c, head, touched)
	if err != nil {
		return attempt{}, err
	}
	return t.stageReplacement(ctx, c, r)
}

// stageReplacement makes an attempt that adds the commit's files, and takes out and brings what r says.
func (t *Table) stageReplacement(ctx context.Context, c Commit, r *replacement) (attempt, error) {
	on, err := t.staging()
	if err != nil {
		return attempt{}, err
	}
	tx, err := on.NewTransactionOnBranchWithError(c.Branch)
	if err != nil {
		return attempt{}, err
	}
	properties := iceberg.Properties(c.Mark.Properties())
	maps.Copy(properties, c.Properties)
	maps.Copy(properties, r.keptMarks())
	if err := tx.NewRowDelta(properties).AddRows(slices.Concat(c.Files, r.kept)...).Commit(ctx); err != nil {
		return attempt{}, err
	}
	staged, err := tx.StagedTable()
	if err != nil {
		return attempt{}, err
	}
	snapshot := staged.Metadata().SnapshotByName(c.Branch)
	if snapshot == nil {
		return attempt{}, fmt.Errorf("no snapshot was staged on branch %q", c.Branch)
	}
	err = t.editList(ctx, snapshot, func(fs iceio.WriteFileIO, list *manifestList) error {
		if err := t.takeOut(ctx, fs, snapshot, list, r); err != nil {
			return err
		}
		if err := t.bring(fs, snapshot, list, r.added); err != nil || c.Upsert == nil {
			return err
		}
		return t.tidy(ctx, fs, snapshot, list)
	})
	if err != nil {
		return attempt{}, err
	}
	if err := t.overwriteSummary(snapshot, slices.Concat(c.Files, r.kept, r.added), r.removed); err != nil {
		return attempt{}, err
	}
	return attemptOf(tx, snapshot)
}

// tidy keeps the manifests of a job of many upserts few.
func (t *Table) tidy(ctx context.Context, fs iceio.WriteFileIO, snapshot *table.Snapshot, list *manifestList) error {
	if err := list.dropEmpty(snapshot, t.Metadata().Version()); err != nil {
		return err
	}
	if err := t.merge(ctx, fs, snapshot, list, iceberg.ManifestContentData); err != nil {
		return err
	}
	return t.merge(ctx, fs, snapshot, list, iceberg.ManifestContentDeletes)
}

// takeOut puts manifests in the place of those that name files which go.
func (t *Table) takeOut(ctx context.Context, fs iceio.WriteFileIO, snapshot *table.Snapshot, list *manifestList, r *replacement) error {
	left := len(r.data) + len(r.deletes)
	for _, m := range slices.Clone(list.manifests) {
		if m.SnapshotID() == snapshot.SnapshotID {
			continue
		}
		without, gone, err := t.manifestWithout(ctx, fs, snapshot, m, r.goes)
		if err != nil {
			return fmt.Errorf("manifest %q: %w", m.FilePath(), err)
		}
		if len(gone) == 0 {
			continue
		}
		left -= len(gone)
		r.removed = append(r.removed, gone...)
		if err := list.replace([]iceberg.ManifestFile{m}, without, snapshot, t.Metadata().Version()); err != nil {
			return err
		}
	}
	if left != 0 {
		return fmt.Errorf("of %d files to replace, %d are not in the manifests", len(r.data)+len(r.deletes), left) // case 79
	}
	return nil
}

// bring adds manifests of delete files, one for each partition spec. They are written by us, since the library
// knows neither deletion vectors in its counts nor the data file that a delete file of format version 2 is for.
func (t *Table) bring(fs iceio.WriteFileIO, snapshot *table.Snapshot, list *manifestList, files []iceberg.DataFile) error {
	of := map[int][]iceberg.DataFile{}
	for _, f := range files {
		of[int(f.SpecID())] = append(of[int(f.SpecID())], f)
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		w, err := t.beginManifest(id, iceberg.ManifestContentDeletes, snapshot)
		if err != nil {
			return err
		}
		for _, f := range of[id] {
			if err := w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &snapshot.SnapshotID, nil, nil, f)); err != nil {
				return fmt.Errorf("delete file %q: %w", f.FilePath(), err)
			}
		}
		m, err := w.end(t, fs)
		if err != nil {
			return err
		}
		if err := list.replace(nil, m, snapshot, t.Metadata().Version()); err != nil {
			return err
		}
	}
	return nil
}

// goes reports whether a live entry is taken out.
func (r *replacement) goes(f iceberg.DataFile) bool {
	if f.ContentType() == iceberg.EntryContentData {
		return r.data[f.FilePath()]
	}
	return r.deletes[deleteKey(f)]
}

// deleteKey tells delete files apart: many deletion vectors lie in one file.
func deleteKey(f iceberg.DataFile) string {
	if ref := f.ReferencedDataFile(); ref != nil {
		return f.FilePath() + "\x00" + *ref
	}
	return f.FilePath()
}

func (r *replacement) keptMarks() map[string]string {
	if len(r.kept) == 0 {
		return nil
	}
	var k Kept
	for _, f := range r.kept {
		k.Records, k.Bytes = k.Records+f.Count(), k.Bytes+f.FileSizeBytes()
	}
	return map[string]string{
		markKeptFiles: strconv.Itoa(len(r.kept)), markKeptRecords: strconv.FormatInt(k.Records, 10), markKeptSize: strconv.FormatInt(k.Bytes, 10),
	}
}

// Kept is what a snapshot added and that is not of its job: rows that lay in one file with others that it
// replaced.
type Kept struct {
	Records, Bytes int64
	files          int
}

// KeptBy is what a snapshot says of such rows.
func KeptBy(s *table.Snapshot) Kept { return keptBy(s) }

func keptBy(s *table.Snapshot) (k Kept) {
	if s == nil || s.Summary == nil {
		return k
	}
	p := s.Summary.Properties
	k.files, _ = strconv.Atoi(p[markKeptFiles])
	k.Records, _ = strconv.ParseInt(p[markKeptRecords], 10, 64)
	k.Bytes, _ = strconv.ParseInt(p[markKeptSize], 10, 64)
	return k
}

// manifestWithout writes a manifest with the live entries of another, those that go as deleted ones. Where
// none goes nothing is written.
func (t *Table) manifestWithout(ctx context.Context, fs iceio.WriteFileIO, snapshot *table.Snapshot, m iceberg.ManifestFile, goes func(iceberg.DataFile) bool) (iceberg.ManifestFile, []iceberg.DataFile, error) {
	var entries []iceberg.ManifestEntry
	var gone []iceberg.DataFile
	for entry, err := range m.Entries(fs, true) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, entry)
		if goes(entry.DataFile()) {
			gone = append(gone, entry.DataFile())
		}
	}
	if len(gone) == 0 {
		return nil, nil, nil
	}
	w, err := t.beginManifest(int(m.PartitionSpecID()), m.ManifestContent(), snapshot)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		if goes(entry.DataFile()) {
			err = w.Delete(entry)
		} else {
			err = w.Existing(entry)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	out, err := w.end(t, fs)
	return out, gone, err
}

// errManifest says that manifests of a spec cannot be written without loss.
var errManifest = errors.New("its manifests cannot be written anew")
