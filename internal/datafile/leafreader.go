package datafile

import (
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
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
	hint   hint

	mu     sync.Mutex
	turned sync.Cond
	at     int64 // whose turn it is: rows before it are taken, or not wanted
	failed error

	// Of the goroutine whose turn it is.
	chunk   file.ColumnChunkReader // nil before the first row
	pos     int64                  // rows that were read
	decoded decoded
}

// newLeafReader returns a reader of which nobody wants the rows before first.
func newLeafReader(source *Source, group, leaf int, to conversion, most decimalBound, first int64) *leafReader {
	r := &leafReader{source: source, group: group, leaf: leaf, to: to, most: most, at: first,
		col: source.Reader.MetaData().Schema.Column(leaf)}
	r.turned.L = &r.mu
	return r
}

// take hands rows from to from+n to put, in as many goes as it takes. What it hands over is valid until
// put returns.
func (r *leafReader) take(from, n int64, put func(*decoded) error) (err error) {
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
		if p := recover(); p != nil { // the library takes what a page says of itself for granted
			err = r.wrap(fmt.Errorf("it is damaged: %v", p))
		}
		if err != nil {
			r.fail(err)
			return
		}
		r.mu.Lock()
		r.at = from + n
		r.turned.Broadcast()
		r.mu.Unlock()
	}()
	if r.chunk == nil {
		if r.chunk, err = r.source.Reader.RowGroup(r.group).Column(r.leaf); err != nil {
			return r.wrap(err)
		}
	}
	if err := r.read(from-r.pos, nil); err != nil {
		return err
	}
	return r.read(n, put)
}

// read reads n rows; without put they are dropped.
func (r *leafReader) read(n int64, put func(*decoded) error) error {
	for n > 0 {
		if !r.chunk.HasNext() {
			err := r.chunk.Err()
			if err == nil {
				err = fmt.Errorf("%d rows are missing at its end: the file is cut short or damaged", n)
			}
			return r.wrap(err)
		}
		rows, err := r.decoded.read(r.chunk, min(n, readLevels), int(r.col.MaxDefinitionLevel()) > 0)
		if err != nil {
			return r.wrap(err)
		}
		n -= rows
		r.pos += rows
		if put == nil {
			continue
		}
		if err := r.decoded.convert(r.to, r.col, r.most); err != nil {
			return r.wrap(err)
		}
		if err := put(&r.decoded); err != nil {
			return err
		}
	}
	return nil
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
