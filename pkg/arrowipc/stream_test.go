package arrowipc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/arrowipc"
	"icepipe/pkg/rows"
)

func id(n string) arrow.Metadata { return arrow.MetadataFrom(map[string]string{"PARQUET:field_id": n}) }

// testSchema has a column of every shape that a table can have, with field IDs at every depth.
func testSchema() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Metadata: id("1")},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: id("2")},
		{Name: "price", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}, Nullable: true, Metadata: id("3")},
		{Name: "tags", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: id("5")}), Nullable: true, Metadata: id("4")},
		{Name: "place", Type: arrow.StructOf(
			arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true, Metadata: id("7")},
			arrow.Field{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true, Metadata: id("8")}), Nullable: true, Metadata: id("6")},
		{Name: "attrs", Type: arrow.MapOfFields(
			arrow.Field{Name: "key", Type: arrow.BinaryTypes.String, Metadata: id("10")},
			arrow.Field{Name: "value", Type: arrow.PrimitiveTypes.Int32, Nullable: true, Metadata: id("11")}), Nullable: true, Metadata: id("9")},
		{Name: "u", Type: extensions.NewUUIDType(), Nullable: true, Metadata: id("12")},
		{Name: "nothing", Type: arrow.Null, Nullable: true, Metadata: id("13")},
	}, nil)
}

