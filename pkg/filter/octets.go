package filter

import (
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// compareOctets compares texts and bytes, one byte after the other.
func compareOctets(l *leaf, arr arrow.Array, out []bool) bool {
	var at func(i int) string
	switch a := arr.(type) {
	case *array.String:
		at = a.Value
	case *array.LargeString:
		at = a.Value
	case *array.StringView:
		at = func(i int) string {
			if a.IsNull(i) {
				return "" // what the view of a null points at means nothing
			}
			return a.Value(i)
		}
	case *array.Binary:
		at = func(i int) string { return lent(a.Value(i)) }
	case *array.LargeBinary:
		at = func(i int) string { return lent(a.Value(i)) }
	case *array.BinaryView:
		at = func(i int) string {
			if a.IsNull(i) {
				return ""
			}
			return lent(a.Value(i))
		}
	case *array.FixedSizeBinary:
		at = func(i int) string { return lent(a.Value(i)) }
	default:
		return false
	}
	w := l.value.text
	switch l.op {
	case opStarts, opNotStarts:
		starts := l.op == opStarts
		for i := range out {
			out[i] = strings.HasPrefix(at(i), w) == starts
		}
	case opEqual, opNotEqual:
		equal := l.op == opEqual
		for i := range out {
			out[i] = (at(i) == w) == equal
		}
	case opIn, opNotIn:
		set := make(map[string]struct{}, len(l.set))
		for _, v := range l.set {
			set[v.text] = struct{}{}
		}
		in := l.op == opIn
		for i := range out {
			_, ok := set[at(i)]
			out[i] = ok == in
		}
	case opLess:
		for i := range out {
			out[i] = at(i) < w
		}
	case opLessEq:
		for i := range out {
			out[i] = at(i) <= w
		}
	case opGreater:
		for i := range out {
			out[i] = at(i) > w
		}
	case opGreaterEq:
		for i := range out {
			out[i] = at(i) >= w
		}
	default:
		return false
	}
	return true
}

// lent shows bytes as a string for as long as they are not changed.
func lent(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
