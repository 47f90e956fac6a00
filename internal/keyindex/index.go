// Package keyindex is a multimap from digests of keys to places, of any size in bounded memory: what the
// memory does not hold lies in sorted temporary files.
package keyindex

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// A Digest stands for a key. Digests that are spread evenly, as those of a cryptographic hash are, make
// look-ups quick; others are found as surely.
type Digest [16]byte

// A Place is what the index finds. It means nothing to the index.
type Place uint64

// An Index holds records of a digest and a place. It is not safe for concurrent use, and must not be used
// from within the functions that Find and Repeated call.
//
// Records that were added last are in a buffer, which grows to the memory that New is given. A full buffer is
// written to a temporary file; of these there are never more than a few, as they are merged, for which the
// disk must hold up to twice the records. Beside the buffer there are in memory 8 bytes for each 170 records on
// disk (48 MB for a billion), 24 bytes for each digest that Find is asked for, and while Find, Repeated or a
// merge runs up to half a megabyte for each file.
//
// Where the system lets go of a file's name while the file is open, temporary files have none, and nothing is
// left behind however the process ends.
type Index struct {
	dir    string
	buffer buffer
	runs   []*run // older ones first
	count  int64
}

const (
	defaultMemory = 128 << 20
	mostRuns      = 8       // more are merged
	checkEvery    = 1 << 12 // digests or records between looks at the context
)

// New makes an index whose buffer takes up to so many bytes, 0 for 128 MiB, and whose temporary files go to
// dir, "" for the system's folder of such. No file is made before the buffer is full.
func New(dir string, memory int64) *Index {
	if memory <= 0 {
		memory = defaultMemory
	}
	return &Index{dir: dir, buffer: buffer{most: int(max(1, memory/recordBytes))}}
}

// Len is the number of records that were added, equal ones counted each time.
func (x *Index) Len() int64 { return x.count }

// Add adds a record. One that is there already changes nothing but Len. After an error, which is one of the
// disk, the record is not in the index, those before are, and it may be added again.
func (x *Index) Add(d Digest, p Place) error {
	if x.buffer.full() {
		if err := x.spill(); err != nil {
			return err
		}
	}
	x.buffer.add(recordOf(d, p))
	x.count++
	return nil
}

// Find calls found for each place of each of the digests, with the position of the digest in ds, in order of
// digest, place and position: for a digest that ds holds twice it is called with both positions. Digests that
// the index does not hold are passed over. An error of found ends it and is returned as it is.
func (x *Index) Find(ctx context.Context, ds []Digest, found func(i int, p Place) error) error {
	if err := ctx.Err(); err != nil || len(ds) == 0 || x.count == 0 {
		return err
	}
	asked := make([]record, len(ds))
	for i, d := range ds {
		asked[i] = recordOf(d, Place(i))
	}
	sortRecords(asked, 0)
	cursors := x.cursors()
	on := make([]*cursor, 0, len(cursors))
	for done := 0; len(asked) > 0; done++ {
		if done%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		on = on[:0]
		for _, c := range cursors {
			if err := c.seek(ctx, asked); err != nil {
				return err
			}
			if c.on(asked[0]) {
				on = append(on, c)
			}
		}
		n := 1
		for n < len(asked) && asked[n].sameDigest(asked[0]) {
			n++
		}
		if err := places(ctx, on, asked, n, found); err != nil {
			return err
		}
		asked = asked[n:]
	}
	return nil
}

// places tells the places of the digest that the first n of those asked for have in common. The cursors stand
// on its first record each.
func places(ctx context.Context, on []*cursor, asked []record, n int, found func(i int, p Place) error) error {
	var last Place
	for first := true; len(on) > 0; {
		least := 0
		for i, c := range on[1:] {
			if c.record().place < on[least].record().place {
				least = i + 1
			}
		}
		c := on[least]
		if p := c.record().place; first || p != last {
			first, last = false, p
			for _, a := range asked[:n] {
				if err := found(int(a.place), p); err != nil {
					return err
				}
			}
		}
		c.at++
		if c.ended() {
			if err := c.seek(ctx, asked); err != nil {
				return err
			}
		}
		if !c.on(asked[0]) {
			on = slices.Delete(on, least, least+1)
		}
	}
	return nil
}

