package upsert

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"icepipe/internal/keyindex"
	"icepipe/internal/rowform"
)

// keyColumns make the keys of rows of the destination's schema.
type keyColumns struct {
	names []string
	at    []int // columns of the schema
	form  *rowform.Form
	nulls NullKeys
}

// newKeyColumns refuses what cannot be a key, by name.
func newKeyColumns(schema *iceberg.Schema, o Options) (keyColumns, error) {
	k := keyColumns{names: o.Keys, nulls: o.NullKeys}
	var fields []iceberg.NestedField
	for _, name := range o.Keys {
		at := -1
		for i, f := range schema.Fields() {
			if f.Name == name {
				at = i
			}
		}
		if at < 0 {
			return k, fmt.Errorf("upsert key %q: the destination has no such column", name)
		}
		f := schema.Fields()[at]
		switch f.Type.(type) {
		case iceberg.Float32Type, iceberg.Float64Type:
			if !o.FloatKeys {
				return k, fmt.Errorf("upsert key %q is a %s, and two numbers that look alike need not be equal; --float-keys takes it all the same, with -0.0 equal to 0.0 and NaN equal to NaN", name, f.Type)
			}
		case iceberg.NestedType, iceberg.UnknownType:
			return k, fmt.Errorf("upsert key %q is a %s, which cannot be a key; name columns of plain types", name, f.Type)
		}
		k.at, fields = append(k.at, at), append(fields, f)
	}
	var err error
	k.form, err = rowform.New(fields)
	return k, err
}

// Check refuses keys that the schema cannot have.
func Check(schema *iceberg.Schema, o Options) error {
	_, err := newKeyColumns(schema, o)
	return err
}

// A key is a row's.
type key struct {
	digest keyindex.Digest
	form   []byte // valid until the next row's is made
	null   bool   // a column of it is null
}

// The forms of -0.0 and 0.0, which are one key.
var (
	minusZero = []byte{1, 0x80, 0, 0, 0, 0, 0, 0, 0}
	zero      = make([]byte, 8)
)

// each calls f with the key of every row of a record batch that has the key columns alone, in their order.
func (k keyColumns) each(batch arrow.RecordBatch, f func(row int, key key) error) error {
	rows, err := k.form.Bind(batch)
	if err != nil {
		return err
	}
	var one key
	for row := range int(batch.NumRows()) {
		one.form, one.null = one.form[:0], false
		for c, field := range k.form.Fields {
			from := len(one.form)
			one.form = rows.AppendColumn(one.form, c, row)
			cell := one.form[from:]
			one.null = one.null || cell[0] == 0
			switch field.Type.(type) {
			case iceberg.Float32Type, iceberg.Float64Type:
				if bytes.Equal(cell, minusZero) {
					copy(cell[1:], zero)
				}
			}
		}
		one.digest = digest(one.form)
		if err := f(row, one); err != nil {
			return err
		}
	}
	return nil
}

// eachOf is each of a record batch of the whole schema. A null in a key is refused where it is to be.
func (k keyColumns) eachOf(batch arrow.RecordBatch, f func(row int, key key) error) error {
	fields, columns := make([]arrow.Field, len(k.at)), make([]arrow.Array, len(k.at))
	for i, at := range k.at {
		fields[i], columns[i] = batch.Schema().Field(at), batch.Column(at)
	}
	keys := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, batch.NumRows())
	defer keys.Release()
	return k.each(keys, func(row int, one key) error {
		if one.null && k.nulls == NullError {
			return fmt.Errorf("key %s: %w", k.text(one.form), errNullKey)
		}
		return f(row, one)
	})
}

// unsought reports whether a row with the key is added without looking for it.
func (k keyColumns) unsought(one key) bool { return one.null && k.nulls == NullInsert }

// twice says that a row of a record batch has a key that another row of the source had.
func (k keyColumns) twice(batch arrow.RecordBatch, at int) error {
	text := ""
	err := k.eachOf(batch, func(row int, one key) error {
		if row == at {
			text = k.text(one.form)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("two rows of the source have key %s; --on-duplicate-key first or last says which of them counts", text)
}

// text is a key for people: (id=1, day="2024-02-29").
func (k keyColumns) text(form []byte) string {
	cells, err := k.form.Cells(form)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	var parts []string
	for i, f := range k.form.Fields {
		value, err := rowform.JSON(cells[i], f.Type)
		if err != nil {
			value = err.Error()
		}
		parts = append(parts, f.Name+"="+value)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// digest is the 128 bits that stand for a key or a row: two of them are the same by chance less often than a
// disk lies.
func digest(form []byte) keyindex.Digest {
	sum := sha256.Sum256(form)
	return keyindex.Digest(sum[:16])
}

// errNullKey is of a row whose key holds a null.
var errNullKey = errors.New("a key must not be null; --null-keys match takes null for a value like others, --null-keys insert adds such rows without looking for them")
