package filter

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// value is one value of a column's type.
type value struct {
	whole *big.Int // of types with a least step: how many steps from 0
	float float64  // of float and double; never -0
	text  string   // of string, uuid, fixed and binary: the bytes
}

// point is what a literal means among the values of a type: one of them, or a place between two.
type point struct {
	value
	number number // of types with a least step, in units of ten to the power of scale of them
	beyond int    // of floats: the sign of a number whose size no value has
}

// kindOf is how the values of a type are compared and written.
type kindOf interface {
	// convert gives a literal that is not NULL its meaning. The error has no place yet, and does not
	// name the column.
	convert(l literal) (point, error)
	// compare is f o p for one of the six comparisons.
	compare(f *field, o op, p point) condition
	// order compares two values.
	order(a, b value) int
	// print writes a value as a literal that convert reads as the same.
	print(v value) string
}

// typed is the kind of a field's type, or why it cannot be compared.
func typed(f *field) (kindOf, error) {
	whole := func(lo, hi int64) steps { return steps{f.typ, 0, big.NewInt(lo), big.NewInt(hi)} }
	switch t := f.typ.(type) {
	case iceberg.BooleanType:
		return whole(0, 1), nil
	case iceberg.Int32Type, iceberg.DateType:
		return whole(math.MinInt32, math.MaxInt32), nil
	case iceberg.Int64Type, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return whole(math.MinInt64, math.MaxInt64), nil
	case iceberg.TimeType:
		return whole(0, daySeconds*1_000_000-1), nil
	case iceberg.DecimalType:
		most := new(big.Int).Sub(power(t.Precision()), big.NewInt(1))
		return steps{t, t.Scale(), new(big.Int).Neg(most), most}, nil
	case iceberg.Float32Type:
		return floats{32}, nil
	case iceberg.Float64Type:
		return floats{64}, nil
	case iceberg.StringType, iceberg.UUIDType, iceberg.FixedType, iceberg.BinaryType:
		return octets{t}, nil
	case iceberg.UnknownType:
		return nothing{}, nil
	case *iceberg.StructType:
		return nil, fmt.Errorf("column %s is a struct; compare one of its fields, such as %s, or ask whether it IS NULL", quotePath(f.path), formatPath(append(f.path[:len(f.path):len(f.path)], t.FieldList[0].Name)))
	}
	return nil, fmt.Errorf("column %s has type %s, whose values cannot be compared; only IS NULL and IS NOT NULL can be asked", quotePath(f.path), typeText(f.typ))
}

// kindOfBound is the kind of a field that is bound already.
func kindOfBound(f *field) kindOf {
	t, err := typed(f)
	if err != nil {
		return nothing{}
	}
	return t
}

// nothing is the kind of columns that hold nothing but null, of Iceberg's type unknown.
type nothing struct{}

func (nothing) convert(literal) (point, error)      { return point{}, nil }
func (nothing) compare(*field, op, point) condition { return none{} }
func (nothing) order(value, value) int              { return 0 }
func (nothing) print(value) string                  { return "NULL" }

// numberOf reads a number, also out of a text.
func numberOf(l literal) (number, error) {
	switch {
	case l.kind == numberLiteral:
		return l.number, nil
	case l.kind == textLiteral && l.as == "":
		s := strings.TrimSpace(l.text)
		if s != "" && numberLength(s) == len(s) {
			if n, ok := parseNumber(s); ok {
				return n, nil
			}
		}
	}
	return number{}, fmt.Errorf("%s is no number", l.show())
}

// octets is the kind of values that are bytes, compared one by one: so is UTF-8 text, in the order of
// code points.
type octets struct{ typ iceberg.Type }

func (k octets) convert(l literal) (point, error) {
	plain := l.kind == textLiteral && l.as == ""
	switch k.typ.(type) {
	case iceberg.StringType:
		if plain {
			return point{value: value{text: l.text}}, nil
		}
		if l.kind == numberLiteral {
			return point{}, fmt.Errorf("%s is a number; write '%s' for a text", l.show(), l.show())
		}
		return point{}, fmt.Errorf("%s is no text", l.show())
	case iceberg.UUIDType:
		if l.kind == textLiteral && (plain || l.as == "UUID") {
			if id, err := uuid.Parse(l.text); err == nil && len(l.text) == 36 {
				return point{value: value{text: string(id[:])}}, nil
			}
		}
		return point{}, fmt.Errorf("%s is no UUID; want 'f79c3e09-677c-4bbd-a479-3f349cb785e7'", l.show())
	}
	switch {
	case l.kind == binaryLiteral:
		return point{value: value{text: l.text}}, nil
	case plain && l.json:
		bytes, err := hex.DecodeString(l.text)
		if err != nil {
			return point{}, fmt.Errorf("%s is not pairs of hexadecimal digits", l.show())
		}
		return point{value: value{text: string(bytes)}}, nil
	case plain:
		return point{}, fmt.Errorf("%s is a text; write its bytes in hexadecimal digits: %s", l.show(), shorten("X'"+hex.EncodeToString([]byte(l.text))+"'"))
	}
	return point{}, fmt.Errorf("%s is not binary; want X'00ff'", l.show())
}

