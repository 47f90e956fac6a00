package arrowipc_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/arrowipc"
	"icepipe/pkg/rows"
)

// Streams that pyarrow wrote (testdata/make.py), and the types that their columns must come out as
// (cases 7, 42, 50, 96).
var foreignStreams = map[string]string{
	"plain":               "i int64, s utf8, f float64, d decimal(9, 2), t timestamp[us, tz=UTC], l list<item: int32, nullable>, st struct<x: int64 nullable, y: utf8 nullable>, m map<utf8, int64, items_nullable>",
	"lz4":                 "i int64, s utf8, none utf8, e utf8",
	"zstd":                "i int64, s utf8, none utf8, e utf8",
	"empty":               "i int64, s utf8",
	"empty_zstd":          "i int64, s utf8",
	"dictionary":          "c utf8, u int64, l list<item: utf8, nullable>",
	"dictionary_delta":    "c utf8",
	"dictionary_replaced": "c utf8",
	"views":               "s utf8, b binary, l list<item: utf8, nullable>, st struct<x: utf8 nullable>, m map<utf8, utf8, items_nullable>",
	"runs":                "r utf8, n int64",
	"lists":               "f list<item: int32, nullable>, v list<item: int64, nullable>, lv large_list<item: utf8, nullable>, ll large_list<item: int64, nullable>, ls large_utf8, nul null, fs list<item: utf8, nullable>",
	"kinds":               "u8 uint8, u64 uint64, h float16, b bool, d32 decimal(2, 1), d64 decimal(12, 2), fx fixed_size_binary[3], id extension<arrow.uuid>, js utf8, b8 bool",
	"legacy":              "i int64, s utf8",
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if errors.Is(err, os.ErrNotExist) && strings.HasSuffix(name, ".jsonl") {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestForeign(t *testing.T) {
	for name, types := range foreignStreams {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			in, err := arrowipc.Read(bytes.NewReader(fixture(t, name+".arrows")), arrowipc.WithUnsealedOK(), arrowipc.WithAllocator(mem))
			if err != nil {
				t.Fatal(err)
			}
			if !in.Header.Foreign {
				t.Error("header does not say Foreign")
			}
			var got []string
			for _, f := range in.Schema.Fields() {
				got = append(got, f.Name+" "+f.Type.String())
			}
			if s := strings.Join(got, ", "); s != types {
				t.Errorf("types\n%s, want\n%s", s, types)
			}
			var lines []string
			at := rows.Cursor{}
			for s, err := range in.Spans {
				if err != nil {
					t.Fatal(err)
				}
				if s.From != at || s.To != at.Advance(s.Rows) || s.Rows != s.Batch.NumRows() || s.EndsBatch {
					t.Errorf("span %+v", s)
				}
				at = s.To
				for i := range int(s.Rows) {
					row := map[string]any{}
					for c, f := range in.Schema.Fields() {
						if !arrow.TypeEqual(s.Batch.Column(c).DataType(), f.Type) {
							t.Fatalf("column %s is %s", f.Name, s.Batch.Column(c).DataType())
						}
						row[f.Name] = value(t, s.Batch.Column(c), i)
					}
					lines = append(lines, canonical(t, []byte(text(t, row))))
				}
				s.Release()
			}
			var want []string
			for line := range strings.Lines(string(fixture(t, name+".jsonl"))) {
				want = append(want, canonical(t, []byte(line)))
			}
			if g, w := strings.Join(lines, "\n"), strings.Join(want, "\n"); g != w {
				t.Errorf("rows\n%s\nwant\n%s", g, w)
			}
			seal, err := in.Seal()
			if err != nil || seal.Rows != int64(len(want)) || seal.Last != at {
				t.Errorf("seal %+v, %v", seal, err)
			}
		})
	}
}

