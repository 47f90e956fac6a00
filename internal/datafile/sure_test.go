package datafile

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/rows"
)

// TestSurePartitions: a row group is copied into a partition where its bounds prove it, or its file says so, and it is
// the partition that its rows would be clustered into; else it is not.
func TestSurePartitions(t *testing.T) {
	identity, bucket := iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 7}
	truncate := func(w int) iceberg.Transform { return iceberg.TruncateTransform{Width: w} }
	for _, tt := range []struct {
		typ       iceberg.Type // of the table's column
		file      iceberg.Type // of the file's; nil: the same
		transform iceberg.Transform
		values    string // of the column, by commas
		sure      bool
	}{
		{prim.Int32, nil, identity, `7,7`, true},
		{prim.Int32, nil, identity, `7,8`, false},
		{prim.Int32, nil, identity, `7,null`, false},
		{prim.Int32, nil, identity, `null,null`, true},
		{prim.Int32, nil, bucket, `7,7`, true},
		{prim.Int32, nil, bucket, `7,8`, false},
		{prim.Int32, nil, bucket, `null`, true},
		{prim.Int32, nil, truncate(10), `70,79`, true},
		{prim.Int32, nil, truncate(10), `79,80`, false},
		{prim.Int32, nil, truncate(10), `-1,-10`, true},
		{prim.Int64, prim.Int32, truncate(10), `70,79`, true},
		{prim.Int64, prim.Int32, bucket, `-70,-70`, true},
		{prim.Float64, prim.Float32, identity, `1.5,1.5`, false}, // NaN is in no bound
		{prim.Float64, prim.Float32, identity, `null,null`, true},
		{prim.Bool, nil, identity, `true,true`, true},
		{prim.Bool, nil, identity, `true,false`, false},
		{prim.Date, nil, iceberg.MonthTransform{}, `"2024-02-01","2024-02-29"`, true},
		{prim.Date, nil, iceberg.MonthTransform{}, `"2024-02-29","2024-03-01"`, false},
		{prim.Date, nil, iceberg.YearTransform{}, `"1969-01-01","1969-12-31"`, true},
		{prim.Timestamp, nil, iceberg.DayTransform{}, `"1969-12-31T00:00:00","1969-12-31T23:59:59.999999"`, true},
		{prim.Timestamp, nil, iceberg.DayTransform{}, `"1969-12-31T23:59:59","1970-01-01T00:00:00"`, false},
		{prim.TimestampTz, nil, iceberg.HourTransform{}, `"2024-05-06T07:00:00Z","2024-05-06T07:59:59Z"`, true},
		{prim.String, nil, identity, `"größer","größer"`, true},
		{prim.String, nil, truncate(2), `"größer","groß"`, true},
		{prim.String, nil, truncate(3), `"größer","groß"`, false},
		{prim.String, nil, identity, `"",""`, true},
		{prim.Binary, nil, truncate(1), `"AAEC","AAE="`, true},
		{prim.UUID, nil, bucket, `"f47ac10b-58cc-4372-a567-0e02b2c3d479"`, true},
		{iceberg.FixedTypeOf(3), nil, identity, `"AAEC","AAEC"`, true},
		{iceberg.DecimalTypeOf(9, 2), nil, truncate(100), `"1.00","1.99"`, true},
		{iceberg.DecimalTypeOf(14, 2), iceberg.DecimalTypeOf(9, 2), identity, `"-1.00","-1.00"`, true},
		{iceberg.DecimalTypeOf(30, 2), iceberg.DecimalTypeOf(20, 2), identity, `"-1.00","-1.00"`, true},
		{iceberg.DecimalTypeOf(30, 2), nil, truncate(100), `"-1.00","-0.01"`, true},
		{iceberg.DecimalTypeOf(30, 2), nil, truncate(100), `"-1.00","0.00"`, false},
	} {
		name := fmt.Sprintf("%s of %s: %s", tt.transform, tt.typ, tt.values)
		file := tt.file
		if file == nil {
			file = tt.typ
		}
		from, to := iceberg.NewSchema(0, opt(1, "id", prim.Int32), opt(2, "c", file)), iceberg.NewSchema(0, opt(1, "id", prim.Int32), opt(2, "c", tt.typ))
		var lines []string
		for i, v := range strings.Split(tt.values, ",") {
			lines = append(lines, fmt.Sprintf(`{"id":%d,"c":%s}`, i, v))
		}
		text := "[" + strings.Join(lines, ",") + "]"
		cfg := config(t, to, nil)
		cfg.Spec = spec(by(2, 1000, "p", tt.transform), by(1, 1001, "gone", iceberg.VoidTransform{}))
		anew := write(t, cfg, batchOf(t, memory.DefaultAllocator, to, text))
		cfg.Copy = Copy{Mode: CopyAuto, Promoted: true}
		source := copySource(t, from, text)
		for _, known := range []bool{false, true} {
			part := partOf(source, from, 0)
			sure := tt.sure
			if known {
				part.Known = []rows.Known{{Column: 0, Transform: "identity", Value: int32(1)}, {Column: 1, Transform: tt.transform.String(), Value: anew[0].Partition()[1000]}}
				sure = true
			}
			w := newWriter(t, cfg)
			if got, _ := w.Takes(part); got != sure {
				t.Errorf("%s: taken %v, want %v (%v)", name, got, sure, known)
			}
			if !sure {
				continue
			}
			if err := w.Take(t.Context(), part); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			files, err := w.Finish(t.Context())
			if err != nil || len(files) != 1 {
				t.Fatalf("%s: %v, %v", name, files, err)
			}
			want := anew[0]
			if !reflect.DeepEqual(files[0].Partition(), want.Partition()) {
				t.Errorf("%s: partition %v, want %v", name, files[0].Partition(), want.Partition())
			}
			if a, b := folderOf(files[0]), folderOf(want); a != b {
				t.Errorf("%s: folder %q, want %q", name, a, b)
			}
			manifest(t, cfg, files)
		}
	}
}