// Repeated calls f for each digest that has more than one place, in order of digest, with its places in their
// order; ps is valid until f returns, and takes 8 bytes of memory for each of them. An error of f ends it and
// is returned as it is.
func (x *Index) Repeated(ctx context.Context, f func(d Digest, ps []Place) error) error {
	all, err := newMerge(ctx, x.cursors())
	if err != nil {
		return err
	}
	var of record
	var ps []Place
	for {
		r, ok, err := all.next(ctx)
		if err != nil {
			return err
		}
		switch {
		case ok && len(ps) > 0 && r.sameDigest(of):
			if r.place != ps[len(ps)-1] {
				ps = append(ps, r.place)
			}
			continue
		case len(ps) > 1:
			if err := f(of.digest(), ps); err != nil {
				return err
			}
		}
		if !ok {
			return nil
		}
		of, ps = r, append(ps[:0], r.place)
	}
}

// Close removes what the index has on disk and frees its memory. The index is empty then.
func (x *Index) Close() error {
	var errs []error
	for _, r := range x.runs {
		errs = append(errs, r.close())
	}
	*x = Index{dir: x.dir, buffer: buffer{most: x.buffer.most}}
	return errors.Join(errs...)
}

// cursors stand before all records of the index. They are valid until a record is added.
func (x *Index) cursors() []*cursor {
	var out []*cursor
	for _, part := range x.buffer.parts() {
		out = append(out, &cursor{have: part})
	}
	for _, r := range x.runs {
		out = append(out, &cursor{run: r})
	}
	return out
}

// spill writes the buffer to a run and empties it, and merges runs where there are too many.
func (x *Index) spill() error {
	var cursors []*cursor
	for _, part := range x.buffer.parts() {
		cursors = append(cursors, &cursor{have: part})
	}
	r, err := writeRun(x.dir, cursors, int64(x.buffer.len))
	if err != nil {
		return fmt.Errorf("room for %d keys: %w", x.count, err)
	}
	x.buffer.empty()
	x.runs = append(x.runs, r)
	if len(x.runs) <= mostRuns {
		return nil
	}
	if err := x.mergeRuns(); err != nil {
		return fmt.Errorf("merge %d keys: %w", x.count, err)
	}
	return nil
}

// mergeRuns merges the last two runs, and those before them that are not larger than what is merged so far, so
// that a record is written anew only a few times however many follow it.
func (x *Index) mergeRuns() error {
	first := len(x.runs) - 2
	count := x.runs[first].count + x.runs[first+1].count
	for first > 0 && x.runs[first-1].count <= count {
		first--
		count += x.runs[first].count
	}
	var cursors []*cursor
	for _, r := range x.runs[first:] {
		cursors = append(cursors, &cursor{run: r})
	}
	merged, err := writeRun(x.dir, cursors, count)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range x.runs[first:] {
		errs = append(errs, r.close())
	}
	x.runs = append(x.runs[:first], merged)
	return errors.Join(errs...)
}

// A record is a digest, as two numbers, and one of its places.
type record struct {
	hi, lo uint64
	place  Place
}

const recordBytes = 24

func recordOf(d Digest, p Place) record {
	return record{binary.BigEndian.Uint64(d[:8]), binary.BigEndian.Uint64(d[8:]), p}
}

func (r record) digest() (d Digest) {
	binary.BigEndian.PutUint64(d[:8], r.hi)
	binary.BigEndian.PutUint64(d[8:], r.lo)
	return d
}

func (r record) sameDigest(s record) bool { return r.hi == s.hi && r.lo == s.lo }

// before reports whether r's digest is less than s's.
func (r record) before(s record) bool { return r.hi < s.hi || r.hi == s.hi && r.lo < s.lo }

// compare orders records by digest, then place.
func compare(a, b record) int {
	if a.hi != b.hi {
		return cmp.Compare(a.hi, b.hi)
	}
	if a.lo != b.lo {
		return cmp.Compare(a.lo, b.lo)
	}
	return cmp.Compare(a.place, b.place)
}
