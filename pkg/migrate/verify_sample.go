package migrate

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"icepipe/internal/rowdiff"
)

// verifySample compares some rows: those whose key, or whole row where there is no key, has the smallest hashes.
// They are the same on both sides whatever the order of reading, so that equal tables never differ.
func verifySample(ctx context.Context, src, dst *Table, o VerifyOptions) (Verification, error) {
	c, err := newComparison(ctx, src, dst, o)
	if err != nil {
		return Verification{}, err
	}
	keys, err := c.keys(o.Keys)
	if err != nil {
		return Verification{}, err
	}
	size := o.SampleSize
	if size == 0 {
		size = DefaultSampleSize
	}
	if size < 0 {
		return Verification{}, fmt.Errorf("sample of %d rows: want at least 1", size)
	}
	counter := observed(o.Observe)
	var source, dest sample
	err = rowdiff.Both(ctx,
		func(ctx context.Context) error { return c.sample(ctx, c.sourceSide, keys, int(size), &source, counter) },
		func(ctx context.Context) error { return c.sample(ctx, c.destSide, keys, int(size), &dest, counter) })
	if err != nil {
		return Verification{}, err
	}
	v := o.verification(MethodSample, c.sourceAt, c.destAt)
	v.Details = append(v.Details, c.rejects()...)
	v.SourceCount, v.DestCount = &source.seen, &dest.seen
	missing, extra := source.against(&dest, int(size))
	n := int64(max(len(source.rows), len(dest.rows)))
	v.SampleSize = &n
	v.Matches = len(missing)+len(extra) == 0 && source.seen == dest.seen
	v.Details = append(v.Details, fmt.Sprintf("%s compared: %s not in the destination, %s not in the source",
		plural(n, "row", "rows"), grouped(int64(len(missing))), grouped(int64(len(extra)))))
	if source.seen != dest.seen {
		v.Details = append(v.Details, fmt.Sprintf("the source has %s, the destination %s", plural(source.seen, "row", "rows"), plural(dest.seen, "row", "rows")))
	}
	limit := o.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	for i, side := range [][]sampled{missing, extra} {
		for j, row := range side {
			if int64(j) >= limit {
				break
			}
			text, err := rowText(c.form, row.row)
			if err != nil {
				return Verification{}, err
			}
			v.Details = append(v.Details, []string{"not in the destination: ", "not in the source: "}[i]+text)
		}
	}
	return v, nil
}

// A sampled row; rows are ordered by the hash of what selects them, and then by their values.
type sampled struct {
	hash uint64
	row  []byte
}

func (a sampled) compare(b sampled) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), bytes.Compare(a.row, b.row))
}

// A sample is the smallest rows of a side; a heap with the largest of them on top.
type sample struct {
	rows []sampled
	seen int64
}

func (s *sample) Len() int           { return len(s.rows) }
func (s *sample) Less(i, j int) bool { return s.rows[i].compare(s.rows[j]) > 0 }
func (s *sample) Swap(i, j int)      { s.rows[i], s.rows[j] = s.rows[j], s.rows[i] }
func (s *sample) Push(x any)         { s.rows = append(s.rows, x.(sampled)) }
func (s *sample) Pop() any {
	last := s.rows[len(s.rows)-1]
	s.rows = s.rows[:len(s.rows)-1]
	return last
}

func (s *sample) offer(hash uint64, row []byte, size int) {
	s.seen++
	x := sampled{hash, row}
	switch {
	case len(s.rows) < size:
		x.row = bytes.Clone(row)
		heap.Push(s, x)
	case x.compare(s.rows[0]) < 0:
		x.row = bytes.Clone(row)
		s.rows[0] = x
		heap.Fix(s, 0)
	}
}

// sample reads a side.
func (c *comparison) sample(ctx context.Context, side rowdiff.Side, keys []int, size int, into *sample, counter func(int64)) error {
	var row, key []byte
	for batch, err := range side(ctx) {
		if err != nil {
			return err
		}
		bound, err := c.form.Bind(batch)
		if err != nil {
			batch.Release()
			return err
		}
		for i := range int(batch.NumRows()) {
			row = bound.Append(row[:0], i)
			by := row
			if len(keys) > 0 {
				key = key[:0]
				for _, k := range keys {
					key = bound.AppendColumn(key, k, i)
				}
				by = key
			}
			into.offer(xxh3.Hash(by), row, size)
		}
		counter(batch.NumRows())
		batch.Release()
	}
	return nil
}

// against gives the rows of each sample that the other side does not have. Beyond the last row of a full sample
// nothing is known of a side.
func (s *sample) against(o *sample, size int) (missing, extra []sampled) {
	for _, x := range []*sample{s, o} {
		slices.SortFunc(x.rows, sampled.compare)
	}
	within := func(x sampled) bool {
		for _, side := range []*sample{s, o} {
			if len(side.rows) == size && x.compare(side.rows[size-1]) > 0 {
				return false
			}
		}
		return true
	}
	i, j := 0, 0
	for i < len(s.rows) || j < len(o.rows) {
		order := 0
		switch {
		case i == len(s.rows):
			order = 1
		case j == len(o.rows):
			order = -1
		default:
			order = s.rows[i].compare(o.rows[j])
		}
		switch {
		case order < 0:
			if within(s.rows[i]) {
				missing = append(missing, s.rows[i])
			}
			i++
		case order > 0:
			if within(o.rows[j]) {
				extra = append(extra, o.rows[j])
			}
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return missing, extra
}
