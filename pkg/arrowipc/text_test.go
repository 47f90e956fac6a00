package arrowipc

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// outcome is what there is to say against an array. The library panics at some offsets, which a decoder recovers.
func outcome(look func(arrow.Array) error, arr arrow.Array) (says string) {
	defer func() {
		if p := recover(); p != nil {
			says = fmt.Sprint(p)
		}
	}()
	if err := look(arr); err != nil {
		return err.Error()
	}
	return ""
}

// Strings of any bytes, cut anywhere, with any nulls and as any part of an array, are refused exactly where
// array.ValidateFull refuses them.
func TestValidateStrings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"", "a", "text", "ä", "世", "😀", "\x00", "\xff", "\xe4", "\x80", "\xf0\x9f"}
	refused, taken := 0, 0
	for range 20_000 {
		sound := r.IntN(2) == 0 // all letters whole
		var values []byte
		offsets := []int64{0}
		for n := r.IntN(8); n > 0; n-- {
			for k := r.IntN(3); k > 0; k-- {
				most := len(pieces)
				if sound {
					most = 7
				}
				values = append(values, pieces[r.IntN(most)]...)
			}
			offsets = append(offsets, int64(len(values)))
		}
		if !sound && r.IntN(3) == 0 {
			offsets[r.IntN(len(offsets))] += int64(r.IntN(7) - 3)
		}
		n := len(offsets) - 1
		var small, large []byte
		for _, o := range offsets {
			small = binary.LittleEndian.AppendUint32(small, uint32(o))
			large = binary.LittleEndian.AppendUint64(large, uint64(o))
		}
		nulls := memory.NewBufferBytes([]byte{byte(r.IntN(256))})
		if r.IntN(3) == 0 {
			nulls = nil
		}
		from := r.IntN(n + 1)
		for dt, at := range map[arrow.DataType][]byte{arrow.BinaryTypes.String: small, arrow.BinaryTypes.LargeString: large} {
			data := array.NewData(dt, n-from, []*memory.Buffer{nulls, memory.NewBufferBytes(at), memory.NewBufferBytes(values)}, nil, array.UnknownNullCount, from)
			var arr arrow.Array
			func() {
				defer func() { _ = recover() }() // the library looks at some offsets as it makes an array
				arr = array.MakeFromData(data)
			}()
			if arr == nil {
				continue
			}
			want, got := outcome(array.ValidateFull, arr), outcome(validate, arr)
			if got != want {
				t.Fatalf("%s of %q at %v from %d: %q, want %q", dt, values, offsets, from, got, want)
			}
			if want == "" {
				taken++
			} else {
				refused++
			}
		}
	}
	if refused < 5000 || taken < 5000 {
		t.Errorf("%d were refused, %d taken", refused, taken)
	}
}
