package plan

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// formatted turns values of a fixed width into text. Every value has one.
func formatted[S arrow.FixedWidthType](to arrow.DataType, at site, write func([]byte, S) []byte) step {
	return &formatStep[S]{to: to, at: at, write: write}
}

type formatStep[S arrow.FixedWidthType] struct {
	to    arrow.DataType
	at    site
	write func([]byte, S) []byte
}

func (*formatStep[S]) checks() bool { return false }

func (s *formatStep[S]) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	values, err := valuesOf[S](in, s.at.path)
	if err != nil {
		return nil, err
	}
	slots := r.slots(in, dead, s.at)
	defer slots.leave()
	ends := r.buffer((len(values) + 1) * 4)
	out := arrow.Int32Traits.CastFromBytes(ends.Bytes())
	text := make([]byte, 0, 12*len(values))
	out[0] = 0
	for i, v := range values {
		if slots.counts(i) {
			text = s.write(text, v)
		}
		if len(text) > math.MaxInt32 {
			ends.Release()
			return nil, tooLarge(s.at.path)
		}
		out[i+1] = int32(len(text))
	}
	return slots.end(s.to, ends, memory.NewBufferBytes(text)), nil
}

// text makes the step from a type that is not text or bytes to string.
func (c caster) text() step {
	stamp := func(perSecond int64, zone string) step {
		return formatted(c.target, c.at, func(b []byte, v int64) []byte { return appendMoment(b, v, perSecond, zone) })
	}
	switch from := c.from.(type) {
	case iceberg.Int32Type:
		return formatted(c.target, c.at, func(b []byte, v int32) []byte { return strconv.AppendInt(b, int64(v), 10) })
	case iceberg.Int64Type:
		return formatted(c.target, c.at, func(b []byte, v int64) []byte { return strconv.AppendInt(b, v, 10) })
	case iceberg.Float32Type:
		return formatted(c.target, c.at, func(b []byte, v float32) []byte { return appendFloat(b, float64(v), 32) })
	case iceberg.Float64Type:
		return formatted(c.target, c.at, func(b []byte, v float64) []byte { return appendFloat(b, v, 64) })
	case iceberg.DecimalType:
		return formatted(c.target, c.at, func(b []byte, v decimal128.Num) []byte { return appendDecimal(b, v, from.Scale()) })
	case iceberg.DateType:
		return formatted(c.target, c.at, func(b []byte, v int32) []byte { return appendDate(b, int64(v)) })
	case iceberg.TimeType:
		return formatted(c.target, c.at, func(b []byte, v int64) []byte { return appendClock(b, v/1e6, v%1e6*1000) })
	case iceberg.TimestampType:
		return stamp(1e6, "")
	case iceberg.TimestampTzType:
		return stamp(1e6, "+00:00")
	case iceberg.TimestampNsType:
		return stamp(1e9, "")
	case iceberg.TimestampTzNsType:
		return stamp(1e9, "+00:00")
	}
	return nil
}

// parseStep reads text as values of a fixed width.
type parseStep[D arrow.FixedWidthType] struct {
	to    arrow.DataType
	at    site
	fresh func() func([]byte) (D, string)
}

// parsing makes a parseStep that remembers nothing.
func parsing[D arrow.FixedWidthType](c caster, to iceberg.Type, parse func([]byte) (D, string)) step {
	return &parseStep[D]{to: arrowType(to), at: c.at, fresh: func() func([]byte) (D, string) { return parse }}
}

func (*parseStep[D]) checks() bool { return true }

func (s *parseStep[D]) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	ends, raw, err := texts(in, s.at.path)
	if err != nil {
		return nil, err
	}
	b := r.buffer(in.Len() * arrowSize[D]())
	out := arrow.GetData[D](b.Bytes())[:in.Len()]
	slots := r.slots(in, dead, s.at)
	parse := s.fresh()
	var zero D
	for i := range out {
		if !slots.counts(i) {
			out[i] = zero
			continue
		}
		text := raw[ends[i]:ends[i+1]]
		d, rule := parse(text)
		if rule != "" {
			if err := slots.fail(i, func() string { return shown(text) }, rule); err != nil {
				slots.leave()
				b.Release()
				return nil, err
			}
			d = zero
		}
		out[i] = d
	}
	return slots.end(s.to, b), nil
}

// shown is a text as messages have it: quoted, and not all of a long one.
func shown(text []byte) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "…"
	}
	return strconv.Quote(string(text))
}

// texts returns the offsets of in's values, and the bytes that they lie in.
func texts(in arrow.ArrayData, path string) ([]int32, []byte, error) {
	n := in.Len()
	if n == 0 {
		return []int32{0}, nil, nil
	}
	b := in.Buffers()[1]
	if b == nil || b.Len() < (in.Offset()+n+1)*4 {
		return nil, nil, fmt.Errorf("column %s: too few offsets for %d values", path, in.Offset()+n)
	}
	ends := arrow.Int32Traits.CastFromBytes(b.Bytes())[in.Offset() : in.Offset()+n+1]
	var raw []byte
	if in.Buffers()[2] != nil {
		raw = in.Buffers()[2].Bytes()
	}
	if ends[0] < 0 || int(ends[n]) > len(raw) || !increasing(ends) {
		return nil, nil, fmt.Errorf("column %s: the offsets are not those of its bytes", path)
	}
	return ends, raw, nil
}