func testBatch(t testing.TB, mem memory.Allocator, schema *arrow.Schema, from, n int) arrow.RecordBatch {
	t.Helper()
	var b strings.Builder
	for i := from; i < from+n; i++ {
		if i%3 == 2 {
			fmt.Fprintf(&b, `{"id":%d}`, i)
			continue
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"row %d é","price":"%d.25","tags":["a",null,"%d"],"place":{"x":%d.5,"at":"2024-02-29T12:00:00.000001Z"},`+
			`"attrs":[{"key":"k","value":%d},{"key":"l"}],"u":"f79c3e09-677c-4bbd-a479-3f349cb785%02d"}`, i, i, i, i, i, i, i%100)
	}
	rec, _, err := array.RecordFromJSON(mem, schema, strings.NewReader("["+strings.ReplaceAll(b.String(), "}{", "},{")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func testHeader() rows.Header {
	snap := int64(8744736658442914487)
	return rows.Header{
		Protocol: rows.Protocol,
		Stream:   "8d4b9e2c-5d0d-4c39-9a0f-1d8a3c1f0e55",
		Source: rows.Table{Identifier: []string{"sales", "orders"}, UUID: "u-1", SnapshotID: &snap, Version: 2,
			Schema: json.RawMessage(`{"type":"struct","fields":[{"id":1,"name":"a<b>&c"}]}`)},
		RowFilter: "id > 3 AND name <> '<x>'",
		BatchRows: 5,
		Files:     "digest",
		First:     rows.Cursor{File: 1, RowGroup: 0, Row: 2, Path: "s3://b/a file.parquet"},
		Expected:  rows.Expected{Rows: 14, Bytes: 1000, Files: 2},
	}
}

// script is a list of spans; n rows of each are left in its record batch.
func script() []rows.Span {
	p, q := "s3://b/a file.parquet", "s3://b/b.parquet"
	at := func(f int64, g int, r int64, path string) rows.Cursor {
		return rows.Cursor{File: f, RowGroup: g, Row: r, Path: path}
	}
	return []rows.Span{
		{From: at(1, 0, 2, p), To: at(1, 0, 5, p), Rows: 3},
		{From: at(1, 0, 5, p), To: at(1, 0, 9, p), Rows: 2, Kept: []byte{0b10}, EndsBatch: true},
		{From: at(1, 0, 9, p), To: at(1, 1, 5, q), Rows: 5, Kept: []byte{0}, EndsBatch: true},
		{From: at(1, 1, 5, q), To: at(1, 1, 9, q), Rows: 0},
		{From: at(1, 1, 9, q), To: at(2, 0, 4, q), Rows: 4},
	}
}

func left(s rows.Span) int {
	if s.Kept == nil {
		return int(s.Rows)
	}
	n := 0
	for i := range int(s.Rows) {
		n += int(s.Kept[i/8]>>(i%8)) & 1
	}
	return n
}

// stream is a rows.Stream of the script, made anew for each reading of it.
func stream(t testing.TB, mem memory.Allocator) rows.Stream { return streamOf(t, mem, testSchema()) }

func streamOf(t testing.TB, mem memory.Allocator, schema *arrow.Schema) rows.Stream {
	spans := script()
	seal := rows.Seal{Rows: 14, Rejects: 6, BytesRead: 4711, Records: int64(len(spans)),
		Warnings: []string{"a <warning>"}, Last: spans[len(spans)-1].To}
	return rows.Stream{
		Header: testHeader(),
		Schema: schema,
		Spans: func(yield func(rows.Span, error) bool) {
			from := 0
			for _, s := range spans {
				s.Batch = testBatch(t, mem, schema, from, left(s))
				from += left(s)
				if !yield(s, nil) {
					return
				}
			}
		},
		Seal: func() (rows.Seal, error) { return seal, nil },
	}
}

// writtenNarrow is a short stream, for tests that take it byte by byte.
func writtenNarrow(t testing.TB, opts ...arrowipc.WriteOption) []byte {
	t.Helper()
	var b bytes.Buffer
	narrow := arrow.NewSchema([]arrow.Field{testSchema().Field(0), testSchema().Field(3)}, nil)
	if _, err := arrowipc.Write(context.Background(), &b, streamOf(t, memory.DefaultAllocator, narrow), opts...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func written(t testing.TB, opts ...arrowipc.WriteOption) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := arrowipc.Write(context.Background(), &b, stream(t, memory.DefaultAllocator), opts...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A reading is all that came out of a stream, as text that can be compared.
type reading struct {
	header string
	schema string
	spans  []string
	rows   int
	seal   string
	err    error
}

func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func collect(t testing.TB, in rows.Stream) (out reading) {
	t.Helper()
	out.header, out.schema = text(t, in.Header), in.Schema.String()
	for s, err := range in.Spans {
		if err != nil {
			out.err = err
			break
		}
		if !s.Batch.Schema().Equal(in.Schema) {
			t.Errorf("span of schema %s", s.Batch.Schema())
		}
		values, err := s.Batch.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out.rows += int(s.Batch.NumRows())
		s.Release()
		s.Batch = nil
		s.Read = nil
		out.spans = append(out.spans, fmt.Sprintf("%s %s %d %v %v %s", s.From, s.To, s.Rows, s.Kept, s.EndsBatch, values))
	}
	seal, err := in.Seal()
	if err == nil {
		out.seal = text(t, seal)
	} else if !errors.Is(err, rows.ErrUnsealed) {
		t.Errorf("Seal: %v", err)
	}
	return out
}

func read(t testing.TB, b []byte, opts ...arrowipc.ReadOption) reading {
	t.Helper()
	in, err := arrowipc.Read(bytes.NewReader(b), opts...)
	if err != nil {
		return reading{err: err}
	}
	return collect(t, in)
}

func compare(t *testing.T, got, want reading) {
	t.Helper()
	if got.err != nil || want.err != nil {
		t.Fatalf("errors: got %v, want %v", got.err, want.err)
	}
	if got.header != want.header {
		t.Errorf("header\n%s, want\n%s", got.header, want.header)
	}
	if got.schema != want.schema {
		t.Errorf("schema\n%s, want\n%s", got.schema, want.schema)
	}
	if got.seal != want.seal || got.seal == "" {
		t.Errorf("seal\n%s, want\n%s", got.seal, want.seal)
	}
	if len(got.spans) != len(want.spans) {
		t.Fatalf("%d spans, want %d", len(got.spans), len(want.spans))
	}
	for i := range got.spans {
		if got.spans[i] != want.spans[i] {
			t.Errorf("span %d\n%s, want\n%s", i, got.spans[i], want.spans[i])
		}
	}
}

func TestRoundTrip(t *testing.T) {
	want := collect(t, stream(t, memory.DefaultAllocator))
	for _, compression := range []string{"none", "lz4", "zstd"} { // case 96
		t.Run(compression, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			var b bytes.Buffer
			seal, err := arrowipc.Write(context.Background(), &b, stream(t, mem),
				arrowipc.WithCompression(compression), arrowipc.WithWriteAllocator(mem))
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, seal); got != want.seal {
				t.Errorf("Write returned seal %s, want %s", got, want.seal)
			}
			compare(t, read(t, b.Bytes(), arrowipc.WithAllocator(mem)), want)
			compare(t, read(t, b.Bytes(), arrowipc.WithUnsealedOK()), want)
			in, err := arrowipc.Read(bytes.NewReader(b.Bytes()), arrowipc.WithAllocator(mem))
			if err != nil {
				t.Fatal(err)
			}
			for s := range in.Spans { // a consumer that breaks off
				s.Release()
				break
			}
		})
	}
}

// What was read is written again: the same bytes.
func TestRelay(t *testing.T) {
	first := written(t)
	in, err := arrowipc.Read(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if _, err := arrowipc.Write(context.Background(), &again, in); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Bytes(), first) {
		t.Errorf("relayed stream differs: %d bytes of %d", again.Len(), len(first))
	}
}

func TestEmptyStream(t *testing.T) {
	in := rows.Stream{
		Header: testHeader(), Schema: testSchema(),
		Spans: func(func(rows.Span, error) bool) {},
		Seal:  func() (rows.Seal, error) { return rows.Seal{Last: testHeader().First}, nil },
	}
	var b bytes.Buffer
	if _, err := arrowipc.Write(context.Background(), &b, in); err != nil {
		t.Fatal(err)
	}
	compare(t, read(t, b.Bytes()), collect(t, in))
}
