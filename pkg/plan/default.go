package plan

import "github.com/apache/iceberg-go"

// DefaultBytes returns a column's default value as Arrow stores one value of its type (little-endian).
// It takes the value as the specification's JSON has it (Appendix D), and as iceberg-go holds it; the
// error says that it is none of the type.
func DefaultBytes(value any, t iceberg.Type) ([]byte, error) { return literalOf(value, t) }
