package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/iceberg-go"
)

// compileLeaf brings a primitive column first to the Arrow type of its source type, then to that of
// its target type.
func compileLeaf(c *Column, f arrow.Field, target arrow.DataType, zone *time.Location) (step, error) {
	canonical := arrowType(c.SourceType)
	normal, ok := normalise(f.Type, c.SourceType, canonical, siteOf(c))
	if !ok {
		return nil, refuseArrow(c, f)
	}
	if c.SourceType.Equals(c.Target.Type) {
		return normal, nil
	}
	cast, ok := castStep(c.SourceType, c.Target.Type, target, siteOf(c), zone)
	if !ok {
		return nil, fmt.Errorf("column %s: %s does not become %s", quote(c.Path), c.SourceType, c.Target.Type)
	}
	return chained(normal, cast), nil
}

// normalise returns the step from what a stream holds to the one Arrow type of an Iceberg type, nil if
// there is nothing to do; false if the stream holds something else (cases 32, 33, 42, 50).
func normalise(in arrow.DataType, t iceberg.Type, to arrow.DataType, at site) (step, bool) {
	switch t := t.(type) {
	case iceberg.Int32Type:
		return normalInt[int32](in, to, at, false)
	case iceberg.Int64Type:
		return normalInt[int64](in, to, at, true)
	case iceberg.Float32Type, iceberg.Float64Type:
		return normalFloat(in, to, at)
	case iceberg.DecimalType:
		return normalDecimal(in, t, to, at)
	case iceberg.DateType:
		if in.ID() == arrow.DATE64 {
			return divided[arrow.Date64, int32](to, at, 86_400_000, "is not a whole day"), true
		}
		return nil, in.ID() == arrow.DATE32
	case iceberg.TimeType:
		return normalTime(in, to, at)
	case iceberg.TimestampType, iceberg.TimestampNsType, iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		in, ok := in.(*arrow.TimestampType)
		if !ok || (in.TimeZone != "") != zoned(t) {
			return nil, false
		}
		return normalTimestamp(in, to.(*arrow.TimestampType), at), true
	case iceberg.StringType:
		return normalBytes(in, to, at, arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW)
	case iceberg.BinaryType:
		return normalBytes(in, to, at, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW)
	case iceberg.UUIDType:
		if b, ok := in.(*arrow.FixedSizeBinaryType); ok && b.ByteWidth == 16 {
			return relabel{to}, true
		}
		_, ok := in.(*extensions.UUIDType)
		return nil, ok
	}
	return nil, arrow.TypeEqual(in, to)
}

func normalInt[D int32 | int64](in, to arrow.DataType, at site, wide bool) (step, bool) {
	switch in.ID() {
	case to.ID():
		return nil, true
	case arrow.INT8:
		return widen[int8, D](to, at.path), true
	case arrow.INT16:
		return widen[int16, D](to, at.path), true
	case arrow.UINT8:
		return widen[uint8, D](to, at.path), true
	case arrow.UINT16:
		return widen[uint16, D](to, at.path), true
	case arrow.INT32:
		return widen[int32, D](to, at.path), wide
	case arrow.UINT32:
		return widen[uint32, D](to, at.path), wide
	case arrow.UINT64:
		return &fixedStep[uint64, int64]{to: to, at: at, convert: func(v uint64) (int64, string) {
			if v > math.MaxInt64 {
				return 0, "is beyond the range of a long"
			}
			return int64(v), ""
		}}, wide
	}
	return nil, false
}

func normalFloat(in, to arrow.DataType, at site) (step, bool) {
	double := to.ID() == arrow.FLOAT64
	switch in.ID() {
	case to.ID():
		return nil, true
	case arrow.FLOAT16:
		if double {
			return &fixedStep[float16.Num, float64]{to: to, at: at,
				plain: func(v float16.Num) float64 { return float64(v.Float32()) }}, true
		}
		return &fixedStep[float16.Num, float32]{to: to, at: at,
			plain: func(v float16.Num) float32 { return v.Float32() }}, true
	case arrow.FLOAT32:
		return widen[float32, float64](to, at.path), double
	}
	return nil, false
}

func normalDecimal(in arrow.DataType, t iceberg.DecimalType, to arrow.DataType, at site) (step, bool) {
	d, ok := in.(arrow.DecimalType)
	if !ok || int(d.GetScale()) != t.Scale() || int(d.GetPrecision()) > t.Precision() {
		return nil, false
	}
	switch in.ID() {
	case arrow.DECIMAL128:
		return sameLayout(in, to), true
	case arrow.DECIMAL64:
		return &fixedStep[decimal.Decimal64, decimal128.Num]{to: to, at: at,
			plain: func(v decimal.Decimal64) decimal128.Num { return decimal128.FromI64(int64(v)) }}, true
	case arrow.DECIMAL32:
		return &fixedStep[decimal.Decimal32, decimal128.Num]{to: to, at: at,
			plain: func(v decimal.Decimal32) decimal128.Num { return decimal128.FromI64(int64(v)) }}, true
	}
	return nil, false
}

func normalTime(in, to arrow.DataType, at site) (step, bool) {
	switch t := in.(type) {
	case *arrow.Time32Type:
		factor := int64(1000)
		if t.Unit == arrow.Second {
			factor = 1_000_000
		}
		return &fixedStep[int32, int64]{to: to, at: at, plain: func(v int32) int64 { return int64(v) * factor }}, true
	case *arrow.Time64Type:
		if t.Unit == arrow.Nanosecond {
			return divided[int64, int64](to, at, 1000, "is finer than microseconds"), true
		}
		return nil, true
	}
	return nil, false
}

func normalTimestamp(in, to *arrow.TimestampType, at site) step {
	from, want := perSecond(in.Unit), perSecond(to.Unit)
	switch {
	case from == want:
		return sameLayout(in, to)
	case from > want:
		return divided[int64, int64](to, at, from/want, "is finer than microseconds")
	}
	return multiplied(to, at, want/from, "is beyond the range of a timestamp in "+to.Unit.String())
}

func perSecond(u arrow.TimeUnit) int64 {
	return map[arrow.TimeUnit]int64{arrow.Second: 1, arrow.Millisecond: 1e3, arrow.Microsecond: 1e6, arrow.Nanosecond: 1e9}[u]
}

func normalBytes(in, to arrow.DataType, at site, plain, large, view arrow.Type) (step, bool) {
	switch in.ID() {
	case plain:
		return nil, true
	case large:
		return largeBytes{to, at.path}, true
	case view:
		return viewBytes{to, at.path}, true
	}
	return nil, false
}

// multiply returns v*factor, and whether that did not overflow.
func multiply(v, factor int64) (int64, bool) {
	p := v * factor
	return p, p/factor == v
}
