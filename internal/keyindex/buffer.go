package keyindex

import "slices"

// A buffer holds the records that are not on disk. It grows by chunks and never copies a record to a larger
// one, so that it takes no more memory than its records do.
type buffer struct {
	most   int // records that it may hold
	len    int
	using  int // the chunk that records are added to; those before are full
	chunks []chunk
}

// A chunk holds as many records as it has room for when it is made.
type chunk struct {
	records []record
	ends    []int // of the parts of records that are sorted, each larger than twice the next
}

const firstChunk = 1 << 15

func (b *buffer) full() bool { return b.len >= b.most }

// add adds a record. The buffer must not be full.
func (b *buffer) add(r record) {
	if b.using < len(b.chunks) && len(b.chunks[b.using].records) == cap(b.chunks[b.using].records) {
		b.using++
	}
	if b.using == len(b.chunks) {
		// As large as all before it: a buffer of 128 MiB has nine chunks.
		size := min(max(firstChunk, b.len), b.most-b.len)
		b.chunks = append(b.chunks, chunk{records: make([]record, 0, size)})
	}
	c := &b.chunks[b.using]
	c.records = append(c.records, r)
	b.len++
}

// empty takes all records out, and keeps the memory for the next ones.
func (b *buffer) empty() {
	for i := range b.chunks {
		b.chunks[i].records, b.chunks[i].ends = b.chunks[i].records[:0], b.chunks[i].ends[:0]
	}
	b.len, b.using = 0, 0
}

// parts are sorted and hold all records. They are valid until a record is added.
func (b *buffer) parts() [][]record {
	var out [][]record
	for i := range b.chunks {
		c := &b.chunks[i]
		c.sort()
		start := 0
		for _, end := range c.ends {
			out = append(out, c.records[start:end:end])
			start = end
		}
	}
	return out
}

// sort sorts the records that were added since it was last called, together with sorted parts that are not
// much larger than they: in a chunk to which few are added between look-ups each is sorted again only a few
// times. A full chunk becomes a single part.
func (c *chunk) sort() {
	n := len(c.records)
	start := c.part(len(c.ends))
	if start == n && (n < cap(c.records) || len(c.ends) <= 1) {
		return
	}
	for len(c.ends) > 0 {
		before := c.part(len(c.ends) - 1)
		if n < cap(c.records) && start-before > 2*(n-start) {
			break
		}
		start = before
		c.ends = c.ends[:len(c.ends)-1]
	}
	sortRecords(c.records[start:], 0)
	c.ends = append(c.ends, n)
}

// part is where the i-th part starts.
func (c *chunk) part(i int) int {
	if i == 0 {
		return 0
	}
	return c.ends[i-1]
}

const fewRecords = 32 // that are sorted by comparing

// sortRecords sorts records whose digests have the first so many bytes in common, in place: it shares them out
// by the next byte and sorts each share. Past the first 8 bytes, where evenly spread digests do not agree, it
// compares.
func sortRecords(r []record, depth int) {
	if len(r) <= fewRecords || depth == 8 {
		slices.SortFunc(r, compare)
		return
	}
	shift := 56 - 8*depth
	var end [256]int
	for i := range r {
		end[uint8(r[i].hi>>shift)]++
	}
	var next [256]int
	sum := 0
	for b, n := range end {
		next[b] = sum
		sum += n
		end[b] = sum
	}
	for b := range end {
		for next[b] < end[b] {
			x := r[next[b]]
			for to := uint8(x.hi >> shift); int(to) != b; to = uint8(x.hi >> shift) {
				x, r[next[to]] = r[next[to]], x
				next[to]++
			}
			r[next[b]] = x
			next[b]++
		}
	}
	start := 0
	for _, e := range end {
		if e-start > 1 {
			sortRecords(r[start:e], depth+1)
		}
		start = e
	}
}
