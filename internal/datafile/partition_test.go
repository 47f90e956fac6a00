package datafile

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// byPartition describes files by their partition values and the rows ("id") that they have.
func byPartition(t *testing.T, files []iceberg.DataFile, fieldID int) []string {
	t.Helper()
	var out []string
	for _, f := range files {
		out = append(out, fmt.Sprintf("%s: %s", str(f.Partition()[fieldID]), texts(t, f, "id")))
	}
	slices.Sort(out)
	return out
}

func TestTransforms(t *testing.T) {
	vals := func(v ...string) []string { return v }
	for _, tc := range []struct {
		name string
		typ  iceberg.Type
		tr   iceberg.Transform
		vals []string // as JSON
		want []string
	}{
		{"identity text: NULL, '' and \"null\" apart", prim.String, iceberg.IdentityTransform{},
			vals(`null`, `""`, `"null"`, `" "`, `null`, `"a/b %=&#"`, `"null"`),
			vals(`<nil>(<nil>): 0 4`, `string( ): 3`, `string(): 1`, `string(a/b %=&#): 5`, `string(null): 2 6`)},
		{"identity bool", prim.Bool, iceberg.IdentityTransform{}, vals("true", "false", "null", "true"),
			vals("<nil>(<nil>): 2", "bool(false): 1", "bool(true): 0 3")},
		{"identity int", prim.Int32, iceberg.IdentityTransform{}, vals("-1", "7", "-1"), vals("int32(-1): 0 2", "int32(7): 1")},
		{"identity long", prim.Int64, iceberg.IdentityTransform{}, vals("-1", "7", "-1"), vals("int64(-1): 0 2", "int64(7): 1")},
		{"identity date", prim.Date, iceberg.IdentityTransform{}, vals(`"1969-12-31"`, "null"), vals("<nil>(<nil>): 1", "iceberg.Date(-1): 0")},
		{"identity time", prim.Time, iceberg.IdentityTransform{}, vals(`"00:00:01"`), vals("iceberg.Time(1000000): 0")},
		{"identity timestamp", prim.Timestamp, iceberg.IdentityTransform{}, vals(`"1969-12-31T23:59:59.999999"`), vals("iceberg.Timestamp(-1): 0")},
		{"identity timestamptz", prim.TimestampTz, iceberg.IdentityTransform{}, vals(`"1970-01-01T00:00:00.000001Z"`), vals("iceberg.Timestamp(1): 0")},
		{"identity decimal(9,2)", iceberg.DecimalTypeOf(9, 2), iceberg.IdentityTransform{}, vals(`"-1.50"`, `"2.00"`, `"-1.50"`),
			vals("iceberg.Decimal(-1.50): 0 2", "iceberg.Decimal(2.00): 1")},
		{"identity decimal(38,2)", iceberg.DecimalTypeOf(38, 2), iceberg.IdentityTransform{}, vals(`"-123456789012345678901234567890.50"`, `"0.00"`),
			vals("iceberg.Decimal(-123456789012345678901234567890.50): 0", "iceberg.Decimal(0.00): 1")},
		{"identity uuid", prim.UUID, iceberg.IdentityTransform{}, vals(`"f47ac10b-58cc-4372-a567-0e02b2c3d479"`),
			vals("uuid.UUID(f47ac10b-58cc-4372-a567-0e02b2c3d479): 0")},
		{"identity binary", prim.Binary, iceberg.IdentityTransform{}, vals(`"AQI="`, `""`, "null"), vals("<nil>(<nil>): 2", "[]uint8([1 2]): 0", "[]uint8([]): 1")},
		{"identity fixed", iceberg.FixedTypeOf(2), iceberg.IdentityTransform{}, vals(`"AQI="`), vals("[]uint8([1 2]): 0")},
		// Values of the spec's Appendix B.
		{"bucket int", prim.Int32, iceberg.BucketTransform{NumBuckets: 1 << 30}, vals("34", "null"),
			vals("<nil>(<nil>): 1", fmt.Sprintf("int32(%d): 0", 2017239379%(1<<30)))},
		{"bucket long", prim.Int64, iceberg.BucketTransform{NumBuckets: 1 << 30}, vals("34"), vals(fmt.Sprintf("int32(%d): 0", 2017239379%(1<<30)))},
		{"bucket decimal", iceberg.DecimalTypeOf(9, 2), iceberg.BucketTransform{NumBuckets: math.MaxInt32}, vals(`"14.20"`), vals(fmt.Sprintf("int32(%d): 0", hashed(-500754589)))},
		{"bucket date", prim.Date, iceberg.BucketTransform{NumBuckets: math.MaxInt32}, vals(`"2017-11-16"`), vals(fmt.Sprintf("int32(%d): 0", hashed(-653330422)))},
		{"bucket timestamp", prim.Timestamp, iceberg.BucketTransform{NumBuckets: math.MaxInt32}, vals(`"2017-11-16T22:31:08"`), vals(fmt.Sprintf("int32(%d): 0", hashed(-2047944441)))},
		{"bucket text", prim.String, iceberg.BucketTransform{NumBuckets: math.MaxInt32}, vals(`"iceberg"`), vals(fmt.Sprintf("int32(%d): 0", hashed(1210000089)))},
		{"bucket uuid", prim.UUID, iceberg.BucketTransform{NumBuckets: math.MaxInt32}, vals(`"f79c3e09-677c-4bbd-a479-3f349cb785e7"`), vals(fmt.Sprintf("int32(%d): 0", hashed(1488055340)))},
		{"bucket binary", prim.Binary, iceberg.BucketTransform{NumBuckets: math.MaxInt32}, vals(`"AAECAw=="`), vals(fmt.Sprintf("int32(%d): 0", hashed(-188683207)))},
		{"bucket fixed", iceberg.FixedTypeOf(4), iceberg.BucketTransform{NumBuckets: math.MaxInt32}, vals(`"AAECAw=="`), vals(fmt.Sprintf("int32(%d): 0", hashed(-188683207)))},
		{"truncate int", prim.Int32, iceberg.TruncateTransform{Width: 10}, vals("1", "-1", "10", "null"),
			vals("<nil>(<nil>): 3", "int32(-10): 1", "int32(0): 0", "int32(10): 2")},
		{"truncate long", prim.Int64, iceberg.TruncateTransform{Width: 10}, vals("19", "-1"), vals("int64(-10): 1", "int64(10): 0")},
		{"truncate decimal(9,2)", iceberg.DecimalTypeOf(9, 2), iceberg.TruncateTransform{Width: 50}, vals(`"10.65"`, `"-0.01"`),
			vals("iceberg.Decimal(-0.50): 1", "iceberg.Decimal(10.50): 0")},
		{"truncate decimal(20,2)", iceberg.DecimalTypeOf(20, 2), iceberg.TruncateTransform{Width: 50}, vals(`"10.65"`, `"-0.01"`, "null"),
			vals("<nil>(<nil>): 2", "iceberg.Decimal(-0.50): 1", "iceberg.Decimal(10.50): 0")},
		{"truncate text by letters", prim.String, iceberg.TruncateTransform{Width: 3}, vals(`"größer"`, `"gr"`, `"gröl"`, `""`),
			vals("string(): 3", "string(gr): 1", "string(grö): 0 2")},
		{"truncate binary", prim.Binary, iceberg.TruncateTransform{Width: 1}, vals(`"AQI="`, `"AQ=="`), vals("[]uint8([1]): 0 1")},
		{"year", prim.Timestamp, iceberg.YearTransform{}, vals(`"1969-12-31T23:59:59.999999"`, `"1970-01-01T00:00:00"`, "null", `"2024-05-06T00:00:00"`),
			vals("<nil>(<nil>): 2", "int32(-1): 0", "int32(0): 1", "int32(54): 3")},
		{"year of date", prim.Date, iceberg.YearTransform{}, vals(`"1969-12-31"`, `"2024-02-29"`), vals("int32(-1): 0", "int32(54): 1")},
		{"month", prim.TimestampTz, iceberg.MonthTransform{}, vals(`"1969-12-31T23:59:59.999999Z"`, `"2024-02-29T00:00:00Z"`), vals("int32(-1): 0", "int32(649): 1")},
		{"day", prim.Timestamp, iceberg.DayTransform{}, vals(`"1969-12-31T23:59:59.999999"`, `"1970-01-01T00:00:00"`), vals("iceberg.Date(-1): 0", "iceberg.Date(0): 1")},
		{"day of date", prim.Date, iceberg.DayTransform{}, vals(`"1970-01-02"`), vals("iceberg.Date(1): 0")},
		{"hour", prim.Timestamp, iceberg.HourTransform{}, vals(`"1969-12-31T23:59:59.999999"`, `"1970-01-01T01:00:00"`), vals("int32(-1): 0", "int32(1): 1")},
		{"void", prim.String, iceberg.VoidTransform{}, vals(`"a"`, `"b"`), vals("<nil>(<nil>): 0 1")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "p", tc.typ))
			cfg := config(t, s, nil)
			cfg.Spec, cfg.Mem = spec(by(2, 1000, "part", tc.tr)), mem
			var batches []arrow.RecordBatch
			for i, v := range tc.vals { // a record batch a row, so that columns are joined
				batches = append(batches, batchOf(t, mem, s, fmt.Sprintf(`[{"id":%d,"p":%s}]`, i, v)))
			}
			files := write(t, cfg, batches...)
			if got := byPartition(t, files, 1000); !slices.Equal(got, tc.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(tc.want, "\n\t"))
			}
			for version := 1; version <= 3; version++ {
				cfg.Version = version
				back := manifest(t, cfg, files)
				for i, f := range files {
					was, is := f.Partition()[1000], back[i].Partition()[1000]
					if d, ok := is.(iceberg.DecimalLiteral); ok {
						is = iceberg.Decimal(d)
					}
					if strings.TrimPrefix(fmt.Sprint(was), "[") != strings.TrimPrefix(fmt.Sprint(is), "[") {
						t.Errorf("manifest of version %d: %s became %s", version, str(was), str(is))
					}
				}
			}
		})
	}
}

