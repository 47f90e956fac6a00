package datafile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/rows"
)

// fitting finds out how the columns of a row group fit the shape of the output, and what of that must be as
// it is in the source: whether values are required, and types before a promotion.
type fitting struct {
	plan   *plan
	source *Source
	group  int
	rows   int64

	fields []iceberg.NestedField // of the output's schema, changed where they must be; nil: as they are
	other  []string              // what is other than in the plan's shape
}

// column says which leaves are copied for a field: those of leaf or nested. Nulls are no leaves and no error.
func (f *fitting) column(n *node, leaf int, nested []int) ([]int, error) {
	switch {
	case !n.stored:
		return nil, nil
	case leaf == rows.Nulls && n.field.Required:
		return nil, errors.New("it is required, and the source has no such column")
	case leaf == rows.Nulls:
		return nil, nil
	case leaf >= 0:
		nested = []int{leaf}
	case nested == nil:
		return nil, errors.New("its values are made, or not in the file as they are")
	}
	if n.leaves() != len(nested) {
		return nil, fmt.Errorf("it has %d leaves in the file, %d here", len(nested), n.leaves())
	}
	chains := make([]chain, len(nested))
	for i, at := range nested {
		if err := f.copyable(at); err != nil {
			return nil, err
		}
		chains[i] = chainOf(f.source.Reader.MetaData().Schema.Column(at), at)
	}
	field, err := f.fit(n, chains, 0)
	if err != nil {
		return nil, err
	}
	if field.Required != n.field.Required || !field.Type.Equals(n.field.Type) {
		if f.fields == nil {
			f.fields = append(f.fields, f.plan.cfg.Schema.Fields()...)
		}
		f.fields[n.index] = field
		f.other = append(f.other, fmt.Sprintf("%d %v %s", n.index, field.Required, field.Type))
	}
	return nested, nil
}

// leaves is how many leaves of a file a field has.
func (n *node) leaves() int {
	if !n.stored {
		return 0
	}
	if n.kind == leafNode {
		return 1
	}
	sum := 0
	for _, k := range n.kids {
		sum += k.leaves()
	}
	return sum
}

// A chain is the nodes of a file's schema from a top-level column down to a leaf.
type chain struct {
	nodes []schema.Node
	leaf  int
	col   *schema.Column
}

func chainOf(col *schema.Column, leaf int) chain {
	c := chain{leaf: leaf, col: col}
	for n := col.SchemaNode(); n != nil && n.Parent() != nil; n = n.Parent() {
		c.nodes = append([]schema.Node{n}, c.nodes...)
	}
	return c
}

var errTree = errors.New("it is nested otherwise in the file")

// fit holds a field against the file's nodes at a depth, which are one, and returns it as the file has it.
func (f *fitting) fit(n *node, chains []chain, depth int) (iceberg.NestedField, error) {
	out := n.field
	for _, c := range chains {
		if len(c.nodes) <= depth || c.nodes[depth] != chains[0].nodes[depth] {
			return out, errTree
		}
	}
	repetition := chains[0].nodes[depth].RepetitionType()
	if repetition == parquet.Repetitions.Repeated {
		return out, errTree
	}
	out.Required = repetition == parquet.Repetitions.Required
	if n.field.Required && !out.Required {
		if n.kind != leafNode || depth > 0 {
			return out, errors.New("it is required, and optional in the file")
		}
		if k := statisticsOf(f.source, f.group, chains[0].leaf); !k.HasNullCount || k.NullCount > 0 {
			return out, errors.New("it is required, and the file does not say that there are no nulls")
		}
	}
	if n.kind == leafNode {
		var err error
		out.Type, err = f.leaf(n, chains[0], depth)
		return out, err
	}
	if n.kind != structNode { // of which the level between is repeated
		depth++
		for _, c := range chains {
			if len(c.nodes) <= depth || c.nodes[depth].RepetitionType() != parquet.Repetitions.Repeated {
				return out, errTree
			}
		}
	}
	kids := make([]iceberg.NestedField, len(n.kids))
	for i, k := range n.kids {
		if !k.stored {
			return out, errors.New("it has a field that is not stored")
		}
		var err error
		if kids[i], err = f.fit(k, chains[:k.leaves()], depth+1); err != nil {
			return out, err
		}
		chains = chains[k.leaves():]
	}
	switch t := n.field.Type.(type) {
	case *iceberg.StructType:
		out.Type = &iceberg.StructType{FieldList: kids}
	case *iceberg.ListType:
		out.Type = &iceberg.ListType{ElementID: t.ElementID, Element: kids[0].Type, ElementRequired: kids[0].Required}
	case *iceberg.MapType:
		if !kids[0].Required {
			return out, errors.New("the keys of its map are optional in the file")
		}
		out.Type = &iceberg.MapType{KeyID: t.KeyID, KeyType: kids[0].Type, ValueID: t.ValueID, ValueType: kids[1].Type, ValueRequired: kids[1].Required}
	}
	return out, nil
}

