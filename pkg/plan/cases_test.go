package plan

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// TestCases has the cases of docs/cases.md about types and values that the reconciler decides.
func TestCases(t *testing.T) {
	dec := func(p, s int32) arrow.DataType { return &arrow.Decimal128Type{Precision: p, Scale: s} }
	zone := Options{AssumeTimezone: "Europe/Berlin"}
	for _, c := range []struct {
		id       int // of the case
		in       arrow.DataType
		values   string
		src, dst string
		o        Options
		want     string // the values, or what the refusal says
	}{
		// a decimal that does not fit its precision is never written as another
		{29, dec(9, 2), `["99.99", "-99.99", null]`, "decimal(9,2)", "decimal(4,2)", Options{}, `["99.99","-99.99",null]`},
		{29, dec(9, 2), `["0.00", "12345.67"]`, "decimal(9,2)", "decimal(4,2)", Options{}, `row 1 of the record batch: column "c": 12345.67 is beyond the range of decimal(4, 2)`},
		{29, dec(18, 0), `["1000000000"]`, "decimal(18,0)", "decimal(9,0)", Options{}, `1000000000 is beyond the range of decimal(9, 0)`},
		{29, dec(20, 0), `["-1000000000000000000"]`, "decimal(20,0)", "decimal(18,0)", Options{}, `is beyond the range of decimal(18, 0)`},
		{29, dec(38, 0), `["99999999999999999999999999999999999999"]`, "decimal(38,0)", "decimal(20,0)", Options{}, `is beyond the range of decimal(20, 0)`},
		// another scale is another form of the same number, or an error
		{30, dec(9, 2), `["1.23", "-0.01"]`, "decimal(9,2)", "decimal(9,4)", Options{}, `["1.23","-0.01"]`},
		{30, dec(9, 2), `["9999999.99"]`, "decimal(9,2)", "decimal(9,4)", Options{}, `9999999.99 is beyond the range of decimal(9, 4)`},
		{30, dec(9, 2), `["9999999.99"]`, "decimal(9,2)", "decimal(11,2)", Options{}, `["9999999.99"]`},
		{30, dec(9, 4), `["1.2300", "1.2345"]`, "decimal(9,4)", "decimal(9,2)", Options{}, `row 1 of the record batch: column "c": 1.2345 has more than 2 digits after the point`},
		{32, arrow.PrimitiveTypes.Int64, `[32768, -9223372036854775808]`, "long", "decimal(38,0)", Options{}, `["32768","-9223372036854775808"]`},
		// the last microseconds stay
		{36, ts(arrow.Microsecond, "UTC"), `["2024-01-01 00:00:00.000605Z"]`, "timestamptz", "timestamptz_ns", Options{}, `["2024-01-01T00:00:00.000605Z"]`},
		{36, ts(arrow.Microsecond, "UTC"), `["2024-01-01 00:00:00.000605Z"]`, "timestamptz", "string", Options{}, `["2024-01-01 00:00:00.000605+00:00"]`},
		// zones are never guessed, and what the user says is done in both directions
		{37, ts(arrow.Microsecond, ""), `["2024-07-01 12:00:00", "1969-12-31 23:59:59.999999"]`, "timestamp", "timestamptz", zone, `["2024-07-01T10:00:00Z","1969-12-31T22:59:59.999999Z"]`},
		{37, ts(arrow.Microsecond, "UTC"), `["2024-07-01 10:00:00Z"]`, "timestamptz", "timestamp", zone, `["2024-07-01T12:00:00"]`},
		{37, ts(arrow.Microsecond, ""), `["2024-03-31 02:30:00"]`, "timestamp", "timestamptz", zone, `2024-03-31 02:30:00 is a local time that the clocks of Europe/Berlin skip`},
		{37, ts(arrow.Microsecond, ""), `["2023-10-29 02:30:00"]`, "timestamp", "timestamptz", zone, `2023-10-29 02:30:00 is a local time that the clocks of Europe/Berlin show twice`},
		{37, ts(arrow.Microsecond, ""), `["2023-10-29 02:30:00"]`, "timestamp", "timestamptz", Options{AssumeTimezone: "+01:00"}, `["2023-10-29T01:30:00Z"]`},
		// beyond nanoseconds
		{40, ts(arrow.Microsecond, ""), `["0001-01-01 00:00:00"]`, "timestamp", "timestamp_ns", Options{}, `0001-01-01 00:00:00 is beyond the range of a timestamp in nanoseconds`},
		{40, ts(arrow.Microsecond, ""), `["9999-12-31 23:59:59.999999"]`, "timestamp", "timestamp_ns", Options{}, `9999-12-31 23:59:59.999999 is beyond the range`},
		// small and unsigned integers become what the table has
		{42, arrow.PrimitiveTypes.Uint64, `[9223372036854775807, 255]`, "long", "decimal(19,0)", Options{}, `["9223372036854775807","255"]`},
		{42, arrow.PrimitiveTypes.Int8, `[-128, 127]`, "int", "string", Options{}, `["-128","127"]`},
		{42, arrow.FixedWidthTypes.Float16, `[1.5]`, "float", "decimal(4,2)", Options{}, `["1.5"]`},
		// casts inside maps with several entries, and lists whose elements have any name
		{46, arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), `[[{"key": "a", "value": 1}, {"key": "b", "value": null}, {"key": "c", "value": 3}], [], null]`,
			"map<string, long>", "map<string, int>", Options{}, `[[{"key":"a","value":1},{"key":"b","value":null},{"key":"c","value":3}],[],null]`},
		{48, arrow.ListOfField(arrow.Field{Name: "array_element", Type: arrow.BinaryTypes.String, Nullable: true}), `[["1", null], [], null]`, "list<string>", "list<long>", Options{}, `[[1,null],[],null]`},
		{48, arrow.ListOfField(arrow.Field{Name: "bag", Type: arrow.PrimitiveTypes.Int64}), `[[1]]`, "list<long>", "list<string>", Options{}, `[["1"]]`},
		// views and dictionaries are cast like what they hold
		{50, arrow.BinaryTypes.StringView, `["2024-02-29", null]`, "string", "date", Options{}, `["2024-02-29",null]`},
		{7, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["7", null, "8", "7"]`, "string", "int", Options{}, `[7,null,8,7]`},
		{50, arrow.LargeListOf(arrow.BinaryTypes.LargeString), `[["x"]]`, "list<string>", "list<binary>", Options{}, `[["eA=="]]`},
	} {
		got, err := project(t, c.in, c.values, c.src, c.dst, c.o)
		if err != nil {
			got = err.Error()
		}
		got = strings.ReplaceAll(strings.TrimSpace(got), "\n", "")
		if strings.HasPrefix(c.want, "[") && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("case %d: %s as %s into %s:\n%s, want\n%s", c.id, c.values, c.src, c.dst, got, c.want)
		}
	}
}

// Column names of every kind are found again by the grammar of paths, and are no path themselves (case 55).
func TestCaseNames(t *testing.T) {
	for _, name := range []string{"a.b", `say "hi"`, "a:b", "a,b", "ü", "with space", "#x", "1st", "a/b=c", "Straße", ""} {
		src := schema(t, 1, "x long, s struct<y long>")
		fields := src.Fields()
		fields[0].Name = name
		p, err := Build(iceberg.NewSchema(1, fields...), schema(t, 1, "there int, s struct<y int>"), 2, Options{Mapping: []Rename{{FormatPath([]string{name}), "there"}}})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		checkDocument(t, p)
		if got := p.Columns[0]; got.Action != Cast || len(got.Source) != 1 || got.Source[0] != name {
			t.Errorf("%q: %s", name, summary(p.Columns))
		}
	}
}
