package lake

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// A keySet is the keys that one or more equality-delete files delete. A row is deleted whose key
// is among them; null equals null (specification, "Equality Delete Files"; case 21).
type keySet struct {
	schema *iceberg.Schema       // the top-level fields that hold the key
	ids    []int                 // the key, in this order
	keys   []map[string]struct{} // of each file
}

// An equalityIndex reads each equality-delete file once and forgets it with the last data file that
// it is for.
type equalityIndex struct {
	meta  table.Metadata
	mem   memory.Allocator
	users map[string]int
	known map[string]*keySet
}

func newEqualityIndex(meta table.Metadata, tasks []table.FileScanTask, mem memory.Allocator) *equalityIndex {
	x := &equalityIndex{meta: meta, mem: mem, users: map[string]int{}, known: map[string]*keySet{}}
	for _, t := range tasks {
		for _, d := range t.EqualityDeleteFiles {
			x.users[d.FilePath()]++
		}
	}
	return x
}

// sets returns the key sets for the task's file, those of one key joined.
func (x *equalityIndex) sets(ctx context.Context, fs iceio.IO, task table.FileScanTask) ([]*keySet, error) {
	var out []*keySet
	for _, d := range task.EqualityDeleteFiles {
		path := d.FilePath()
		if x.known[path] == nil {
			set, err := x.read(ctx, fs, d)
			if err != nil {
				return nil, fmt.Errorf("equality deletes: %w", err)
			}
			x.known[path] = set
		}
		out = join(out, x.known[path])
		if x.users[path]--; x.users[path] <= 0 {
			delete(x.known, path)
		}
	}
	return out, nil
}

// join adds the keys of a file to the set of the same fields, so that a row's key is made once for all.
func join(sets []*keySet, more *keySet) []*keySet {
	for _, s := range sets {
		if slices.Equal(s.ids, more.ids) {
			s.keys = append(s.keys, more.keys...)
			return sets
		}
	}
	return append(sets, &keySet{schema: more.schema, ids: more.ids, keys: slices.Clone(more.keys)})
}

// newKeySet finds the fields of a key, also those that the table has dropped since. Floating-point
// keys are refused: what they delete would depend on the reader (specification; case 22).
func (x *equalityIndex) newKeySet(d iceberg.DataFile) (*keySet, error) {
	ids := slices.Clone(d.EqualityFieldIDs())
	if len(ids) == 0 {
		return nil, fmt.Errorf("file %q names no key", d.FilePath())
	}
	slices.Sort(ids)
	set := &keySet{ids: slices.Compact(ids), keys: []map[string]struct{}{{}}}
	var fields []iceberg.NestedField
	for _, id := range set.ids {
		top, leaf, ok := x.field(id)
		if !ok {
			return nil, fmt.Errorf("file %q has a key field with ID %d that no schema of the table has", d.FilePath(), id)
		}
		switch leaf.Type.(type) {
		case iceberg.Float32Type, iceberg.Float64Type:
			return nil, fmt.Errorf("file %q deletes by column %q of type %s, which Iceberg forbids as a key", d.FilePath(), leaf.Name, leaf.Type)
		}
		if !slices.ContainsFunc(fields, func(f iceberg.NestedField) bool { return f.ID == top.ID }) {
			top.Required = false
			fields = append(fields, top)
		}
	}
	var err error
	set.schema, err = readable(iceberg.NewSchema(0, fields...))
	return set, err
}

// field finds a field in the newest schema that has it, and the top-level field around it.
func (x *equalityIndex) field(id int) (top, leaf iceberg.NestedField, ok bool) {
	schemas := slices.Clone(x.meta.Schemas())
	slices.SortFunc(schemas, func(a, b *iceberg.Schema) int { return b.ID - a.ID })
	for _, s := range append([]*iceberg.Schema{x.meta.CurrentSchema()}, schemas...) {
		leaf, ok = s.FindFieldByID(id)
		if !ok {
			continue
		}
		for _, f := range s.Fields() {
			if f.ID == id || holds(f.Type, id) {
				return f, leaf, true
			}
		}
	}
	return top, leaf, false
}

// holds reports whether a struct holds the field at any depth. A key inside a list or map is none.
func holds(t iceberg.Type, id int) bool {
	st, ok := t.(*iceberg.StructType)
	if !ok {
		return false
	}
	return slices.ContainsFunc(st.FieldList, func(f iceberg.NestedField) bool { return f.ID == id || holds(f.Type, id) })
}

