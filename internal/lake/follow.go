package lake

// largestGroup is the number of rows of the largest row group that a batch may hold.
func (s *Scan) largestGroup() int64 {
	most := int64(0)
	for _, f := range s.files {
		for _, n := range f.groups {
			if n <= autoAtMost {
				most = max(most, n)
			}
		}
	}
	return most
}

// follows reports whether the open batch ends behind a row group since the next one does not fit, and would be cut: one
// that fits no batch is cut in any case. A batch never has more rows than it is said to have.
func (r *run) follows(file int64, group int) bool {
	if !r.options.Follow || r.inBatch == 0 {
		return false
	}
	for ; file < int64(len(r.files)); file++ {
		f := r.files[file]
		for group++; group < len(f.groups); group++ {
			if n := f.groups[group]; n > 0 && !f.skip && !f.skips[group] {
				return n > r.options.BatchRows-r.inBatch && n <= r.options.BatchRows
			}
		}
		group = -1
	}
	return false
}
