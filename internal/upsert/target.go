package upsert

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/keyindex"
	"icepipe/internal/lake"
	"icepipe/internal/rowform"
)

// A Target is a branch of a table as an upsert knows it. It is used by one goroutine, and holds temporary files
// until it is closed.
type Target struct {
	table   *lake.Table
	options Options
	schema  int // ID of the table's schema when the job began
	keys    keyColumns
	form    *rowform.Form // of whole rows
	lineage bool          // rows have IDs

	head  *int64 // the snapshot that is known, nil for none
	index *keyindex.Index
	files []*file
	paths map[string]int // ordinals of files
	rows  *rowStore
	seen  *keyindex.Index // keys of the source so far, where that matters for the whole job

	base    *int64             // of staged batches: the snapshot that they are compared with
	waiting []iceberg.DataFile // their files
}

// A file is a data file whose keys are in the index.
type file struct {
	path     string
	there    bool   // the known snapshot has it
	deletes  string // see lake.PlacedFile
	groups   []int64
	ids      bool                      // its rows had IDs when it was looked at last
	numbered bool                      // they had none when it was looked at first
	dead     *dv.RoaringPositionBitmap // rows that are deleted now and were not when the file was read; nil: none

	staged      bool                      // it waits for the commit of staged batches
	taken, same *dv.RoaringPositionBitmap // rows that staged batches take the place of, or hold as they are; nil: none
}

// unnumbered reports whether rows of the file may get IDs by the next commit.
func (f *file) unnumbered() bool { return f.there && !f.ids }

// A place is a row of a file that is known: file ordinal and position.
type place = keyindex.Place

const positionBits = 40

func placeOf(file int, position int64) place { return place(file)<<positionBits | place(position) }

func split(p place) (file int, position int64) {
	return int(p >> positionBits), int64(p & (1<<positionBits - 1))
}

