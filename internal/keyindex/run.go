package keyindex

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"icepipe/internal/tempfile"
)

// A run is a temporary file of sorted records, no two of them equal, in blocks of 4 KiB: 170 records, their
// digests and places big-endian, how many of them are records of the run, and a hash of all this.
type run struct {
	file   *tempfile.File
	fences []uint64 // the first 8 bytes of the first digest of each block
	count  int64
}

const (
	blockBytes   = 4 << 10
	blockRecords = (blockBytes - blockTail) / recordBytes
	blockTail    = 16
	mostBlocks   = 64 // that are read or written at a time
	mostGap      = 4  // blocks that nobody asked for, read along with those around them
)

// close removes the run.
func (r *run) close() error { return r.file.Close() }

// writeRun writes all records of the cursors, at most so many, to a new run in the folder.
func writeRun(dir string, cursors []*cursor, most int64) (_ *run, err error) {
	file, err := tempfile.Create(dir, "icepipe-keys-")
	if err != nil {
		return nil, err
	}
	r := &run{file: file}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	blocks := (most + blockRecords - 1) / blockRecords
	r.fences = make([]uint64, 0, blocks)
	w := runWriter{run: r, raw: make([]byte, 0, min(blocks, mostBlocks)*blockBytes)}
	ctx := context.Background() // whoever adds a record has none; a merge ends in any case
	all, err := newMerge(ctx, cursors)
	if err != nil {
		return nil, err
	}
	for {
		x, ok, err := all.next(ctx)
		if err != nil {
			return nil, err
		}
		if !ok {
			return r, w.finish()
		}
		if err := w.add(x); err != nil {
			return nil, err
		}
	}
}

// A runWriter adds records, in their order, to a run.
type runWriter struct {
	run  *run
	last record
	raw  []byte // blocks that are not written yet, the last one of them with room
}

// add adds a record, unless it equals the one before.
func (w *runWriter) add(x record) error {
	r := w.run
	if r.count > 0 && x == w.last {
		return nil
	}
	in := int(r.count % blockRecords)
	if in == 0 {
		if len(w.raw) == cap(w.raw) {
			if err := w.write(); err != nil {
				return err
			}
		}
		r.fences = append(r.fences, x.hi)
		w.raw = w.raw[:len(w.raw)+blockBytes]
	}
	at := w.raw[len(w.raw)-blockBytes+in*recordBytes:]
	binary.BigEndian.PutUint64(at, x.hi)
	binary.BigEndian.PutUint64(at[8:], x.lo)
	binary.BigEndian.PutUint64(at[16:], uint64(x.place))
	r.count++
	w.last = x
	if in == blockRecords-1 {
		w.seal(blockRecords)
	}
	return nil
}

// seal ends the last block, which holds so many records.
func (w *runWriter) seal(records int) {
	block := w.raw[len(w.raw)-blockBytes:]
	clear(block[records*recordBytes : blockBytes-blockTail])
	binary.BigEndian.PutUint64(block[blockBytes-16:], uint64(records))
	binary.BigEndian.PutUint64(block[blockBytes-8:], hashOf(block, len(w.run.fences)-1))
}

func (w *runWriter) write() error {
	_, err := w.run.file.Write(w.raw)
	w.raw = w.raw[:0]
	return err
}

func (w *runWriter) finish() error {
	if n := int(w.run.count % blockRecords); n > 0 {
		w.seal(n)
	}
	return w.write()
}

// hashOf is the hash of a block, which is another one for the same block elsewhere in the run.
func hashOf(block []byte, i int) uint64 {
	return xxh3.HashSeed(block[:blockBytes-8], uint64(i))
}

// read reads blocks from first up to end, not included, into raw, and appends their records to out.
func (r *run) read(first, end int, raw []byte, out []record) ([]record, error) {
	if n, err := r.file.ReadAt(raw, int64(first)*blockBytes); n < len(raw) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("keys in temporary file %q, blocks %d to %d of %d: %w", r.file.Name(), first, end-1, len(r.fences), err)
	}
	for i := first; i < end; i++ {
		block := raw[(i-first)*blockBytes:][:blockBytes]
		if got := binary.BigEndian.Uint64(block[blockBytes-8:]); got != hashOf(block, i) {
			return nil, fmt.Errorf("keys in temporary file %q: block %d of %d is not what was written; run again, on another disk if it is so again",
				r.file.Name(), i, len(r.fences))
		}
		n, want := binary.BigEndian.Uint64(block[blockBytes-16:]), min(blockRecords, r.count-int64(i)*blockRecords)
		if n != uint64(want) {
			return nil, fmt.Errorf("keys in temporary file %q: block %d of %d has %d records, not %d", r.file.Name(), i, len(r.fences), n, want)
		}
		for ; n > 0; n-- {
			out = append(out, record{binary.BigEndian.Uint64(block), binary.BigEndian.Uint64(block[8:]), Place(binary.BigEndian.Uint64(block[16:]))})
			block = block[recordBytes:]
		}
	}
	return out, nil
}

// span says which blocks, from one on of which those before are of no interest, may hold digests that start
// with these 8 bytes.
func (r *run) span(from int, hi uint64) (first, end int) {
	less := from + gallop(r.fences[from:], func(f uint64) bool { return f < hi })
	end = less + gallop(r.fences[less:], func(f uint64) bool { return f == hi })
	return max(from, less-1), end
}

// wanted says which blocks are to be read next, from one on, for the first of the digests asked for: with those
// of the digests behind it that lie near. There are none if first equals end.
func (r *run) wanted(from int, asked []record) (first, end int) {
	first, end = r.span(from, asked[0].hi)
	if first == end {
		return first, end
	}
	for _, a := range asked[1:] {
		f, e := r.span(end-1, a.hi)
		if f > end+mostGap || e > first+mostBlocks {
			break
		}
		end = max(end, e)
	}
	return first, min(end, first+mostBlocks)
}
