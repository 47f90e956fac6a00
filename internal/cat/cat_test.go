package cat_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/internal/cat"
	"icepipe/pkg/rows"
)

// stream is a rows.Stream of one span for each JSON array.
func stream(t *testing.T, mem memory.Allocator, schema *arrow.Schema, fail error, batches ...string) rows.Stream {
	var total, records int64
	return rows.Stream{
		Header: rows.Header{Protocol: rows.Protocol, Stream: "s-1", BatchRows: 50, Source: rows.Table{Identifier: []string{"a.b", "t"}}},
		Schema: schema,
		Spans: func(yield func(rows.Span, error) bool) {
			at := rows.Cursor{}
			for _, text := range batches {
				rec, _, err := array.RecordFromJSON(mem, schema, strings.NewReader(text))
				if err != nil {
					t.Error(err)
					return
				}
				n := rec.NumRows()
				s := rows.Span{From: at, To: at.Advance(n), Rows: n, EndsBatch: true, Batch: rec}
				at, total, records = s.To, total+n, records+1
				if !yield(s, nil) {
					return
				}
			}
			if fail != nil {
				yield(rows.Span{}, fail)
			}
		},
		Seal: func() (rows.Seal, error) {
			if fail != nil {
				return rows.Seal{}, rows.ErrUnsealed
			}
			return rows.Seal{Rows: total, Records: records, BytesRead: 9, Last: rows.Cursor{Row: total}, Warnings: []string{"odd\x1b[31m"}}, nil
		},
	}
}

func print(t *testing.T, in func(memory.Allocator) rows.Stream, o cat.Options) (string, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	var b bytes.Buffer
	err := cat.Print(context.Background(), &b, in(mem), o)
	return b.String(), err
}

func small(t *testing.T, fail error, batches ...string) func(memory.Allocator) rows.Stream {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Metadata: arrow.MetadataFrom(map[string]string{"PARQUET:field_id": "1"})},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	}, nil)
	return func(mem memory.Allocator) rows.Stream { return stream(t, mem, schema, fail, batches...) }
}