// hashed is the bucket of a hash among math.MaxInt32.
func hashed(h int32) int32 { return (h & math.MaxInt32) % math.MaxInt32 }

// Case 65: NaN (of whatever bits), 0.0 and -0.0 are partitions of their own.
func TestFloatPartitions(t *testing.T) {
	for _, wide := range []bool{false, true} {
		typ := iceberg.Type(prim.Float32)
		if wide {
			typ = prim.Float64
		}
		s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "p", typ))
		sc, err := table.SchemaToArrowSchema(s, nil, true, false)
		if err != nil {
			t.Fatal(err)
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		vals := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 0, math.Copysign(math.NaN(), -1), math.Inf(-1), -1.5}
		for i, v := range vals {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			if wide {
				b.Field(1).(*array.Float64Builder).Append(v)
			} else {
				b.Field(1).(*array.Float32Builder).Append(float32(v))
			}
		}
		b.Field(0).(*array.Int64Builder).Append(8)
		b.Field(1).AppendNull()
		cfg := config(t, s, nil)
		cfg.Spec = spec(by(2, 1000, "p", iceberg.IdentityTransform{}))
		files := write(t, cfg, b.NewRecordBatch())
		name := map[bool]string{false: "float32", true: "float64"}[wide]
		want := []string{"<nil>(<nil>): 8", name + "(+Inf): 3", name + "(-0): 1", name + "(-1.5): 7", name + "(-Inf): 6", name + "(0): 0 4", name + "(NaN): 2 5"}
		if got := byPartition(t, files, 1000); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for i, f := range manifest(t, cfg, files) {
			if was, is := str(files[i].Partition()[1000]), str(f.Partition()[1000]); was != is {
				t.Errorf("manifest: %s became %s", was, is)
			}
		}
	}
}

