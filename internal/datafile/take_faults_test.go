package datafile

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"icepipe/pkg/rows"
)

// TestTakeDamaged: a file with a damaged byte in its pages is an error that names file, row group and column, or
// reads as some values; it never ends the process, hangs, or leaves its file open.
func TestTakeDamaged(t *testing.T) {
	rb := flatBatch(t, 200)
	defer rb.Release()
	var b bytes.Buffer
	tbl := array.NewTableFromRecords(rb.Schema(), []arrow.RecordBatch{rb})
	defer tbl.Release()
	if err := pqarrow.WriteTable(tbl, &b, 120, parquet.NewWriterProperties(parquet.WithDataPageSize(100)), pqarrow.DefaultWriterProps()); err != nil {
		t.Fatal(err)
	}
	footer := b.Len() - 8 - int(b.Bytes()[b.Len()-8]) - int(b.Bytes()[b.Len()-7])<<8
	rnd := rand.New(rand.NewPCG(1, 2))
	failures, tries := 0, 150
	if testing.Short() {
		tries = 30
	}
	for range tries {
		text := bytes.Clone(b.Bytes())
		text[4+rnd.IntN(footer-4)] ^= byte(1 + rnd.IntN(255))
		_, err := takeAll(t, newWriter(t, config(t, flat(), nil)), opened(t, text), leavesInOrder(16), 50)
		if err == nil {
			continue
		}
		failures++
		if s := err.Error(); !strings.Contains(s, `file "source.parquet", row group `) && !strings.Contains(s, "does not fit") || strings.Contains(s, "\n") {
			t.Errorf("error %q", s)
		}
	}
	if failures < tries/15 {
		t.Errorf("%d of %d damaged files were noticed", failures, tries)
	}
}

// TestTakeAborted: a batch that is given up leaves nothing behind, and the Writer goes on with another row
// group, or the rest of the same.
func TestTakeAborted(t *testing.T) {
	rb := flatBatch(t, 500)
	defer rb.Release()
	source := sourceOf(t, rb, 500)
	w := newWriter(t, config(t, flat(), nil))
	part := func(from, n int64) *rows.Part {
		return &rows.Part{Path: source.Path, GroupRows: 500, From: from, To: from + n, File: source, Leaves: leavesInOrder(16)}
	}
	if err := w.Take(t.Context(), part(0, 100)); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if n := source.refs.Load(); n != 1 {
		t.Errorf("%d hold the source after Abort", n)
	}
	if err := w.Take(t.Context(), part(450, 50)); err != nil {
		t.Fatal(err)
	}
	files, err := w.Finish(t.Context())
	if err != nil || len(files) != 1 || files[0].Count() != 50 {
		t.Fatalf("%v, %v", files, err)
	}
	sameColumn(t, "id", readColumns(t, files[0])["id"], jsonValues(t, rb.Column(0))[450:])
}
