package lake

import (
	"os"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/readahead"
)

// An input is a Parquet file that is read ahead where it is remote: the kernel does so with local ones.
type input struct {
	iceio.File
	ahead *readahead.File // nil: it is read as it is asked for
}

// readAhead has the column chunks that a footer tells of read ahead.
func (in *input) readAhead(footer *metadata.FileMetaData) {
	if _, local := in.File.(*os.File); local {
		return
	}
	var chunks []readahead.Range
	for g := range footer.NumRowGroups() {
		group := footer.RowGroup(g)
		for i := range min(group.NumColumns(), footer.Schema.NumColumns()) { // the footer may name more than there are
			c, err := group.ColumnChunk(i)
			if err != nil {
				continue // who reads it is told
			}
			off := c.DataPageOffset()
			if dictionary := c.DictionaryPageOffset(); c.HasDictionaryPage() && dictionary > 0 {
				off = min(off, dictionary)
			}
			chunks = append(chunks, readahead.Range{Off: off, End: off + c.TotalCompressedSize()})
		}
	}
	in.ahead = readahead.New(in.File, chunks, footer.Schema.NumColumns())
}

// ReadAt implements io.ReaderAt.
func (in *input) ReadAt(p []byte, off int64) (int, error) {
	if in.ahead == nil {
		return in.File.ReadAt(p, off)
	}
	return in.ahead.ReadAt(p, off)
}

// Close implements io.Closer.
func (in *input) Close() error {
	if in.ahead != nil {
		in.ahead.Close()
	}
	return in.File.Close()
}
