package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"
)

const (
	// maxDepth bounds the nesting of schemas and paths, so that hostile documents cannot exhaust
	// the stack.
	maxDepth = 64
	// maxFixed bounds the length of a fixed type, since null-filling one takes rows times length.
	maxFixed = 1 << 20
)

// parseType reads the name of a primitive type as Iceberg writes it: long, decimal(9,2), fixed[16].
func parseType(text string) (iceberg.Type, error) {
	name := strings.TrimSpace(text)
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	t, err := typeFromJSON(quoted)
	if err != nil || name == "" {
		return nil, fmt.Errorf("type %q is not an Iceberg primitive type (boolean, int, long, float, double, decimal(P,S), "+
			"date, time, timestamp, timestamptz, timestamp_ns, timestamptz_ns, string, uuid, fixed[N], binary)", name)
	}
	return t, nil
}

// typeFromJSON reads a type as a schema holds it.
func typeFromJSON(text json.RawMessage) (iceberg.Type, error) {
	var f iceberg.NestedField
	doc, err := json.Marshal(map[string]any{"id": 0, "name": "x", "required": false, "type": text})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc, &f); err != nil {
		return nil, err
	}
	return f.Type, nil
}

// isNested tells structs, lists and maps from the rest.
func isNested(t iceberg.Type) bool {
	_, ok := t.(iceberg.NestedType)
	return ok
}

// checkLeaf refuses types that are not carried.
func checkLeaf(t iceberg.Type) error {
	switch t := t.(type) {
	case iceberg.VariantType, iceberg.GeometryType, iceberg.GeographyType:
		return fmt.Errorf("values of type %s are not carried", t)
	case iceberg.FixedType:
		if t.Len() < 1 || t.Len() > maxFixed {
			return fmt.Errorf("the type %s is not supported: a length from 1 to %d is", t, maxFixed)
		}
	case nil:
		return fmt.Errorf("the type is missing")
	}
	return nil
}

// since returns the format version that brought a type.
func since(t iceberg.Type) int {
	switch t.(type) {
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType, iceberg.UnknownType:
		return 3
	}
	return 1
}

// promotes tells whether the spec lets a table of a format version change a column's type from one
// to another (spec, Schema Evolution, Valid Type Promotions). It is narrower than iceberg-go's
// PromoteType, which also changes string to binary and fixed[16] to uuid.
func promotes(from, to iceberg.Type, version int) bool {
	if since(to) > version {
		return false
	}
	switch from := from.(type) {
	case iceberg.Int32Type:
		return is[iceberg.Int64Type](to)
	case iceberg.Float32Type:
		return is[iceberg.Float64Type](to)
	case iceberg.DecimalType:
		to, ok := to.(iceberg.DecimalType)
		return ok && from.Scale() == to.Scale() && from.Precision() < to.Precision()
	case iceberg.DateType: // never to a type with a time zone
		return version >= 3 && (is[iceberg.TimestampType](to) || is[iceberg.TimestampNsType](to))
	case iceberg.UnknownType:
		return version >= 3 && !isNested(to) && !is[iceberg.UnknownType](to) && kindOfType(to) != kOther
	}
	return false
}

func is[T iceberg.Type](t iceberg.Type) bool {
	_, ok := t.(T)
	return ok
}

// typeText shows a type to people: without field IDs, docs and defaults.
func typeText(t iceberg.Type) string {
	switch t := t.(type) {
	case nil:
		return "?"
	case *iceberg.StructType:
		var fields []string
		for _, f := range t.FieldList {
			fields = append(fields, printable(f.Name)+": "+typeText(f.Type))
		}
		return "struct<" + strings.Join(fields, ", ") + ">"
	case *iceberg.ListType:
		return "list<" + typeText(t.Element) + ">"
	case *iceberg.MapType:
		return "map<" + typeText(t.KeyType) + ", " + typeText(t.ValueType) + ">"
	}
	return t.String()
}

// kind names a type in a sentence.
func kind(t iceberg.Type) string {
	switch t.(type) {
	case *iceberg.StructType:
		return "a struct"
	case *iceberg.ListType:
		return "a list"
	case *iceberg.MapType:
		return "a map"
	}
	return typeText(t)
}

// sameType compares types without IDs, docs, defaults and required: what values can be.
func sameType(a, b iceberg.Type) bool {
	switch a := a.(type) {
	case *iceberg.StructType:
		b, ok := b.(*iceberg.StructType)
		if !ok || len(a.FieldList) != len(b.FieldList) {
			return false
		}
		for i, f := range a.FieldList {
			if f.Name != b.FieldList[i].Name || !sameType(f.Type, b.FieldList[i].Type) {
				return false
			}
		}
		return true
	case *iceberg.ListType:
		b, ok := b.(*iceberg.ListType)
		return ok && sameType(a.Element, b.Element)
	case *iceberg.MapType:
		b, ok := b.(*iceberg.MapType)
		return ok && sameType(a.KeyType, b.KeyType) && sameType(a.ValueType, b.ValueType)
	}
	return a.Equals(b)
}
