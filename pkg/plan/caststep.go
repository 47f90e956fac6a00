package plan

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// castStep returns the step between two primitive types that differ, in the Arrow types that stand for
// them; false if there is none. It carries out what castOf decides.
func castStep(from, to iceberg.Type, target arrow.DataType, at site, zone *time.Location) (step, bool) {
	f, t := kindOfType(from), kindOfType(to)
	if ruleOf(from, to, 3, true).answer == AnswerRefuse {
		return nil, false
	}
	c := caster{from: from, to: to, f: f, t: t, target: target, at: at, zone: zone}
	var s step
	switch {
	case f == kUnknown:
		return nulls{fill{to: target, path: at.path, null: true}}, true
	case f == kBoolean && t == kString:
		s = chain{c.booleanToLong(), formatted[int64](c.target, at, func(b []byte, v int64) []byte {
			return append(b, map[bool]string{true: "true", false: "false"}[v == 1]...)
		})}
	case f == kBoolean && t.number():
		s = c.via(c.booleanToLong(), iceberg.Int64Type{})
	case f.number() && t == kBoolean:
		s = c.toBoolean()
	case f.number() && t.number():
		s = c.number()
	case f == kString:
		s = c.parsed()
	case f.bytes() && t.bytes():
		s = c.bytes()
	case t == kString:
		s = c.text()
	case f == kDate && t.stamp(), f.stamp() && (t.stamp() || t == kDate):
		s = c.stamp()
	}
	return s, s != nil
}

// A caster makes the step of one column.
type caster struct {
	from, to iceberg.Type
	f, t     kindOf
	target   arrow.DataType
	at       site
	zone     *time.Location
}

// via goes on from another type that first makes.
func (c caster) via(first step, mid iceberg.Type) step {
	if mid.Equals(c.to) {
		return first
	}
	then, ok := castStep(mid, c.to, c.target, c.at, c.zone)
	if !ok {
		return nil
	}
	return chained(first, then)
}

// beyond says that a value is too large or too small for the type.
func (c caster) beyond() string { return "is beyond the range of " + c.to.String() }

// whole says that a value is no integer.
func (c caster) whole() string { return "has a fraction, and " + c.to.String() + " holds none" }
