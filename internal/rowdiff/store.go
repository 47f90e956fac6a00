package rowdiff

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"icepipe/internal/tempfile"

	"github.com/klauspost/compress/s2"
	"github.com/zeebo/xxh3"
)

const (
	recordHead = 8        // bytes of a record beside key and row
	blockBytes = 32 << 10 // of records that are written at a time
	mostParts  = 64       // files of a side that are open at a time
	mostLevels = 4
)

// A store holds the rows of both sides that are to be compared, shared out by key into parts of which one at
// a time is loaded. Parts are temporary files once they are more than memory holds.
type store struct {
	diff  *Diff
	level uint64     // of a part that was too large and is shared out anew
	parts [2][]*part // of the source, of the destination
	disk  bool       // not all is in memory
}

// A part is records in blocks: those not yet written, and behind them those in the file.
type part struct {
	block  []byte
	file   *tempfile.File // nil: all of it is in block
	out    *bufio.Writer
	packed []byte
	bytes  int64
}

func (d *Diff) memory() int64 {
	if d.Memory > 0 {
		return d.Memory
	}
	return defaultMemory
}

func newStore(d *Diff, size int64, level uint64) (*store, error) {
	memory := d.memory()
	n := 1
	s := &store{diff: d, level: level, disk: size > memory}
	if s.disk {
		n = mostParts
		if size < math.MaxInt64 {
			n = int(min(mostParts, 2*size/memory+1))
		}
	}
	for side := range s.parts {
		for range n {
			p := &part{}
			s.parts[side] = append(s.parts[side], p)
			if !s.disk {
				continue
			}
			var err error
			if p.file, err = tempfile.Create(d.Dir, "icepipe-diff-"); err != nil {
				return nil, errors.Join(fmt.Errorf("room for rows to compare: %w", err), s.close())
			}
			p.out = bufio.NewWriterSize(p.file, 4<<10)
		}
	}
	return s, nil
}

// close removes what the store has on disk.
func (s *store) close() error {
	var errs []error
	for _, side := range s.parts {
		for _, p := range side {
			if p.file != nil {
				errs = append(errs, p.file.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// fill reads both sides and keeps the rows of the buckets that differ. It gives the rows of each side.
func (s *store) fill(ctx context.Context, source, dest Side, differ func(uint16) bool) (n, m int64, err error) {
	one := func(side Side, parts []*part, n *int64) func(context.Context) error {
		return func(ctx context.Context) error {
			err := s.diff.each(ctx, side, func(key, row []byte) error {
				*n++
				if !differ(bucketOf(key)) {
					return nil
				}
				return s.partOf(parts, key).add(key, row)
			})
			for _, p := range parts {
				if err == nil {
					err = p.flush()
				}
			}
			return err
		}
	}
	err = Both(ctx, one(source, s.parts[0], &n), one(dest, s.parts[1], &m))
	return n, m, err
}

// partOf is the part that a key goes to; at another level it is another one.
func (s *store) partOf(parts []*part, key []byte) *part {
	return parts[xxh3.HashSeed(key, s.level+1)%uint64(len(parts))]
}

func (p *part) add(key, row []byte) error {
	p.bytes += int64(recordHead + len(key) + len(row))
	p.block = binary.BigEndian.AppendUint32(p.block, uint32(len(key)))
	p.block = binary.BigEndian.AppendUint32(p.block, uint32(len(row)))
	p.block = append(append(p.block, key...), row...)
	if p.file == nil || len(p.block) < blockBytes {
		return nil
	}
	return p.write()
}

// write packs the block and writes it.
func (p *part) write() error {
	p.packed = s2.Encode(p.packed[:cap(p.packed)], p.block)
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(p.packed)))
	p.block = p.block[:0]
	if _, err := p.out.Write(head[:]); err != nil {
		return err
	}
	_, err := p.out.Write(p.packed)
	return err
}

// flush writes what is left. The buffers are not needed any more.
func (p *part) flush() error {
	if p.file == nil {
		return nil
	}
	if len(p.block) > 0 {
		if err := p.write(); err != nil {
			return err
		}
	}
	err := p.out.Flush()
	p.block, p.packed, p.out = nil, nil, nil
	return err
}

// records calls f with every record; key and row are valid as long as f runs.
func (p *part) records(f func(key, row []byte) error) error {
	if p.file == nil {
		return recordsOf(p.block, f)
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(p.file, 64<<10)
	var packed, block []byte
	for {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		packed = slices.Grow(packed[:0], int(binary.BigEndian.Uint32(head[:])))[:binary.BigEndian.Uint32(head[:])]
		if _, err := io.ReadFull(in, packed); err != nil {
			return err
		}
		var err error
		if block, err = s2.Decode(block[:cap(block)], packed); err != nil {
			return err
		}
		if err := recordsOf(block, f); err != nil {
			return err
		}
	}
}

func recordsOf(block []byte, f func(key, row []byte) error) error {
	for len(block) > 0 {
		if len(block) < recordHead {
			return io.ErrUnexpectedEOF
		}
		k, r := int(binary.BigEndian.Uint32(block)), int(binary.BigEndian.Uint32(block[4:]))
		block = block[recordHead:]
		if len(block) < k+r {
			return io.ErrUnexpectedEOF
		}
		if err := f(block[:k], block[k:k+r]); err != nil {
			return err
		}
		block = block[k+r:]
	}
	return nil
}

// compare goes through the parts and tells the differences, by the order of their keys in each part.
func (s *store) compare(emit func(Difference) error) error {
	for i := range s.parts[0] {
		a, b := s.parts[0][i], s.parts[1][i]
		if a.file != nil && a.bytes+b.bytes > s.diff.memory() && s.level < mostLevels {
			if err := s.share(a, b, emit); err != nil {
				return err
			}
			continue
		}
		if err := s.comparePart(a, b, emit); err != nil {
			return err
		}
	}
	return nil
}

// share shares the records of a part that is too large out into smaller ones, and compares those.
func (s *store) share(a, b *part, emit func(Difference) error) (err error) {
	below, err := newStore(s.diff, a.bytes+b.bytes, s.level+1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, below.close()) }()
	for side, p := range []*part{a, b} {
		parts := below.parts[side]
		if err := p.records(func(key, row []byte) error { return below.partOf(parts, key).add(key, row) }); err != nil {
			return fmt.Errorf("rows to compare: %w", err)
		}
		for _, p := range parts {
			if err := p.flush(); err != nil {
				return fmt.Errorf("rows to compare: %w", err)
			}
		}
	}
	return below.compare(emit)
}

func (s *store) comparePart(a, b *part, emit func(Difference) error) error {
	rows := map[string]*group{}
	for side, p := range []*part{a, b} {
		err := p.records(func(key, row []byte) error {
			g := rows[string(key)]
			if g == nil {
				g = &group{}
				rows[string(key)] = g
			}
			g.add(side, row)
			return nil
		})
		if err != nil {
			return fmt.Errorf("rows to compare: %w", err)
		}
	}
	keys := make([]string, 0, len(rows))
	for k, g := range rows {
		if !g.agrees() {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		if err := rows[k].tell(s.diff, emit); err != nil {
			return err
		}
	}
	return nil
}
