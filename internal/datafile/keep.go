package datafile

import (
	"github.com/apache/arrow-go/v18/parquet"

	"icepipe/pkg/rows"
)

// keep drops the rows that a mask has not, in which the first of d's is row first, and reports whether any are left.
func (d *decoded) keep(mask rows.Mask, first int64) bool {
	n := int(mask.Count(first, first+int64(d.rows)))
	if n == d.rows || n == 0 {
		return n > 0
	}
	kept := grow(&d.kept, d.rows)[:0]
	row, value := 0, int32(0)
	for i := range d.rows {
		there := d.def == nil || d.def[i] != 0
		if mask.Has(first + int64(i)) {
			if d.def != nil {
				d.def[row] = d.def[i]
			}
			if there {
				kept = append(kept, value)
			}
			row++
		}
		if there {
			value++
		}
	}
	if d.def != nil {
		d.def = d.def[:row]
	}
	d.rows, d.values = row, len(kept)
	switch d.kind {
	case parquet.Types.Boolean:
		keepOf(d.bits, kept)
	case parquet.Types.Int32:
		keepOf(d.i32, kept)
	case parquet.Types.Int64:
		keepOf(d.i64, kept)
	case parquet.Types.Float:
		keepOf(d.f32, kept)
	case parquet.Types.Double:
		keepOf(d.f64, kept)
	case parquet.Types.ByteArray:
		keepOf(d.bytes, kept)
	case parquet.Types.FixedLenByteArray:
		keepOf(d.fixed, kept)
	}
	return true
}

// keepOf moves the values at ascending places to the front.
func keepOf[T any](values []T, kept []int32) {
	for i, at := range kept {
		values[i] = values[at]
	}
}
