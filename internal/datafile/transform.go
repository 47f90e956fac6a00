package datafile

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

const (
	microsPerHour = int64(3600) * 1e6
	nanosPerHour  = int64(3600) * 1e9
)

// apply transforms keys as a partition or sort field says (spec: Partition Transforms). What is plain
// arithmetic is done here on whole columns; hashes and calendars are the library's.
func (k keys) apply(tr iceberg.Transform) (keys, error) {
	out := keys{typ: tr.ResultType(k.typ), valid: k.valid}
	switch t := tr.(type) {
	case iceberg.IdentityTransform:
		return k, nil
	case iceberg.VoidTransform:
		out.ints, out.valid = make([]int64, k.len()), make([]bool, k.len())
		return out, nil
	case iceberg.BucketTransform:
		hash := t.Transformer(k.typ)
		out.ints = make([]int64, k.len())
		for i := range out.ints {
			if !k.null(i) {
				out.ints[i] = int64(hash(k.value(i)).Val)
			}
		}
		return out, nil
	case iceberg.TruncateTransform:
		return k.truncate(t)
	case iceberg.YearTransform:
		return k.calendar(out, t)
	case iceberg.MonthTransform:
		return k.calendar(out, t)
	case iceberg.DayTransform:
		out.ints = k.days()
		return out, nil
	case iceberg.HourTransform:
		unit := microsPerHour
		if nanos(k.typ) {
			unit = nanosPerHour
		}
		out.ints = make([]int64, len(k.ints))
		for i, v := range k.ints {
			out.ints[i] = floorDiv(v, unit)
		}
		return out, nil
	}
	return keys{}, fmt.Errorf("transform %s is not known", tr)
}

func (k keys) len() int { return max(len(k.ints), len(k.bytes)) }

func nanos(t iceberg.Type) bool {
	switch t.(type) {
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return true
	}
	return false
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// days are the days since 1970-01-01 of dates or timestamps.
func (k keys) days() []int64 {
	if _, ok := k.typ.(iceberg.DateType); ok {
		return k.ints
	}
	unit := 24 * microsPerHour
	if nanos(k.typ) {
		unit = 24 * nanosPerHour
	}
	out := make([]int64, len(k.ints))
	for i, v := range k.ints {
		out[i] = floorDiv(v, unit)
	}
	return out
}

// calendar transforms by the library, once a day: there are few days and many rows.
func (k keys) calendar(out keys, tr iceberg.TimeTransform) (keys, error) {
	ofDate, err := tr.Transformer(iceberg.DateType{})
	if err != nil {
		return keys{}, err
	}
	known := map[int64]int64{}
	out.ints = k.days()
	if _, same := k.typ.(iceberg.DateType); same {
		out.ints = append([]int64(nil), out.ints...) // those of the record batch stay as they are
	}
	for i, d := range out.ints {
		if k.null(i) {
			continue
		}
		v, ok := known[d]
		if !ok {
			v = int64(ofDate(iceberg.Date(d)).Val)
			known[d] = v
		}
		out.ints[i] = v
	}
	return out, nil
}

func (k keys) truncate(t iceberg.TruncateTransform) (keys, error) {
	out := keys{typ: k.typ, valid: k.valid}
	w := int64(t.Width)
	switch k.typ.(type) {
	case iceberg.Int32Type:
		out.ints = make([]int64, len(k.ints))
		for i, v := range k.ints {
			out.ints[i] = int64(int32(v - floorMod(v, w))) // wraps as Java's int does
		}
	case iceberg.StringType:
		out.bytes = make([][]byte, len(k.bytes))
		for i, b := range k.bytes {
			out.bytes[i] = firstRunes(b, t.Width)
		}
	case iceberg.BinaryType:
		out.bytes = make([][]byte, len(k.bytes))
		for i, b := range k.bytes {
			out.bytes[i] = b[:min(len(b), t.Width)]
		}
	case iceberg.Int64Type, iceberg.DecimalType:
		if k.bytes != nil {
			return k.truncateDecimals(t)
		}
		out.ints = make([]int64, len(k.ints))
		for i, v := range k.ints {
			out.ints[i] = v - floorMod(v, w)
		}
	default:
		return keys{}, fmt.Errorf("transform %s does not take %s", t, k.typ)
	}
	return out, nil
}

func floorMod(a, b int64) int64 { return ((a % b) + b) % b }

func firstRunes(b []byte, n int) []byte {
	at := 0
	for ; n > 0 && at < len(b); n-- {
		_, size := utf8.DecodeRune(b[at:])
		at += size
	}
	return b[:at]
}

// truncateDecimals is for those of more than 18 digits.
func (k keys) truncateDecimals(t iceberg.TruncateTransform) (keys, error) {
	cut, err := t.Transformer(k.typ)
	if err != nil {
		return keys{}, err
	}
	out := keys{typ: k.typ, valid: k.valid, bytes: make([][]byte, len(k.bytes))}
	for i := range k.bytes {
		v := decimal128.Num{}
		if !k.null(i) {
			v = cut(k.value(i)).(iceberg.Decimal).Val
		}
		out.bytes[i] = decimalKey(make([]byte, 16), v)
	}
	return out, nil
}
