package lake

import (
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"

	"icepipe/pkg/filter"
)

// fileStats are what the manifest says of a data file's columns.
func (s *Scan) fileStats(f iceberg.DataFile) func(id int) filter.Stats {
	count := func(of map[int]int64, id int) int64 {
		if n, ok := of[id]; ok {
			return n
		}
		return -1
	}
	return func(id int) filter.Stats {
		out := filter.Stats{
			Lower: f.LowerBoundValues()[id], Upper: f.UpperBoundValues()[id],
			Rows: count(f.ValueCounts(), id), Nulls: count(f.NullValueCounts(), id), NaNs: count(f.NaNValueCounts(), id),
		}
		if field, ok := s.whole.FindFieldByID(id); ok && (milliseconds(field.Type, out.Lower) || milliseconds(field.Type, out.Upper)) {
			out.Lower, out.Upper = nil, nil
		}
		return out
	}
}

// milliseconds reports whether a bound of microseconds may be one of milliseconds: Iceberg's Java library
// takes the bounds of files that others wrote with times in milliseconds as they are. Of those all that lie
// in the years 1 to 9999 look like 1968 to 1978, and those of a time of day like its first 87 seconds.
func milliseconds(t iceberg.Type, bound []byte) bool {
	const year1, year9999, day = -62135596800_000, 253402300800_000, 86400_000
	if len(bound) != 8 {
		return false
	}
	v := int64(binary.LittleEndian.Uint64(bound))
	switch t.(type) {
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return v >= year1 && v <= year9999
	case iceberg.TimeType:
		return v <= day
	}
	return false
}

// groupStats are what the footer says of a row group's columns. A float's NaNs are known from the
// manifest alone, and then if there are none in the whole file.
func (s *Scan) groupStats(src *source, columns columnMap, f iceberg.DataFile, group int) func(id int) filter.Stats {
	leaves := columns.leafByID()
	whole := s.fileStats(f)
	n := src.reader.MetaData().RowGroup(group).NumRows()
	return func(id int) filter.Stats {
		out := filter.Stats{Rows: n, Nulls: -1, NaNs: -1}
		if whole(id).NaNs == 0 {
			out.NaNs = 0
		}
		leaf, ok := leaves[id]
		if !ok {
			if _, there := columns.byID[id]; !there && s.readsNull(id) {
				out.Nulls = n
			}
			return out
		}
		field, ok := s.whole.FindFieldByID(id)
		if !ok {
			return out
		}
		leafStats(src, group, leaf, field.Type, &out)
		return out
	}
}

// readsNull reports whether a top-level column reads as null in files that do not have it.
func (s *Scan) readsNull(id int) bool {
	return slices.ContainsFunc(s.whole.Fields(), func(f iceberg.NestedField) bool {
		return f.ID == id && f.InitialDefault == nil && !f.Required
	})
}

// leafStats fills in what the footer says of one leaf. It goes by the footer itself: the library takes
// a bound that is missing beside one that is there for an empty one.
func leafStats(src *source, group, leaf int, as iceberg.Type, out *filter.Stats) {
	meta := src.reader.MetaData()
	chunk, err := meta.RowGroup(group).ColumnChunk(leaf)
	if err != nil {
		return
	}
	raw := meta.RowGroups[group].Columns[leaf].MetaData
	if raw == nil || raw.Statistics == nil {
		return
	}
	stats := raw.Statistics
	if stats.IsSetNullCount() && raw.NumValues == out.Rows {
		out.Nulls = stats.GetNullCount()
	}
	descr := meta.Schema.Column(leaf)
	right, err := chunk.StatsSet() // knows writers that computed them wrong
	if err != nil || !right || descr.ColumnOrder() != parquet.ColumnOrders.TypeDefinedOrder || !plainlyStored(descr, as) {
		return
	}
	bound := func(b []byte) []byte {
		if _, decimal := as.(iceberg.DecimalType); decimal && descr.PhysicalType() != parquet.Types.FixedLenByteArray && descr.PhysicalType() != parquet.Types.ByteArray {
			b = slices.Clone(b)
			slices.Reverse(b) // Iceberg has the high byte first
		}
		return b
	}
	if stats.IsSetMinValue() {
		out.Lower = bound(stats.GetMinValue())
	}
	if stats.IsSetMaxValue() {
		out.Upper = bound(stats.GetMaxValue())
	}
}

// plainlyStored reports whether a leaf's values, and so their bounds, are stored in Parquet as Iceberg
// stores a single value of the type, but for the order of a decimal's bytes.
func plainlyStored(c *schema.Column, as iceberg.Type) bool {
	physical, logical := c.PhysicalType(), c.LogicalType()
	signed := func() bool {
		i, ok := logical.(schema.IntLogicalType)
		return !ok && (logical == nil || logical.IsNone()) || ok && i.IsSigned()
	}
	instant := func(unit schema.TimeUnitType) bool {
		t, ok := logical.(schema.TimestampLogicalType)
		return ok && physical == parquet.Types.Int64 && t.TimeUnit() == unit
	}
	switch t := as.(type) {
	case iceberg.BooleanType:
		return physical == parquet.Types.Boolean
	case iceberg.Int32Type:
		return physical == parquet.Types.Int32 && signed()
	case iceberg.Int64Type:
		return (physical == parquet.Types.Int32 || physical == parquet.Types.Int64) && signed()
	case iceberg.Float32Type:
		return physical == parquet.Types.Float
	case iceberg.Float64Type:
		return physical == parquet.Types.Float || physical == parquet.Types.Double
	case iceberg.DateType:
		_, ok := logical.(schema.DateLogicalType)
		return ok && physical == parquet.Types.Int32
	case iceberg.TimeType:
		clock, ok := logical.(schema.TimeLogicalType)
		return ok && physical == parquet.Types.Int64 && clock.TimeUnit() == schema.TimeUnitMicros
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return instant(schema.TimeUnitMicros)
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return instant(schema.TimeUnitNanos)
	case iceberg.DecimalType:
		d, ok := logical.(schema.DecimalLogicalType)
		return ok && int(d.Scale()) == t.Scale()
	case iceberg.StringType:
		_, ok := logical.(schema.StringLogicalType)
		return physical == parquet.Types.ByteArray && (ok || logical == nil || logical.IsNone())
	case iceberg.BinaryType:
		return physical == parquet.Types.ByteArray && (logical == nil || logical.IsNone())
	case iceberg.FixedType:
		return physical == parquet.Types.FixedLenByteArray && (logical == nil || logical.IsNone())
	}
	return false
}

// leafByID are the leaves of fields that hold one value a row: those at the top and in structs.
func (m columnMap) leafByID() map[int]int {
	out := map[int]int{}
	next := 0
	var visit func(f arrow.Field, single bool)
	visit = func(f arrow.Field, single bool) {
		nested, ok := f.Type.(arrow.NestedType)
		if !ok {
			if id, ok := fieldID(f); ok && single {
				out[id] = m.leaves[next]
			}
			next++
			return
		}
		_, inside := f.Type.(*arrow.StructType)
		for _, child := range nested.Fields() {
			visit(child, single && inside)
		}
	}
	for _, f := range m.arrow.Fields() {
		visit(f, true)
	}
	return out
}
