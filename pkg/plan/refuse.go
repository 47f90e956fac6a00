package plan

import (
	"fmt"

	"github.com/apache/iceberg-go"
)

// refuseCast says why values of one type do not become those of another, and what to do.
func (b *builder) refuseCast(path []string, from, to iceberg.Type) error {
	return fmt.Errorf("column %s: the source has %s and the destination %s: %s",
		quote(path), kind(from), kind(to), b.whyNot(path, from, to))
}

func (b *builder) whyNot(path []string, from, to iceberg.Type) string {
	const later = "casts beyond promotions are not supported yet"
	const mend = "make the types equal in one of the tables"
	fd, fok := from.(iceberg.DecimalType)
	td, tok := to.(iceberg.DecimalType)
	switch {
	case isNested(from) != isNested(to) || isNested(from):
		return "they hold different things; map another column to it"
	case promotes(to, from, b.version) && b.coerce[key(path)] == nil && !b.inKey: // narrowing
		return fmt.Sprintf("values may not fit, and %s; give --type-coercion %s:%s to widen the destination's column",
			later, FormatPath(path), from)
	case fok && tok && fd.Scale() != td.Scale(): // case 30
		return fmt.Sprintf("another scale is another value, not a promotion, and %s; %s", later, mend)
	case zoned(from) != zoned(to) && temporal(from) && temporal(to): // case 37
		return "one has a time zone and the other none, so instants would be guessed; " + mend
	case promotes(from, to, 3):
		return fmt.Sprintf("this promotion needs format version 3, and the destination has version %d; upgrade it, or %s", b.version, mend)
	}
	return later + "; " + mend
}

// refusePromotion says why a destination column cannot be evolved to a type.
func (b *builder) refusePromotion(path []string, from, to iceberg.Type) error {
	if n := since(to); n > b.version || (promotes(from, to, 3) && b.version < 3) {
		return fmt.Errorf("type coercion of %s: from %s to %s needs format version 3, and the destination has version %d; upgrade it, "+
			"or leave the type", quote(path), from, to, b.version)
	}
	return fmt.Errorf("type coercion of %s: the destination's type %s cannot be promoted to %s (int to long, float to double, "+
		"decimal to more digits of the same scale%s); leave the type, or choose one of these",
		quote(path), from, to, map[bool]string{true: ", date to timestamp or timestamp_ns, unknown to any"}[b.version >= 3])
}

func zoned(t iceberg.Type) bool {
	return is[iceberg.TimestampTzType](t) || is[iceberg.TimestampTzNsType](t)
}

func temporal(t iceberg.Type) bool {
	return zoned(t) || is[iceberg.TimestampType](t) || is[iceberg.TimestampNsType](t)
}
