package plan

import (
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"
)

// An Answer says how values of one primitive type become values of another.
type Answer string

// The answers. docs/CASTS.md has one for every pair of types.
const (
	AnswerTake    Answer = "take"    // they are the same type
	AnswerPromote Answer = "promote" // a promotion of the specification: every value has a counterpart, but for dates out of range
	AnswerCast    Answer = "cast"    // each value is converted, or named as one that does not fit
	AnswerRefuse  Answer = "refuse"  // there is no meaning, or it would be guessed: an error before the first row
)

// A rule is the answer for a pair of types, and what it means for values.
type rule struct {
	answer Answer
	loses  string // what of a value is given up on purpose; "" nothing
	fails  string // which values have no counterpart; "" none that a table of that type is likely to hold
	joins  bool   // different values may become equal ones, so that it is not done to keys of maps
	zone   bool   // the meaning hangs on --assume-timezone
	why    string // why it is refused
	cure   string // how a refusal may be mended, besides what is said of every one
}

// A kindOf is a primitive type without its parameters.
type kindOf int

const (
	kOther kindOf = iota // what is not carried: variant, geometry, geography
	kBoolean
	kInt
	kLong
	kFloat
	kDouble
	kDecimal
	kDate
	kTime
	kTimestamp
	kTimestamptz
	kTimestampNs
	kTimestamptzNs
	kString
	kUUID
	kFixed
	kBinary
	kUnknown
)

func kindOfType(t iceberg.Type) kindOf {
	switch t.(type) {
	case iceberg.BooleanType:
		return kBoolean
	case iceberg.Int32Type:
		return kInt
	case iceberg.Int64Type:
		return kLong
	case iceberg.Float32Type:
		return kFloat
	case iceberg.Float64Type:
		return kDouble
	case iceberg.DecimalType:
		return kDecimal
	case iceberg.DateType:
		return kDate
	case iceberg.TimeType:
		return kTime
	case iceberg.TimestampType:
		return kTimestamp
	case iceberg.TimestampTzType:
		return kTimestamptz
	case iceberg.TimestampNsType:
		return kTimestampNs
	case iceberg.TimestampTzNsType:
		return kTimestamptzNs
	case iceberg.StringType:
		return kString
	case iceberg.UUIDType:
		return kUUID
	case iceberg.FixedType:
		return kFixed
	case iceberg.BinaryType:
		return kBinary
	case iceberg.UnknownType:
		return kUnknown
	}
	return kOther
}

func (k kindOf) number() bool { return k >= kBoolean && k <= kDecimal }
func (k kindOf) float() bool  { return k == kFloat || k == kDouble }
func (k kindOf) bytes() bool  { return k >= kString && k <= kBinary }
func (k kindOf) stamp() bool  { return k >= kTimestamp && k <= kTimestamptzNs }
func (k kindOf) zoned() bool  { return k == kTimestamptz || k == kTimestamptzNs }
func (k kindOf) nanos() bool  { return k == kTimestampNs || k == kTimestamptzNs }

// ruleOf decides about a pair of primitive types: it is the one place that does. version is the
// destination's format version; zone says that the user gave --assume-timezone.
func ruleOf(from, to iceberg.Type, version int, zone bool) rule {
	f, t := kindOfType(from), kindOfType(to)
	r := castOf(from, to, f, t)
	switch {
	case f == kOther || t == kOther:
		return rule{answer: AnswerRefuse, why: fmt.Sprintf("values of type %s are not carried", typeText(map[bool]iceberg.Type{true: from, false: to}[f == kOther]))}
	case from.Equals(to):
		return rule{answer: AnswerTake}
	case f == kUnknown:
		return rule{answer: AnswerPromote}
	case promotes(from, to, version):
		r.answer = AnswerPromote
	case r.zone && !zone:
		return rule{answer: AnswerRefuse, zone: true, why: "one has a time zone and the other none, so instants would be guessed",
			cure: "give --assume-timezone ZONE"}
	}
	return r
}

// castOf is ruleOf for two types that differ, leaving promotions aside.
func castOf(from, to iceberg.Type, f, t kindOf) rule {
	switch {
	case t == kUnknown:
		return rule{answer: AnswerRefuse, why: "a column of type unknown holds nothing but null"}
	case f.number() && t.number():
		return castNumber(from, to, f, t)
	case f == kString:
		return castText(to, t)
	case f.bytes() && t.bytes():
		return castBytes(from, to, f, t)
	case t == kString && f != kUnknown:
		return rule{answer: AnswerCast}
	case f == kDate && t.stamp():
		r := rule{answer: AnswerCast, zone: t.zoned()}
		if t.nanos() {
			r.fails = "a date before 1677-09-22 or after 2262-04-11"
		}
		if t.zoned() {
			r.fails = strings.TrimPrefix(r.fails+", a midnight that the zone's clocks skip or repeat", ", ")
		}
		return r
	case f.stamp() && t == kDate:
		return rule{answer: AnswerCast, loses: "the time of day is dropped", joins: true, zone: f.zoned()}
	case f.stamp() && t.stamp():
		return castStamp(f, t)
	}
	return rule{answer: AnswerRefuse, why: "neither says what the other means"}
}

