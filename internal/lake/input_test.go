package lake

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	iceio "github.com/apache/iceberg-go/io"
)

// memoryFile is a Parquet file that is no local one.
type memoryFile struct {
	iceio.File
	*bytes.Reader
}

func (f memoryFile) Read(p []byte) (int, error)                { return f.Reader.Read(p) }
func (f memoryFile) ReadAt(p []byte, off int64) (int, error)   { return f.Reader.ReadAt(p, off) }
func (f memoryFile) Seek(off int64, whence int) (int64, error) { return f.Reader.Seek(off, whence) }

// memoryFiles opens one text, whatever the name.
type memoryFiles struct {
	iceio.IO
	text []byte
}

func (m memoryFiles) Open(string) (iceio.File, error) {
	return memoryFile{Reader: bytes.NewReader(m.text)}, nil
}

// A footer of a remote file with more column chunks than columns is not looked at beyond these.
func TestFooterWithMoreChunks(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	whole, err := os.ReadFile(local(t, parquetFile(t, tbl, arrowOf(t, tbl.Schema(), true), nil, ids(1, 3))))
	if err != nil {
		t.Fatal(err)
	}
	r, err := file.NewParquetReader(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	footer := r.MetaData()
	footer.RowGroups[0].Columns = append(footer.RowGroups[0].Columns, footer.RowGroups[0].Columns[0])
	end := len(whole) - 8
	text := bytes.NewBuffer(bytes.Clone(whole[:end-int(binary.LittleEndian.Uint32(whole[end:]))]))
	n, err := footer.WriteTo(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	text.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
	text.WriteString("PAR1")
	if _, err := openSource(t.Context(), memoryFiles{text: text.Bytes()}, "s3://b/x.parquet", r.NumRows(), memory.DefaultAllocator); err != nil {
		t.Error(err)
	}
}
