package command

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"icepipe/pkg/migrate"
)

// differences takes the differing rows of a diff to where they were asked for: to stdout in some form, and
// those that an upsert would mend to a file.
type differences struct {
	lines  *json.Encoder
	csv    *csv.Writer
	headed bool // of csv
	rows   *rowStream
	fixes  *rowStream
	file   *os.File // of fixes
}

func newDifferences(w *World, output, fixes string, dst *migrate.Table) (*differences, error) {
	d := &differences{}
	switch output {
	case "jsonl":
		d.lines = json.NewEncoder(w.Stdout)
		d.lines.SetEscapeHTML(false)
	case "csv":
		d.csv = csv.NewWriter(w.Stdout)
	case "arrow":
		if w.Terminal(w.Stdout) {
			return nil, usagef("an Arrow stream is not written to a terminal; send it to a file or a program")
		}
		schema, err := dst.ArrowSchema()
		if err != nil {
			return nil, err
		}
		row := arrow.StructOf(schema.Fields()...)
		d.rows = newRowStream(w.Stdout, arrow.NewSchema([]arrow.Field{
			{Name: "kind", Type: arrow.BinaryTypes.String},
			{Name: "count", Type: arrow.PrimitiveTypes.Int64},
			{Name: "columns", Type: arrow.ListOf(arrow.BinaryTypes.String)},
			{Name: "source", Type: row, Nullable: true},
			{Name: "destination", Type: row, Nullable: true},
		}, nil))
	}
	if fixes == "" {
		return d, nil
	}
	schema, err := dst.ArrowSchema()
	if err != nil {
		return nil, err
	}
	if d.file, err = os.OpenFile(fixes, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666); err != nil {
		return nil, err
	}
	d.fixes = newRowStream(d.file, schema)
	return d, nil
}

// wanted tells whether rows are to be added at all.
func (d *differences) wanted() bool { return d.rowsOnStdout() || d.fixes != nil }

// rowsOnStdout tells whether stdout carries the rows in place of the report.
func (d *differences) rowsOnStdout() bool { return d.lines != nil || d.csv != nil || d.rows != nil }

func (d *differences) add(row migrate.DifferingRow) error {
	if d.fixes != nil && row.Source.Is() {
		for range row.Count {
			if err := d.fixes.add(func(b *array.RecordBuilder) error { return row.Source.Append(b.Fields()) }); err != nil {
				return err
			}
		}
	}
	switch {
	case d.lines != nil:
		return d.lines.Encode(row)
	case d.csv != nil:
		return d.addCSV(row)
	case d.rows != nil:
		return d.rows.add(func(b *array.RecordBuilder) error { return appendDifference(b, row) })
	}
	return nil
}

// addCSV writes a line with both sides of each column.
func (d *differences) addCSV(row migrate.DifferingRow) error {
	some := row.Source
	if !some.Is() {
		some = row.Dest
	}
	names := some.Columns()
	if !d.headed {
		d.headed = true
		line := []string{"kind", "count", "columns"}
		for _, n := range names {
			line = append(line, n+"_source", n+"_destination")
		}
		if err := d.csv.Write(line); err != nil {
			return err
		}
	}
	line := []string{row.Kind, strconv.FormatInt(row.Count, 10), strings.Join(row.Columns, " ")}
	source, err := cells(row.Source, len(names))
	if err != nil {
		return err
	}
	dest, err := cells(row.Dest, len(names))
	if err != nil {
		return err
	}
	for i := range names {
		line = append(line, source[i], dest[i])
	}
	return d.csv.Write(line)
}

// cells are the values of a row as JSON, nothing where there is no row.
func cells(row migrate.Row, n int) ([]string, error) {
	if !row.Is() {
		return make([]string, n), nil
	}
	return row.Cells()
}

func appendDifference(b *array.RecordBuilder, row migrate.DifferingRow) error {
	b.Field(0).(*array.StringBuilder).Append(row.Kind)
	b.Field(1).(*array.Int64Builder).Append(row.Count)
	columns := b.Field(2).(*array.ListBuilder)
	columns.Append(true)
	for _, c := range row.Columns {
		columns.ValueBuilder().(*array.StringBuilder).Append(c)
	}
	for i, side := range []migrate.Row{row.Source, row.Dest} {
		to := b.Field(3 + i).(*array.StructBuilder)
		if !side.Is() {
			to.AppendNull()
			continue
		}
		to.Append(true)
		var fields []array.Builder
		for f := range to.NumField() {
			fields = append(fields, to.FieldBuilder(f))
		}
		if err := side.Append(fields); err != nil {
			return err
		}
	}
	return nil
}

// close ends what was written. A stream that was not ended has no end marker, so that nobody takes it for whole.
func (d *differences) close() error {
	var errs []error
	if d.csv != nil {
		d.csv.Flush()
		errs = append(errs, d.csv.Error())
	}
	for _, s := range []*rowStream{d.rows, d.fixes} {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	if d.file != nil {
		errs = append(errs, d.file.Sync(), d.file.Close())
	}
	return errors.Join(errs...)
}

// rowStream is a plain Arrow stream that is built row by row.
type rowStream struct {
	out *ipc.Writer
	b   *array.RecordBuilder
	n   int
}

// streamRows is how many rows a record batch of a rowStream has.
const streamRows = 1024

func newRowStream(w io.Writer, schema *arrow.Schema) *rowStream {
	return &rowStream{out: ipc.NewWriter(w, ipc.WithSchema(schema)), b: array.NewRecordBuilder(memory.DefaultAllocator, schema)}
}

func (s *rowStream) add(row func(*array.RecordBuilder) error) error {
	if err := row(s.b); err != nil {
		return err
	}
	if s.n++; s.n < streamRows {
		return nil
	}
	return s.flush()
}

func (s *rowStream) flush() error {
	batch := s.b.NewRecordBatch()
	defer batch.Release()
	s.n = 0
	return s.out.Write(batch)
}

func (s *rowStream) close() error {
	defer s.b.Release()
	if s.n > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.out.Close()
}
