package datafile

import (
	"bytes"
	"testing"

	"github.com/apache/iceberg-go"
)

// Pages that are compressed in one buffer, whichever column and chunk they are of, are those that are compressed in
// buffers of their own.
func TestPagesInOneBuffer(t *testing.T) {
	const piece, pieces, chunks = 2000, 4, 3
	for _, codec := range []string{"zstd", "gzip", "snappy", "brotli", "lz4", "uncompressed"} {
		shape, err := NewShape(ordersSchema(), iceberg.Properties{propCodec: codec, propPageSize: "4096", propDictSize: "20000"})
		if err != nil {
			t.Fatal(err)
		}
		encoded := func(packed *bytes.Buffer) (out [][]byte) {
			var all []*Encoder
			for i := range shape.columns {
				all = append(all, NewEncoder(shape, i))
			}
			for c := range chunks {
				for p := range pieces {
					rb := ordersBatch(piece, int64((c*pieces+p)*piece))
					for i, e := range all {
						e.lend(packed)
						if err := e.Append(rb.Column(i), 0, piece); err != nil {
							t.Fatal(err)
						}
						e.lend(nil)
					}
					rb.Release()
				}
				for _, e := range all {
					e.lend(packed)
					done, err := e.Finish()
					e.lend(nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, chunk := range done {
						var b bytes.Buffer
						if _, err := chunk.body.WriteTo(&b); err != nil {
							t.Fatal(err)
						}
						chunk.Release()
						out = append(out, b.Bytes())
					}
				}
			}
			return out
		}
		var packed bytes.Buffer
		want, got := encoded(nil), encoded(&packed)
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%s: chunk %d, of column %q, is another one", codec, i/len(shape.columns), shape.Leaves[i%len(shape.columns)].Name)
			}
		}
		if used := packed.Cap() > 0; used != (codec != "uncompressed") || packed.Len() != 0 {
			t.Errorf("%s: the buffer has %d bytes, and room for %d", codec, packed.Len(), packed.Cap())
		}
	}
}
