package arrowipc

import (
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// validate refuses exactly the arrays that array.ValidateFull refuses. Strings are looked at all at once: they are UTF-8
// if what they are together is, and none of them begins within a letter.
func validate(col arrow.Array) error {
	if col.Len() == 0 {
		return array.ValidateFull(col) // whose offsets may be anything
	}
	switch s := col.(type) {
	case *array.String:
		if asBytes(s, arrow.BinaryTypes.Binary) == nil && isText(s.ValueBytes(), s.ValueOffsets()) {
			return nil
		}
	case *array.LargeString:
		if asBytes(s, arrow.BinaryTypes.LargeBinary) == nil && isText(s.ValueBytes(), s.ValueOffsets()) {
			return nil
		}
	}
	return array.ValidateFull(col)
}

// asBytes looks at strings as bytes without a meaning.
func asBytes(s arrow.Array, bytes arrow.DataType) error {
	d := s.Data()
	data := array.NewData(bytes, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())
	defer data.Release()
	arr := array.MakeFromData(data)
	defer arr.Release()
	return array.ValidateFull(arr)
}

// isText tells whether what lies between offsets, the first of which is where values begin, is UTF-8.
func isText[T int32 | int64](values []byte, offsets []T) bool {
	if !utf8.Valid(values) {
		return false
	}
	first, end := offsets[0], offsets[len(offsets)-1]
	for _, at := range offsets {
		if at < end && !utf8.RuneStart(values[at-first]) {
			return false
		}
	}
	return true
}
