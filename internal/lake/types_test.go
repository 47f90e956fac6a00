package lake

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// column is a nullable column of a file with a field ID.
func column(name string, id int, kind arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: kind, Nullable: true, Metadata: arrow.MetadataFrom(map[string]string{fieldIDKey: fmt.Sprint(id)})}
}

// TestColumnsOfOtherTypes: what a file's column can be brought to the table's type is; what cannot is refused
// before anything is read.
func TestColumnsOfOtherTypes(t *testing.T) {
	nested := func(kind arrow.DataType) arrow.DataType { return arrow.StructOf(column("x", 2, kind)) }
	for _, c := range []struct {
		name       string
		table      iceberg.Type
		file       arrow.DataType
		value      string
		want, fail string
	}{
		{"int to long", prim.Int64, arrow.PrimitiveTypes.Int32, `1`, `1`, ""},
		{"float to double", prim.Float64, arrow.PrimitiveTypes.Float32, `1.5`, `1.5`, ""},
		{"wider decimal", iceberg.DecimalTypeOf(20, 2), &arrow.Decimal128Type{Precision: 9, Scale: 2}, `"1.23"`, `"1.23"`, ""},
		{"other scale", iceberg.DecimalTypeOf(20, 3), &arrow.Decimal128Type{Precision: 9, Scale: 2}, `"1.23"`, "", "cannot promote"},
		{"ns to us", prim.Timestamp, &arrow.TimestampType{Unit: arrow.Nanosecond}, `"2020-01-01T00:00:00.000001"`, `"2020-01-01T00:00:00.000001"`, ""},
		{"ms to us", prim.TimestampTz, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, `"2020-01-01T00:00:00.001Z"`, `"2020-01-01T00:00:00.001Z"`, ""},
		{"UUID without its name", prim.UUID, &arrow.FixedSizeBinaryType{ByteWidth: 16}, `"AAAAAAAAAAAAAAAAAAAAAQ=="`, `"00000000-0000-0000-0000-000000000001"`, ""},
		{"long to int", prim.Int32, arrow.PrimitiveTypes.Int64, `1`, "", "cannot promote long to int"},
		{"text to number", prim.Int64, arrow.BinaryTypes.String, `"1"`, "", "cannot promote string to long"},
		{"nested int to long", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(2, "x", prim.Int64)}}, nested(arrow.PrimitiveTypes.Int32), `{"x":1}`, `{"x":1}`, ""},
		{"nested UUID", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(2, "x", prim.UUID)}}, nested(&arrow.FixedSizeBinaryType{ByteWidth: 16}), `{"x":"AAAAAAAAAAAAAAAAAAAAAQ=="}`, `{"x":"00000000-0000-0000-0000-000000000001"}`, ""},
		{"list without an ID inside", &iceberg.ListType{ElementID: 2, Element: prim.Int32}, arrow.ListOf(arrow.PrimitiveTypes.Int32), `[1]`, "", "would read as null"},
		{"map without IDs inside", &iceberg.MapType{KeyID: 2, KeyType: prim.String, ValueID: 3, ValueType: prim.Int32}, arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), `[{"key":"k","value":1}]`, "", "would read as null"},
		{"list for a number", prim.Int32, arrow.ListOfField(column("element", 7, arrow.PrimitiveTypes.Int32)), `[1]`, "", `column "v" is list`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tbl := newTable(t, schemaOf(opt(1, "v", c.table)), unpartitioned())
			path := parquetFile(t, tbl, arrow.NewSchema([]arrow.Field{column("old", 1, c.file)}, nil), nil, fmt.Sprintf(`[{"old":%s},{"old":null}]`, c.value))
			delta(t, tbl, []iceberg.DataFile{fileAt(t, tbl, iceberg.EntryContentData, path, 2).Build()})
			if c.fail != "" {
				_, err := tbl.PlanScan(t.Context(), ScanOptions{})
				fails(t, "plan", err, c.fail)
				return
			}
			equal(t, "rows", scanned(t, tbl, ScanOptions{}), []string{fmt.Sprintf(`{"v":%s}`, c.want), `{"v":null}`})
		})
	}
}

// TestUnreadableTypes: a column that would read as null is refused, unless it is not asked for.
func TestUnreadableTypes(t *testing.T) {
	for _, fields := range [][]iceberg.NestedField{
		{opt(1, "v", iceberg.VariantType{})},
		{opt(1, "v", &iceberg.ListType{ElementID: 2, Element: iceberg.VariantType{}})},
	} {
		fails(t, "variant", readableTypes(fields), `column "v"`)
		fails(t, "variant", readableTypes(fields), "leave it out of the selected columns")
	}
	if err := readableTypes(idAndText().Fields()); err != nil {
		t.Error(err)
	}
}

// TestSelection: columns that are not there, or named twice, are refused by name.
func TestSelection(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	_, err := tbl.PlanScan(t.Context(), ScanOptions{Select: []string{"no"}})
	fails(t, "missing", err, `no column "no" to select; there are "id", "p"`)
	_, err = tbl.PlanScan(t.Context(), ScanOptions{Select: []string{"p", "p"}})
	fails(t, "twice", err, "selected twice")
	delta(t, tbl, []iceberg.DataFile{data(t, tbl, ids(1, 1))})
	equal(t, "order", scanned(t, tbl, ScanOptions{Select: []string{"p"}}), []string{`{"p":"x1"}`})
}
