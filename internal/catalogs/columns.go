package catalogs

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// A column is a column of a table as a metastore lists it, for people and for engines that do not read
// Iceberg's metadata. Nobody reads a table by it.
type column struct {
	name, kind, comment string
	id                  int
	optional, current   bool
}

// longestComment is how much of a column's comment Glue and Hive keep, in bytes.
const longestComment = 255

// columnsOf are the columns of a table: those of the current schema, and behind them, where past is set, those
// that earlier schemas had. zoned is the name of the type of timestamps with a zone.
func columnsOf(metadata table.Metadata, past bool, zoned string) (out []column) {
	seen := map[string]bool{}
	add := func(schema *iceberg.Schema, current bool) {
		for _, f := range schema.Fields() {
			if seen[f.Name] {
				continue
			}
			seen[f.Name] = true
			out = append(out, column{f.Name, hiveType(f.Type, zoned), shortened(f.Doc), f.ID, !f.Required, current})
		}
	}
	add(metadata.CurrentSchema(), true)
	for _, s := range metadata.Schemas() {
		if past && s.ID != metadata.CurrentSchema().ID {
			add(s, false)
		}
	}
	return out
}

func shortened(comment string) string {
	if len(comment) <= longestComment {
		return comment
	}
	cut := longestComment
	for !utf8.RuneStart(comment[cut]) {
		cut--
	}
	return comment[:cut]
}

// hiveType is a type in Hive's words, as PyIceberg and Java say it.
func hiveType(t iceberg.Type, zoned string) string {
	switch t := t.(type) {
	case iceberg.Int32Type:
		return "int"
	case iceberg.Int64Type:
		return "bigint"
	case iceberg.TimeType, iceberg.UUIDType:
		return "string"
	case iceberg.TimestampType, iceberg.TimestampNsType:
		return "timestamp"
	case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		return zoned
	case iceberg.FixedType:
		return "binary"
	case iceberg.DecimalType:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision(), t.Scale())
	case *iceberg.StructType:
		var fields []string
		for _, f := range t.FieldList {
			fields = append(fields, f.Name+":"+hiveType(f.Type, zoned))
		}
		return "struct<" + strings.Join(fields, ",") + ">"
	case *iceberg.ListType:
		return "array<" + hiveType(t.Element, zoned) + ">"
	case *iceberg.MapType:
		return "map<" + hiveType(t.KeyType, zoned) + "," + hiveType(t.ValueType, zoned) + ">"
	}
	return t.String() // boolean, float, double, date, string, binary; what Hive does not know, by Iceberg's name
}
