package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// project builds a plan, projects one column given as JSON, and returns the result as JSON.
func project(t *testing.T, in arrow.DataType, values, src, dst string, o Options) (string, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	p, err := Build(schema(t, 1, "c "+src), schema(t, 1, "c "+dst), 3, o)
	if err != nil {
		t.Fatal(err)
	}
	sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: in, Nullable: true}}, nil)
	proj, err := p.Projector(sc, mem)
	if err != nil {
		return "", err
	}
	arr, _, err := array.FromJSON(mem, in, strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	defer arr.Release()
	rec := array.NewRecordBatch(sc, []arrow.Array{arr}, int64(arr.Len()))
	defer rec.Release()
	out, err := proj.Project(rec)
	if err != nil {
		return "", err
	}
	defer out.Release()
	return string(must(out.Column(0).MarshalJSON())), nil
}

func ts(u arrow.TimeUnit, zone string) arrow.DataType {
	return &arrow.TimestampType{Unit: u, TimeZone: zone}
}

func TestProjectValues(t *testing.T) {
	for _, c := range []struct {
		in       arrow.DataType
		values   string
		src, dst string
		want     string // an error if it does not start with '['
	}{
		{arrow.PrimitiveTypes.Int32, `[2147483647, -2147483648, null]`, "int", "long", `[2147483647,-2147483648,null]`},
		{arrow.PrimitiveTypes.Float32, `[0.1, null]`, "float", "double", `[0.10000000149011612,null]`},
		{&arrow.Decimal128Type{Precision: 9, Scale: 2}, `["9999999.99", "-0.01", null]`, "decimal(9,2)", "decimal(38,2)", `["9999999.99","-0.01",null]`}, // case 30
		{arrow.FixedWidthTypes.Date32, `["1969-12-31", "2024-02-29", "9999-12-31", null]`, "date", "timestamp",
			`["1969-12-31T00:00:00","2024-02-29T00:00:00","9999-12-31T00:00:00",null]`},
		{arrow.FixedWidthTypes.Date32, `["2262-04-11"]`, "date", "timestamp_ns", `["2262-04-11T00:00:00"]`},
		{arrow.FixedWidthTypes.Date32, `["1970-01-01", "2262-04-12"]`, "date", "timestamp_ns", // case 40
			`row 1 of the record batch: column "c": 2262-04-12 is beyond the range of a timestamp_ns`},
		// case 42
		{arrow.PrimitiveTypes.Int8, `[127, -128]`, "int", "int", `[127,-128]`},
		{arrow.PrimitiveTypes.Uint8, `[255]`, "int", "long", `[255]`},
		{arrow.PrimitiveTypes.Uint16, `[65535]`, "int", "int", `[65535]`},
		{arrow.PrimitiveTypes.Uint32, `[4294967295]`, "long", "long", `[4294967295]`},
		{arrow.PrimitiveTypes.Uint64, `[9223372036854775807, null]`, "long", "long", `[9223372036854775807,null]`},
		{arrow.PrimitiveTypes.Uint64, `[1, null, 9223372036854775808]`, "long", "long", `row 2 of the record batch: column "c": 9223372036854775808 is beyond the range of a long`},
		{arrow.FixedWidthTypes.Float16, `[1.5, -0.0]`, "float", "double", `[1.5,-0]`},
		// timestamps (cases 33, 36)
		{ts(arrow.Second, ""), `["0001-01-01 00:00:00"]`, "timestamp", "timestamp", `["0001-01-01T00:00:00"]`},
		{ts(arrow.Millisecond, "UTC"), `["9999-12-31 23:59:59.999Z"]`, "timestamptz", "timestamptz", `["9999-12-31T23:59:59.999Z"]`},
		{ts(arrow.Nanosecond, ""), `["1969-12-31 23:59:59.999999"]`, "timestamp", "timestamp", `["1969-12-31T23:59:59.999999"]`},
		{ts(arrow.Nanosecond, ""), `["1970-01-01 00:00:00", "1970-01-01 00:00:00.000000001"]`, "timestamp", "timestamp", `row 1 of the record batch: column "c": 1 is finer than microseconds`},
		{ts(arrow.Microsecond, "US/Pacific"), `["2024-01-01 00:00:00.000605-08:00"]`, "timestamptz", "timestamptz", `["2024-01-01T08:00:00.000605Z"]`},
		{ts(arrow.Microsecond, ""), `["2024-01-01 00:00:00"]`, "timestamp_ns", "timestamp_ns", `["2024-01-01T00:00:00"]`},
		{ts(arrow.Microsecond, ""), `["9999-01-01 00:00:00"]`, "timestamp_ns", "timestamp_ns", `row 0 of the record batch: column "c": 253370764800000000 is beyond the range of a timestamp in ns`},
		{ts(arrow.Microsecond, "UTC"), `[]`, "timestamp", "timestamp", `column "c": the stream's column "c" has the Arrow type timestamp[us, tz=UTC], which is not read as timestamp; cast it upstream`},
		{arrow.FixedWidthTypes.Time32ms, `["23:59:59.999"]`, "time", "time", `["23:59:59.999"]`},
		{arrow.FixedWidthTypes.Time64ns, `["00:00:00.000000001"]`, "time", "time", `row 0 of the record batch: column "c": 1 is finer than microseconds`},
		{arrow.FixedWidthTypes.Date64, `["1969-12-30"]`, "date", "date", `["1969-12-30"]`},
		{&arrow.Decimal32Type{Precision: 4, Scale: 2}, `["-99.99"]`, "decimal(9,2)", "decimal(9,2)", `["-99.99"]`}, // case 32
		{&arrow.Decimal128Type{Precision: 10, Scale: 2}, `[]`, "decimal(9,2)", "decimal(9,2)", `column "c": the stream's column "c" has the Arrow type decimal(10, 2), which is not read as decimal(9, 2)`},
		{&arrow.FixedSizeBinaryType{ByteWidth: 16}, `["AAECAwQFBgcICQoLDA0ODw=="]`, "uuid", "uuid", `["00010203-0405-0607-0809-0a0b0c0d0e0f"]`},
		{arrow.BinaryTypes.LargeString, `["a", null, "", "ü"]`, "string", "string", `["a",null,"","ü"]`},
		{arrow.BinaryTypes.StringView, `["a", null, "a string that is longer than a view"]`, "string", "string", `["a",null,"a string that is longer than a view"]`},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["b", null, "a", "b"]`, "string", "string", `["b",null,"a","b"]`}, // case 7
		{arrow.Null, `[null, null]`, "string", "string", `[null,null]`},
		{arrow.LargeListOf(arrow.PrimitiveTypes.Uint16), `[[1], null, []]`, "list<int>", "list<long>", `[[1],null,[]]`},
		{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), `[[1, 2], null]`, "list<int>", "list<int>", `[[1,2],null]`},
		{arrow.ListOf(arrow.PrimitiveTypes.Uint64), `[[1], null, [2, 3, 18446744073709551615]]`, "list<long>", "list<long>", `row 2 of the record batch: column "c.element": 18446744073709551615 is beyond`},
		{arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.ListOf(arrow.FixedWidthTypes.Time64ns)})),
			`[[{"x": []}], [], null, [{"x": null}, {"x": ["00:00:00.000000001"]}]]`, "list<struct<x list<time>>>", "list<struct<x list<time>>>",
			`row 3 of the record batch: column "c.element.x.element": 1 is finer than microseconds`},
		{arrow.BinaryTypes.String, `[]`, "long", "long", `column "c": the stream's column "c" has the Arrow type utf8, which is not read as long`},
		{arrow.PrimitiveTypes.Int64, `[]`, "int", "int", `has the Arrow type int64, which is not read as int`},
		{arrow.PrimitiveTypes.Int32, `[]`, "list<int>", "list<int>", `has the Arrow type int32, which is not read as a list`},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), `[[{"key": "k", "value": 1}, {"key": "j", "value": null}], [], null]`, "map<string, int>", "map<string, long>",
			`[[{"key":"k","value":1},{"key":"j","value":null}],[],null]`}, // case 46
	} {
		got, err := project(t, c.in, c.values, c.src, c.dst, Options{})
		if err != nil {
			got = err.Error()
		}
		got = strings.ReplaceAll(strings.TrimSpace(got), "\n", "")
		if strings.HasPrefix(c.want, "[") && got != c.want || !strings.HasPrefix(got, c.want) && !strings.Contains(got, c.want) {
			t.Errorf("%s %s as %s into %s:\n%s, want\n%s", c.in, c.values, c.src, c.dst, got, c.want)
		}
		if bad := new(ValueError); err != nil && strings.HasPrefix(c.want, "row") && !errors.As(err, &bad) {
			t.Errorf("%v is no ValueError", err)
		}
	}
}

