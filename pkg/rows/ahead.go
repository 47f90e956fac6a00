package rows

import "context"

// Ahead returns the stream with its spans opened by a goroutine of their own, n of them ahead of the
// consumer. The goroutine has ended when the ranging over Spans has.
//
// A promise for which keep returns true is handed on as it is: the consumer takes its rows from its
// Part and does not open it. keep is called by that goroutine; nil keeps none.
func Ahead(ctx context.Context, in Stream, n int, keep func(Span) bool) Stream {
	opened := opened(ctx, in, keep)
	out := opened
	out.Spans = func(yield func(Span, error) bool) {
		type item struct {
			span Span
			err  error
		}
		items := make(chan item, n)
		stop := make(chan struct{})
		go func() {
			defer close(items)
			for span, err := range opened.Spans {
				select {
				case items <- item{span, err}:
				case <-stop:
					span.Release()
					return
				}
			}
		}()
		defer func() { // waits: the channel is closed when the goroutine ends
			close(stop)
			for left := range items {
				left.span.Release()
			}
		}()
		for i := range items {
			if !yield(i.span, i.err) || i.err != nil {
				return
			}
		}
	}
	return out
}
