package upsert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/keyindex"
)

// ErrConflict says that another writer changed a row that the batch looked at.
var ErrConflict = errors.New("another writer changed rows that the batch was compared with")

// Counts say what became of the rows of a batch.
type Counts struct {
	Inserted  int64 // of keys that were not there
	Updated   int64 // in the place of others
	Unchanged int64 // there already as they are
	Surplus   int64 // left out, for another row of the source has their key
}

// A Batch sorts rows of the source by what they change in the target. Its memory goes by its number of rows,
// not by their size; with Last its rows are held until End.
type Batch struct {
	target *Target
	keys   map[keyindex.Digest]bool // of the open batch of the source: those that were given out

	written   []keyindex.Digest // keys of the rows to write, null ones of NullInsert left out
	ids       []int64           // the row IDs that they take over, negative for none
	unchanged []sameRow
	gone      map[int]*dv.RoaringPositionBitmap // by file ordinal, as of the target's head
	same      map[int]*dv.RoaringPositionBitmap // rows that are there as they are, where batches are staged
	surplus   int64
	counts    Counts
	held      []arrow.RecordBatch // Last: the rows so far
	met       []keyindex.Digest   // keys that no batch had before, where that matters: a batch of the source may change nothing, and be one with the next
	fresh     int                 // of met, those that target.seen has not got yet
}

type sameRow struct{ key, row keyindex.Digest }

// Batch begins a batch.
func (x *Target) Batch() *Batch {
	return &Batch{target: x, keys: map[keyindex.Digest]bool{}, gone: map[int]*dv.RoaringPositionBitmap{}, same: map[int]*dv.RoaringPositionBitmap{}}
}

// Add sorts the rows of a record batch of the destination's schema, and gives those to write to write, which
// borrows them: with two columns behind the others where the table's rows have IDs. It borrows rec.
func (b *Batch) Add(ctx context.Context, rec arrow.RecordBatch, write func(arrow.RecordBatch) error) error {
	if rec.NumRows() == 0 {
		return nil
	}
	if b.target.options.Duplicates == Last {
		rec.Retain()
		b.held = append(b.held, rec)
		return nil
	}
	return b.sort(ctx, rec, nil, write)
}

// End ends a batch of the source. More batches may be added when nothing was written of this one.
func (b *Batch) End(ctx context.Context, write func(arrow.RecordBatch) error) error {
	held := b.held
	b.held = nil
	defer func() {
		for _, rec := range held {
			rec.Release()
		}
		clear(b.keys)
	}()
	wins := make([][]bool, len(held)) // by record batch and row
	for i, rec := range slices.Backward(held) {
		wins[i] = make([]bool, rec.NumRows())
		last := map[keyindex.Digest]int{}
		err := b.target.keys.eachOf(rec, func(row int, k key) error {
			if b.target.keys.unsought(k) {
				wins[i][row] = true
				return nil
			}
			if was, ok := last[k.digest]; ok {
				wins[i][was] = false
			} else if b.keys[k.digest] {
				return nil
			}
			last[k.digest] = row
			wins[i][row] = true
			return nil
		})
		if err != nil {
			return err
		}
		for d := range last {
			b.keys[d] = true
		}
	}
	clear(b.keys)
	for i, rec := range held {
		if err := b.sort(ctx, rec, wins[i], write); err != nil {
			return err
		}
	}
	for _, d := range b.met[len(b.met)-b.fresh:] {
		if err := b.target.seen.Add(d, 0); err != nil {
			return err
		}
	}
	b.fresh = 0
	return nil
}

// Drop gives up what the batch holds.
func (b *Batch) Drop() {
	for _, rec := range b.held {
		rec.Release()
	}
	b.held = nil
}

