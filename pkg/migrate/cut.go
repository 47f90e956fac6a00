package migrate

import (
	"icepipe/pkg/rows"
)

// Cut ends a batch after every n rows of a stream that knows none: another program's, as arrowipc.Read
// gives it, with opened spans from which no row was taken out. n is at least 1, DefaultBatchRows for 0.
func Cut(in rows.Stream, n int64) rows.Stream {
	if n < 1 {
		n = DefaultBatchRows
	}
	out := in
	out.Header.BatchRows = n
	out.Spans = func(yield func(rows.Span, error) bool) {
		room := n
		for span, err := range in.Spans {
			if err != nil {
				yield(rows.Span{}, err)
				return
			}
			for span.Rows > room {
				head := span
				head.To, head.Rows, head.EndsBatch = span.From.Advance(room), room, true
				head.Batch = span.Batch.NewSlice(0, room)
				rest := span.Batch.NewSlice(room, span.Rows)
				span.Release()
				span.From, span.Rows, span.Batch = head.To, span.Rows-room, rest
				room = n
				if !yield(head, nil) {
					span.Release()
					return
				}
			}
			room -= span.Rows
			if span.EndsBatch = room == 0; span.EndsBatch {
				room = n
			}
			if !yield(span, nil) {
				return
			}
		}
	}
	return out
}
