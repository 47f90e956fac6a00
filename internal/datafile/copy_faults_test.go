package datafile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/iceberg-go"
)

// compact writes a struct of Thrift's compact protocol, whose fields come by number: integers, byte strings, structs.
func compact(fields ...any) []byte {
	var b []byte
	for i, f := range fields {
		switch f := f.(type) {
		case nil:
			continue
		case int:
			b = binary.AppendUvarint(append(b, compactI32, byte(2*(i+1))), uint64(uint32(f<<1)^uint32(int32(f)>>31)))
		case string:
			b = append(binary.AppendUvarint(append(b, compactBinary, byte(2*(i+1))), uint64(len(f))), f...)
		case []byte:
			b = append(append(b, compactStruct, byte(2*(i+1))), f...)
		}
	}
	return append(b, 0)
}

// page is a page with its header; wrong is added to its checksum.
func page(kind, values, encoding int, body string, checksum bool, wrong int) []byte {
	var crc any
	if checksum {
		crc = int(int32(crc32.ChecksumIEEE([]byte(body)))) + wrong
	}
	of := compact(values, encoding, 3, 3, compact(nil, nil, 0, nil, strings.Repeat("max", 200)))
	switch kind {
	case dictionaryPage:
		return append(compact(kind, 2*len(body), len(body), crc, nil, nil, compact(values, encoding)), body...)
	case dataPageV2:
		return append(compact(kind, 2*len(body), len(body), crc, nil, nil, nil, compact(values, 0, values, encoding, 1, 1)), body...)
	}
	return append(compact(kind, 2*len(body), len(body), crc, of), body...)
}

// TestPages: pages are taken for what they are, and what is not a chunk's pages is told.
func TestPages(t *testing.T) {
	dictionary, first, second := page(dictionaryPage, 3, 0, "abc", true, 0), page(dataPage, 4, 8, "data of a page", true, 0), page(dataPageV2, 6, 0, "more data", false, 0)
	for _, tt := range []struct {
		name  string
		pages [][]byte
		more  int64 // bytes that the footer says beyond them
		want  string
	}{
		{"all kinds", [][]byte{dictionary, first, second}, 0, ""},
		{"wrong checksum", [][]byte{dictionary, page(dataPage, 4, 8, "data of a page", true, 1), second}, 0, "page 1 at byte"},
		{"another dictionary", [][]byte{dictionary, first, dictionary, second}, 0, "a dictionary behind other pages"},
		{"a page is missing", [][]byte{dictionary, second}, 0, "6 values, the footer says"},
		{"cut short", [][]byte{dictionary, first, second}, 5, "cut short"},
		{"not a header", [][]byte{dictionary, first, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}, 0, "damaged"},
		{"larger than the chunk", [][]byte{compact(0, 10, 1000, nil, compact(10, 0, 3, 3))}, 0, "has 1000 bytes, the column"},
		{"unknown encoding", [][]byte{page(dataPage, 10, 77, "x", false, 0)}, 0, "encoding 77 is not known"},
		{"unknown kind", [][]byte{compact(9, 1, 0)}, 0, "a page of kind 9"},
		{"levels beyond the page", [][]byte{append(compact(3, 1, 1, nil, nil, nil, nil, compact(10, 0, 10, 0, 1, 1)), 'x')}, 0, "damaged"},
		{"endless nesting", [][]byte{bytes.Repeat([]byte{0x9c}, 100)}, 0, "damaged"},
	} {
		text := bytes.Join(tt.pages, nil)
		p := promised{size: int64(len(text)) + tt.more, values: 10}
		r := &fileRange{source: &Source{Path: "p", at: bytes.NewReader(text)}, promised: p, stop: func() error { return nil }}
		var out bytes.Buffer
		_, streamed := r.copy(&out)
		if streamed == nil && !bytes.Equal(out.Bytes(), text) {
			t.Errorf("%s: other bytes were copied", tt.name)
		}
		jumped := walkPages(&jumper{at: bytes.NewReader(text), end: p.size}, p)
		for way, err := range map[string]error{"streamed": streamed, "jumped": jumped} {
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(fmt.Sprint(cut(err)), tt.want)) {
				t.Errorf("%s, %s: %v, want %q", tt.name, way, err, tt.want)
			}
		}
	}
}

// FuzzPageHead: no bytes make a header's reader panic, hang or read more than there is.
func FuzzPageHead(f *testing.F) {
	f.Add(page(dataPage, 4, 8, "x", true, 0))
	f.Add(page(dataPageV2, 4, 8, "x", false, 0))
	f.Add([]byte{0x19, 0xfc, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, text []byte) {
		in := bytes.NewReader(text)
		if h, err := readPageHead(in); err == nil && (h.compressed < 0 || h.kind < 0 || h.levels < 0) {
			t.Errorf("%+v", h)
		}
	})
}

func copySource(t *testing.T, schema *iceberg.Schema, text string, props ...parquet.WriterProperty) *Source {
	t.Helper()
	rb := batchOf(t, memory.DefaultAllocator, schema, text)
	defer rb.Release()
	return localSource(t, rb, 1000, props...)
}