func TestNanosecondPartitions(t *testing.T) {
	s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "ns", prim.TimestampNs), opt(3, "tz", prim.TimestampTzNs))
	cfg := config(t, s, nil)
	cfg.Version = 3
	cfg.Spec = spec(by(2, 1000, "ns", iceberg.IdentityTransform{}), by(3, 1001, "tz_day", iceberg.DayTransform{}), by(2, 1002, "ns_hour", iceberg.HourTransform{}), by(3, 1003, "b", iceberg.BucketTransform{NumBuckets: 4}))
	files := write(t, cfg, batchOf(t, memory.DefaultAllocator, s, `[{"id":1,"ns":"1970-01-01T00:00:00.000000001","tz":"1969-12-31T23:59:59.999999999Z"},{"id":2,"ns":null,"tz":null}]`))
	if len(files) != 2 {
		t.Fatalf("%d files", len(files))
	}
	p := files[0].Partition()
	if str(p[1000]) != "iceberg.TimestampNano(1)" || str(p[1001]) != "iceberg.Date(-1)" || str(p[1002]) != "int32(0)" {
		t.Errorf("%v", p)
	}
	back := manifest(t, cfg, files)
	if str(back[0].Partition()[1000]) != "iceberg.TimestampNano(1)" {
		t.Errorf("manifest: %s", str(back[0].Partition()[1000]))
	}
}

