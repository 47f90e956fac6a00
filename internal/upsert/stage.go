package upsert

import (
	"bytes"
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/lake"
)

// Changes are what a staged batch makes of rows that were there before it, in the base and in files of earlier
// batches: their positions, by path of data file, as roaring bitmaps of the specification's form.
type Changes struct {
	Taken map[string][]byte // rows that those of the batch take the place of
	Same  map[string][]byte // rows of the base that the batch holds as they are
}

// Changes are those of the batch.
func (b *Batch) Changes() (c Changes, err error) {
	if c.Taken, err = b.target.portable(b.gone, true); err != nil {
		return c, err
	}
	c.Same, err = b.target.portable(b.same, false)
	return c, err
}

func (x *Target) portable(of map[int]*dv.RoaringPositionBitmap, staged bool) (map[string][]byte, error) {
	out := map[string][]byte{}
	for ordinal, bits := range of {
		if x.files[ordinal].staged && !staged {
			continue // a row that the job wrote itself is not another's to change
		}
		bits.RunLengthEncode()
		var text bytes.Buffer
		if err := bits.Serialize(&text); err != nil {
			return nil, err
		}
		out[x.files[ordinal].path] = text.Bytes()
	}
	return out, nil
}

// Stage takes in a batch whose files wait for the commit of all: batches that come after it find its rows in the
// place of those that it changes. It takes in those of former runs too, in their order.
func (x *Target) Stage(ctx context.Context, c Changes, files []iceberg.DataFile) error {
	err := x.add(c.Taken, func(f *file) **dv.RoaringPositionBitmap { return &f.taken })
	if err == nil {
		err = x.add(c.Same, func(f *file) **dv.RoaringPositionBitmap { return &f.same })
	}
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return nil
	}
	x.waiting = append(x.waiting, files...)
	scan, err := x.table.PlanPlaces(ctx, nil, lake.PlaceOptions{Columns: x.keys.names, Also: files})
	if err != nil {
		return err
	}
	for i, f := range scan.Files() {
		if err := x.learn(ctx, scan, i, f); err != nil {
			return err
		}
		x.files[x.paths[f.Path]].staged = true
	}
	return nil
}

// add puts rows, by paths of their files, to those that the files have already at to.
func (x *Target) add(rows map[string][]byte, to func(*file) **dv.RoaringPositionBitmap) error {
	for path, text := range rows {
		ordinal, ok := x.paths[path]
		if !ok {
			return fmt.Errorf("file %q, of which staged batches change rows, is neither in the snapshot that they were compared with nor staged", path)
		}
		bits, err := dv.DeserializeRoaringPositionBitmap(text)
		if err != nil {
			return fmt.Errorf("rows of file %q: %w", path, err)
		}
		of := to(x.files[ordinal])
		if *of == nil {
			*of = dv.NewRoaringPositionBitmap()
		}
		(*of).Or(bits)
	}
	return nil
}

// Base is the snapshot that staged batches are compared with, nil where the branch has none.
func (x *Target) Base() *int64 { return x.base }

// Schema is the ID of the table's schema when the target was opened.
func (x *Target) Schema() int { return x.schema }

// Superseded are the rows of staged files in whose place later batches put others, by the files' paths. They must
// not be committed.
func (x *Target) Superseded() map[string]*dv.RoaringPositionBitmap { return x.taken(true) }

// taken are the rows in whose place staged batches put others: those of staged files, or those of the base.
func (x *Target) taken(staged bool) map[string]*dv.RoaringPositionBitmap {
	out := map[string]*dv.RoaringPositionBitmap{}
	for _, f := range x.files {
		if f.staged == staged && f.taken != nil {
			out[f.path] = f.taken
		}
	}
	return out
}

// Landing says which rows of a snapshot the staged batches take the place of, and how many of theirs are updates.
// Where it is not the base it looks again, by all keys: see Batch.Gone. It fails with ErrConflict as that does.
func (x *Target) Landing(ctx context.Context, head *table.Snapshot) (gone map[string]*dv.RoaringPositionBitmap, updated int64, err error) {
	if id := x.table.Schema().ID; id != x.schema {
		return nil, 0, conflict("the schema of table %q was changed", x.table.Name())
	}
	if head == nil && x.base != nil {
		return nil, 0, conflict("the branch has lost its snapshots")
	}
	if head != nil && (x.base == nil || *x.base != head.SnapshotID) || head != nil && *x.head != *x.base {
		if err := x.sync(ctx, head); err != nil {
			return nil, 0, err
		}
		return x.landingElsewhere(ctx)
	}
	return x.taken(false), x.Updates(), nil
}

// Updates are the rows of the base in whose place the staged batches put others.
func (x *Target) Updates() (n int64) {
	for _, positions := range x.taken(false) {
		n += positions.Cardinality()
	}
	return n
}

// lives reports whether the known snapshot has a row of the file, whatever staged batches make of it.
func (f *file) lives(position int64) bool { return f.there && !has(f.dead, position) }

// isSame reports whether a row is one that the source holds as it is, and that no later batch changes.
func (f *file) isSame(position int64) bool { return has(f.same, position) && !has(f.taken, position) }

// has reports whether positions, nil for none, hold one.
func has(of *dv.RoaringPositionBitmap, position int64) bool {
	return of != nil && of.Contains(uint64(position))
}