func (k octets) compare(f *field, o op, p point) condition {
	fits := true
	switch t := k.typ.(type) {
	case iceberg.FixedType:
		fits = len(p.text) == t.Len()
	}
	switch {
	case !fits && o == opEqual, p.text == "" && o == opLess:
		return sure(f, false)
	case !fits && o == opNotEqual, p.text == "" && o == opGreaterEq:
		return sure(f, true)
	case p.text == "" && o == opLessEq:
		return k.compare(f, opEqual, p)
	case p.text == "" && o == opGreater:
		return k.compare(f, opNotEqual, p)
	}
	return &leaf{field: f, op: o, value: p.value}
}

func (octets) order(a, b value) int { return strings.Compare(a.text, b.text) }

func (k octets) print(v value) string {
	switch k.typ.(type) {
	case iceberg.StringType:
		return quoteText(v.text)
	case iceberg.UUIDType:
		id, _ := uuid.FromBytes([]byte(v.text))
		return quoteText(id.String())
	}
	return "X'" + hex.EncodeToString([]byte(v.text)) + "'"
}

// floats is the kind of float and double. Their order is Iceberg's: every NaN is one value, greater
// than all others; and SQL's: -0 equals 0. A literal stands for the nearest value.
type floats struct{ bits int }

func (k floats) convert(l literal) (point, error) {
	if l.kind == textLiteral && l.as == "" {
		switch strings.ToLower(strings.TrimSpace(l.text)) {
		case "nan":
			return point{value: value{float: math.NaN()}}, nil
		case "infinity", "+infinity", "inf", "+inf":
			return point{value: value{float: math.Inf(1)}}, nil
		case "-infinity", "-inf":
			return point{value: value{float: math.Inf(-1)}}, nil
		}
	}
	n, err := numberOf(l)
	if err != nil {
		return point{}, err
	}
	v, err := strconv.ParseFloat(n.units.String()+"e"+strconv.Itoa(n.exp), k.bits)
	if errors.Is(err, strconv.ErrRange) && math.IsInf(v, 0) {
		return point{beyond: n.units.Sign()}, nil
	}
	return point{value: value{float: v + 0}}, nil
}

func (k floats) compare(f *field, o op, p point) condition {
	ask := func(o op, v float64) condition { return &leaf{field: f, op: o, value: value{float: v}} }
	up := o == opGreater || o == opGreaterEq
	switch {
	case p.beyond != 0 && (o == opEqual || o == opNotEqual):
		return sure(f, o == opNotEqual)
	case p.beyond > 0 && up:
		return ask(opGreaterEq, math.Inf(1))
	case p.beyond > 0:
		return ask(opLess, math.Inf(1))
	case p.beyond < 0 && up:
		return ask(opGreater, math.Inf(-1))
	case p.beyond < 0:
		return ask(opEqual, math.Inf(-1))
	case math.IsNaN(p.float):
		switch o {
		case opEqual, opGreaterEq:
			return &leaf{field: f, op: opIsNaN}
		case opNotEqual, opLess:
			return &leaf{field: f, op: opNotNaN}
		}
		return sure(f, o == opLessEq)
	case math.IsInf(p.float, 1) && o == opGreater:
		return &leaf{field: f, op: opIsNaN}
	case math.IsInf(p.float, 1) && o == opLessEq:
		return &leaf{field: f, op: opNotNaN}
	case math.IsInf(p.float, -1) && o == opLess:
		return sure(f, false)
	case math.IsInf(p.float, -1) && o == opGreaterEq:
		return sure(f, true)
	case math.IsInf(p.float, -1) && o == opLessEq:
		return ask(opEqual, p.float)
	}
	return ask(o, p.float)
}

func (floats) order(a, b value) int { return orderFloats(a.float, b.float) }

// orderFloats is the order of floats: NaN equals itself and comes last, -0 equals 0.
func orderFloats[T ~float32 | ~float64](a, b T) int {
	aNaN, bNaN := a != a, b != b
	switch {
	case aNaN && bNaN:
		return 0
	case aNaN:
		return 1
	case bNaN:
		return -1
	}
	return cmp.Compare(a, b)
}

func (k floats) print(v value) string {
	switch {
	case math.IsNaN(v.float):
		return "'NaN'"
	case math.IsInf(v.float, 1):
		return "'Infinity'"
	case math.IsInf(v.float, -1):
		return "'-Infinity'"
	}
	n, _ := parseNumber(strconv.FormatFloat(v.float, 'e', -1, k.bits))
	return n.String()
}