// Several fields, a nested source below a struct that is null itself, and void.
func TestManyPartitionFields(t *testing.T) {
	s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "region", prim.String),
		opt(3, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{
			req(4, "day", prim.Date),
			opt(5, "in", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(6, "k", prim.Int32)}}),
		}}), opt(7, "empty", iceberg.UnknownType{}))
	cfg := config(t, s, nil)
	cfg.Version = 3
	cfg.Spec = spec(by(2, 1000, "region", iceberg.IdentityTransform{}), by(4, 1001, "m", iceberg.MonthTransform{}),
		by(99, 1002, "gone", iceberg.VoidTransform{}), by(6, 1003, "k", iceberg.IdentityTransform{}), by(7, 1004, "u", iceberg.IdentityTransform{}))
	rb := batchOf(t, memory.DefaultAllocator, s, `[
		{"id":0,"region":"eu","st":{"day":"2024-01-05","in":{"k":1}}},
		{"id":1,"region":"us","st":null},
		{"id":2,"region":"eu","st":{"day":"2024-01-06","in":{"k":1}}},
		{"id":3,"region":"eu","st":{"day":"2024-01-06","in":null}},
		{"id":4,"region":null,"st":{"day":"2024-02-06","in":{"k":null}}},
		{"id":5,"region":"us","st":null}]`)
	files := write(t, cfg, rb)
	var got []string
	for _, f := range files {
		p := f.Partition()
		got = append(got, fmt.Sprint(p[1000], p[1001], p[1002], p[1003], p[1004], ": ", texts(t, f, "id")))
		if len(p) != 5 {
			t.Errorf("partition %v", p)
		}
	}
	want := []string{"eu648 <nil> 1 <nil>: 0 2", "us<nil> <nil> <nil> <nil>: 1 5", "eu648 <nil> <nil> <nil>: 3", "<nil> 649 <nil> <nil> <nil>: 4"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	manifest(t, cfg, files)
}

// A batch above the bound makes more files of a partition, and loses nothing.
func TestGatherIsBounded(t *testing.T) {
	s := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "p", prim.String))
	cfg := config(t, s, nil)
	cfg.Spec = spec(by(2, 1000, "p", iceberg.IdentityTransform{}))
	cfg.GatherBytes = 200
	var batches []arrow.RecordBatch
	for i := range 20 {
		batches = append(batches, batchOf(t, memory.DefaultAllocator, s, fmt.Sprintf(`[{"id":%d,"p":"a"},{"id":%d,"p":"b"}]`, 2*i, 2*i+1)))
	}
	files := write(t, cfg, batches...)
	seen := map[string]int{}
	for _, f := range files {
		for _, v := range strings.Fields(texts(t, f, "id")) {
			seen[v]++
		}
	}
	if len(files) <= 2 || len(seen) != 40 {
		t.Errorf("%d files, %d rows", len(files), len(seen))
	}
}