// TestCopyDamaged: a file that is cut short after it was opened, or whose pages are not what the footer says, ends the
// batch with file, row group and column in one line.
func TestCopyDamaged(t *testing.T) {
	for name, hurt := range map[string]func(t *testing.T, s *Source){
		"cut short": func(t *testing.T, s *Source) {
			if err := os.Truncate(s.Path, s.Reader.MetaData().RowGroups[0].Columns[1].MetaData.DataPageOffset+3); err != nil {
				t.Fatal(err)
			}
		},
		"garbage": func(t *testing.T, s *Source) {
			f, err := os.OpenFile(s.Path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(bytes.Repeat([]byte{0xee}, 20), s.Reader.MetaData().RowGroups[0].Columns[1].MetaData.DataPageOffset); err != nil {
				t.Fatal(err)
			}
		},
		"other counts": func(t *testing.T, s *Source) {
			m := s.Reader.MetaData().RowGroups[0].Columns[1].MetaData
			m.DataPageOffset -= 3
			if m.DictionaryPageOffset != nil {
				*m.DictionaryPageOffset -= 3
			}
		},
	} {
		for _, stream := range []bool{false, true} {
			source := copySource(t, idText, manyRows(0, 500))
			if hurt(t, source); stream {
				source.at = struct{ io.ReaderAt }{source.at}
			}
			cfg := copyConfig(t, idText, nil)
			_, _, err := copyAll(t, newWriter(t, cfg), source, idText)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("copy from file %q, row group 0, column ", source.Path)) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestOddOffsets: a dictionary at 0 is none, and offsets and sizes outside of the file are not followed.
func TestOddOffsets(t *testing.T) {
	zero, far := int64(0), int64(1<<40)
	for _, tt := range []struct {
		name string
		with func(s *Source)
		want string // "" is copied
	}{
		{"dictionary at 0", func(s *Source) { s.Reader.MetaData().RowGroups[0].Columns[0].MetaData.DictionaryPageOffset = &zero }, ""},
		{"dictionary behind", func(s *Source) { s.Reader.MetaData().RowGroups[0].Columns[0].MetaData.DictionaryPageOffset = &far }, "its dictionary lies behind its pages"},
		{"pages at 0", func(s *Source) { s.Reader.MetaData().RowGroups[0].Columns[0].MetaData.DataPageOffset = 0 }, "do not lie in the file"},
		{"pages behind", func(s *Source) { s.Reader.MetaData().RowGroups[0].Columns[0].MetaData.TotalCompressedSize = far }, "do not lie in the file"},
		{"fewer values", func(s *Source) { s.Reader.MetaData().RowGroups[0].Columns[0].MetaData.NumValues-- }, "it has 499 values"},
		{"no metadata", func(s *Source) { s.Reader.MetaData().RowGroups[0].Columns[0].MetaData = nil }, "it is encrypted"},
		{"another type", func(s *Source) { s.Reader.MetaData().RowGroups[0].Columns[0].MetaData.Type++ }, "two types"},
		{"LZO", func(s *Source) { s.Reader.MetaData().RowGroups[0].Columns[0].MetaData.Codec = 3 }, "codec LZO is not known"},
		{"elsewhere", func(s *Source) { name := "x"; s.Reader.MetaData().RowGroups[0].Columns[0].FilePath = &name }, "in another file"},
	} {
		source := copySource(t, idText, manyRows(0, 500), parquet.WithDictionaryDefault(false))
		tt.with(source)
		files, _, err := copyAll(t, newWriter(t, copyConfig(t, idText, nil)), source, idText)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		checkLeftOut(t, files[0])
		if n := len(everyRow(t, files)["id"]); n != 500 {
			t.Errorf("%s: %d rows", tt.name, n)
		}
	}
}

// TestCopyFailsAtAnyByte: a store that takes no more ends the batch, wherever that is.
func TestCopyFailsAtAnyByte(t *testing.T) {
	source := copySource(t, idText, manyRows(0, 3000), parquet.WithCompression(compress.Codecs.Uncompressed))
	failsAtAnyByte(t, copyConfig(t, idText, nil), 7000, func(w *Writer) error {
		_, _, err := copyAll(t, w, source, idText)
		return err
	})
}

// TestCopyGivenUp: a batch that is given up while chunks are copied copies no more, and lets the source go.
func TestCopyGivenUp(t *testing.T) {
	source := copySource(t, idText, manyRows(0, 500))
	stopped := errors.New("stopped")
	for _, at := range []io.ReaderAt{source.at, struct{ io.ReaderAt }{source.at}} {
		source.at = at
		c := copiedChunk(source, 0, 0, &Leaf{Col: source.Reader.MetaData().Schema.Column(0), Props: parquet.NewWriterProperties()}, 0, func() error { return stopped })
		if _, err := c.body.WriteTo(io.Discard); !errors.Is(err, stopped) {
			t.Errorf("error %v", err)
		}
		c.Release()
	}
	w := newWriter(t, copyConfig(t, idText, nil))
	if err := w.Take(t.Context(), partOf(source, idText, 0)); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if n := source.refs.Load(); n != 1 {
		t.Errorf("%d hold the source after Abort", n)
	}
}
