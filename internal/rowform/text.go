package rowform

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// JSON is a column's value as JSON: numbers and text as they are, NaN and infinities as text, decimals as
// text with all digits of their scale, dates and times in ISO 8601, bytes in hexadecimal, structs as
// objects, maps as arrays of pairs.
func JSON(cell []byte, t iceberg.Type) (string, error) {
	if _, err := skip(cell, t); err != nil {
		return "", err
	}
	var b strings.Builder
	appendJSON(&b, cell, t)
	return b.String(), nil
}

// appendJSON writes the first value of b, which was looked at before, and returns what stands behind it.
func appendJSON(w *strings.Builder, b []byte, t iceberg.Type) []byte {
	rest, _ := skip(b, t)
	if b[0] == 0 {
		w.WriteString("null")
		return rest
	}
	b = b[1 : len(b)-len(rest)]
	switch t := t.(type) {
	case iceberg.BooleanType:
		w.WriteString(strconv.FormatBool(b[0] != 0))
	case iceberg.Int32Type, iceberg.Int64Type:
		w.WriteString(strconv.FormatInt(integer(b), 10))
	case iceberg.Float32Type:
		appendNumber(w, double(b), 32)
	case iceberg.Float64Type:
		appendNumber(w, double(b), 64)
	case iceberg.DecimalType:
		quoted(w, decimal128.New(integer(b), binary.BigEndian.Uint64(b[8:])).ToString(int32(t.Scale())))
	case iceberg.DateType:
		quoted(w, time.Unix(0, 0).UTC().AddDate(0, 0, int(integer(b))).Format(time.DateOnly))
	case iceberg.TimeType:
		quoted(w, time.UnixMicro(integer(b)).UTC().Format("15:04:05.000000"))
	case iceberg.TimestampType:
		quoted(w, time.UnixMicro(integer(b)).UTC().Format("2006-01-02T15:04:05.000000"))
	case iceberg.TimestampTzType:
		quoted(w, time.UnixMicro(integer(b)).UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
	case iceberg.TimestampNsType:
		quoted(w, time.Unix(0, integer(b)).UTC().Format("2006-01-02T15:04:05.000000000"))
	case iceberg.TimestampTzNsType:
		quoted(w, time.Unix(0, integer(b)).UTC().Format("2006-01-02T15:04:05.000000000Z07:00"))
	case iceberg.StringType:
		quoted(w, string(b[8:]))
	case iceberg.UUIDType:
		id, _ := uuid.FromBytes(b[8:])
		quoted(w, id.String())
	case iceberg.BinaryType, iceberg.FixedType:
		quoted(w, hex.EncodeToString(b[8:]))
	case *iceberg.StructType:
		w.WriteByte('{')
		for i, f := range t.FieldList {
			if i > 0 {
				w.WriteByte(',')
			}
			quoted(w, f.Name)
			w.WriteByte(':')
			b = appendJSON(w, b, f.Type)
		}
		w.WriteByte('}')
	case *iceberg.ListType:
		n, b, _ := length(b)
		w.WriteByte('[')
		for i := range n {
			if i > 0 {
				w.WriteByte(',')
			}
			b = appendJSON(w, b, t.Element)
		}
		w.WriteByte(']')
	case *iceberg.MapType:
		n, b, _ := length(b)
		w.WriteByte('[')
		for i := range n {
			if i > 0 {
				w.WriteByte(',')
			}
			w.WriteByte('[')
			b = appendJSON(w, b, t.KeyType)
			w.WriteByte(',')
			b = appendJSON(w, b, t.ValueType)
			w.WriteByte(']')
		}
		w.WriteByte(']')
	}
	return rest
}

func appendNumber(w *strings.Builder, v float64, bits int) {
	switch {
	case v != v:
		quoted(w, "NaN")
	case math.IsInf(v, 1):
		quoted(w, "Infinity")
	case math.IsInf(v, -1):
		quoted(w, "-Infinity")
	case v == 0 && math.Signbit(v):
		w.WriteString("-0.0")
	default:
		w.WriteString(strconv.FormatFloat(v, 'g', -1, bits))
	}
}

func quoted(w *strings.Builder, s string) {
	text, _ := json.Marshal(s) // text always can be
	w.Write(text)
}
