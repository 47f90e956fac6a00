package rows

import "github.com/apache/arrow-go/v18/arrow/bitutil"

// A Mask is a set of the rows of a row group: bit i of byte i/8 is row i. nil has all rows. Who was given one does
// not change it.
type Mask []byte

// NewMask returns a mask of n rows that has none of them.
func NewMask(n int64) Mask { return make(Mask, bitutil.BytesForBits(n)) }

// Has reports whether row i is in the mask.
func (m Mask) Has(i int64) bool { return m == nil || bitutil.BitIsSet(m, int(i)) }

// Count is how many of the rows from and below to are in the mask.
func (m Mask) Count(from, to int64) int64 {
	if m == nil || from >= to {
		return max(0, to-from)
	}
	return int64(bitutil.CountSetBits(m, int(from), int(to-from)))
}

// Set puts row i into the mask, or takes it out.
func (m Mask) Set(i int64, in bool) { bitutil.SetBitTo(m, int(i), in) }

// Behind is the row behind the n-th in the mask of those from and below to, and how many there are up to it: n, or
// less where there are no more. Without any it is from.
func (m Mask) Behind(from, to, n int64) (end, found int64) {
	if m == nil {
		found = max(0, min(n, to-from))
		return from + found, found
	}
	end = from
	for at := from; at < to && found < n; {
		if at%8 == 0 && at+8 <= to && m[at/8] == 0 {
			at += 8
			continue
		}
		if m.Has(at) {
			found++
			end = at + 1
		}
		at++
	}
	return end, found
}