// value is value i of an array, as make.py writes it.
func value(t testing.TB, arr arrow.Array, i int) any {
	if arr.IsNull(i) || arr.DataType().ID() == arrow.NULL {
		return nil
	}
	switch a := arr.(type) {
	case *array.Map:
		from, to := a.ValueOffsets(i)
		out := []any{}
		for k := int(from); k < int(to); k++ {
			out = append(out, []any{value(t, a.Keys(), k), value(t, a.Items(), k)})
		}
		return out
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		out := []any{}
		for k := int(from); k < int(to); k++ {
			out = append(out, value(t, a.ListValues(), k))
		}
		return out
	case *array.Struct:
		out := map[string]any{}
		for k := range a.NumField() {
			out[a.DataType().(*arrow.StructType).Field(k).Name] = value(t, a.Field(k), i)
		}
		return out
	case interface{ Value(int) []byte }:
		return hex.EncodeToString(a.Value(i))
	case array.StringLike:
		return a.Value(i)
	case *array.Timestamp:
		return int64(a.Value(i))
	case *extensions.UUIDArray, *array.Decimal128:
		return arr.ValueStr(i)
	case *array.Float16:
		return float64(a.Value(i).Float32())
	}
	return arr.GetOneForMarshal(i)
}

// canonical is JSON with each number in its one form.
func canonical(t testing.TB, b []byte) string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			if s := v.String(); strings.ContainsAny(s, ".eE-") {
				f, _ := v.Float64()
				return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	return text(t, walk(v))
}

func TestForeignNeedsLeave(t *testing.T) {
	_, err := arrowipc.Read(bytes.NewReader(fixture(t, "plain.arrows")))
	if err == nil || errors.Is(err, rows.ErrUnsealed) || !strings.Contains(err.Error(), "--unsealed-ok") {
		t.Errorf("got %v", err)
	}
}

func TestForeignUnion(t *testing.T) {
	_, err := arrowipc.Read(bytes.NewReader(fixture(t, "union.arrows")), arrowipc.WithUnsealedOK())
	if err == nil || !strings.Contains(err.Error(), `column "bad"`) {
		t.Errorf("got %v", err)
	}
}

// A foreign stream that was cut, between messages too, lacks its end marker.
func TestForeignCut(t *testing.T) {
	for name := range foreignStreams {
		whole := fixture(t, name+".arrows")
		for n := 0; n < len(whole); n += stride() {
			if got := read(t, whole[:n], arrowipc.WithUnsealedOK()); !errors.Is(got.err, rows.ErrUnsealed) || got.seal != "" {
				t.Fatalf("%s cut at %d: %v", name, n, got.err)
			}
		}
		got := read(t, append(whole, 0), arrowipc.WithUnsealedOK())
		if got.err == nil || errors.Is(got.err, rows.ErrUnsealed) || got.seal != "" {
			t.Errorf("%s and a byte more: %v", name, got.err)
		}
	}
}

// Damage of a foreign stream cannot be found, but it cannot do harm either.
func TestForeignDamage(t *testing.T) {
	for name := range foreignStreams {
		whole := fixture(t, name+".arrows")
		for pos := 0; pos+4 <= len(whole); pos += 4 * stride() {
			for _, v := range []uint32{1, 1 << 28, 1<<31 - 1} {
				b := bytes.Clone(whole)
				binary.LittleEndian.PutUint32(b[pos:], v)
				if got, grew := allocated(t, b); grew > 64<<20 {
					t.Fatalf("%s: word at %d as %#x: %d MiB allocated (%v)", name, pos, v, grew>>20, got.err)
				}
			}
		}
	}
}

// A string that is not UTF-8 would make a data file that other programs cannot read.
func TestForeignText(t *testing.T) {
	for _, name := range []string{"plain", "views", "lists", "runs", "dictionary_delta"} {
		whole := fixture(t, name+".arrows")
		old := []byte("a long string")
		if name == "dictionary_delta" {
			old = []byte("xy")
		}
		at := bytes.LastIndex(whole, old)
		if at < 0 {
			t.Fatalf("%s does not hold %q", name, old)
		}
		b := bytes.Clone(whole)
		b[at+1] = 0xff
		if got := read(t, b, arrowipc.WithUnsealedOK()); got.err == nil || !strings.Contains(got.err.Error(), "column ") {
			t.Errorf("%s: %v", name, got.err)
		}
	}
}
