package datafile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
)

// A Shape is how the rows of one table schema stand in a Parquet file: built once per schema, and
// then shared by all that write such files, who only read it.
//
// Columns of type unknown hold nothing but nulls and are not stored (spec: Parquet, unknown).
type Shape struct {
	Parquet *schema.Schema
	Leaves  []Leaf

	// File is the table's schema as the file has it: field IDs and types of the table, names of the
	// file, without what is not stored.
	File *iceberg.Schema

	columns []*node           // what is stored of the top-level columns
	fields  []*node           // all top-level columns, to check record batches by
	stored  map[string]string // full name of a leaf in the table -> in the file
}

// A Leaf is a column of the Parquet schema, and how its chunks are written.
type Leaf struct {
	Col     *schema.Column
	Name    string // full name in the table, dotted
	FieldID int
	Type    iceberg.PrimitiveType
	Props   *parquet.WriterProperties
	plain   *parquet.WriterProperties // the same without a dictionary

	pageSize, pageRows int
}

type nodeKind int8

const (
	leafNode nodeKind = iota
	structNode
	listNode
	mapNode
)

// node is a field of the table's schema and what becomes of it in the file.
type node struct {
	kind     nodeKind
	field    iceberg.NestedField
	path     string // full name in the table
	index    int    // among its siblings in the table, and so in a record batch
	column   int    // of the top level: in Shape.columns, where it is stored
	kids     []*node
	stored   bool
	def, rep int16 // levels of a value that is there
	leaf     int   // in Shape.Leaves; of a leafNode that is stored
}

// NewShape builds the shape of files of a table. Types that cannot be written are an error that
// names the column.
func NewShape(s *iceberg.Schema, props iceberg.Properties) (*Shape, error) {
	set, err := parseSettings(props)
	if err != nil {
		return nil, err
	}
	sh := &Shape{stored: map[string]string{}}
	root, kept, fields, err := sh.group(s.Fields(), "", 0, 0)
	if err != nil {
		return nil, err
	}
	sh.fields = fields
	for _, n := range fields {
		if n.stored {
			n.column = len(sh.columns)
			sh.columns = append(sh.columns, n)
		}
	}
	if len(root) == 0 {
		return nil, errors.New("the table has no column that a Parquet file can hold")
	}
	g, err := schema.NewGroupNode("table", parquet.Repetitions.Required, root, -1)
	if err != nil {
		return nil, fmt.Errorf("parquet schema: %w", err)
	}
	sh.Parquet = schema.NewSchema(g)
	sh.File = iceberg.NewSchema(s.ID, kept...)
	for i := range sh.Leaves {
		l := &sh.Leaves[i]
		l.Col = sh.Parquet.Column(i)
		l.pageSize, l.pageRows = int(set.pageSize), set.pageRows
		l.Props = set.writerProperties(l, props)
		plain := set
		plain.dict = false
		l.plain = plain.writerProperties(l, nil)
		sh.stored[l.Name], _ = sh.File.FindColumnName(l.FieldID)
	}
	return sh, nil
}

func (s settings) writerProperties(l *Leaf, props iceberg.Properties) *parquet.WriterProperties {
	dict := s.dict
	for _, name := range []string{l.Name, l.Col.Path()} {
		if v, ok := props[propDictColumn+name]; ok {
			dict = strings.EqualFold(v, "true")
		}
	}
	return parquet.NewWriterProperties(
		parquet.WithDataPageVersion(parquet.DataPageV1), // what every reader of the last ten years knows
		parquet.WithDataPageSize(s.pageSize),
		parquet.WithDictionaryDefault(dict),
		parquet.WithDictionaryPageSizeLimit(s.dictSize),
		// Give the dictionary up where it does not pay, as Java's writer does.
		parquet.WithDictionaryCostFallbackFor(l.Col.Path(), true),
		// The encoder cuts what it hands over by bytes and rows itself.
		parquet.WithBatchSize(1<<30),
		parquet.WithCompression(s.codec),
		parquet.WithCompressionLevel(s.level),
	)
}

