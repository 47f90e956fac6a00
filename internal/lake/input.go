package lake

import (
	"os"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/datafile"
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
	for g, group := range footer.RowGroups {
		for i, c := range group.Columns { // of which there may be more than the schema has
			if c.MetaData == nil {
				continue // it is encrypted
			}
			if off, err := datafile.PagesStart(footer, g, i); err == nil {
				chunks = append(chunks, readahead.Range{Off: off, End: off + c.MetaData.TotalCompressedSize})
			}
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
