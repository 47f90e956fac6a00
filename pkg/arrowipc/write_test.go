package arrowipc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/arrowipc"
	"icepipe/pkg/rows"
)

// Marks that contradict the rows or one another are refused at both ends.
func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(spans []rows.Span, seal *rows.Seal, h *rows.Header)
		want   string
	}{
		"gap":             {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].From.Row++ }, "the one before ends at"},
		"start":           {func(_ []rows.Span, _ *rows.Seal, h *rows.Header) { h.First.Row++ }, "the one before ends at"},
		"backwards":       {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[0].To.Row = 1 }, "before its start"},
		"count":           {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[0].Rows++ }, "keeps 4 rows, its record batch has 3"},
		"bitmap":          {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].Kept = []byte{0b11} }, "keeps 2 rows"},
		"bitmap length":   {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].Kept = []byte{0b10, 0} }, "bitmap of 2 bytes"},
		"bitmap tail":     {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].Kept = []byte{0b110} }, "bits behind"},
		"batch end":       {func(s []rows.Span, _ *rows.Seal, _ *rows.Header) { s[1].EndsBatch = false }, "crosses the end of a batch"},
		"seal rows":       {func(_ []rows.Span, s *rows.Seal, _ *rows.Header) { s.Rows-- }, "seal says 13 rows"},
		"seal rejects":    {func(_ []rows.Span, s *rows.Seal, _ *rows.Header) { s.Rejects = 0 }, "seal says 0 rejects"},
		"seal last":       {func(_ []rows.Span, s *rows.Seal, _ *rows.Header) { s.Last.Row++ }, "seal says that the stream ends"},
		"protocol":        {func(_ []rows.Span, _ *rows.Seal, h *rows.Header) { h.Protocol = 9 }, "protocol 9"},
		"unknown feature": {func(_ []rows.Span, _ *rows.Seal, h *rows.Header) { h.Requires = []string{"magic"} }, `requires "magic"`},
		"foreign":         {func(_ []rows.Span, _ *rows.Seal, h *rows.Header) { h.Foreign = true }, "another program"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			spans, in := script(), stream(t, mem)
			seal, _ := in.Seal()
			real := script()
			c.change(spans, &seal, &in.Header)
			in.Seal = func() (rows.Seal, error) { return seal, nil }
			in.Spans = func(yield func(rows.Span, error) bool) {
				for i, s := range spans {
					s.Batch = testBatch(t, mem, in.Schema, 0, left(real[i]))
					if !yield(s, nil) {
						return
					}
				}
			}
			var b bytes.Buffer
			_, err := arrowipc.Write(context.Background(), &b, in)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if got := read(t, b.Bytes()); !errors.Is(got.err, rows.ErrUnsealed) {
				t.Errorf("what was written reads as %v", got.err)
			}
		})
	}
}

// A stream whose source fails is not sealed, and neither is one whose source never was.
func TestWriteDoesNotSign(t *testing.T) {
	broken := errors.New("source broke")
	for name, change := range map[string]func(*rows.Stream){
		"error": func(in *rows.Stream) {
			spans := in.Spans
			in.Spans = func(yield func(rows.Span, error) bool) {
				n := 0
				for s, err := range spans {
					if n++; n == 3 {
						s.Release()
						yield(rows.Span{}, broken)
						return
					}
					if !yield(s, err) {
						return
					}
				}
			}
		},
		"unsealed": func(in *rows.Stream) {
			in.Seal = func() (rows.Seal, error) { return rows.Seal{}, broken }
		},
	} {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		in := stream(t, mem)
		change(&in)
		var b bytes.Buffer
		if _, err := arrowipc.Write(context.Background(), &b, in); !errors.Is(err, broken) {
			t.Errorf("%s: Write: %v", name, err)
		}
		if got := read(t, b.Bytes()); !errors.Is(got.err, rows.ErrUnsealed) {
			t.Errorf("%s: read as %v", name, got.err)
		}
		mem.AssertSize(t, 0)
	}
}

// A writer that fails at its k-th byte gives its error, and frees what it holds.
func TestWriteFailsAnywhere(t *testing.T) {
	whole := len(written(t))
	for n := 0; n < whole; n += 97 {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		w := &short{left: n}
		if _, err := arrowipc.Write(context.Background(), w, stream(t, mem), arrowipc.WithWriteAllocator(mem)); !errors.Is(err, errShort) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		mem.AssertSize(t, 0)
	}
}

var errShort = errors.New("no space left")

type short struct{ left int }

func (s *short) Write(p []byte) (int, error) {
	if len(p) > s.left {
		n := s.left
		s.left = 0
		return n, errShort
	}
	s.left -= len(p)
	return len(p), nil
}

func TestWriteOptions(t *testing.T) {
	in := stream(t, memory.DefaultAllocator)
	if _, err := arrowipc.Write(context.Background(), io.Discard, in, arrowipc.WithCompression("gzip")); err == nil || !strings.Contains(err.Error(), `"gzip"`) {
		t.Errorf("gzip: %v", err)
	}
	in.Schema = arrow.NewSchema([]arrow.Field{{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}}}, nil)
	if _, err := arrowipc.Write(context.Background(), io.Discard, in); err == nil || !strings.Contains(err.Error(), `"d"`) {
		t.Errorf("dictionary: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := arrowipc.Write(ctx, io.Discard, stream(t, memory.DefaultAllocator)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Promises are opened before they are sent.
func TestWriteOpensSpans(t *testing.T) {
	want := collect(t, stream(t, memory.DefaultAllocator))
	in := stream(t, memory.DefaultAllocator)
	inner := in.Spans
	in.Spans = func(yield func(rows.Span, error) bool) {
		yield(rows.Span{Read: func(context.Context) iter.Seq2[rows.Span, error] { return inner }}, nil)
	}
	var b bytes.Buffer
	if _, err := arrowipc.Write(context.Background(), &b, in); err != nil {
		t.Fatal(err)
	}
	compare(t, read(t, b.Bytes()), want)
}

// The reader goes on as soon as it may: it has span k before the writer is asked for span k+2.
func TestFlushes(t *testing.T) {
	pr, pw := io.Pipe()
	step := make(chan struct{})
	in := stream(t, memory.DefaultAllocator)
	inner := in.Spans
	in.Spans = func(yield func(rows.Span, error) bool) {
		n := 0
		for s, err := range inner {
			if n++; n > 2 {
				<-step
			}
			if !yield(s, err) {
				return
			}
		}
	}
	done := make(chan error)
	go func() {
		_, err := arrowipc.Write(context.Background(), pw, in)
		pw.CloseWithError(err)
		done <- err
	}()
	out, err := arrowipc.Read(pr)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for s, err := range out.Spans {
		if err != nil {
			t.Fatal(err)
		}
		s.Release()
		if n++; n <= len(script())-2 {
			step <- struct{}{}
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