func (x *equalityIndex) read(ctx context.Context, fs iceio.IO, d iceberg.DataFile) (*keySet, error) {
	if d.FileFormat() != iceberg.ParquetFile {
		return nil, fmt.Errorf("file %q is %s; only Parquet can be read", d.FilePath(), d.FileFormat())
	}
	set, err := x.newKeySet(d)
	if err != nil {
		return nil, err
	}
	src, err := openSource(ctx, fs, d.FilePath(), d.Count(), x.mem)
	if err != nil {
		return nil, err
	}
	defer src.close()
	columns, err := src.columns(x.meta.NameMapping(), set.wants())
	if err != nil {
		return nil, err
	}
	for group := range src.reader.NumRowGroups() {
		for batch, err := range src.records(ctx, group, columns, recordRowsMost) {
			if err != nil {
				return nil, err
			}
			err := set.each(ctx, columns, batch, x.meta.Version(), func(_ int, key []byte) { set.keys[0][string(key)] = struct{}{} })
			batch.Release()
			if err != nil {
				return nil, fmt.Errorf("file %q: %w", d.FilePath(), err)
			}
		}
	}
	return set, nil
}

// wants are the top-level fields that the key lies in.
func (k *keySet) wants() map[int]iceberg.Type { return typesOf(k.schema) }

// mark sets dead[i] for each row of a batch, read with m, whose key is in the set.
func (k *keySet) mark(ctx context.Context, m columnMap, batch arrow.RecordBatch, version int, dead []bool) error {
	return k.each(ctx, m, batch, version, func(row int, key []byte) {
		for _, keys := range k.keys {
			if _, ok := keys[string(key)]; ok {
				dead[row] = true
				return
			}
		}
	})
}

// each calls f with the encoded key of each row. It borrows the batch.
func (k *keySet) each(ctx context.Context, m columnMap, batch arrow.RecordBatch, version int, f func(row int, key []byte)) error {
	batch.Retain()
	keys, err := m.project(ctx, batch, k.schema, nil, version)
	if err != nil {
		return err
	}
	defer keys.Release()
	parts := make([]keyPart, len(k.ids))
	for i, id := range k.ids {
		if parts[i], err = newKeyPart(keys, k.schema, id); err != nil {
			return err
		}
	}
	var key []byte
	for row := range int(keys.NumRows()) {
		key = key[:0]
		for _, p := range parts {
			key = p.append(key, row)
		}
		f(row, key)
	}
	return nil
}

// A keyPart is one field of a key: the arrays from the top-level column down to the leaf.
type keyPart struct {
	path   []arrow.Array
	append func(key []byte, row int) []byte
}

func newKeyPart(batch arrow.RecordBatch, schema *iceberg.Schema, id int) (keyPart, error) {
	var path []arrow.Array
	fields := schema.Fields()
	column := batch.Column
	for {
		at := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.ID == id || holds(f.Type, id) })
		if at < 0 {
			return keyPart{}, fmt.Errorf("key field %d is not in the file's schema", id)
		}
		arr := column(at)
		path = append(path, arr)
		if fields[at].ID == id {
			break
		}
		st, ok := arr.(*array.Struct)
		if !ok {
			return keyPart{}, fmt.Errorf("key field %d lies inside a %s", id, arr.DataType())
		}
		column, fields = st.Field, fields[at].Type.(*iceberg.StructType).FieldList
	}
	value, err := encoder(path[len(path)-1])
	if err != nil {
		return keyPart{}, err
	}
	return keyPart{path: path, append: func(key []byte, row int) []byte {
		for _, a := range path {
			if a.IsNull(row) {
				return append(key, 0)
			}
		}
		return value(append(key, 1), row)
	}}, nil
}

// encoder returns a function that appends a value to a key, so that equal values are equal bytes.
func encoder(arr arrow.Array) (func(key []byte, row int) []byte, error) {
	sized := func(key, v []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(key, uint32(len(v))), v...)
	}
	switch a := arr.(type) {
	case *array.Boolean:
		return func(key []byte, row int) []byte {
			if a.Value(row) {
				return append(key, 1)
			}
			return append(key, 0)
		}, nil
	case *array.String:
		return func(key []byte, row int) []byte { return sized(key, []byte(a.Value(row))) }, nil
	case *array.Binary:
		return func(key []byte, row int) []byte { return sized(key, a.Value(row)) }, nil
	case *array.FixedSizeBinary:
		return func(key []byte, row int) []byte { return sized(key, a.Value(row)) }, nil
	case array.ExtensionArray:
		return encoder(a.Storage())
	case *array.Null:
		return func(key []byte, _ int) []byte { return key }, nil
	}
	fixed, ok := arr.DataType().(arrow.FixedWidthDataType)
	if !ok || fixed.BitWidth()%8 != 0 || len(arr.Data().Buffers()) != 2 {
		return nil, fmt.Errorf("a column of type %s cannot be a key", arr.DataType())
	}
	width := fixed.BitWidth() / 8
	return func(key []byte, row int) []byte {
		at := (arr.Data().Offset() + row) * width
		return append(key, arr.Data().Buffers()[1].Bytes()[at:at+width]...)
	}, nil
}
