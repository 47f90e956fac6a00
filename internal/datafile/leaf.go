package datafile

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// writeRows is how many levels are handed to the library at most in one call. It looks at the page's
// size and at the worth of the dictionary after each call: too few, and a dictionary that would
// pay is given up on its first values.
const writeRows = 20000

// plainChunks is how many chunks of a leaf are written without trying a dictionary after one that gave
// its dictionary up: values that were distinct go on to be, and to hash them is a fourth of the time.
const plainChunks = 15

// leafEncoder makes chunks of one leaf. Its buffers stay for the next chunk.
type leafEncoder struct {
	leaf  *Leaf
	index int
	w     file.ColumnChunkWriter // nil: no chunk is open
	meta  *metadata.ColumnChunkMetaDataBuilder
	sink  *Sink
	pages *pager
	plain int // chunks to come without a dictionary
	nans  int64
	begun bool // the chunk has values
	hint  hint // what the source of the values teaches

	packed *bytes.Buffer // in which pages are compressed, of whoever encodes; nil: one of the chunk's own

	pageRows int   // rows in the open page
	pageSeen int64 // bytes of finished pages when last looked

	i32   []int32
	i64   []int64
	f32   []float32
	f64   []float64
	bits  []bool
	bytes []parquet.ByteArray
	fixed []parquet.FixedLenByteArray
	slab  []byte
}

func (l *leafEncoder) open() error {
	l.sink = &Sink{}
	path := l.leaf.Col.Path()
	props := l.leaf.Props
	if l.plain > 0 || l.hint == noDictionary {
		props = l.leaf.plain
	}
	l.meta = metadata.NewColumnChunkMetaDataBuilder(props, l.leaf.Col)
	pw, err := file.NewPageWriter(l.sink, props.CompressionFor(path), props.CompressionLevelFor(path), l.meta, 0, int16(l.index), memory.DefaultAllocator, false, nil, nil)
	if err != nil {
		return err
	}
	l.pages = &pager{PageWriter: pw, leaf: l, sink: l.sink}
	l.w = file.NewColumnChunkWriter(l.meta, l.pages, props)
	l.nans, l.begun, l.pageRows, l.pageSeen = 0, false, 0, 0
	return nil
}

// finish ends the open chunk, which then is the caller's.
func (l *leafEncoder) finish(rows int64) (Chunk, error) {
	if err := l.w.Close(); err != nil {
		return Chunk{}, err
	}
	l.w = nil
	if l.plain > 0 {
		l.plain--
	} else if l.pages.gaveUp {
		l.plain = plainChunks
	}
	return Chunk{Leaf: l.index, Rows: rows, NaNs: l.nans, meta: l.meta, base: sinkBase, body: l.sink}, nil
}

// discard gives an unfinished chunk up.
func (l *leafEncoder) discard() {
	if l.w == nil {
		return
	}
	// Not closed: that would write a dictionary, of which the library asserts that it is not empty. The
	// writer holds nothing but memory of Go's heap.
	l.sink.Release()
	l.w = nil
}

// put writes the values that v means with their levels; def and rep are nil where the leaf has none.
// Every value that v means is there, and def has as many at the leaf's own level.
func (l *leafEncoder) put(arr arrow.Array, v span, def, rep []int16) error {
	size, err := sizes(arr)
	if err != nil {
		return fmt.Errorf("column %q: %w", l.leaf.Name, err)
	}
	return l.each(size, v, def, rep, func(v span, def, rep []int16) error { return l.write(arr, v, def, rep) })
}

// putDecoded writes what was read of a leaf.
func (l *leafEncoder) putDecoded(d *decoded, def, rep []int16) error {
	return l.each(d.sizes(l.w.Type()), rowsOf(0, d.values), def, rep, func(v span, def, rep []int16) error { return l.writeDecoded(d, v, def, rep) })
}

// each hands values to write in runs that pages hold.
func (l *leafEncoder) each(size valueSizes, v span, def, rep []int16, write func(v span, def, rep []int16) error) error {
	levels := len(def)
	if def == nil {
		levels = v.n
	}
	for at, val := 0, 0; at < levels; {
		d, r := tail(def, at), tail(rep, at)
		k, nv, rows := l.cut(size, v.sub(val, v.n-val), levels-at, d, r)
		if err := write(v.sub(val, nv), head(d, k), head(r, k)); err != nil {
			return fmt.Errorf("column %q: %w", l.leaf.Name, err)
		}
		if err := l.endPage(rows); err != nil {
			return fmt.Errorf("column %q: %w", l.leaf.Name, err)
		}
		at, val = at+k, val+nv
	}
	return nil
}

func tail(s []int16, i int) []int16 {
	if s == nil {
		return nil
	}
	return s[i:]
}

func head(s []int16, n int) []int16 {
	if s == nil {
		return nil
	}
	return s[:n:n]
}

// cut says how many levels to hand over in one call, how many values and rows that is: whole rows, at
// least one, as many as a page may hold.
func (l *leafEncoder) cut(size valueSizes, v span, levels int, def, rep []int16) (k, nv, rows int) {
	most := writeRows
	if l.leaf.pageRows > 0 {
		most = min(most, l.leaf.pageRows-l.pageRows)
	}
	room := l.leaf.pageSize
	if !l.begun {
		// The library weighs the worth of the dictionary after each call, but only until the
		// first page is full.
		room /= 2
		l.begun = true
	}
	full := l.leaf.Col.MaxDefinitionLevel()
	if rep == nil && size.width > 0 {
		k = min(levels, most, max(1, room/size.width))
		nv = k
		if def != nil {
			nv = 0
			for _, d := range def[:k] {
				if d == full {
					nv++
				}
			}
		}
		return k, nv, k
	}
	for k < levels {
		if rep == nil || rep[k] == 0 {
			if rows == most || k >= writeRows || room <= 0 {
				break
			}
			rows++
		}
		if def == nil || def[k] == full {
			room -= size.at(v.at(nv))
			nv++
		}
		k++
	}
	return k, nv, rows
}

// endPage ends the page when it has as many rows as the table allows.
func (l *leafEncoder) endPage(rows int) error {
	if l.leaf.pageRows == 0 {
		return nil
	}
	l.pageRows += rows
	if done := l.w.TotalCompressedBytes(); done != l.pageSeen {
		l.pageRows, l.pageSeen = 0, done
	}
	if l.pageRows < l.leaf.pageRows {
		return nil
	}
	if err := l.w.(interface{ FlushCurrentPage() error }).FlushCurrentPage(); err != nil {
		return err
	}
	l.pageRows, l.pageSeen = 0, l.w.TotalCompressedBytes()
	return nil
}
