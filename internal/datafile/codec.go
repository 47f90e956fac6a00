package datafile

import (
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/zstd"
)

// The library's own zstd codec decodes in at most four places at a time and keeps 8 MB of history
// per encoder. This one takes encoders and decoders from pools, with a window of 1 MiB: more
// than a page has, and a fourth of the memory.
func init() {
	inner, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		return
	}
	compress.RegisterCodec(compress.Codecs.Zstd, &pooledZstd{Codec: inner})
}

// pooledZstd is Parquet's zstd, block by block; streams and bounds stay with the library's codec.
type pooledZstd struct {
	compress.Codec
	encoders [zstd.SpeedBestCompression + 1]sync.Pool
	decoders sync.Pool
}

func (z *pooledZstd) Encode(dst, src []byte) []byte {
	return z.EncodeLevel(dst, src, compress.DefaultCompressionLevel)
}

func (z *pooledZstd) EncodeLevel(dst, src []byte, level int) []byte {
	speed := zstd.SpeedDefault
	if level != compress.DefaultCompressionLevel {
		speed = zstd.EncoderLevelFromZstd(level)
	}
	e, _ := z.encoders[speed].Get().(*zstd.Encoder)
	if e == nil {
		var err error
		e, err = zstd.NewWriter(nil,
			zstd.WithEncoderLevel(speed),
			zstd.WithEncoderConcurrency(1),
			zstd.WithZeroFrames(true),
			zstd.WithEncoderCRC(false),
			zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(1<<20),
			zstd.WithAllLitEntropyCompression(true))
		if err != nil { // none of these options can be wrong
			return z.Codec.EncodeLevel(dst, src, level)
		}
	}
	defer z.encoders[speed].Put(e)
	return e.EncodeAll(src, dst[:0])
}

// CompressBound is zstd's own bound. The library's asserts that there is something to compress, which for the
// dictionary of a column of nulls there is not.
func (z *pooledZstd) CompressBound(n int64) int64 {
	return n + n>>8 + max(0, 128<<10-n)>>11
}

func (z *pooledZstd) Decode(dst, src []byte) []byte {
	out, err := z.DecodeWithError(dst, src)
	if err != nil {
		panic(err) // as the interface has it; the library asks DecodeWithError
	}
	return out
}

func (z *pooledZstd) DecodeWithError(dst, src []byte) ([]byte, error) {
	d, _ := z.decoders.Get().(*zstd.Decoder)
	if d == nil {
		var err error
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
	}
	defer z.decoders.Put(d)
	return d.DecodeAll(src, dst[:0])
}