func TestTable(t *testing.T) {
	got, err := print(t, small(t, nil,
		`[{"id":1,"name":"a"},{"id":200,"name":null,"l":[1,null]}]`,
		`[{"id":3,"name":""},{"id":4,"name":"日本"},{"id":5,"name":"∅"},{"id":6,"name":"\u001b[2Jx\n"}]`), cat.Options{Marks: true})
	if err != nil {
		t.Fatal(err)
	}
	want := ` id  name  l
───  ────  ────────
  1  a     ∅
200  ∅     [1,null]
-- record batch 0: 0/0/0 to 0/0/2, 2 rows, ends batch 0
  3  ""             ∅
  4  日本           ∅
  5  "∅"            ∅
  6  "\u001b[2Jx\n"  ∅
-- record batch 1: 0/0/2 to 0/0/6, 4 rows, ends batch 1
-- sealed: 6 rows in 2 record batches, 9 bytes read, up to 0/0/6
-- warning: odd\x1b[31m
`
	if squeeze(got) != squeeze(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// squeeze leaves the widths of columns to the eye.
func squeeze(s string) string {
	for strings.Contains(s, "   ") {
		s = strings.ReplaceAll(s, "   ", "  ")
	}
	return s
}

func TestTableAligns(t *testing.T) {
	got, err := print(t, small(t, nil, `[{"id":1,"name":"日本","l":[]},{"id":22,"name":"abcdef","l":[]}]`), cat.Options{Width: 5})
	if err != nil {
		t.Fatal(err)
	}
	want := "id  name   l\n──  ─────  ──\n 1  日本   []\n22  abcd…  []\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLimit(t *testing.T) {
	for limit, want := range map[int64]string{1: "stopped after 1 rows", 2: "stopped after 2 rows", 3: "sealed: 2 rows", 0: "sealed: 2 rows"} {
		got, err := print(t, small(t, nil, `[{"id":1},{"id":2}]`), cat.Options{Limit: limit})
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("limit %d: %v\n%s", limit, err, got)
		}
	}
}

// A stream that breaks is printed up to there, and the break told.
func TestBroken(t *testing.T) {
	cause := fmt.Errorf("message 3 at byte 1024, input ends at byte 1100: %w", rows.ErrUnsealed)
	for _, format := range []string{"table", "jsonl", "csv"} {
		var notes bytes.Buffer
		got, err := print(t, small(t, cause, `[{"id":1},{"id":2}]`), cat.Options{Format: format, Notes: &notes})
		if !errors.Is(err, rows.ErrUnsealed) || err.Error() != cause.Error() {
			t.Errorf("%s: error %v", format, err)
		}
		if !strings.Contains(got, "2") {
			t.Errorf("%s: rows are missing:\n%s", format, got)
		}
		where := "-- broken after 2 rows in 1 record batches, at 0/0/2: message 3 at byte 1024"
		if !strings.Contains(got+notes.String(), where) {
			t.Errorf("%s: %q is missing:\n%s%s", format, where, got, notes.String())
		}
		if format != "table" && strings.Contains(got, "--") {
			t.Errorf("%s: a note among the rows:\n%s", format, got)
		}
	}
	got, err := print(t, small(t, cause), cat.Options{})
	if err == nil || !strings.Contains(got, "broken before the first record batch") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestHeader(t *testing.T) {
	snap := int64(42)
	got, err := print(t, func(mem memory.Allocator) rows.Stream {
		in := small(t, nil, `[{"id":1}]`)(mem)
		in.Header.Source = rows.Table{Identifier: []string{"a.b", "t"}, UUID: "u", SnapshotID: &snap, Version: 2, Branch: "main"}
		in.Header.RowFilter = "id > 1"
		in.Header.Destination = &rows.Table{Identifier: []string{"d"}, Location: "s3://x\x07"}
		return in
	}, cat.Options{Format: "header"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"a.b".t`, "snapshot    42", "id > 1", "batch rows    50", `s3://x\a`, "\n  1 id int64 required\n", "  - l list optional\n    - item int32 optional\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := print(t, small(t, nil), cat.Options{Format: "xml"}); err == nil || !strings.Contains(err.Error(), `"xml"`) {
		t.Errorf("got %v", err)
	}
}

// Every type as JSON, by the conventions of Iceberg.
func TestValues(t *testing.T) {
	field := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	for _, c := range []struct {
		dt         arrow.DataType
		in         string
		json, csv_ string
	}{
		{arrow.FixedWidthTypes.Boolean, `true`, `true`, `true`},
		{arrow.PrimitiveTypes.Int64, `-9223372036854775808`, `-9223372036854775808`, `-9223372036854775808`},
		{arrow.PrimitiveTypes.Float32, `0.1`, `0.1`, `0.1`},
		{arrow.PrimitiveTypes.Float64, `1e300`, `1e+300`, `1e+300`},
		{&arrow.Decimal128Type{Precision: 38, Scale: 2}, `"-0.05"`, `"-0.05"`, `-0.05`},
		{&arrow.Decimal128Type{Precision: 38, Scale: 0}, `"12345678901234567890123456789012345678"`, `"12345678901234567890123456789012345678"`, `12345678901234567890123456789012345678`},
		{arrow.FixedWidthTypes.Date32, `"1969-12-31"`, `"1969-12-31"`, `1969-12-31`},
		{arrow.FixedWidthTypes.Time64us, `"22:31:08.123456"`, `"22:31:08.123456"`, `22:31:08.123456`},
		{&arrow.TimestampType{Unit: arrow.Microsecond}, `"0001-01-01T00:00:00.000001"`, `"0001-01-01T00:00:00.000001"`, `0001-01-01T00:00:00.000001`},
		{arrow.FixedWidthTypes.Timestamp_us, `"1969-12-31T23:59:59.999999Z"`, `"1969-12-31T23:59:59.999999+00:00"`, `1969-12-31T23:59:59.999999+00:00`},
		{&arrow.TimestampType{Unit: arrow.Nanosecond}, `"2024-02-29T12:00:00.123456789"`, `"2024-02-29T12:00:00.123456789"`, `2024-02-29T12:00:00.123456789`},
		{arrow.BinaryTypes.String, `"a\"b,\u001b\n\u202e"`, `"a\"b,\u001b\n\u202e"`, "\"a\"\"b,\\x1b\n\\u202e\""},
		{arrow.BinaryTypes.String, `""`, `""`, `""`},
		{arrow.BinaryTypes.Binary, `"AP8="`, `"00ff"`, `00ff`},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, `"AP8="`, `"00ff"`, `00ff`},
		{extensions.NewUUIDType(), `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, `f79c3e09-677c-4bbd-a479-3f349cb785e7`},
		{arrow.ListOf(arrow.BinaryTypes.String), `["x",null]`, `["x",null]`, `"[""x"",null]"`},
		{arrow.StructOf(field("a", arrow.PrimitiveTypes.Int32), field("b", arrow.Null)), `{"a":1,"b":null}`, `{"a":1,"b":null}`, `"{""a"":1,""b"":null}"`},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), `[{"key":"k","value":1}]`, `{"keys":["k"],"values":[1]}`, `"{""keys"":[""k""],""values"":[1]}"`},
		{arrow.PrimitiveTypes.Int32, `null`, `null`, ``},
		{arrow.Null, `null`, `null`, ``},
	} {
		schema := arrow.NewSchema([]arrow.Field{field("v", c.dt), field("w", arrow.PrimitiveTypes.Int32)}, nil)
		in := func(mem memory.Allocator) rows.Stream { return stream(t, mem, schema, nil, `[{"v":`+c.in+`,"w":7}]`) }
		got, err := print(t, in, cat.Options{Format: "jsonl"})
		if want := `{"v":` + c.json + `,"w":7}` + "\n"; err != nil || got != want {
			t.Errorf("%s: got %s, want %s (%v)", c.dt, got, want, err)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s: not JSON: %s", c.dt, got)
		}
		got, err = print(t, in, cat.Options{Format: "csv"})
		if want := "v,w\n" + c.csv_ + ",7\n"; err != nil || got != want {
			t.Errorf("%s: got %q, want %q (%v)", c.dt, got, want, err)
		}
		if recs, err := csv.NewReader(strings.NewReader(got)).ReadAll(); err != nil || len(recs) != 2 {
			t.Errorf("%s: not CSV: %q: %v", c.dt, got, err)
		}
		if got, err = print(t, in, cat.Options{}); err != nil || strings.ContainsAny(got, "\x1b\u202e") {
			t.Errorf("%s: table %q: %v", c.dt, got, err)
		}
	}
}

func TestFloatsThatJSONHasNot(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Float64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	zero := 0.0
	b.Field(0).(*array.Float64Builder).AppendValues([]float64{zero / zero, 1 / zero, -1 / zero}, nil)
	rec := b.NewRecordBatch()
	in := rows.Stream{Schema: schema,
		Spans: func(yield func(rows.Span, error) bool) { yield(rows.Span{Rows: 3, Batch: rec}, nil) },
		Seal:  func() (rows.Seal, error) { return rows.Seal{Rows: 3}, nil }}
	var out bytes.Buffer
	if err := cat.Print(context.Background(), &out, in, cat.Options{Format: "jsonl"}); err != nil {
		t.Fatal(err)
	}
	if want := "{\"v\":\"NaN\"}\n{\"v\":\"Infinity\"}\n{\"v\":\"-Infinity\"}\n"; out.String() != want {
		t.Errorf("got %s", out.String())
	}
}
