package datafile

// A span is which values of an array are meant, in which order: n of them from lo on, or those that
// idx names.
type span struct {
	lo, n int
	idx   []int32 // nil: consecutive
}

func rowsOf(lo, n int) span { return span{lo: lo, n: n} }

func rowsAt(idx []int32) span { return span{n: len(idx), idx: idx} }

// sub is n values of s from its i-th on.
func (s span) sub(i, n int) span {
	if s.idx != nil {
		return rowsAt(s.idx[i : i+n])
	}
	return rowsOf(s.lo+i, n)
}

// at is the place in the array of the i-th value.
func (s span) at(i int) int {
	if s.idx != nil {
		return int(s.idx[i])
	}
	return s.lo + i
}

// pick gives the values of data that s means: a part of data where they stand together, else a copy
// in *buf, which is kept for the next call.
func pick[T any](buf *[]T, data []T, s span) []T {
	if s.idx == nil {
		return data[s.lo : s.lo+s.n]
	}
	out := grow(buf, s.n)
	for i, p := range s.idx {
		out[i] = data[p]
	}
	return out
}

// grow makes *buf n values long, which keep what was there only as far as it has room for them, and gives it.
func grow[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n, max(n, 2*cap(*buf)))
	}
	*buf = (*buf)[:n]
	return *buf
}
