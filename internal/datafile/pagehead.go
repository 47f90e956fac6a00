package datafile

import (
	"errors"
	"io"
)

// pageHead is what the header of a page says (Parquet: PageHeader, in Thrift's compact protocol), as far as it is
// held against the footer. The library's own reader of headers cannot be had without decoding the pages.
type pageHead struct {
	kind         int64 // as Parquet numbers them
	uncompressed int64
	compressed   int64 // bytes of the page behind the header
	crc          uint32
	checked      bool // crc is there
	values       int64
	encoding     int64
	levels       int64 // bytes of levels, of a data page of version 2
	valued       bool  // values is there
}

// Kinds of pages.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3
)

// What a header may be at most: it holds two values of a column as statistics.
const (
	headBytes = 16 << 20
	headDepth = 8
)

var errHeader = errors.New("a page header is not one")

// readPageHead reads a header.
func readPageHead(in io.ByteReader) (pageHead, error) {
	var h pageHead
	r := compactReader{in: in, room: headBytes}
	err := r.fields(0, func(id int64, kind byte) (bool, error) {
		switch {
		case id == 1 && kind == compactI32:
			return true, r.int(&h.kind)
		case id == 2 && kind == compactI32:
			return true, r.int(&h.uncompressed)
		case id == 3 && kind == compactI32:
			return true, r.int(&h.compressed)
		case id == 4 && kind == compactI32:
			var v int64
			h.checked = true
			err := r.int(&v)
			h.crc = uint32(int32(v))
			return true, err
		case (id == 5 || id == 7 || id == 8) && kind == compactStruct:
			return true, r.pageFields(id == 8, &h)
		}
		return false, nil
	})
	if err == nil && (h.kind < 0 || h.compressed < 0 || h.uncompressed < 0) {
		err = errHeader
	}
	return h, err
}

// pageFields reads the header of a data page of version 1 or 2, or of a dictionary page.
func (r *compactReader) pageFields(v2 bool, h *pageHead) error {
	encoding := int64(2)
	if v2 {
		encoding = 4
	}
	return r.fields(1, func(id int64, kind byte) (bool, error) {
		if kind != compactI32 {
			return false, nil
		}
		switch id {
		case 1:
			h.valued = true
			return true, r.int(&h.values)
		case encoding:
			return true, r.int(&h.encoding)
		case 5, 6: // of version 2 alone: before it these are no integers
			var n int64
			err := r.int(&n)
			if n < 0 {
				return true, errHeader
			}
			h.levels += n
			return true, err
		}
		return false, nil
	})
}

// Types of Thrift's compact protocol that matter here.
const (
	compactTrue   = 1
	compactFalse  = 2
	compactByte   = 3
	compactI64    = 6
	compactI32    = 5
	compactI16    = 4
	compactDouble = 7
	compactBinary = 8
	compactList   = 9
	compactSet    = 10
	compactMap    = 11
	compactStruct = 12
)

// A compactReader reads Thrift's compact protocol, room bytes at most.
type compactReader struct {
	in   io.ByteReader
	room int
}

func (r *compactReader) byte() (byte, error) {
	if r.room--; r.room < 0 {
		return 0, errHeader
	}
	b, err := r.in.ReadByte()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func (r *compactReader) uvarint() (uint64, error) {
	var v uint64
	for shift := 0; shift < 70; shift += 7 {
		b, err := r.byte()
		if err != nil {
			return 0, err
		}
		v |= uint64(b&0x7f) << min(shift, 63)
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errHeader
}

// int reads a zigzag integer.
func (r *compactReader) int(to *int64) error {
	u, err := r.uvarint()
	*to = int64(u>>1) ^ -int64(u&1)
	return err
}

// fields reads a struct. read takes a field and reports that, or it is skipped.
func (r *compactReader) fields(depth int, read func(id int64, kind byte) (bool, error)) error {
	if depth > headDepth {
		return errHeader
	}
	for id := int64(0); ; {
		b, err := r.byte()
		if err != nil {
			return err
		}
		kind := b & 0x0f
		if kind == 0 {
			return nil
		}
		if delta := int64(b >> 4); delta != 0 {
			id += delta
		} else if err := r.int(&id); err != nil {
			return err
		}
		taken := false
		if read != nil {
			if taken, err = read(id, kind); err != nil {
				return err
			}
		}
		if !taken && kind != compactTrue && kind != compactFalse { // a boolean is all in its type
			if err := r.skip(depth, kind); err != nil {
				return err
			}
		}
	}
}

func (r *compactReader) bytes(n uint64) error {
	if n > headBytes {
		return errHeader
	}
	for range n {
		if _, err := r.byte(); err != nil {
			return err
		}
	}
	return nil
}

// skip passes over a value.
func (r *compactReader) skip(depth int, kind byte) error {
	if depth > headDepth {
		return errHeader
	}
	switch kind {
	case compactTrue, compactFalse, compactByte:
		return r.bytes(1)
	case compactI16, compactI32, compactI64:
		_, err := r.uvarint()
		return err
	case compactDouble:
		return r.bytes(8)
	case compactBinary:
		n, err := r.uvarint()
		if err != nil {
			return err
		}
		return r.bytes(n)
	case compactList, compactSet:
		b, err := r.byte()
		if err != nil {
			return err
		}
		n := uint64(b >> 4)
		if n == 15 {
			if n, err = r.uvarint(); err != nil {
				return err
			}
		}
		return r.skipMany(depth, n, b&0x0f)
	case compactMap:
		n, err := r.uvarint()
		if err != nil || n == 0 {
			return err
		}
		b, err := r.byte()
		if err != nil {
			return err
		}
		return r.skipMany(depth, n, b>>4, b&0x0f)
	case compactStruct:
		return r.fields(depth+1, nil)
	}
	return errHeader
}

func (r *compactReader) skipMany(depth int, n uint64, kinds ...byte) error {
	for range n { // each takes a byte at least, of which there are so many
		for _, k := range kinds {
			if err := r.skip(depth+1, k); err != nil {
				return err
			}
		}
	}
	return nil
}
