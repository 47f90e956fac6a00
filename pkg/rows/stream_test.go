package rows_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/rows"
)

var schema = arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)

func record(mem memory.Allocator, values ...int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues(values, nil)
	return b.NewRecordBatch()
}

var errRead = errors.New("cannot be read")

// A source makes streams of spans of one row each, some of them promises of three, and counts what is read
// and whether the producer has ended.
type source struct {
	mem    memory.Allocator
	spans  int
	fails  int // at the span of that number, -1 never
	opened atomic.Int64
	held   atomic.Int64 // parts that nobody has released
	ended  atomic.Bool
	whole  bool
}

// Retain and Release count the holders of the file that all parts lie in.
func (s *source) Retain()  { s.held.Add(1) }
func (s *source) Release() { s.held.Add(-1) }

func (s *source) stream() rows.Stream {
	return rows.Stream{Schema: schema, Spans: s.all, Seal: func() (rows.Seal, error) {
		if !s.whole {
			return rows.Seal{}, rows.ErrUnsealed
		}
		return rows.Seal{Rows: int64(3 * s.spans)}, nil
	}}
}

func (s *source) all(yield func(rows.Span, error) bool) {
	defer s.ended.Store(true)
	for i := range s.spans {
		at := rows.Cursor{RowGroup: i}
		if i == s.fails {
			yield(rows.Span{}, errRead)
			return
		}
		span := rows.Span{From: at, To: at.Advance(3), Rows: 3, EndsBatch: i%2 == 1}
		if i%2 == 0 {
			span.Batch = record(s.mem, int64(3*i), int64(3*i+1), int64(3*i+2))
		} else {
			s.Retain()
			span.Part, span.Read = &rows.Part{Ordinal: i, GroupRows: 3, To: 3, File: s}, s.read(span)
		}
		if !yield(span, nil) {
			return
		}
	}
	s.whole = true
}

// read opens a promise into spans of one row.
func (s *source) read(span rows.Span) func(context.Context) iter.Seq2[rows.Span, error] {
	return func(ctx context.Context) iter.Seq2[rows.Span, error] {
		return func(yield func(rows.Span, error) bool) {
			at := span.From
			for i := range 3 {
				if err := ctx.Err(); err != nil {
					yield(rows.Span{}, err)
					return
				}
				s.opened.Add(1)
				part := rows.Span{From: at, To: at.Advance(1), Rows: 1, EndsBatch: span.EndsBatch && i == 2, Batch: record(s.mem, int64(3*at.RowGroup+i))}
				at = part.To
				if !yield(part, nil) {
					return
				}
			}
		}
	}
}

// values drains a stream, as far as n spans where n is not negative.
func values(in rows.Stream, n int) (out []int64, ends int, err error) {
	for span, err := range in.Spans {
		if err != nil {
			return out, ends, err
		}
		out = append(out, span.Batch.Column(0).(*array.Int64).Int64Values()...)
		if span.EndsBatch {
			ends++
		}
		span.Release()
		if n--; n == 0 {
			return out, ends, nil
		}
	}
	return out, ends, nil
}

func counting(n int) []int64 {
	var out []int64
	for i := range n {
		out = append(out, int64(i))
	}
	return out
}

// adaptors are the ways to open a stream.
func adaptors(ctx context.Context) map[string]func(rows.Stream) rows.Stream {
	out := map[string]func(rows.Stream) rows.Stream{"opened": func(in rows.Stream) rows.Stream { return rows.Opened(ctx, in) }}
	for _, n := range []int{0, 1, 3, 100} {
		out[fmt.Sprintf("%d ahead", n)] = func(in rows.Stream) rows.Stream { return rows.Ahead(ctx, in, n, nil) }
	}
	return out
}

