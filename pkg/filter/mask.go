package filter

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"
)

// Mask tells of each row of a record batch whether it is selected. The batch stays the caller's.
//
// Columns are found by their field IDs, in Arrow's metadata under PARQUET:field_id, and by name where
// a field has none. They have the types that Iceberg's have in Arrow, or ones that were promoted to
// them (int for long, float for double, a decimal of less digits), may be encoded as dictionaries, and
// texts and bytes may be large or views. Defaults are filled in before: a column that is not there is
// an error.
func (b *Bound) Mask(batch arrow.RecordBatch) ([]bool, error) {
	m := &masker{batch: batch, rows: int(batch.NumRows())}
	out := make([]bool, m.rows)
	return out, m.mark(b.root, out)
}

// A masker evaluates one record batch.
type masker struct {
	batch arrow.RecordBatch
	rows  int
	spare [][]bool
}

func (m *masker) scratch() []bool {
	if n := len(m.spare); n > 0 {
		s := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return s
	}
	return make([]bool, m.rows)
}

// mark sets out, whatever it held, to the rows for which c is true.
func (m *masker) mark(c condition, out []bool) error {
	switch c := c.(type) {
	case all:
		for i := range out {
			out[i] = true
		}
		return nil
	case none:
		clear(out)
		return nil
	case group:
		return m.group(c, out)
	}
	l := c.(*leaf)
	arr, parents, err := m.column(l.field)
	if err != nil {
		return fmt.Errorf("row filter: column %s: %w", quotePath(l.field.path), err)
	}
	return m.leaf(l, arr, parents, out)
}

func (m *masker) group(g group, out []bool) error {
	if err := m.mark(g.kids[0], out); err != nil {
		return err
	}
	part := m.scratch()
	defer func() { m.spare = append(m.spare, part) }()
	for _, kid := range g.kids[1:] {
		if err := m.mark(kid, part); err != nil {
			return err
		}
		if g.or {
			for i, p := range part {
				out[i] = out[i] || p
			}
			continue
		}
		for i, p := range part {
			out[i] = out[i] && p
		}
	}
	return nil
}

// leaf marks the rows for which a leaf is true.
func (m *masker) leaf(l *leaf, arr arrow.Array, parents []arrow.Array, out []bool) error {
	if l.op == opIsNull {
		whole := arr.DataType().ID() == arrow.NULL // Arrow's own IsNull is false for it
		for i := range out {
			out[i] = whole || arr.IsNull(i)
		}
		for _, p := range parents {
			for i := range out {
				out[i] = out[i] || p.IsNull(i)
			}
		}
		return nil
	}
	if err := compareArray(l, arr, out); err != nil {
		return fmt.Errorf("row filter: column %s: %w", quotePath(l.field.path), err)
	}
	dropNulls(arr, out)
	for _, p := range parents {
		dropNulls(p, out)
	}
	return nil
}

func dropNulls(arr arrow.Array, out []bool) {
	if arr.DataType().ID() == arrow.NULL {
		clear(out)
		return
	}
	if arr.NullN() == 0 {
		return
	}
	for i := range out {
		out[i] = out[i] && arr.IsValid(i)
	}
}

// column finds a field's array, and the structs that it lies in.
func (m *masker) column(f *field) (arr arrow.Array, parents []arrow.Array, err error) {
	at, ok := find(m.batch.Schema().Fields(), f.ids[0], f.path[0])
	if !ok {
		return nil, nil, fmt.Errorf("it is not in the record batch")
	}
	arr = m.batch.Column(at)
	for i, name := range f.path[1:] {
		if ext, ok := arr.(array.ExtensionArray); ok {
			arr = ext.Storage()
		}
		inside, ok := arr.(*array.Struct)
		if !ok {
			return nil, nil, fmt.Errorf("%s is %s in the record batch, and not a struct", quotePath(f.path[:i+1]), arr.DataType())
		}
		at, ok := find(inside.DataType().(*arrow.StructType).Fields(), f.ids[i+1], name)
		if !ok {
			return nil, nil, fmt.Errorf("it is not in the record batch")
		}
		parents = append(parents, arr)
		arr = inside.Field(at)
	}
	return arr, parents, nil
}

// find is the ordinal of the field with an ID or, where it has none, with a name.
func find(fields []arrow.Field, id int, name string) (int, bool) {
	byName := -1
	for i, f := range fields {
		text, ok := f.Metadata.GetValue(table.ArrowParquetFieldIDKey)
		if n, err := strconv.Atoi(text); ok && err == nil && n >= 0 {
			if n == id {
				return i, true
			}
			continue
		}
		if f.Name == name && byName < 0 {
			byName = i
		}
	}
	return byName, byName >= 0
}