// group makes the Parquet nodes of sibling fields below the given levels.
func (sh *Shape) group(fields []iceberg.NestedField, path string, def, rep int16) (schema.FieldList, []iceberg.NestedField, []*node, error) {
	var (
		out  schema.FieldList
		kept []iceberg.NestedField
		all  []*node
	)
	names := storedNames(fields)
	for i, f := range fields {
		n, pq, typ, err := sh.field(f, names[i], join(path, f.Name), def, rep)
		if err != nil {
			return nil, nil, nil, err
		}
		n.index = i
		all = append(all, n)
		if !n.stored {
			continue
		}
		out = append(out, pq)
		f.Name, f.Type = names[i], typ
		kept = append(kept, f)
	}
	return out, kept, all, nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// field makes the Parquet node of one field, and the type that the file's schema has for it.
func (sh *Shape) field(f iceberg.NestedField, name, path string, def, rep int16) (*node, schema.Node, iceberg.Type, error) {
	n := &node{field: f, path: path, stored: true, def: def, rep: rep}
	r := parquet.Repetitions.Required
	if !f.Required {
		r = parquet.Repetitions.Optional
		n.def++
	}
	id := int32(f.ID)
	switch t := f.Type.(type) {
	case *iceberg.StructType:
		n.kind = structNode
		list, kept, kids, err := sh.group(t.FieldList, path, n.def, rep)
		if err != nil {
			return nil, nil, nil, err
		}
		if len(list) == 0 {
			return nil, nil, nil, fmt.Errorf("column %q is a struct without a field that Parquet can hold: drop it from the table or add a field", path)
		}
		n.kids = kids
		g, err := schema.NewGroupNode(name, r, list, id)
		return n, g, &iceberg.StructType{FieldList: kept}, err
	case *iceberg.ListType:
		n.kind = listNode
		n.rep++
		list, kept, kids, err := sh.group([]iceberg.NestedField{t.ElementField()}, path, n.def+1, n.rep)
		if err != nil {
			return nil, nil, nil, err
		}
		if len(list) != 1 {
			return nil, nil, nil, fmt.Errorf("column %q is a list of unknown, which Parquet cannot hold", path)
		}
		n.kids = kids
		mid, err := schema.NewGroupNode("list", parquet.Repetitions.Repeated, list, -1)
		if err != nil {
			return nil, nil, nil, err
		}
		g, err := schema.NewGroupNodeLogical(name, r, schema.FieldList{mid}, schema.NewListLogicalType(), id)
		return n, g, &iceberg.ListType{ElementID: t.ElementID, Element: kept[0].Type, ElementRequired: t.ElementRequired}, err
	case *iceberg.MapType:
		n.kind = mapNode
		n.rep++
		list, kept, kids, err := sh.group([]iceberg.NestedField{t.KeyField(), t.ValueField()}, path, n.def+1, n.rep)
		if err != nil {
			return nil, nil, nil, err
		}
		if len(list) != 2 {
			return nil, nil, nil, fmt.Errorf("column %q is a map with unknown in it, which Parquet cannot hold", path)
		}
		n.kids = kids
		mid, err := schema.NewGroupNode("key_value", parquet.Repetitions.Repeated, list, -1)
		if err != nil {
			return nil, nil, nil, err
		}
		g, err := schema.NewGroupNodeLogical(name, r, schema.FieldList{mid}, schema.MapLogicalType{}, id)
		return n, g, &iceberg.MapType{KeyID: t.KeyID, KeyType: kept[0].Type, ValueID: t.ValueID, ValueType: kept[1].Type, ValueRequired: t.ValueRequired}, err
	case iceberg.UnknownType:
		n.stored = false
		return n, nil, nil, nil
	case iceberg.PrimitiveType:
		pq, err := leafOf(name, path, r, t, id)
		if err != nil {
			return nil, nil, nil, err
		}
		n.leaf = len(sh.Leaves)
		sh.Leaves = append(sh.Leaves, Leaf{Name: path, FieldID: f.ID, Type: t})
		return n, pq, t, nil
	}
	return nil, nil, nil, fmt.Errorf("column %q has type %s, which cannot be written yet", path, f.Type)
}

// leafOf makes the node of a primitive type, stored as the spec says (Appendix A: Parquet).
func leafOf(name, path string, r parquet.Repetition, t iceberg.PrimitiveType, id int32) (schema.Node, error) {
	plain := func(p parquet.Type, length int) (schema.Node, error) {
		return schema.NewPrimitiveNode(name, r, p, id, int32(length))
	}
	logical := func(l schema.LogicalType, p parquet.Type, length int) (schema.Node, error) {
		return schema.NewPrimitiveNodeLogical(name, r, l, p, length, id)
	}
	micros, nanos := schema.TimeUnitMicros, schema.TimeUnitNanos
	switch t := t.(type) {
	case iceberg.BooleanType:
		return plain(parquet.Types.Boolean, -1)
	case iceberg.Int32Type:
		return plain(parquet.Types.Int32, -1)
	case iceberg.Int64Type:
		return plain(parquet.Types.Int64, -1)
	case iceberg.Float32Type:
		return plain(parquet.Types.Float, -1)
	case iceberg.Float64Type:
		return plain(parquet.Types.Double, -1)
	case iceberg.DateType:
		return logical(schema.DateLogicalType{}, parquet.Types.Int32, -1)
	case iceberg.TimeType:
		return logical(schema.NewTimeLogicalType(false, micros), parquet.Types.Int64, -1)
	case iceberg.TimestampType:
		return logical(schema.NewTimestampLogicalType(false, micros), parquet.Types.Int64, -1)
	case iceberg.TimestampTzType:
		return logical(schema.NewTimestampLogicalType(true, micros), parquet.Types.Int64, -1)
	case iceberg.TimestampNsType:
		return logical(schema.NewTimestampLogicalType(false, nanos), parquet.Types.Int64, -1)
	case iceberg.TimestampTzNsType:
		return logical(schema.NewTimestampLogicalType(true, nanos), parquet.Types.Int64, -1)
	case iceberg.StringType:
		return logical(schema.StringLogicalType{}, parquet.Types.ByteArray, -1)
	case iceberg.BinaryType:
		return plain(parquet.Types.ByteArray, -1)
	case iceberg.UUIDType:
		return logical(schema.UUIDLogicalType{}, parquet.Types.FixedLenByteArray, 16)
	case iceberg.FixedType:
		return plain(parquet.Types.FixedLenByteArray, t.Len())
	case iceberg.DecimalType:
		l := schema.NewDecimalLogicalType(int32(t.Precision()), int32(t.Scale()))
		switch {
		case t.Precision() <= 9:
			return logical(l, parquet.Types.Int32, -1)
		case t.Precision() <= 18:
			return logical(l, parquet.Types.Int64, -1)
		}
		return logical(l, parquet.Types.FixedLenByteArray, decimalBytes(t.Precision()))
	}
	return nil, fmt.Errorf("column %q has type %s, which cannot be written yet", path, t)
}

// decimalBytes is the least number of bytes that hold every decimal of a precision.
func decimalBytes(precision int) int {
	n := 1
	for maxDecimalDigits(n) < precision {
		n++
	}
	return n
}

// maxDecimalDigits is how many decimal digits always fit n bytes of two's complement (spec: fixed(L)).
func maxDecimalDigits(n int) int {
	// floor(log10(2^(8n-1) - 1)); 0.30103 is log10(2) rounded up, exact enough below 38 digits.
	return int(float64(8*n-1) * 0.30102999566398120)
}
