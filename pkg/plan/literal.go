package plan

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// literalOf returns a column's default value as Arrow stores one value of its type: little-endian
// bytes of a fixed width, one byte for a boolean, the bytes themselves for string and binary. It takes the
// value as the spec's JSON has it (spec, Appendix D), and as iceberg-go holds it.
func literalOf(v any, t iceberg.Type) ([]byte, error) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		if v, ok := v.(bool); ok {
			return []byte{map[bool]byte{true: 1}[v]}, nil
		}
	case iceberg.Int32Type:
		if n, ok := integer(v); ok && n == int64(int32(n)) {
			return binary.LittleEndian.AppendUint32(nil, uint32(n)), nil
		}
	case iceberg.Int64Type:
		if n, ok := integer(v); ok {
			return binary.LittleEndian.AppendUint64(nil, uint64(n)), nil
		}
	case iceberg.Float32Type:
		if f, ok := float(v); ok {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f))), nil
		}
	case iceberg.Float64Type:
		if f, ok := float(v); ok {
			return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)), nil
		}
	case iceberg.DecimalType:
		return decimalLiteral(v, t)
	case iceberg.StringType:
		if s, ok := v.(string); ok {
			return []byte(s), nil
		}
	case iceberg.BinaryType:
		return bytesLiteral(v)
	case iceberg.FixedType:
		b, err := bytesLiteral(v)
		if err == nil && len(b) != t.Len() {
			return nil, fmt.Errorf("a default of %d bytes is not a %s", len(b), t)
		}
		return b, err
	case iceberg.UUIDType:
		switch v := v.(type) {
		case uuid.UUID:
			return v[:], nil
		case string:
			if u, err := uuid.Parse(v); err == nil {
				return u[:], nil
			}
		}
	default:
		return timeLiteral(v, t)
	}
	return nil, notA(v, t)
}

func notA(v any, t iceberg.Type) error {
	text := fmt.Sprint(v)
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return fmt.Errorf("the default %q is not a %s", text, typeText(t))
}

// integer reads a whole number. A JSON number beyond 2^53 has lost its last digits on the way
// through the library, so it is not one.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case int:
		return int64(v), true
	case iceberg.Date:
		return int64(v), true
	case iceberg.Time:
		return int64(v), true
	case iceberg.Timestamp:
		return int64(v), true
	case iceberg.TimestampNano:
		return int64(v), true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) <= 1<<53
	}
	return 0, false
}

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case float32:
		return float64(v), true
	case float64:
		return v, true
	}
	n, ok := integer(v)
	return float64(n), ok
}

func decimalLiteral(v any, t iceberg.DecimalType) ([]byte, error) {
	var n decimal128.Num
	switch v := v.(type) {
	case iceberg.Decimal:
		n = v.Val
		if v.Scale != t.Scale() {
			return nil, notA(v, t)
		}
	case string:
		if len(v) > 41 || strings.Trim(v, "-.0123456789") != "" { // no exponent: it could ask for endless memory
			return nil, notA(v, t)
		}
		var err error
		n, err = decimal128.FromString(v, int32(t.Precision()), int32(t.Scale()))
		if err != nil || n.ToString(int32(t.Scale())) != v { // FromString rounds
			return nil, notA(v, t)
		}
	default:
		return nil, notA(v, t)
	}
	if !n.FitsInPrecision(int32(t.Precision())) {
		return nil, notA(v, t)
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, n.LowBits()), uint64(n.HighBits())), nil
}

func bytesLiteral(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case iceberg.BinaryLiteral:
		return v, nil
	case iceberg.FixedLiteral:
		return v, nil
	case string:
		if b, err := hex.DecodeString(v); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("the default %s is not hexadecimal", strconv.Quote(fmt.Sprint(v)))
}

// timeLiteral reads dates and times: ISO 8601 as the spec has them, or counts from the epoch.
func timeLiteral(v any, t iceberg.Type) ([]byte, error) {
	n, ok := integer(v)
	if s, isText := v.(string); isText {
		var err error
		if n, err = parseTime(s, t); err != nil {
			return nil, notA(v, t)
		}
		ok = true
	}
	switch t.(type) {
	case iceberg.DateType:
		if ok && n == int64(int32(n)) {
			return binary.LittleEndian.AppendUint32(nil, uint32(n)), nil
		}
	case iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		if ok {
			return binary.LittleEndian.AppendUint64(nil, uint64(n)), nil
		}
	default:
		return nil, fmt.Errorf("defaults of type %s are not supported", typeText(t))
	}
	return nil, notA(v, t)
}

func parseTime(s string, t iceberg.Type) (int64, error) {
	layout, nanos := "2006-01-02T15:04:05", false
	switch t.(type) {
	case iceberg.DateType:
		d, err := time.Parse(time.DateOnly, s)
		return d.Unix() / 86400, err
	case iceberg.TimeType:
		s = "1970-01-01T" + s
	case iceberg.TimestampType:
	case iceberg.TimestampTzType:
		layout += "Z07:00"
	case iceberg.TimestampNsType:
		nanos = true
	case iceberg.TimestampTzNsType:
		layout, nanos = layout+"Z07:00", true
	default:
		return 0, errors.New("not a time")
	}
	d, err := time.Parse(layout, s)
	switch {
	case err != nil:
		return 0, err
	case nanos && (d.Year() < 1678 || d.Year() > 2261):
		return 0, errors.New("beyond the range of nanoseconds")
	case nanos:
		return d.UnixNano(), nil
	case d.Nanosecond()%1000 != 0:
		return 0, errors.New("finer than microseconds")
	}
	return d.UnixMicro(), nil
}