// Values inside something null are not looked at: Arrow says nothing of them.
func TestProjectDeadValues(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	b := array.NewUint64Builder(mem)
	defer b.Release()
	b.AppendValues([]uint64{1, 1 << 63, 3}, nil)
	kid := b.NewArray()
	defer kid.Release()
	data := array.NewData(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Uint64}), 3,
		[]*memory.Buffer{memory.NewBufferBytes([]byte{0b101})}, []arrow.ArrayData{kid.Data()}, 1, 0)
	defer data.Release()
	arr := array.NewStructData(data)
	defer arr.Release()
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arr.DataType(), Nullable: true}}, nil)
	rec := array.NewRecordBatch(sc, []arrow.Array{arr}, 3)
	defer rec.Release()
	s := schema(t, 1, "s struct<x long>")
	proj := must(must(Build(s, s, 2, Options{})).Projector(sc, mem))
	out, err := proj.Project(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	if got := strings.ReplaceAll(string(must(out.Column(0).MarshalJSON())), "\n", ""); got != `[{"x":1},null,{"x":3}]` {
		t.Error(got)
	}
}

func TestProjectDefaults(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	id := 0
	field := func(name string, typ iceberg.Type, v any) iceberg.NestedField {
		id++
		return iceberg.NestedField{ID: id, Name: name, Type: typ, WriteDefault: v}
	}
	// As the spec's JSON has them, and as iceberg-go holds them (case 52).
	dst := iceberg.NewSchema(0,
		field("b", iceberg.BooleanType{}, true), field("i", iceberg.Int32Type{}, float64(-42)), field("l", iceberg.Int64Type{}, int64(1)<<53),
		field("f", iceberg.Float32Type{}, 1.5), field("d", iceberg.Float64Type{}, 1e300), field("dec", iceberg.DecimalTypeOf(9, 2), "-1.50"),
		field("s", iceberg.StringType{}, "dflt"), field("e", iceberg.StringType{}, ""), field("bin", iceberg.BinaryType{}, "00ff"),
		field("fix", iceberg.FixedTypeOf(2), []byte{1, 2}), field("u", iceberg.UUIDType{}, "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
		field("dt", iceberg.DateType{}, "1969-12-31"), field("t", iceberg.TimeType{}, "22:31:08.123456"),
		field("ts", iceberg.TimestampType{}, "1969-12-31T23:59:59.999999"), field("tz", iceberg.TimestampTzType{}, "2017-11-16T22:31:08.000001+00:00"),
		field("ns", iceberg.TimestampNsType{}, "2017-11-16T22:31:08.123456789"), field("n", iceberg.StringType{}, nil),
	)
	p := must(Build(schema(t, 1, ""), dst, 3, Options{MissingInSource: PolicySkip}))
	checkDocument(t, p)
	sc := arrow.NewSchema(nil, nil)
	proj := must(must(Parse(must(p.MarshalJSON()))).Projector(sc, mem))
	for _, rows := range []int64{0, 1, 9} {
		rec := array.NewRecordBatch(sc, nil, rows)
		out, err := proj.Project(rec)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"true", "-42", "9007199254740992", "1.5", "1e+300", `"-1.5"`, `"dflt"`, `""`, `"AP8="`, `"AQI="`,
			`"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, `"1969-12-31"`, `"22:31:08.123456"`, `"1969-12-31T23:59:59.999999"`,
			`"2017-11-16T22:31:08.000001Z"`, `"2017-11-16T22:31:08.123456789"`, "null"}
		for i, w := range want {
			w = "[" + strings.TrimSuffix(strings.Repeat(w+",", int(rows)), ",") + "]"
			if got := string(must(out.Column(i).MarshalJSON())); got != w {
				t.Errorf("%s: %s, want %s", dst.Field(i).Name, got, w)
			}
		}
		out.Release()
		rec.Release()
	}
}

// The types are those that iceberg-go gives, to the last metadata.
func TestProjectorSchema(t *testing.T) {
	s := schema(t, 1, `b boolean, i! int, l long, f float, d double, dec decimal(38,10), dt date, t time, ts timestamp, tz timestamptz,
		ns timestamp_ns, nz timestamptz_ns, s string, u uuid, fix fixed[16], bin binary, un unknown,
		st! struct<a! int, l list<! struct<m map<string, ! uuid>>>>, m map<struct<k int>, list<int>>`)
	fields := s.Fields()
	fields[0].Doc = "what it says"
	fields[17].Type.(*iceberg.StructType).FieldList[0].Doc = "inner"
	s = iceberg.NewSchema(3, fields...)
	want := must(table.SchemaToArrowSchema(s, nil, true, false))
	p := must(Build(s, s, 3, Options{}))
	proj := must(p.Projector(want, memory.DefaultAllocator))
	if got := proj.Schema(); !got.Equal(want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for i, f := range want.Fields() {
		if !arrow.TypeEqual(proj.Schema().Field(i).Type, f.Type, arrow.CheckMetadata()) || !proj.Schema().Field(i).Metadata.Equal(f.Metadata) {
			t.Errorf("%s, want %s", proj.Schema().Field(i), f)
		}
		if proj.columns[i].step != nil {
			t.Errorf("%s is not taken as it is", f.Name)
		}
	}
}

func TestProjectorRefuses(t *testing.T) {
	p := must(Build(schema(t, 1, "a int, b int"), schema(t, 1, "a int, b int"), 2, Options{}))
	i32 := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int32, Nullable: true}
	}
	for want, fields := range map[string][]arrow.Field{
		`column "b": the stream has no column "b"`:        {i32("a")},
		`column "a": the stream has the column "a" twice`: {i32("a"), i32("b"), i32("a")},
	} {
		if _, err := p.Projector(arrow.NewSchema(fields, nil), memory.DefaultAllocator); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	proj := must(p.Projector(arrow.NewSchema([]arrow.Field{i32("b"), i32("a")}, nil), memory.DefaultAllocator))
	other := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 0)
	if _, err := proj.Project(other); err == nil {
		t.Error("a record batch of another schema is projected")
	}
}

// Columns that are taken share their buffers, also inside structs and slices.
func TestProjectZeroCopy(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	src, dst := schema(t, 1, "a long, s struct<x long, y string>, d decimal(9,2)"), schema(t, 1, "s struct<y string, n int, x long>, a long, d decimal(18,2)")
	p := must(Build(src, dst, 2, Options{MissingInSource: PolicyNull}))
	sc := arrowSchema(src.Fields())
	b := array.NewRecordBuilder(mem, sc)
	defer b.Release()
	for range 48 {
		if err := b.UnmarshalJSON([]byte(`{"a": 1, "s": {"x": 2, "y": "z"}, "d": "1.00"}`)); err != nil {
			t.Fatal(err)
		}
	}
	full := b.NewRecordBatch()
	defer full.Release()
	proj := must(p.Projector(sc, mem))
	for _, rec := range []arrow.RecordBatch{full.NewSlice(0, 40), full.NewSlice(8, 40)} {
		before := mem.CurrentAlloc()
		out, err := proj.Project(rec)
		if err != nil {
			t.Fatal(err)
		}
		if grown := mem.CurrentAlloc() - before; grown != 0 {
			t.Errorf("the projection allocates %d bytes", grown)
		}
		out.Release()
		rec.Release()
	}
}

// Plans and projections are linear in the columns: of seven times the columns they make no more than eight
// times the allocations. Columns are renamed, promoted, cast, nested, reordered, added, filled and dropped.
func TestWide(t *testing.T) {
	wide := func(n int) (from, to *iceberg.Schema, o Options) {
		var src, dst, gone []string
		for i := range n {
			src = append(src, fmt.Sprintf("c%d %s", i, []string{"int", "string", "struct<x int, y int>", "long", "decimal(9,2)"}[i%5]))
			dst = append(dst, fmt.Sprintf("c%d %s", n-1-i, []string{"long", "string", "struct<y int, x string>", "int", "decimal(9,3)"}[(n-1-i)%5]))
			if i%10 == 1 {
				src[i] = fmt.Sprintf("old%d string", i)
				o.Mapping = append(o.Mapping, Rename{fmt.Sprintf("old%d", i), fmt.Sprintf("c%d", i)})
			}
			if i%10 == 2 {
				gone = append(gone, fmt.Sprintf("gone%d int", i))
				o.Drop = append(o.Drop, fmt.Sprintf("gone%d", i))
			}
		}
		src = append(src, gone...)
		o.MissingInSource, o.MissingInDest = PolicyNull, PolicyAutoAdd
		return schema(t, 1, strings.Join(append(src, "extra int"), ", ")), schema(t, 1, strings.Join(append(dst, "missing int"), ", ")), o
	}
	cost := func(n int, ignoreCase bool) [3]float64 {
		from, to, o := wide(n)
		o.IgnoreCase = ignoreCase
		p := must(Build(from, to, 2, o))
		if len(p.Columns) < n+2 {
			t.Fatalf("%d columns", len(p.Columns))
		}
		checkDocument(t, p)
		proj := must(p.Projector(arrowSchema(from.Fields()), memory.DefaultAllocator))
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrowSchema(from.Fields()))
		defer b.Release()
		for _, f := range b.Fields() {
			f.AppendNull()
		}
		rec := b.NewRecordBatch()
		defer rec.Release()
		text := must(p.MarshalJSON())
		return [3]float64{
			testing.AllocsPerRun(1, func() { must(Build(from, to, 2, o)) }),
			testing.AllocsPerRun(1, func() { must(Parse(text)) }),
			testing.AllocsPerRun(1, func() { must(proj.Project(rec)).Release() }),
		}
	}
	for _, ignoreCase := range []bool{false, true} {
		few, many := cost(300, ignoreCase), cost(2000, ignoreCase)
		for i, what := range []string{"a plan", "its document", "a projection"} {
			if many[i] > 8*few[i] {
				t.Errorf("%s of 2000 columns makes %.0f allocations, of 300 columns %.0f", what, many[i], few[i])
			}
		}
	}
}