// sort finds out what the rows change and writes those that change something. wins says which rows count, nil:
// all do.
func (b *Batch) sort(ctx context.Context, rec arrow.RecordBatch, wins []bool, write func(arrow.RecordBatch) error) error {
	x := b.target
	var sought []keyindex.Digest
	var soughtRows []int
	var loose []int // rows that are added unsought
	err := x.keys.eachOf(rec, func(row int, k key) error {
		switch {
		case wins != nil && !wins[row]:
			b.surplus++
			return nil
		case x.keys.unsought(k):
			loose = append(loose, row)
			return nil
		case b.keys[k.digest]:
			if x.options.Duplicates == First {
				b.surplus++
				return nil
			}
			return fmt.Errorf("two rows of the source have key %s in one batch; --on-duplicate-key first or last says which of them counts", x.keys.text(k.form))
		}
		b.keys[k.digest] = true
		sought, soughtRows = append(sought, k.digest), append(soughtRows, row)
		return nil
	})
	if err != nil {
		return err
	}
	if sought, soughtRows, err = b.unmet(ctx, rec, sought, soughtRows); err != nil {
		return err
	}
	places, all, err := x.placesOf(ctx, sought)
	if err != nil {
		return err
	}
	if err := x.load(ctx, all); err != nil {
		return err
	}
	out := &picked{}
	for _, row := range loose {
		out.add(row, -1)
	}
	b.counts.Inserted += int64(len(loose))
	forms, err := x.form.Bind(rec)
	if err != nil {
		return err
	}
	var form []byte
	for i, row := range soughtRows {
		if len(places[i]) == 0 {
			b.counts.Inserted++
			b.written, b.ids = append(b.written, sought[i]), append(b.ids, -1)
			out.add(row, -1)
			continue
		}
		if len(places[i]) > 1 && !x.options.UpdateAll {
			return fmt.Errorf("table %q holds %d rows of one key, which another writer has added; take the surplus ones out, or update all of them with --update-all", x.table.Name(), len(places[i]))
		}
		form = forms.Append(form[:0], row)
		now := digest(form)
		changed, id := false, int64(-1)
		for _, p := range places[i] {
			was, err := x.row(p)
			if err != nil {
				return err
			}
			if was.digest == now {
				b.counts.Unchanged++
				if x.options.Staged {
					mark(b.same, p)
				}
				continue
			}
			changed, id = true, was.id
			b.counts.Updated++
			mark(b.gone, p)
			out.add(row, id)
		}
		if changed {
			b.written, b.ids = append(b.written, sought[i]), append(b.ids, id)
		} else {
			b.unchanged = append(b.unchanged, sameRow{sought[i], now})
		}
	}
	return out.write(ctx, rec, x.lineage, write)
}

// unmet leaves out keys that an earlier batch had, where that is a matter of the whole job.
func (b *Batch) unmet(ctx context.Context, rec arrow.RecordBatch, ds []keyindex.Digest, at []int) ([]keyindex.Digest, []int, error) {
	x := b.target
	if x.seen == nil {
		return ds, at, nil
	}
	had := make([]bool, len(ds))
	err := x.seen.Find(ctx, ds, func(i int, _ place) error {
		had[i] = true
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	var left []keyindex.Digest
	var rows []int
	for i, d := range ds {
		if !had[i] {
			left, rows = append(left, d), append(rows, at[i])
			b.met, b.fresh = append(b.met, d), b.fresh+1
			continue
		}
		if x.options.Duplicates == Refuse {
			return nil, nil, x.keys.twice(rec, at[i])
		}
		b.surplus++
	}
	return left, rows, nil
}

// mark puts a row into the positions of its file.
func mark(of map[int]*dv.RoaringPositionBitmap, p place) {
	ordinal, position := split(p)
	if of[ordinal] == nil {
		of[ordinal] = dv.NewRoaringPositionBitmap()
	}
	of[ordinal].Set(uint64(position))
}

// Counts are those of the rows so far.
func (b *Batch) Counts() Counts {
	c := b.counts
	c.Surplus = b.surplus
	return c
}
