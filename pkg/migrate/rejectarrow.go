package migrate

import (
	"errors"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// arrowRejects writes an Arrow stream: the columns of an entry, and the source row as a struct.
type arrowRejects struct {
	job    string
	out    *ipc.Writer
	schema *arrow.Schema
}

func newArrowRejects(job string, source *arrow.Schema) *arrowRejects {
	text := func(name string) arrow.Field { return arrow.Field{Name: name, Type: arrow.BinaryTypes.String} }
	schema := arrow.NewSchema([]arrow.Field{
		text("file"), {Name: "row_group", Type: arrow.PrimitiveTypes.Int32}, {Name: "row", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		text("cursor"), text("column"), text("value"), text("rule"), text("job"), {Name: "source", Type: arrow.StructOf(source.Fields()...)},
	}, nil)
	return &arrowRejects{job: job, schema: schema}
}

func (a *arrowRejects) start(w io.Writer) { a.out = ipc.NewWriter(w, ipc.WithSchema(a.schema)) }

func (a *arrowRejects) add(source arrow.RecordBatch, bad *PlacedError) error {
	e := entryOf(bad, a.job)
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(a.schema.Fields()[:8], nil))
	defer b.Release()
	for i, text := range map[int]string{0: e.File, 3: e.Cursor, 4: e.Column, 5: e.Value, 6: e.Rule, 7: e.Job} {
		b.Field(i).(*array.StringBuilder).Append(text)
	}
	b.Field(1).(*array.Int32Builder).Append(int32(e.RowGroup))
	if e.Row != nil {
		b.Field(2).(*array.Int64Builder).Append(*e.Row)
	} else {
		b.Field(2).AppendNull()
	}
	head := b.NewRecordBatch()
	defer head.Release()

	row := source.NewSlice(bad.Err.Row, bad.Err.Row+1)
	defer row.Release()
	whole := array.RecordToStructArray(row)
	defer whole.Release()
	rec := array.NewRecordBatch(a.schema, append(head.Columns()[:8:8], whole), 1)
	defer rec.Release()
	return a.out.Write(rec)
}

// flush has nothing to do: every entry is written through.
func (a *arrowRejects) flush() error { return nil }

func (a *arrowRejects) end() error { return a.out.Close() }

// records are those of a file up to where it was cut off.
func (a *arrowRejects) records(old io.Reader) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		in, err := ipc.NewReader(old)
		if err != nil {
			return // an empty file, or one that was cut off in its schema
		}
		defer in.Release()
		if !in.Schema().Equal(a.schema) {
			yield(nil, errors.New("it holds rows of other columns"))
			return
		}
		for in.Next() {
			if !yield(in.RecordBatch(), nil) {
				return
			}
		}
	}
}

func (a *arrowRejects) entries(old io.Reader) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for rec, err := range a.records(old) {
			if err != nil {
				yield(entry{}, err)
				return
			}
			for i := range int(rec.NumRows()) {
				text := func(column int) string { return rec.Column(column).(*array.String).Value(i) }
				if !yield(entry{Cursor: text(3), Column: text(4), Rule: text(6), Job: text(7)}, nil) {
					return
				}
			}
		}
	}
}

func (a *arrowRejects) keep(old io.Reader, n int) error {
	for rec, err := range a.records(old) {
		if err != nil || n == 0 {
			return err
		}
		head := rec.NewSlice(0, min(int64(n), rec.NumRows()))
		n -= int(head.NumRows())
		err := a.out.Write(head)
		head.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
