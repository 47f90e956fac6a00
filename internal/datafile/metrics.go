package datafile

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// finished is a file on disk and what is known of it.
type finished struct {
	location string
	size     int64
	footer   *metadata.FileMetaData
	unsure   []unsure
	part     *partition
	sortID   int
}

// dataFile describes a finished file with the metrics that the table asks for.
func dataFile(cfg Config, shape *Shape, f finished) (iceberg.DataFile, error) {
	df, err := table.DataFileFromMetadata(table.DataFileArgs{
		// The library finds columns by their path in the file.
		Schema:          shape.File,
		Spec:            cfg.Spec,
		Format:          iceberg.ParquetFile,
		Metadata:        f.footer,
		FilePath:        f.location,
		FileSize:        f.size,
		Content:         iceberg.EntryContentData,
		PartitionValues: f.part.values,
		SortOrderID:     f.sortID,
		Properties:      shape.metricsProperties(cfg.Properties),
		FormatVersion:   cfg.Version,
	})
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", f.location, err)
	}
	nans := df.NaNValueCounts()
	if nans == nil {
		nans = map[int]int64{}
	}
	values, sizes := counts(df, shape, f.footer)
	lower, upper, nulls := df.LowerBoundValues(), df.UpperBoundValues(), df.NullValueCounts()
	for i, l := range shape.Leaves {
		u := f.unsure[i]
		if u.uncounted {
			delete(nulls, l.FieldID)
		}
		if f, ok := cfg.Schema.FindFieldByID(l.FieldID); ok && !u.blind {
			promoteBound(lower, l, f.Type)
			promoteBound(upper, l, f.Type)
		}
		if u.blind {
			// The library would take a bound that is missing for an empty one.
			delete(lower, l.FieldID)
			delete(upper, l.FieldID)
		}
		switch l.Type.(type) {
		case iceberg.Float32Type, iceberg.Float64Type:
			if _, counted := df.ValueCounts()[l.FieldID]; counted && !u.some {
				nans[l.FieldID] = u.nans
			}
		}
	}
	b, err := rebuild(df, cfg.Spec)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", f.location, err)
	}
	return b.ValueCounts(values).ColumnSizes(sizes).NullValueCounts(nulls).NaNValueCounts(nans).LowerBoundValues(lower).UpperBoundValues(upper).Build(), nil
}

// counts are the values and bytes of the leaves that df counts. The library counts no further once a row group has no
// statistics.
func counts(df iceberg.DataFile, shape *Shape, footer *metadata.FileMetaData) (values, sizes map[int]int64) {
	values, sizes = map[int]int64{}, map[int]int64{}
	for i, l := range shape.Leaves {
		if _, counted := df.ValueCounts()[l.FieldID]; !counted {
			continue
		}
		for _, g := range footer.RowGroups {
			values[l.FieldID] += g.Columns[i].MetaData.NumValues
			sizes[l.FieldID] += g.Columns[i].MetaData.TotalCompressedSize
		}
	}
	return values, sizes
}

// promoteBound makes the bound of a leaf that is in the file in a type of before a promotion one of the table's type.
// Those of decimals are the same.
func promoteBound(bounds map[int][]byte, l Leaf, to iceberg.Type) {
	b, ok := bounds[l.FieldID]
	if !ok || len(b) != 4 || l.Type.Equals(to) {
		return
	}
	bits := binary.LittleEndian.Uint32(b)
	switch to.(type) {
	case iceberg.Int64Type:
		bounds[l.FieldID] = binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(bits))))
	case iceberg.Float64Type:
		bounds[l.FieldID] = binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(math.Float32frombits(bits))))
	}
}

// metricsProperties are a table's metrics modes with columns named as the file has them.
func (sh *Shape) metricsProperties(props iceberg.Properties) iceberg.Properties {
	out := iceberg.Properties{}
	for k, v := range props {
		if name, ok := strings.CutPrefix(k, propMetricsCol); ok {
			if stored, ok := sh.stored[name]; ok {
				out[propMetricsCol+stored] = v
			}
			continue
		}
		if k == propMetrics {
			out[k] = v
		}
	}
	return out
}

// metricsMode is what a metrics mode looks like (spec of the table properties: none, counts, full,
// truncate(n)).
var metricsMode = regexp.MustCompile(`(?i)^\s*(none|counts|full|truncate\([1-9][0-9]{0,8}\))\s*$`)

// checkMetrics refuses metrics modes that nobody knows before a file is written.
func checkMetrics(props iceberg.Properties) error {
	for k, v := range props {
		if (k == propMetrics || strings.HasPrefix(k, propMetricsCol)) && !metricsMode.MatchString(v) {
			return fmt.Errorf("table property %q is %q: want none, counts, truncate(n) or full", k, v)
		}
	}
	return nil
}

// rebuild starts a builder with all that a data file says.
func rebuild(df iceberg.DataFile, spec iceberg.PartitionSpec) (*iceberg.DataFileBuilder, error) {
	if int(df.SpecID()) != spec.ID() {
		return nil, fmt.Errorf("data file is of partition spec %d, not %d", df.SpecID(), spec.ID())
	}
	b, err := iceberg.NewDataFileBuilder(spec, df.ContentType(), df.FilePath(), df.FileFormat(), df.Partition(), nil, nil, df.Count(), df.FileSizeBytes())
	if err != nil {
		return nil, err
	}
	b.ColumnSizes(df.ColumnSizes()).ValueCounts(df.ValueCounts()).NullValueCounts(df.NullValueCounts()).
		NaNValueCounts(df.NaNValueCounts()).LowerBoundValues(df.LowerBoundValues()).UpperBoundValues(df.UpperBoundValues())
	if s := df.SplitOffsets(); len(s) > 0 {
		b.SplitOffsets(s)
	}
	if ids := df.EqualityFieldIDs(); len(ids) > 0 {
		b.EqualityFieldIDs(ids)
	}
	if k := df.KeyMetadata(); len(k) > 0 {
		b.KeyMetadata(k)
	}
	if id := df.SortOrderID(); id != nil {
		b.SortOrderID(*id)
	}
	if id := df.FirstRowID(); id != nil {
		b.FirstRowID(*id)
	}
	if p := df.ReferencedDataFile(); p != nil {
		b.ReferencedDataFile(*p)
	}
	if o := df.ContentOffset(); o != nil {
		b.ContentOffset(*o)
	}
	if n := df.ContentSizeInBytes(); n != nil {
		b.ContentSizeInBytes(*n)
	}
	return b, nil
}

// WithFirstRowID gives a data file of a table of format version 3 its first row ID (spec: Row
// Lineage). spec is the one that the data file was written with; all else stays as it is.
func WithFirstRowID(df iceberg.DataFile, schema *iceberg.Schema, spec iceberg.PartitionSpec, id int64) (iceberg.DataFile, error) {
	if id < 0 {
		return nil, fmt.Errorf("first row ID %d of %s is negative", id, df.FilePath())
	}
	for fieldID := range maps.Keys(df.Partition()) {
		known := false
		for _, f := range spec.Fields() {
			known = known || f.FieldID == fieldID
		}
		if !known {
			return nil, fmt.Errorf("partition field %d of %s is not in partition spec %d", fieldID, df.FilePath(), spec.ID())
		}
	}
	b, err := rebuild(df, spec)
	if err != nil {
		return nil, err
	}
	return b.FirstRowID(id).Build(), nil
}
