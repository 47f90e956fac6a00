package datafile

import (
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/parquet/file"
)

// A Source is an open Parquet file. It is counted, since spans that wait to be written lie in it after
// the scan has gone on: the last Release closes the file. Several goroutines may read it.
type Source struct {
	Path   string // as the table's manifest has it
	Reader *file.Reader
	at     io.ReaderAt // the same bytes
	refs   atomic.Int64
}

// NewSource returns a Source that its caller holds once. It owns the reader, which reads at and closes it; a local
// file is an *os.File.
func NewSource(path string, reader *file.Reader, at io.ReaderAt) *Source {
	reader.MetaData().WriterVersion() // is worked out when it is first asked for, which several may at once
	s := &Source{Path: path, Reader: reader, at: at}
	s.refs.Store(1)
	return s
}

// Retain adds a holder.
func (s *Source) Retain() { s.refs.Add(1) }

// Release takes a holder away. The file was opened for reading, so that closing it can lose nothing.
func (s *Source) Release() {
	if s.refs.Add(-1) == 0 {
		_ = s.Reader.Close()
	}
}
