package datafile

import (
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"icepipe/pkg/rows"
)

// readLevels is how many rows of a column are decoded at a time.
const readLevels = 16 << 10

// A leafReader hands on the values of one flat leaf of one row group, from its first row to its last.
// Those who take them may be several goroutines; each waits until the rows before its own are taken.
type leafReader struct {
	source *Source
	group  int
	leaf   int // of the file
	col    *schema.Column
	to     conversion
	most   decimalBound // of a decimal
	mask   rows.Mask    // of the row group: the rows that are handed on
	hint   hint

	mu     sync.Mutex
	turned sync.Cond
	at     int64 // whose turn it is: rows before it are taken, or not wanted
	failed error

	// Of the goroutine whose turn it is.
	chunk file.ColumnChunkReader // nil before the first row
	pos   int64                  // rows that were read
}

// newLeafReader returns a reader of a part's leaf, of which nobody wants the rows before the part.
func newLeafReader(part *rows.Part, leaf int, to conversion, most decimalBound) *leafReader {
	source := part.File.(*Source)
	r := &leafReader{source: source, group: part.Ordinal, leaf: leaf, to: to, most: most, mask: part.Mask, at: part.From,
		col: source.Reader.MetaData().Schema.Column(leaf)}
	r.turned.L = &r.mu
	return r
}

// take hands what the mask has of rows from to from+n to put, in as many goes as it takes, by way of d. What it hands
// over is valid until put returns.
func (r *leafReader) take(from, n int64, d *decoded, put func(*decoded) error) (err error) {
	r.mu.Lock()
	for r.at < from && r.failed == nil {
		r.turned.Wait()
	}
	err = r.failed
	r.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.fail(err)
			return
		}
		r.mu.Lock()
		r.at = from + n
		r.turned.Broadcast()
		r.mu.Unlock()
	}()
	if err := r.read(from-r.pos, d, nil); err != nil {
		return err
	}
	return r.read(n, d, put)
}

// read reads n rows; without put they are dropped.
func (r *leafReader) read(n int64, d *decoded, put func(*decoded) error) error {
	for n > 0 {
		k, err := r.next(min(n, readLevels), d)
		if err != nil {
			return r.wrap(err)
		}
		n -= k
		r.pos += k
		if put == nil || !d.keep(r.mask, r.pos-k) {
			continue
		}
		if err := d.convert(r.to, r.col, r.most); err != nil {
			return r.wrap(err)
		}
		if err := put(d); err != nil {
			return err
		}
	}
	return nil
}

// next reads n rows at most into d.
func (r *leafReader) next(n int64, d *decoded) (k int64, err error) {
	defer func() {
		if p := recover(); p != nil { // the library takes what a page says of itself for granted
			err = fmt.Errorf("it is damaged: %v", p)
		}
	}()
	if r.chunk == nil {
		if r.chunk, err = r.source.Reader.RowGroup(r.group).Column(r.leaf); err != nil {
			return 0, err
		}
	}
	if !r.chunk.HasNext() {
		if err := r.chunk.Err(); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("it ends after %d rows: the file is cut short or damaged", r.pos)
	}
	return d.read(r.chunk, n, r.col.MaxDefinitionLevel() > 0)
}

func (r *leafReader) wrap(err error) error {
	return fmt.Errorf("file %q, row group %d, column %q: %w", r.source.Path, r.group, r.col.Path(), err)
}

// fail tells those who wait that the rows before theirs will not be taken.
func (r *leafReader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
	r.turned.Broadcast()
}

func (r *leafReader) close() {
	if r.chunk != nil {
		_ = r.chunk.Close()
	}
}