// Open reads the keys of a branch. A destination that holds a key more than once is refused, with some of them,
// unless all rows of a key are to be updated.
func Open(ctx context.Context, t *lake.Table, head *table.Snapshot, o Options) (*Target, error) {
	schema := t.Schema()
	x := &Target{table: t, options: o, schema: schema.ID, paths: map[string]int{}, lineage: t.Metadata().Version() >= 3}
	var err error
	if x.keys, err = newKeyColumns(schema, o); err != nil {
		return nil, err
	}
	if x.form, err = rowform.New(schema.Fields()); err != nil {
		return nil, err
	}
	x.index = keyindex.New(o.Dir, o.Memory)
	x.rows = &rowStore{dir: o.Dir}
	if o.Duplicates == First || o.Duplicates == Refuse {
		x.seen = keyindex.New(o.Dir, o.Memory/4)
	}
	if err = x.sync(ctx, head); err == nil {
		err = x.unique(ctx)
	}
	x.base = x.head
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// Close removes the temporary files.
func (x *Target) Close() error {
	errs := []error{x.index.Close(), x.rows.close()}
	if x.seen != nil {
		errs = append(errs, x.seen.Close())
	}
	return errors.Join(errs...)
}

// sync makes a snapshot the known one: it reads the keys of files that are new, and looks again at those to
// which other deletes apply.
func (x *Target) sync(ctx context.Context, head *table.Snapshot) error {
	if head == nil || x.head != nil && *x.head == head.SnapshotID {
		return nil
	}
	scan, err := x.table.PlanPlaces(ctx, head, lake.PlaceOptions{Columns: x.keys.names})
	if err != nil {
		return err
	}
	for _, f := range x.files {
		f.there = f.staged
	}
	for i, f := range scan.Files() {
		if err := x.learn(ctx, scan, i, f); err != nil {
			return err
		}
	}
	x.head = &head.SnapshotID
	return nil
}

// learn takes in a file of the snapshot that is to be known.
func (x *Target) learn(ctx context.Context, scan *lake.PlaceScan, i int, f lake.PlacedFile) error {
	ordinal, known := x.paths[f.Path]
	if !known {
		ordinal = len(x.files)
		x.paths[f.Path] = ordinal
		x.files = append(x.files, &file{path: f.Path, deletes: f.Deletes, groups: f.Groups, ids: f.RowIDs, there: true})
		return scan.Read(ctx, i, nil, func(_ int, at []int64, batch arrow.RecordBatch) error {
			return x.keys.each(batch, func(row int, k key) error {
				if k.null && x.keys.nulls != NullMatch {
					return nil
				}
				return x.index.Add(k.digest, placeOf(ordinal, at[row]))
			})
		})
	}
	was := x.files[ordinal]
	was.there = true
	if was.ids != f.RowIDs {
		was.ids, was.numbered = f.RowIDs, true
		x.rows.forget(ordinal)
	}
	if was.deletes == f.Deletes {
		return nil
	}
	was.deletes = f.Deletes
	live := dv.NewRoaringPositionBitmap()
	err := scan.Read(ctx, i, nil, func(_ int, at []int64, _ arrow.RecordBatch) error {
		for _, p := range at {
			live.Set(uint64(p))
		}
		return nil
	})
	if err != nil {
		return err
	}
	was.dead = dv.NewRoaringPositionBitmap()
	n := int64(0)
	for _, rows := range f.Groups {
		n += rows
	}
	for p := range n {
		if !live.Contains(uint64(p)) {
			was.dead.Set(uint64(p))
		}
	}
	return nil
}

// alive reports whether the known snapshot has the row, or would have it if staged batches were committed.
func (x *Target) alive(p place) bool {
	ordinal, position := split(p)
	f := x.files[ordinal]
	return f.lives(position) && !has(f.taken, position)
}

const mostNamed = 3 // keys in an error

// unique refuses keys that are there more than once.
func (x *Target) unique(ctx context.Context) error {
	if x.options.UpdateAll {
		return nil
	}
	var examples []place
	n := 0
	err := x.index.Repeated(ctx, func(_ keyindex.Digest, ps []place) error {
		live := 0
		for _, p := range ps {
			if x.alive(p) {
				live++
			}
		}
		if live > 1 {
			if n++; n <= mostNamed {
				examples = append(examples, ps[0])
			}
		}
		return nil
	})
	if err != nil || n == 0 {
		return err
	}
	var texts []string
	for _, p := range examples {
		text, err := x.keyAt(ctx, p)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	more := ""
	if n > mostNamed {
		more = fmt.Sprintf(" and %d more", n-mostNamed)
	}
	return fmt.Errorf("table %q holds rows with the same key: %s%s; take the surplus ones out, name other --upsert-keys, or update all of them with --update-all", x.table.Name(), strings.Join(texts, ", "), more)
}

// keyAt reads the key of a row, for people.
func (x *Target) keyAt(ctx context.Context, p place) (text string, err error) {
	ordinal, position := split(p)
	snapshot := x.table.Metadata().SnapshotByID(*x.head)
	scan, err := x.table.PlanPlaces(ctx, snapshot, lake.PlaceOptions{Columns: x.keys.names, Only: map[string]bool{x.files[ordinal].path: true}})
	if err != nil {
		return "", err
	}
	err = scan.Read(ctx, 0, nil, func(_ int, at []int64, batch arrow.RecordBatch) error {
		return x.keys.each(batch, func(row int, k key) error {
			if at[row] == position {
				text = x.keys.text(k.form)
			}
			return nil
		})
	})
	return text, err
}

// placesOf are the live places of each digest, and all of them.
func (x *Target) placesOf(ctx context.Context, ds []keyindex.Digest) (of [][]place, all []place, err error) {
	of = make([][]place, len(ds))
	err = x.find(ctx, ds, func(i int, p place) error {
		of[i], all = append(of[i], p), append(all, p)
		return nil
	})
	return of, all, err
}

// find calls f with each live place of each digest.
func (x *Target) find(ctx context.Context, ds []keyindex.Digest, f func(i int, p place) error) error {
	return x.index.Find(ctx, ds, func(i int, p place) error {
		if !x.alive(p) {
			return nil
		}
		return f(i, p)
	})
}
