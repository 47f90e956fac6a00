package upsert

import (
	"context"
	"slices"

	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/keyindex"
)

// A moved row of the base is held against the row of its key that the known snapshot has.
type moved struct{ then, now place }

// An heir is a staged row that takes over the row ID of the row of its key that the known snapshot has.
type heir struct{ staged, now []place }

const mostMoved = 1 << 16 // keys that are looked at together

// ofKey are the rows of a key.
type ofKey struct {
	staged []place // that are to land
	taken  int     // of the base, in whose place they come
	live   []place // of the known snapshot, but for same
	same   []place // of the base, that the source holds as they were
	stay   int     // of same, those that the known snapshot has
}

// sortKey sorts the rows of a key into k.
func (x *Target) sortKey(ps []place, k *ofKey) {
	*k = ofKey{staged: k.staged[:0], live: k.live[:0], same: k.same[:0]}
	for _, p := range ps {
		ordinal, position := split(p)
		f := x.files[ordinal]
		taken := has(f.taken, position)
		switch {
		case f.staged && !taken:
			k.staged = append(k.staged, p)
		case f.staged:
		case f.isSame(position):
			k.same = append(k.same, p)
			if f.lives(position) {
				k.stay++
			}
		default:
			if taken {
				k.taken++
			}
			if f.lives(position) {
				k.live = append(k.live, p)
			}
		}
	}
}

// inherits reports whether it has to be looked up which row IDs the rows of a key have: a row that is where the
// staged one found it has the ID that this took over.
func (x *Target) inherits(k *ofKey) bool {
	return x.lineage && slices.ContainsFunc(k.live, func(p place) bool {
		ordinal, position := split(p)
		f := x.files[ordinal]
		return f.numbered || !has(f.taken, position)
	})
}

// landingElsewhere is Landing on the known snapshot, which is not the base.
func (x *Target) landingElsewhere(ctx context.Context) (map[string]*dv.RoaringPositionBitmap, int64, error) {
	gone := map[int]*dv.RoaringPositionBitmap{}
	updated, missing := int64(0), x.missing()
	var rows []moved
	var heirs []heir
	look := func() error {
		err := x.unmoved(ctx, rows)
		if err == nil {
			err = x.inherited(ctx, heirs)
		}
		rows, heirs = rows[:0], heirs[:0]
		return err
	}
	var k ofKey
	err := x.index.Repeated(ctx, func(_ keyindex.Digest, ps []place) error {
		x.sortKey(ps, &k)
		copies := len(k.staged)
		switch {
		case copies > 0 && x.options.UpdateAll && len(k.live) != copies && (copies > 1 || len(k.live)+len(k.same) > 0):
			return conflict("a key has more rows by now, or fewer")
		case copies > 0 && k.stay < len(k.same):
			return conflict("one that the source holds as it was is gone")
		case copies > 0 && x.lineage && k.taken > 0 && len(k.live) == 0:
			return conflict("one that the source changes is gone")
		case copies > 0:
			for _, p := range k.live {
				mark(gone, p)
			}
			updated += int64(min(len(k.live), copies))
			if x.inherits(&k) {
				heirs = append(heirs, heir{slices.Clone(k.staged), slices.Clone(k.live)})
			}
		case len(k.same) == 0 || k.stay+len(k.live) == 0:
			return nil
		default:
			missing -= int64(len(k.same) - k.stay)
			for _, p := range k.live {
				rows = append(rows, moved{k.same[0], p})
			}
		}
		if len(rows)+len(heirs) < mostMoved {
			return nil
		}
		return look()
	})
	if err == nil && missing > 0 {
		err = conflict("one that the source holds as it was is gone")
	}
	if err == nil {
		err = look()
	}
	return x.byPath(gone), updated, err
}

// inherited refuses staged rows that have not the row IDs of the rows in whose place they come.
func (x *Target) inherited(ctx context.Context, heirs []heir) error {
	var all []place
	for _, h := range heirs {
		all = append(append(all, h.staged...), h.now...)
	}
	if err := x.load(ctx, all); err != nil {
		return err
	}
	for _, h := range heirs {
		staged, err := x.idsOf(h.staged)
		if err != nil {
			return err
		}
		now, err := x.idsOf(h.now)
		if err != nil {
			return err
		}
		if !slices.Equal(staged, now) {
			return errOtherID
		}
	}
	return nil
}

// idsOf are the row IDs of rows whose groups are in the store, in their order.
func (x *Target) idsOf(ps []place) (ids []int64, err error) {
	for _, p := range ps {
		row, err := x.row(p)
		if err != nil {
			return nil, err
		}
		ids = append(ids, row.id)
	}
	slices.Sort(ids)
	return ids, nil
}

// missing counts the rows that the source holds as they were in the base and that the known snapshot has not, at
// their places.
func (x *Target) missing() (n int64) {
	for _, f := range x.files {
		if f.same == nil {
			continue
		}
		for at := range f.same.Positions() {
			if f.isSame(int64(at)) && !f.lives(int64(at)) {
				n++
			}
		}
	}
	return n
}

// unmoved refuses rows that are not what those of the base were.
func (x *Target) unmoved(ctx context.Context, rows []moved) error {
	var then, now []place
	for _, r := range rows {
		then, now = append(then, r.then), append(now, r.now)
	}
	if err := x.loadAt(ctx, x.base, then); err != nil {
		return err
	}
	if err := x.load(ctx, now); err != nil {
		return err
	}
	for _, r := range rows {
		was, err := x.row(r.then)
		if err != nil {
			return err
		}
		is, err := x.row(r.now)
		if err != nil {
			return err
		}
		if was.digest != is.digest {
			return conflict("one that the source holds as it was has other values")
		}
	}
	return nil
}
