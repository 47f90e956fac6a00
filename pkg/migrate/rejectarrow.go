package migrate

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/rows"
)

// arrowRejects writes an Arrow stream: the columns of an entry, and the source row as a struct.
type arrowRejects struct {
	out    *ipc.Writer
	schema *arrow.Schema
}

func newArrowRejects(w io.Writer, source *arrow.Schema) *arrowRejects {
	text := func(name string) arrow.Field { return arrow.Field{Name: name, Type: arrow.BinaryTypes.String} }
	schema := arrow.NewSchema([]arrow.Field{
		text("file"), {Name: "row_group", Type: arrow.PrimitiveTypes.Int32}, {Name: "row", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		text("cursor"), text("column"), text("value"), text("rule"), {Name: "source", Type: arrow.StructOf(source.Fields()...)},
	}, nil)
	return &arrowRejects{out: ipc.NewWriter(w, ipc.WithSchema(schema)), schema: schema}
}

func (a *arrowRejects) add(source arrow.RecordBatch, bad *PlacedError) error {
	e := entryOf(bad)
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(a.schema.Fields()[:7], nil))
	defer b.Release()
	for i, text := range map[int]string{0: e.File, 3: e.Cursor, 4: e.Column, 5: e.Value, 6: e.Rule} {
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
	rec := array.NewRecordBatch(a.schema, append(head.Columns()[:7:7], whole), 1)
	defer rec.Release()
	return a.out.Write(rec)
}

// flush has nothing to do: every entry is written through.
func (a *arrowRejects) flush() error { return nil }

// keep copies entries up to where the stream was cut off. The end of an Arrow stream is never written, for
// more may come.
func (a *arrowRejects) keep(old io.Reader, before rows.Cursor) error {
	in, err := ipc.NewReader(old)
	if err != nil {
		return nil //nolint:nilerr // an empty file, or one that was cut off in its schema
	}
	defer in.Release()
	if !in.Schema().Equal(a.schema) {
		return fmt.Errorf("it holds rows of other columns; give another file")
	}
	for in.Next() {
		rec := in.RecordBatch()
		for i := range int(rec.NumRows()) {
			at, err := rows.ParseCursor(rec.Column(3).(*array.String).Value(i))
			if err != nil {
				return fmt.Errorf("%w; give another file", err)
			}
			if at.Compare(before) >= 0 {
				return nil
			}
		}
		if err := a.out.Write(rec); err != nil {
			return err
		}
	}
	return nil
}