// parsed makes the step from string.
func (c caster) parsed() step {
	bad, beyond := "does not read as "+c.to.String(), c.beyond()
	switch to := c.to.(type) {
	case iceberg.BooleanType:
		long := iceberg.Int64Type{}
		return c.via(parsing(c, long, func(text []byte) (int64, string) {
			v, ok := scanBoolean(text)
			return v, unless(ok, bad)
		}), long)
	case iceberg.Int32Type:
		return parsing(c, to, func(text []byte) (int32, string) {
			v, far, ok := scanInteger(text)
			if ok && (far || v != int64(int32(v))) {
				return 0, beyond
			}
			return int32(v), unless(ok, bad)
		})
	case iceberg.Int64Type:
		return parsing(c, to, func(text []byte) (int64, string) {
			v, far, ok := scanInteger(text)
			if far {
				return 0, beyond
			}
			return v, unless(ok, bad)
		})
	case iceberg.Float32Type:
		return parsing(c, to, func(text []byte) (float32, string) {
			v, far, ok := scanFloat(text, 32)
			if far {
				return 0, beyond
			}
			return float32(v), unless(ok, bad)
		})
	case iceberg.Float64Type:
		return parsing(c, to, func(text []byte) (float64, string) {
			v, far, ok := scanFloat(text, 64)
			if far {
				return 0, beyond
			}
			return v, unless(ok, bad)
		})
	case iceberg.DecimalType:
		fine := tooFine(to.Scale())
		return parsing(c, to, func(text []byte) (decimal128.Num, string) {
			n, ok := scanNumeral(trimmed(text))
			if !ok {
				return decimal128.Num{}, bad
			}
			v, why := n.decimal(to.Precision(), to.Scale())
			return v, decimalRule(why, fine, beyond)
		})
	case iceberg.UUIDType, iceberg.FixedType, iceberg.BinaryType:
		return c.parsedBytes()
	}
	return c.parsedTime(bad)
}

func unless(ok bool, rule string) string {
	if ok {
		return ""
	}
	return rule
}

// parsedTime makes the step from string to a date or a time.
func (c caster) parsedTime(bad string) step {
	switch to := c.to.(type) {
	case iceberg.DateType:
		return parsing(c, to, func(text []byte) (int32, string) {
			days, rest, ok := scanDate(trimmed(text))
			if !ok || len(rest) > 0 || days != int64(int32(days)) {
				return 0, bad
			}
			return int32(days), ""
		})
	case iceberg.TimeType:
		return parsing(c, to, func(text []byte) (int64, string) {
			nanos, rest, ok := scanClock(trimmed(text))
			if !ok || len(rest) > 0 {
				return 0, bad
			}
			if nanos%1000 != 0 {
				return 0, "is finer than microseconds"
			}
			return nanos / 1000, ""
		})
	}
	if !c.t.stamp() {
		return nil
	}
	return &parseStep[int64]{to: c.target, at: c.at, fresh: func() func([]byte) (int64, string) {
		clock := zoneClock{loc: c.zone}
		return func(text []byte) (int64, string) {
			m, ok := scanMoment(text)
			if !ok {
				return 0, bad
			}
			seconds, rule := c.instant(m, &clock)
			if rule != "" {
				return 0, rule
			}
			return count(seconds, m.nanos, c.perSecond())
		}
	}}
}

// instant returns the seconds that a timestamp in text stands for.
func (c caster) instant(m moment, clock *zoneClock) (int64, string) {
	switch {
	case !c.t.zoned() && m.zoned:
		return 0, "has a time zone, and " + c.to.String() + " has none"
	case !c.t.zoned():
		return m.seconds, ""
	case m.zoned:
		return m.seconds - m.offset, ""
	case c.zone == nil:
		return 0, "has no time zone; give --assume-timezone ZONE"
	}
	return clock.instant(m.seconds)
}

// binaryToText holds bytes to be UTF-8, and shares them where all are: readers of Arrow look at bytes that
// nobody sees as well.
type binaryToText struct {
	to arrow.DataType
	at site
}

func (binaryToText) checks() bool { return true }

func (s binaryToText) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	ends, raw, err := texts(in, s.at.path)
	if err != nil {
		return nil, err
	}
	slots := r.slots(in, dead, s.at)
	defer slots.leave()
	all := true
	for i := range in.Len() {
		text := raw[ends[i]:ends[i+1]]
		if utf8.Valid(text) {
			continue
		}
		all = false
		if !slots.counts(i) {
			continue
		}
		if err := slots.fail(i, func() string { return hexText(text) }, "is not UTF-8"); err != nil {
			return nil, err
		}
	}
	if all {
		return array.NewData(s.to, in.Len(), in.Buffers(), nil, in.NullN(), in.Offset()), nil
	}
	fresh := r.buffer(len(ends) * 4)
	out := arrow.Int32Traits.CastFromBytes(fresh.Bytes())
	kept := make([]byte, 0, len(raw))
	out[0] = 0
	for i := range in.Len() {
		if text := raw[ends[i]:ends[i+1]]; utf8.Valid(text) {
			kept = append(kept, text...)
		}
		out[i+1] = int32(len(kept))
	}
	return slots.end(s.to, fresh, memory.NewBufferBytes(kept)), nil
}