// folderOf is the folder of a data file.
func folderOf(f iceberg.DataFile) string {
	parts := strings.Split(f.FilePath(), "/data/")
	inside := parts[len(parts)-1]
	return inside[:strings.LastIndexByte(inside, '/')+1]
}

// TestKnownOfAnotherType: what the source says in a type that cannot be the partition's is not taken for it.
func TestKnownOfAnotherType(t *testing.T) {
	for _, tt := range []struct {
		value any
		typ   iceberg.Type
		want  string
	}{
		{int32(5), prim.Int64, "int64(5)"},
		{"5", prim.Int64, ""},
		{int32(5), prim.String, ""},
		{true, prim.Int32, ""},
		{[]byte("x"), prim.String, ""},
		{float32(1.5), prim.Float64, "float64(1.5)"},
		{1.5, prim.Int32, ""},
		{iceberg.Date(3), prim.Date, "iceberg.Date(3)"},
		{struct{}{}, prim.String, ""},
		{iceberg.Decimal{Scale: 1}, iceberg.DecimalTypeOf(5, 2), ""},
	} {
		got := ""
		if k, ok := keyOf(tt.value, tt.typ); ok {
			got = fmt.Sprintf("%T(%v)", k.value(0), k.value(0))
		}
		if got != tt.want {
			t.Errorf("%v for %s: %q, want %q", tt.value, tt.typ, got, tt.want)
		}
	}
}

// TestCopiedPartitions: row groups of different partitions, and rows that are clustered, go into files of their own.
func TestCopiedPartitions(t *testing.T) {
	s := iceberg.NewSchema(0, opt(1, "id", prim.Int32), opt(2, "p", prim.String))
	cfg := config(t, s, nil)
	cfg.Spec = spec(by(2, 1000, "p", iceberg.IdentityTransform{}))
	cfg.Copy.Mode = CopyAuto
	w := newWriter(t, cfg)
	put := func(text string) {
		source := copySource(t, s, text)
		p := partOf(source, s, 0)
		if ok, _ := w.Takes(p); ok {
			if err := w.Take(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			return
		}
		rb := batchOf(t, memory.DefaultAllocator, s, text)
		defer rb.Release()
		if err := w.Write(t.Context(), rb); err != nil {
			t.Fatal(err)
		}
	}
	put(`[{"id":1,"p":"a"},{"id":2,"p":"a"}]`)
	put(`[{"id":3,"p":"a"}]`)
	put(`[{"id":4,"p":"a"},{"id":5,"p":"b"}]`) // clustered
	put(`[{"id":6,"p":"b"}]`)
	put(`[{"id":7,"p":null}]`)
	put(`[{"id":8,"p":"b"}]`)
	files, err := w.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		var ids []string
		for _, id := range readColumns(t, f)["id"] {
			ids = append(ids, string(id))
		}
		got = append(got, fmt.Sprintf("%v: %s", f.Partition()[1000], strings.Join(ids, " ")))
	}
	want := "[a: 1 2 3 b: 6 <nil>: 7 b: 8 a: 4 b: 5]"
	if fmt.Sprint(got) != want {
		t.Errorf("files %v, want %s", got, want)
	}
}
