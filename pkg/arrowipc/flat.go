package arrowipc

import (
	"encoding/binary"
	"fmt"
)

// maxFields bounds the fields of a schema, nested ones counted: a flatbuffer can name one field
// over and over, and so ask for far more memory than it has bytes.
const maxFields = 1 << 17

// maxDepth is arrow-go's own limit on nesting.
const maxDepth = 64

// A flat reads a flatbuffer of unknown origin. Every access is checked; the first that is out of
// bounds sets err, and from then on all answers are zero. A position of 0 stands for an absent
// value, since position 0 holds the root's offset.
type flat struct {
	buf    []byte
	budget int64 // what walking may still cost, so that shared offsets cannot multiply work
	err    error

	dictionaries []int64 // of the fields of a schema, depth first
}

func newFlat(buf []byte) *flat {
	return &flat{buf: buf, budget: 4*int64(len(buf)) + 1<<16}
}

func (f *flat) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// spend takes n from the budget and says whether walking may go on.
func (f *flat) spend(n int64) bool {
	if f.budget -= n; f.budget < 0 {
		f.fail("metadata refers to the same bytes too often")
	}
	return f.err == nil
}

func (f *flat) in(pos, n int) bool {
	if f.err != nil {
		return false
	}
	if pos < 0 || n < 0 || pos > len(f.buf)-n {
		f.fail("metadata points outside of itself")
		return false
	}
	return true
}

func (f *flat) u8(pos int) int {
	if !f.in(pos, 1) {
		return 0
	}
	return int(f.buf[pos])
}

func (f *flat) u16(pos int) int {
	if !f.in(pos, 2) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(f.buf[pos:]))
}

func (f *flat) u32(pos int) int {
	if !f.in(pos, 4) {
		return 0
	}
	return int(binary.LittleEndian.Uint32(f.buf[pos:]))
}

func (f *flat) i64(pos int) int64 {
	if !f.in(pos, 8) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(f.buf[pos:]))
}

// follow returns where the offset at pos leads.
func (f *flat) follow(pos int) int {
	to := pos + f.u32(pos)
	if !f.in(to, 4) {
		return 0
	}
	return to
}

// slot returns the position of field id of a table, 0 where it is absent.
func (f *flat) slot(table, id int) int {
	vtable := table - int(int32(f.u32(table)))
	if size := f.u16(vtable); 4+2*id+2 > size {
		return 0
	}
	off := f.u16(vtable + 4 + 2*id)
	if off == 0 || f.err != nil {
		return 0
	}
	return table + off
}

// table returns the position of the table that field id refers to, 0 where it is absent.
func (f *flat) table(table, id int) int {
	pos := f.slot(table, id)
	if pos == 0 {
		return 0
	}
	return f.follow(pos)
}

// vector returns the position of the first element of the vector that field id refers to, and how
// many elements of the given size it has.
func (f *flat) vector(table, id, size int) (first, n int) {
	pos := f.table(table, id)
	if pos == 0 {
		return 0, 0
	}
	n = f.u32(pos)
	if n > len(f.buf) || !f.in(pos+4, n*size) {
		f.fail("metadata points outside of itself")
		return 0, 0
	}
	return pos + 4, n
}

// A pair is an entry of custom metadata and the position of its value.
type pair struct {
	key, value string
	at         int
}

func (f *flat) pairs(table, id int) []pair {
	first, n := f.vector(table, id, 4)
	var out []pair
	for i := range n {
		kv := f.follow(first + 4*i)
		ka, kn := f.vector(kv, 0, 1)
		va, vn := f.vector(kv, 1, 1)
		if !f.spend(16+int64(kn)+int64(vn)) || f.err != nil {
			return nil
		}
		out = append(out, pair{string(f.buf[ka : ka+kn]), string(f.buf[va : va+vn]), va})
	}
	return out
}

func find(pairs []pair, key string) (pair, bool) {
	for _, p := range pairs {
		if p.key == key {
			return p, true
		}
	}
	return pair{}, false
}

// Kinds of messages (Message.fbs, MessageHeader).
const (
	kindSchema     = 1
	kindDictionary = 2
	kindBatch      = 3
)

// A head is what the metadata of a message says of it.
type head struct {
	kind  int
	body  int64
	pos   int // of the kind's own table
	pairs []pair
}

// readHead reads a Message table (Message.fbs).
func readHead(f *flat) (head, error) {
	root := f.follow(0)
	version, kind, body := f.slot(root, 0), f.slot(root, 1), f.slot(root, 3)
	h := head{pos: f.table(root, 2), pairs: f.pairs(root, 4)}
	if kind != 0 {
		h.kind = f.u8(kind)
	}
	if body != 0 {
		h.body = f.i64(body)
	}
	if f.err != nil {
		return head{}, f.err
	}
	v := 0
	if version != 0 {
		v = f.u16(version)
	}
	switch {
	case v != 3 && v != 4: // MetadataVersion V4, V5
		return head{}, fmt.Errorf("metadata version %d is not supported (want V4 or V5)", v+1)
	case h.kind < kindSchema || h.kind > kindBatch:
		return head{}, fmt.Errorf("message of unknown kind %d", h.kind)
	case h.pos == 0:
		return head{}, fmt.Errorf("message without a header")
	case h.body < 0:
		return head{}, fmt.Errorf("message with a body of %d bytes", h.body)
	}
	return h, nil
}

// checkSchema walks a Schema table (Schema.fbs) as a decoder will, and returns its metadata.
func checkSchema(f *flat, schema int) ([]pair, error) {
	first, n := f.vector(schema, 1, 4)
	count := 0
	for i := range n {
		checkField(f, f.follow(first+4*i), 0, &count)
		if f.err != nil {
			return nil, f.err
		}
	}
	pairs := f.pairs(schema, 2)
	return pairs, f.err
}

func checkField(f *flat, field, depth int, count *int) {
	if *count++; *count > maxFields {
		f.fail("schema with more than %d fields", maxFields)
	}
	if depth >= maxDepth {
		f.fail("schema nested deeper than %d levels", maxDepth)
	}
	_, name := f.vector(field, 0, 1)
	if !f.spend(16 + int64(name)) {
		return
	}
	if f.table(field, 3) == 0 {
		f.fail("field without a type")
		return
	}
	f.pairs(field, 6)
	if d := f.table(field, 4); d != 0 {
		var id int64
		if at := f.slot(d, 0); at != 0 {
			id = f.i64(at)
		}
		f.dictionaries = append(f.dictionaries, id)
	}
	first, n := f.vector(field, 5, 4)
	for i := range n {
		checkField(f, f.follow(first+4*i), depth+1, count)
		if f.err != nil {
			return
		}
	}
}
