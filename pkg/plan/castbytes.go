package plan

import (
	"encoding/hex"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// bytes makes the step between uuid, fixed, binary, and from them to string.
func (c caster) bytes() step {
	binary := iceberg.BinaryType{}
	switch {
	case c.f == kUUID && c.t == kString:
		return uuidText{to: c.target, at: c.at}
	case c.f == kBinary && c.t == kString:
		return binaryToText{to: c.target, at: c.at}
	case c.f == kBinary:
		return &slicesToFixed{to: c.target, at: c.at, width: widthOf(c.to), convert: copied(widthOf(c.to))}
	case c.t == kUUID || c.t == kFixed:
		return reread{relabel{c.target}} // fixed[16] and uuid
	}
	return c.via(fixedToSlices{to: arrowType(binary), at: c.at, width: widthOf(c.from)}, binary)
}

// parsedBytes makes the step from string to uuid, fixed, binary.
func (c caster) parsedBytes() step {
	switch c.t {
	case kBinary:
		return reread{relabel{c.target}}
	case kUUID:
		return &slicesToFixed{to: c.target, at: c.at, width: 16, quote: true, convert: scanUUID}
	}
	return &slicesToFixed{to: c.target, at: c.at, width: widthOf(c.to), quote: true, convert: copied(widthOf(c.to))}
}

// copied copies values of one length.
func copied(width int) func(out, value []byte) string {
	rule := fmt.Sprintf("has not %d bytes", width)
	return func(out, value []byte) string {
		if len(value) != width {
			return rule
		}
		copy(out, value)
		return ""
	}
}

// scanUUID reads a UUID: 32 hexadecimal digits, in groups of 8, 4, 4, 4 and 12 with hyphens or without.
func scanUUID(out, text []byte) string {
	const bad = "does not read as uuid"
	text = trimmed(text)
	if len(text) == 36 {
		if text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
			return bad
		}
		var all [32]byte
		at := 0
		for _, part := range [][]byte{text[:8], text[9:13], text[14:18], text[19:23], text[24:]} {
			at += copy(all[at:], part)
		}
		text = all[:]
	}
	if len(text) != 32 {
		return bad
	}
	if _, err := hex.Decode(out, text); err != nil {
		return bad
	}
	return ""
}

func hexText(b []byte) string {
	const most = 32
	if len(b) > most {
		return "0x" + hex.EncodeToString(b[:most]) + "…"
	}
	return "0x" + hex.EncodeToString(b)
}

// slicesToFixed turns text or bytes into bytes of one width.
type slicesToFixed struct {
	to      arrow.DataType
	at      site
	width   int
	quote   bool // show values as text
	convert func(out, value []byte) string
}

func (*slicesToFixed) checks() bool { return true }

func (s *slicesToFixed) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	ends, raw, err := texts(in, s.at.path)
	if err != nil {
		return nil, err
	}
	if int64(in.Len())*int64(s.width) > math.MaxInt32 {
		return nil, tooLarge(s.at.path)
	}
	b := r.buffer(in.Len() * s.width)
	memory.Set(b.Bytes(), 0)
	slots := r.slots(in, dead, s.at)
	for i := range in.Len() {
		if !slots.counts(i) {
			continue
		}
		value := raw[ends[i]:ends[i+1]]
		rule := s.convert(b.Bytes()[i*s.width:(i+1)*s.width], value)
		if rule == "" {
			continue
		}
		show := func() string { return hexText(value) }
		if s.quote {
			show = func() string { return shown(value) }
		}
		if err := slots.fail(i, show, rule); err != nil {
			slots.leave()
			b.Release()
			return nil, err
		}
	}
	return slots.end(s.to, b), nil
}

// fixedToSlices gives bytes of one width the offsets that binary has. The bytes are shared.
type fixedToSlices struct {
	to    arrow.DataType
	at    site
	width int
}

func (fixedToSlices) checks() bool { return false }

func (s fixedToSlices) do(r *run, in arrow.ArrayData, _ bitmap) (arrow.ArrayData, error) {
	raw, err := fixedBytes(in, s.width, s.at.path)
	if err != nil {
		return nil, err
	}
	defer raw.Release()
	ends := r.buffer((in.Len() + 1) * 4)
	defer ends.Release()
	for i, out := 0, arrow.Int32Traits.CastFromBytes(ends.Bytes()); i <= in.Len(); i++ {
		out[i] = int32(i * s.width)
	}
	valid := validity(r, in)
	defer release(valid)
	return array.NewData(s.to, in.Len(), []*memory.Buffer{valid, ends, raw}, nil, nullCount(in, valid), 0), nil
}

// fixedBytes returns the bytes of in's values of one width. The caller releases them.
func fixedBytes(in arrow.ArrayData, width int, path string) (*memory.Buffer, error) {
	from, n := int64(in.Offset())*int64(width), int64(in.Len())*int64(width)
	if n == 0 {
		return memory.NewBufferBytes(nil), nil
	}
	if n > math.MaxInt32 {
		return nil, tooLarge(path)
	}
	b := in.Buffers()[1]
	if b == nil || int64(b.Len()) < from+n {
		return nil, fmt.Errorf("column %s: its buffer is too short for %d values", path, in.Offset()+in.Len())
	}
	return memory.SliceBuffer(b, int(from), int(n)), nil
}

// uuidText writes UUIDs in small letters, with hyphens.
type uuidText struct {
	to arrow.DataType
	at site
}

func (uuidText) checks() bool { return false }

func (s uuidText) do(r *run, in arrow.ArrayData, _ bitmap) (arrow.ArrayData, error) {
	const length = 36
	raw, err := fixedBytes(in, 16, s.at.path)
	if err != nil {
		return nil, err
	}
	defer raw.Release()
	if int64(in.Len())*length > math.MaxInt32 {
		return nil, tooLarge(s.at.path)
	}
	ends, text := r.buffer((in.Len()+1)*4), r.buffer(in.Len()*length)
	defer ends.Release()
	defer text.Release()
	for i, out := 0, arrow.Int32Traits.CastFromBytes(ends.Bytes()); i <= in.Len(); i++ {
		out[i] = int32(i * length)
	}
	for i := range in.Len() {
		id, out := raw.Bytes()[i*16:], text.Bytes()[i*length:]
		at := 0
		for k, part := range [][2]int{{0, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 16}} {
			if k > 0 {
				out[at] = '-'
				at++
			}
			at += hex.Encode(out[at:], id[part[0]:part[1]])
		}
	}
	valid := validity(r, in)
	defer release(valid)
	return array.NewData(s.to, in.Len(), []*memory.Buffer{valid, ends, text}, nil, nullCount(in, valid), 0), nil
}
