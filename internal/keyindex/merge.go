package keyindex

import (
	"context"
	"sort"
)

// A cursor goes through sorted records, of a part of the buffer or of a run, forward only.
type cursor struct {
	have  []record // at hand, those before at are behind the cursor
	at    int
	run   *run // where have is read from, nil for a part of the buffer
	block int  // of the run, the one that follows have
	raw   []byte
}

// record is the one that the cursor stands on. The cursor must not have ended.
func (c *cursor) record() record { return c.have[c.at] }

// ended reports whether the cursor is behind the records that it has at hand.
func (c *cursor) ended() bool { return c.at == len(c.have) }

// on reports whether the cursor stands on a record of a digest.
func (c *cursor) on(d record) bool { return c.at < len(c.have) && c.have[c.at].sameDigest(d) }

// seek goes forward to the next record of the first digest asked for, those behind it being asked for next, in
// order. Where there is none the cursor stands somewhere before all records of the digests behind it.
func (c *cursor) seek(ctx context.Context, asked []record) error {
	d := asked[0]
	for {
		if c.run == nil || !c.ended() && !c.have[len(c.have)-1].before(d) {
			c.at += gallop(c.have[c.at:], func(r record) bool { return r.before(d) })
			return nil
		}
		first, end := c.run.wanted(c.block, asked)
		if first == end {
			return nil
		}
		if err := c.load(ctx, first, end); err != nil {
			return err
		}
	}
}

// load replaces what the cursor has at hand by blocks of its run.
func (c *cursor) load(ctx context.Context, first, end int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := end - first
	if cap(c.raw) < n*blockBytes {
		c.raw = make([]byte, n*blockBytes)
		c.have = make([]record, 0, n*blockRecords)
	}
	have, err := c.run.read(first, end, c.raw[:n*blockBytes], c.have[:0])
	if err != nil {
		return err
	}
	c.have, c.at, c.block = have, 0, end
	return nil
}

// fill loads what follows once the cursor has ended. It still is at the end behind the last record.
func (c *cursor) fill(ctx context.Context) error {
	if !c.ended() || c.run == nil || c.block == len(c.run.fences) {
		return nil
	}
	return c.load(ctx, c.block, min(c.block+mostBlocks, len(c.run.fences)))
}

// A merge goes through the records of cursors in order, equal ones one after the other. Its cursors are a heap:
// each stands on a record that is not less than that of the one at half its position.
type merge struct {
	heap []*cursor
	done int
}

// newMerge begins with cursors that stand before all of their records.
func newMerge(ctx context.Context, cursors []*cursor) (*merge, error) {
	m := &merge{}
	for _, c := range cursors {
		if err := c.fill(ctx); err != nil {
			return nil, err
		}
		if !c.ended() {
			m.heap = append(m.heap, c)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m, nil
}

// next gives the next record; false says that there is none.
func (m *merge) next(ctx context.Context) (record, bool, error) {
	if m.done%checkEvery == 0 && ctx.Err() != nil {
		return record{}, false, ctx.Err()
	}
	m.done++
	if len(m.heap) == 0 {
		return record{}, false, nil
	}
	c := m.heap[0]
	r := c.record()
	c.at++
	if c.ended() {
		if err := c.fill(ctx); err != nil {
			return record{}, false, err
		}
		if c.ended() {
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap = m.heap[:last]
		}
	}
	m.down(0)
	return r, true, nil
}

// down mends the heap where the cursor at i has moved forward.
func (m *merge) down(i int) {
	for {
		least := 2*i + 1
		if least >= len(m.heap) {
			return
		}
		if right := least + 1; right < len(m.heap) && compare(m.heap[right].record(), m.heap[least].record()) < 0 {
			least = right
		}
		if compare(m.heap[i].record(), m.heap[least].record()) <= 0 {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

// gallop is the number of elements at the start of s that are before what is looked for, which all those behind
// them are not. It is quick where they are few.
func gallop[T any](s []T, before func(T) bool) int {
	if len(s) == 0 || !before(s[0]) {
		return 0
	}
	in, step := 0, 1 // s[in] is before
	for in+step < len(s) && before(s[in+step]) {
		in += step
		step *= 2
	}
	in++
	return in + sort.Search(min(in-1+step, len(s))-in, func(i int) bool { return !before(s[in+i]) })
}