// All rows come in order and batches end where they did; the seal is the stream's. Nothing is held on to.
func TestOpenedAndAhead(t *testing.T) {
	for name, open := range adaptors(t.Context()) {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			s := &source{mem: mem, spans: 8, fails: -1}
			in := open(s.stream())
			if _, err := in.Seal(); !errors.Is(err, rows.ErrUnsealed) {
				t.Errorf("seal before the end: %v", err)
			}
			got, ends, err := values(in, -1)
			if err != nil || ends != 4 || !slices.Equal(got, counting(24)) {
				t.Errorf("%v, %d ends, %v", got, ends, err)
			}
			if seal, err := in.Seal(); err != nil || seal.Rows != 24 {
				t.Errorf("seal %+v, %v", seal, err)
			}
			if n := s.held.Load(); n != 0 {
				t.Errorf("%d parts are held", n)
			}
		})
	}
}

// A consumer that breaks off, at each span, ends the producer and frees what was read ahead.
func TestConsumerBreaksOff(t *testing.T) {
	for name, open := range adaptors(t.Context()) {
		for n := 1; n <= 16; n++ {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			s := &source{mem: mem, spans: 8, fails: -1}
			in := open(s.stream())
			_, _, err := values(in, n)
			if err != nil || !s.ended.Load() {
				t.Errorf("%s, %d spans: error %v, producer ended %v", name, n, err, s.ended.Load())
			}
			if held := s.held.Load(); held != 0 {
				t.Errorf("%s, %d spans: %d parts are held", name, n, held)
			}
			mem.AssertSize(t, 0)
		}
	}
}

// A producer that fails, at each span, is an error behind the rows before it, and no seal.
func TestProducerFails(t *testing.T) {
	for name, open := range adaptors(t.Context()) {
		for n := range 8 {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			s := &source{mem: mem, spans: 8, fails: n}
			in := open(s.stream())
			got, _, err := values(in, -1)
			if !errors.Is(err, errRead) || !slices.Equal(got, counting(3*n)) {
				t.Errorf("%s, fails at %d: %v, %v", name, n, got, err)
			}
			if _, err := in.Seal(); !errors.Is(err, rows.ErrUnsealed) {
				t.Errorf("%s, fails at %d: seal %v", name, n, err)
			}
			mem.AssertSize(t, 0)
		}
	}
}

// Ahead hands promises on that the consumer wants as they are; wherever it breaks off none is held.
func TestAheadKeeps(t *testing.T) {
	for stop := 1; stop <= 9; stop++ {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		s := &source{mem: mem, spans: 8, fails: -1}
		keep := func(span rows.Span) bool { return span.Part.Ordinal != 3 }
		var got []string
		for span, err := range rows.Ahead(t.Context(), s.stream(), 2, keep).Spans {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d:%v", span.From.RowGroup, span.Batch == nil))
			span.Release()
			if len(got) == stop {
				break
			}
		}
		want := []string{"0:false", "1:true", "2:false", "3:false", "3:false", "3:false", "4:false", "5:true", "6:false"}
		if !slices.Equal(got, want[:stop]) {
			t.Errorf("got %v, want %v", got, want[:stop])
		}
		if n := s.held.Load(); n != 0 {
			t.Errorf("stopped after %d: %d parts are held", stop, n)
		}
		mem.AssertSize(t, 0)
	}
}

// A context that ends while a promise is opened is an error of the stream.
func TestOpenedCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, open := range adaptors(ctx) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		got, _, err := values(open((&source{mem: mem, spans: 8, fails: -1}).stream()), -1)
		if !errors.Is(err, context.Canceled) || len(got) != 3 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		mem.AssertSize(t, 0)
	}
}

// Ahead reads so many spans before they are asked for, and no more, and its goroutine ends with the loop:
// synctest waits for every one.
func TestAheadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		s := &source{mem: mem, spans: 40, fails: -1}
		for span, err := range rows.Ahead(context.Background(), s.stream(), 5, nil).Spans {
			if err != nil {
				t.Fatal(err)
			}
			span.Release()
			synctest.Wait()
			// One was taken, five wait and one is in hand: the promises among them are that of the second
			// row group, whole, and two rows of that of the fourth.
			if n := s.opened.Load(); n != 5 {
				t.Errorf("%d spans of promises were opened, want 5", n)
			}
			break
		}
		mem.AssertSize(t, 0)
	})
}
