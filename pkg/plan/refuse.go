package plan

import (
	"fmt"

	"github.com/apache/iceberg-go"
)

// refuseCast says why values of one type do not become those of another, and what to do.
func (b *builder) refuseCast(path []string, from, to iceberg.Type, r rule) error {
	why, cure := r.why, r.cure
	switch {
	case isNested(from) || isNested(to):
		why, cure = "they hold different things", "map another column to it, or give --drop"
	case cure == "":
		cure = "convert it upstream, give --drop, or make the types equal in one of the tables"
	}
	return fmt.Errorf("column %s: the source has %s and the destination %s: %s; %s", quote(path), kind(from), kind(to), why, cure)
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
