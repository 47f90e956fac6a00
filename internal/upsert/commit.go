package upsert

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/keyindex"
	"icepipe/internal/lake"
)

// Gone says which rows of a snapshot the batch takes the place of. Of a snapshot that is not the one that the
// rows were sorted by it looks again, by their keys: rows that another writer moved are found, and those that it
// wrote of the same keys are replaced too. It fails with ErrConflict where a row that was found unchanged is
// another by now, and where the table's schema is.
func (b *Batch) Gone(ctx context.Context, head *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) {
	x := b.target
	if id := x.table.Schema().ID; id != x.schema {
		return nil, conflict("the schema of table %q was changed", x.table.Name())
	}
	if (head == nil) != (x.head == nil) || head != nil && head.SnapshotID != *x.head {
		if err := b.again(ctx, head); err != nil {
			return nil, err
		}
	}
	return x.byPath(b.gone), nil
}

// byPath are positions by the paths of their files.
func (x *Target) byPath(of map[int]*dv.RoaringPositionBitmap) map[string]*dv.RoaringPositionBitmap {
	out := map[string]*dv.RoaringPositionBitmap{}
	for ordinal, positions := range of {
		out[x.files[ordinal].path] = positions
	}
	return out
}

// again sorts the keys of the batch by another snapshot.
func (b *Batch) again(ctx context.Context, head *table.Snapshot) error {
	x := b.target
	if err := x.sync(ctx, head); err != nil {
		return err
	}
	found, all, err := x.placesOf(ctx, b.written)
	if err == nil {
		err = b.keepIDs(ctx, found, all)
	}
	if err != nil {
		return err
	}
	b.gone = map[int]*dv.RoaringPositionBitmap{}
	for _, p := range all {
		mark(b.gone, p)
	}
	updated := int64(0)
	for _, ps := range found {
		if len(ps) > 1 && x.options.UpdateAll {
			return conflict("a key has more rows by now")
		}
		updated += int64(min(len(ps), 1))
	}
	b.counts.Inserted, b.counts.Updated = b.counts.Inserted+b.counts.Updated-updated, updated
	same := make([]keyindex.Digest, len(b.unchanged))
	for i, u := range b.unchanged {
		same[i] = u.key
	}
	at, all, err := x.placesOf(ctx, same)
	if err == nil {
		err = x.load(ctx, all)
	}
	if err != nil {
		return err
	}
	for i, u := range b.unchanged {
		if len(at[i]) == 0 {
			return conflict("one that the source holds as it was is gone")
		}
		for _, p := range at[i] {
			row, err := x.row(p)
			if err != nil {
				return err
			}
			if row.digest != u.row {
				return conflict("one that the source holds as it was has other values")
			}
		}
	}
	return nil
}

// keepIDs refuses rows found for the written ones, all of them, that have other row IDs than these.
func (b *Batch) keepIDs(ctx context.Context, found [][]place, all []place) error {
	x := b.target
	if !x.lineage {
		return nil
	}
	if err := x.load(ctx, all); err != nil {
		return err
	}
	for i, id := range b.ids {
		if id >= 0 && len(found[i]) == 0 {
			return conflict("one that the source changes is gone")
		}
		for _, p := range found[i] {
			row, err := x.row(p)
			if err != nil {
				return err
			}
			if row.id != id {
				return errOtherID
			}
		}
	}
	return nil
}

// Landed takes in what a commit made of the batch. head is the branch's by now; where it is the snapshot of the
// batch and nothing came between, files are all that it added, unless files were rewritten.
func (x *Target) Landed(ctx context.Context, b *Batch, head *table.Snapshot, files []iceberg.DataFile) error {
	next := x.head == nil && head.ParentSnapshotID == nil || x.head != nil && head.ParentSnapshotID != nil && *head.ParentSnapshotID == *x.head
	if !next || x.options.Mode != lake.MergeOnRead || x.lineage && slices.ContainsFunc(x.files, (*file).unnumbered) {
		return x.sync(ctx, head)
	}
	only := map[string]bool{}
	for _, f := range files {
		only[f.FilePath()] = true
	}
	scan, err := x.table.PlanPlaces(ctx, head, lake.PlaceOptions{Columns: x.keys.names, Only: only})
	if err != nil {
		return err
	}
	if len(scan.Files()) != len(only) {
		return x.sync(ctx, head) // another process has committed the batch, with files of its own
	}
	for i, f := range scan.Files() {
		if err := x.learn(ctx, scan, i, f); err != nil {
			return err
		}
	}
	for ordinal, positions := range b.gone {
		f := x.files[ordinal]
		if f.dead == nil {
			f.dead = dv.NewRoaringPositionBitmap()
		}
		f.dead.Or(positions)
		f.deletes = "of our own" // by another name than the plan of a later snapshot has: it is then looked at again
	}
	x.head = &head.SnapshotID
	return nil
}

// Met are the keys of the batch that no batch had before, by their digests one after the other; none where that
// does not matter.
func (b *Batch) Met() []byte {
	out := []byte{}
	for _, d := range b.met {
		out = append(out, d[:]...)
	}
	return out
}

// Met takes in the keys of a batch that a former run of the job committed.
func (x *Target) Met(keys []byte) error {
	if len(keys)%len(keyindex.Digest{}) != 0 {
		return fmt.Errorf("they are %d bytes", len(keys))
	}
	for d := range slices.Chunk(keys, len(keyindex.Digest{})) {
		if err := x.seen.Add(keyindex.Digest(d), 0); err != nil {
			return err
		}
	}
	return nil
}

// errOtherID says that a row that another writer made cannot be replaced by one that was written to follow another.
var errOtherID = conflict("one that the source changes has another row ID")

// conflict is an error that trying the commit again does not mend, and a new run does.
func conflict(format string, args ...any) error {
	return lake.Lasting(fmt.Errorf("%w: %s; run again to compare them anew", ErrConflict, fmt.Sprintf(format, args...)))
}
