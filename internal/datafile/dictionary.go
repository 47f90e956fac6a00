package datafile

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// The library decodes a dictionary as far as it is asked for, and has it grow as larger indexes come: one of a hundred
// thousand values is copied some ten times over. Asked for its last value first it is decoded in one go.

// largeDictionary is from how many values on that is worth a page.
const largeDictionary = 1024

// openChunk begins to read a flat leaf of a row group. A row that comes while asked.now is there is none of the chunk's,
// but the last value of its dictionary.
func openChunk(reader *file.Reader, group, leaf int) (chunk file.ColumnChunkReader, asked *lastFirst, err error) {
	pages, err := reader.RowGroup(group).GetColumnPageReader(leaf)
	if err != nil {
		return nil, nil, err
	}
	col := reader.MetaData().Schema.Column(leaf)
	asked = &lastFirst{PageReader: pages, col: col}
	return file.NewColumnReader(col, asked, memory.DefaultAllocator, reader.BufferPool()), asked, nil
}

// lastFirst reads the pages of a chunk, and behind a large dictionary puts a data page of one row, its last value.
type lastFirst struct {
	file.PageReader
	col  *schema.Column
	next file.Page // comes before those of the file; nil for none
	now  file.Page // that one, while it is the current page
}

// Next implements file.PageReader.
func (l *lastFirst) Next() bool {
	if l.next != nil {
		l.now, l.next = l.next, nil
		return true
	}
	l.now = nil
	if !l.PageReader.Next() {
		return false
	}
	if d, ok := l.PageReader.Page().(*file.DictionaryPage); ok && d.NumValues() >= largeDictionary {
		l.next = l.page(d.NumValues() - 1)
	}
	return true
}

// Page implements file.PageReader.
func (l *lastFirst) Page() file.Page {
	if l.now != nil {
		return l.now
	}
	return l.PageReader.Page()
}

// page is a data page of one row, which is the dictionary's value at index.
func (l *lastFirst) page(index int32) file.Page {
	var text []byte
	if l.col.MaxDefinitionLevel() > 0 {
		level := []byte{1 << 1, byte(l.col.MaxDefinitionLevel())} // a run of one
		text = append(binary.LittleEndian.AppendUint32(nil, uint32(len(level))), level...)
	}
	width := bits.Len32(uint32(index))
	text = append(text, byte(width), 1<<1) // a run of one
	text = append(text, binary.LittleEndian.AppendUint32(nil, uint32(index))[:(width+7)/8]...)
	return file.NewDataPageV1(memory.NewBufferBytes(text), 1, parquet.Encodings.RLEDict, parquet.Encodings.RLE, parquet.Encodings.RLE, int32(len(text)))
}
