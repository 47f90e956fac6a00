package cat

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// appendJSON appends value i of an array as JSON, by the conventions of Iceberg's "JSON single-value
// serialization" (table spec, appendix D), but for structs, whose fields go by name.
func appendJSON(b []byte, arr arrow.Array, i int) []byte {
	if isNull(arr, i) {
		return append(b, "null"...)
	}
	switch a := arr.(type) {
	case *array.Map:
		from, to := a.ValueOffsets(i)
		b = appendList(append(b, `{"keys":`...), a.Keys(), from, to)
		b = appendList(append(b, `,"values":`...), a.Items(), from, to)
		return append(b, '}')
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		return appendList(b, a.ListValues(), from, to)
	case *array.Struct:
		b = append(b, '{')
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, f.Name), ':')
			b = appendJSON(b, a.Field(k), i)
		}
		return append(b, '}')
	case *extensions.VariantArray:
		return append(b, variant(a, i)...)
	case *extensions.UUIDArray:
	case array.ExtensionArray:
		return appendJSON(b, a.Storage(), i)
	}
	text, quoted := leaf(arr, i)
	if quoted {
		return appendText(b, text)
	}
	return append(b, text...)
}

func appendList(b []byte, arr arrow.Array, from, to int64) []byte {
	b = append(b, '[')
	for k := from; k < to; k++ {
		if k > from {
			b = append(b, ',')
		}
		b = appendJSON(b, arr, int(k))
	}
	return append(b, ']')
}

func variant(a *extensions.VariantArray, i int) []byte {
	v, err := a.Value(i)
	if err != nil {
		return appendText(nil, err.Error())
	}
	text, err := json.Marshal(v)
	if err != nil {
		return appendText(nil, err.Error())
	}
	return text
}

// cellText is a value that is not null as the text of a cell; quoted says that JSON has it as a
// string. Nested values are JSON.
func cellText(arr arrow.Array, i int) (text string, quoted bool) {
	switch a := arr.(type) {
	case *extensions.UUIDArray:
	case *extensions.VariantArray:
		return string(appendJSON(nil, arr, i)), false
	case array.ExtensionArray:
		return cellText(a.Storage(), i)
	case array.ListLike, *array.Struct:
		return string(appendJSON(nil, arr, i)), false
	}
	return leaf(arr, i)
}

func isNull(arr arrow.Array, i int) bool {
	return arr.DataType().ID() == arrow.NULL || arr.IsNull(i)
}

// leaf is a value that is not null and not nested, as text; quoted says that JSON has it as a
// string.
func leaf(arr arrow.Array, i int) (text string, quoted bool) {
	switch a := arr.(type) {
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i)), false
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64, *array.Uint8, *array.Uint16, *array.Uint32, *array.Uint64:
		return arr.ValueStr(i), false
	case *array.Float16:
		return float(float64(a.Value(i).Float32()), 32)
	case *array.Float32:
		return float(float64(a.Value(i)), 32)
	case *array.Float64:
		return float(a.Value(i), 64)
	case *array.Decimal32:
		return decimal(big.NewInt(int64(a.Value(i))), a.DataType()), true
	case *array.Decimal64:
		return decimal(big.NewInt(int64(a.Value(i))), a.DataType()), true
	case *array.Decimal128:
		return decimal(a.Value(i).BigInt(), a.DataType()), true
	case *array.Decimal256:
		return decimal(a.Value(i).BigInt(), a.DataType()), true
	case *array.Date32:
		return a.Value(i).ToTime().Format(time.DateOnly), true
	case *array.Date64:
		return a.Value(i).ToTime().Format(time.DateOnly), true
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit
		return a.Value(i).ToTime(unit).Format("15:04:05" + fraction(unit)), true
	case *array.Time64:
		unit := a.DataType().(*arrow.Time64Type).Unit
		return a.Value(i).ToTime(unit).Format("15:04:05" + fraction(unit)), true
	case *array.Timestamp:
		return timestamp(a.Value(i), a.DataType().(*arrow.TimestampType)), true
	case array.StringLike:
		return a.Value(i), true
	case *extensions.UUIDArray:
		return a.Value(i).String(), true
	case interface{ Value(int) []byte }:
		return hex.EncodeToString(a.Value(i)), true
	}
	return arr.ValueStr(i), true
}

func float(v float64, size int) (string, bool) {
	switch text := strconv.FormatFloat(v, 'g', -1, size); text {
	case "NaN":
		return "NaN", true
	case "+Inf":
		return "Infinity", true
	case "-Inf":
		return "-Infinity", true
	default:
		return text, false
	}
}

// decimal is exact, unlike arrow-go's own text of one.
func decimal(v *big.Int, dt arrow.DataType) string {
	scale := int(dt.(arrow.DecimalType).GetScale())
	if scale <= 0 {
		return v.String() + strings.Repeat("0", -scale*v.CmpAbs(new(big.Int)))
	}
	digits := new(big.Int).Abs(v).String()
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	sign := ""
	if v.Sign() < 0 {
		sign = "-"
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// fraction is the layout of the digits that a unit has.
func fraction(u arrow.TimeUnit) string {
	return [...]string{arrow.Second: "", arrow.Millisecond: ".000", arrow.Microsecond: ".000000", arrow.Nanosecond: ".000000000"}[u]
}

func timestamp(v arrow.Timestamp, dt *arrow.TimestampType) string {
	layout := "2006-01-02T15:04:05" + fraction(dt.Unit)
	if dt.TimeZone != "" {
		layout += "+00:00" // the instant, whatever the zone
	}
	per := [...]int64{arrow.Second: 1, arrow.Millisecond: 1e3, arrow.Microsecond: 1e6, arrow.Nanosecond: 1e9}[dt.Unit]
	seconds, rest := int64(v)/per, int64(v)%per
	return time.Unix(seconds, rest*(1e9/per)).UTC().Format(layout)
}

// appendText appends a JSON string, with every character escaped that is not to be printed.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s { // invalid UTF-8 comes as U+FFFD
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case printable(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return append(b, '"')
}

// printable says whether a character may reach a terminal: not one that controls it, nor one that
// changes the direction of what follows.
func printable(r rune) bool {
	return r == ' ' || unicode.IsPrint(r) || (unicode.Is(unicode.Zs, r)) || r == '\u200d'
}

// escape returns text that is safe to print, on one line.
func escape(s string) string {
	safe := true
	for _, r := range s {
		safe = safe && printable(r)
	}
	if safe {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if printable(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}
