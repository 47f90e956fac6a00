package lake

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestTake holds rows that were taken against the library's, of every layout that a column may have, with
// nulls and without, of a part of an array.
func TestTake(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	values := map[arrow.DataType][]string{
		arrow.FixedWidthTypes.Boolean:                                  {"true", "false"},
		arrow.PrimitiveTypes.Int8:                                      {"1", "-2", "3"},
		arrow.PrimitiveTypes.Int16:                                     {"1", "-2", "3"},
		arrow.PrimitiveTypes.Int32:                                     {"1", "-2", "3"},
		arrow.PrimitiveTypes.Int64:                                     {"1", "-2", "3"},
		arrow.PrimitiveTypes.Float64:                                   {"1.5", "-2.5", "1e300"},
		arrow.PrimitiveTypes.Date32:                                    {"2024-01-01", "1960-01-01"},
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}: {"2024-01-01T00:00:00Z", "1960-01-01T00:00:00Z"},
		&arrow.Decimal128Type{Precision: 20, Scale: 2}:                 {"1.25", "-7.00"},
		&arrow.FixedSizeBinaryType{ByteWidth: 3}:                       {"YWJj", "eHl6"},
		arrow.BinaryTypes.String:                                       {"", "a", "some longer text"},
		arrow.BinaryTypes.Binary:                                       {"", "YWJj"},
		arrow.BinaryTypes.LargeString:                                  {"", "a", "some longer text"},
		extensions.NewUUIDType():                                       {"f79c3e09-677c-4bbd-a479-3f349cb785e7", "00000000-0000-0000-0000-000000000000"},
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}: {"a", "b"},
		arrow.ListOf(arrow.PrimitiveTypes.Int32):                                                         {"[1,2]", "[]"},
		arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true}):           {`{"x":"a"}`, `{"x":null}`},
	}
	r := rand.New(rand.NewPCG(1, 1))
	for kind, from := range values {
		for _, nulls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, nulls %t", kind, nulls), func(t *testing.T) {
				b := array.NewBuilder(mem, kind)
				for range 70 {
					if nulls && r.IntN(3) == 0 {
						b.AppendNull()
					} else if err := b.AppendValueFromString(from[r.IntN(len(from))]); err != nil {
						t.Fatal(err)
					}
				}
				whole := b.NewArray()
				b.Release()
				part := array.NewSlice(whole, 5, 68)
				whole.Release()
				defer part.Release()
				for range 20 {
					var indices []int32
					for i := range part.Len() {
						if r.IntN(2) == 0 {
							indices = append(indices, int32(i))
						}
					}
					tk := &taker{indices: indices, mem: mem}
					got, err := tk.take(t.Context(), part)
					if err != nil {
						t.Fatal(err)
					}
					ib := array.NewInt32Builder(mem)
					ib.AppendValues(indices, nil)
					at := ib.NewArray()
					ib.Release()
					want, err := compute.TakeArray(compute.WithAllocator(t.Context(), mem), storageOf(part), at)
					if err != nil {
						t.Fatal(err)
					}
					if !array.Equal(storageOf(got), want) || got.NullN() != want.NullN() || !arrow.TypeEqual(got.DataType(), kind) {
						t.Errorf("got %v, want %v", got, want)
					}
					for _, a := range []arrow.Array{got, want, at} {
						a.Release()
					}
					tk.release()
				}
			})
		}
	}
}

func storageOf(a arrow.Array) arrow.Array {
	if e, ok := a.(array.ExtensionArray); ok {
		return e.Storage()
	}
	return a
}