// leaf says of which type the values of a leaf are in the file.
func (f *fitting) leaf(n *node, c chain, depth int) (iceberg.PrimitiveType, error) {
	to := n.field.Type.(iceberg.PrimitiveType)
	how, ok := conversionOf(c.col, to)
	if !ok || len(c.nodes) != depth+1 {
		return to, fmt.Errorf("%s of the file (%s) is not how %s is stored", c.col.PhysicalType(), c.col.LogicalType(), to)
	}
	if how == asIs {
		return to, nil
	}
	from, ok := stored(c.col, to)
	switch {
	case !ok:
		return to, fmt.Errorf("it is stored as %s in the file, and %s is not", c.col.PhysicalType(), to)
	case f.plan.cfg.Copy.Promoted:
		return from, nil
	}
	return to, fmt.Errorf("it is promoted from %s to %s; --copy-promoted leaves it as it is in the file", c.col.PhysicalType(), to)
}

// stored is the type of which chunks of a file may stand below a promoted column: one that is stored as the
// specification has it (Appendix A: Parquet), so that every reader knows it from files of before the promotion.
func stored(col *schema.Column, to iceberg.PrimitiveType) (iceberg.PrimitiveType, bool) {
	var from iceberg.PrimitiveType
	switch to := to.(type) {
	case iceberg.Int64Type:
		from = iceberg.PrimitiveTypes.Int32
	case iceberg.Float64Type:
		from = iceberg.PrimitiveTypes.Float32
	case iceberg.DecimalType:
		l, ok := col.LogicalType().(schema.DecimalLogicalType)
		if !ok {
			return nil, false
		}
		from = iceberg.DecimalTypeOf(int(l.Precision()), to.Scale())
	default:
		return nil, false
	}
	how, ok := conversionOf(col, from)
	return from, ok && how == asIs
}

// layout is the shape of a file that takes the row group.
func (f *fitting) layout() (*Shape, error) {
	if f.fields == nil {
		return f.plan.shape, nil
	}
	key := strings.Join(f.other, "\n")
	f.plan.fitting.Lock()
	defer f.plan.fitting.Unlock()
	if s, ok := f.plan.layouts[key]; ok {
		return s, nil
	}
	s, err := NewShape(iceberg.NewSchema(f.plan.cfg.Schema.ID, f.fields...), f.plan.cfg.Properties)
	if err == nil {
		f.plan.layouts[key] = s
	}
	return s, err
}

// copyable says what is in the way of a chunk's bytes.
func (f *fitting) copyable(leaf int) error {
	meta := f.source.Reader.MetaData()
	group := meta.RowGroups[f.group]
	if len(group.Columns) != meta.Schema.NumColumns() || leaf >= len(group.Columns) {
		return errors.New("the footer does not have all columns of the row group")
	}
	c, col := group.Columns[leaf], meta.Schema.Column(leaf)
	switch {
	case c.MetaData == nil, c.IsSetCryptoMetadata(), len(c.EncryptedColumnMetadata) > 0:
		return errors.New("it is encrypted")
	case c.FilePath != nil:
		return errors.New("its pages are in another file")
	case meta.WriterVersion().LessThan(metadata.Parquet816FixedVersion):
		return errors.New("its writer is known to get sizes wrong")
	}
	m := c.MetaData
	start, err := PagesStart(meta, f.group, leaf)
	if err != nil {
		return err
	}
	size := meta.GetSourceFileSize()
	switch {
	case int32(m.Type) != int32(col.PhysicalType()):
		return errors.New("the footer says two types")
	case m.TotalCompressedSize <= 0, m.TotalUncompressedSize < 0, m.TotalCompressedSize > size-start:
		return errors.New("its pages do not lie in the file")
	case m.NumValues < f.rows, col.MaxRepetitionLevel() == 0 && m.NumValues != f.rows:
		return fmt.Errorf("it has %d values", m.NumValues)
	}
	codec := compress.Compression(m.Codec)
	switch codec {
	case compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Zstd, f.plan.settings.codec:
	default:
		return fmt.Errorf("codec %s is not known to every reader of Iceberg tables", codec)
	}
	return f.encodings(leaf)
}

// encodings refuses those that not every reader knows; levels are not told from values where the footer has no
// counts of pages.
func (f *fitting) encodings(leaf int) error {
	meta := f.source.Reader.MetaData()
	m, truth := meta.RowGroups[f.group].Columns[leaf].MetaData, meta.Schema.Column(leaf).PhysicalType() == parquet.Types.Boolean
	refuse := func(e parquet.Encoding) error {
		return fmt.Errorf("encoding %s is not known to every reader of Iceberg tables", e)
	}
	for _, e := range m.Encodings {
		switch e := parquet.Encoding(e); e {
		case parquet.Encodings.Plain, parquet.Encodings.PlainDict, parquet.Encodings.RLEDict, parquet.Encodings.RLE, parquet.Encodings.BitPacked:
		default:
			return refuse(e)
		}
	}
	for _, s := range m.EncodingStats {
		if e := parquet.Encoding(s.Encoding); truth && e == parquet.Encodings.RLE {
			return refuse(e)
		}
	}
	return nil
}

// PagesStart is where the pages of a chunk start, whose metadata is there. A dictionary at 0 is none: no page lies there.
func PagesStart(footer *metadata.FileMetaData, group, leaf int) (int64, error) {
	m := footer.RowGroups[group].Columns[leaf].MetaData
	start := m.DataPageOffset
	if d := m.DictionaryPageOffset; d != nil && *d > 0 {
		if *d > start {
			return 0, errors.New("its dictionary lies behind its pages")
		}
		start = *d
	}
	if start < int64(len(magic)) {
		return 0, errors.New("its pages do not lie in the file")
	}
	return start, nil
}