func castNumber(from, to iceberg.Type, f, t kindOf) rule {
	r := rule{answer: AnswerCast}
	var fails []string
	add := func(can bool, what string) {
		if can {
			fails = append(fails, what)
		}
	}
	whole, room := digitsOf(from, f)
	if f.float() && t.float() {
		if t == kFloat {
			r.loses, r.joins, r.fails = "it is rounded to the nearest float", true, "a number beyond the range of float"
		}
		return r
	}
	if f.float() {
		r.loses, r.joins = "-0.0 becomes 0", true
		add(true, "NaN and infinity")
	}
	switch t {
	case kBoolean:
		return rule{answer: AnswerCast, loses: r.loses, joins: r.joins, fails: "a number other than 0 and 1"}
	case kInt, kLong:
		add(f.float() || f == kDecimal && room > 0, "a fraction")
		add(f.float() || whole > map[kindOf]int{kInt: 9, kLong: 18}[t] && !(f == kInt && t == kLong), "a number beyond the range of "+to.String())
	case kFloat, kDouble:
		if f == kDecimal {
			return rule{answer: AnswerCast, loses: "it is rounded to the nearest " + to.String(), joins: true}
		}
		add(f == kLong || f == kInt && t == kFloat, "an integer that "+to.String()+" does not hold exactly")
	case kDecimal:
		d := to.(iceberg.DecimalType)
		add(f.float() || room > d.Scale(), fmt.Sprintf("more than %d digits after the point", d.Scale()))
		add(f.float() || whole > d.Precision()-d.Scale(), "a number beyond the range of "+to.String())
	}
	r.fails = strings.Join(fails, ", ")
	return r
}

// digitsOf returns how many decimal digits a number of a type may have before and after the point.
func digitsOf(t iceberg.Type, k kindOf) (whole, fraction int) {
	switch k {
	case kBoolean:
		return 1, 0
	case kInt:
		return 10, 0
	case kLong:
		return 19, 0
	case kDecimal:
		d := t.(iceberg.DecimalType)
		return d.Precision() - d.Scale(), d.Scale()
	}
	return 0, 0
}

// castText reads a text.
func castText(to iceberg.Type, t kindOf) rule {
	r := rule{answer: AnswerCast, joins: true, fails: "text that does not read as " + to.String()}
	switch t {
	case kFloat, kDouble:
		r.loses = "it is rounded to the nearest " + to.String()
	case kBinary:
		return rule{answer: AnswerCast}
	case kFixed:
		return rule{answer: AnswerCast, fails: fmt.Sprintf("text of other than %d bytes", to.(iceberg.FixedType).Len())}
	}
	return r
}

func castBytes(from, to iceberg.Type, f, t kindOf) rule {
	switch {
	case t == kString && f == kUUID, t == kBinary:
		return rule{answer: AnswerCast}
	case t == kString:
		return rule{answer: AnswerCast, fails: "bytes that are not UTF-8"}
	case f == kBinary:
		return rule{answer: AnswerCast, fails: fmt.Sprintf("other than %d bytes", widthOf(to))}
	case widthOf(from) != widthOf(to):
		return rule{answer: AnswerRefuse, why: "their lengths differ"}
	}
	return rule{answer: AnswerCast} // fixed[16] and uuid
}

// widthOf returns the bytes of a uuid or a fixed.
func widthOf(t iceberg.Type) int {
	if f, ok := t.(iceberg.FixedType); ok {
		return f.Len()
	}
	return 16
}

func castStamp(f, t kindOf) rule {
	r := rule{answer: AnswerCast}
	var fails []string
	if f.zoned() != t.zoned() {
		r.zone = true
		if t.zoned() {
			fails = append(fails, "a local time that the zone's clocks skip or repeat")
		} else {
			r.loses, r.joins = "which of two instants it was, where the zone's clocks repeat a time", true
		}
	}
	switch {
	case f.nanos() && !t.nanos():
		fails = append(fails, "a time finer than microseconds")
	case !f.nanos() && t.nanos():
		fails = append(fails, "a time before 1677-09-21 or after 2262-04-11")
	}
	r.fails = strings.Join(fails, ", ")
	return r
}

// rule returns the rule of a primitive column that has a source.
func (c *Column) rule(version int) rule {
	if c.SourceType == nil || isNested(c.Target.Type) {
		return rule{answer: AnswerTake}
	}
	return ruleOf(c.SourceType, c.Target.Type, version, true)
}

// Loses says what of its values a column gives up on purpose, "" if nothing.
func (c *Column) Loses() string { return c.rule(3).loses }

// Fails says which values of its source a column cannot hold, "" if it holds all.
func (c *Column) Fails() string { return c.rule(3).fails }

// warning is what a person should know of a column's cast before it is made.
func (c *Column) warning() string {
	var what []string
	if s := c.Loses(); s != "" {
		what = append(what, s)
	}
	if s := c.Fails(); s != "" {
		what = append(what, s+" does not fit")
	}
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf("column %s: from %s to %s: %s", quote(c.Path), c.SourceType, c.Target.Type, strings.Join(what, "; "))
}
