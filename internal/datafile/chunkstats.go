package datafile

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// boundBytes is how long a bound may be that comes along; writers leave longer ones out.
const boundBytes = 4 << 10

// known is what may be relied on of a chunk's statistics.
type known struct {
	metadata.EncodedStatistics
	nans    int64
	counted bool // nans is known
}

// statisticsOf says what may be relied on of the statistics of a chunk: exact bounds in the order that Parquet
// defines for the column, of a writer that is not known to get them wrong, and counts. A value that is
// required at every level needs no count of nulls.
func statisticsOf(src *Source, group, leaf int) known {
	var k known
	meta := src.Reader.MetaData()
	col := meta.Schema.Column(leaf)
	m := meta.RowGroups[group].Columns[leaf].MetaData
	if col.MaxDefinitionLevel() == 0 {
		k.SetNullCount(0)
	}
	float := col.PhysicalType() == parquet.Types.Float || col.PhysicalType() == parquet.Types.Double
	st := m.Statistics
	if st == nil {
		k.counted = !float
		return k
	}
	if st.NullCount != nil && *st.NullCount >= 0 && *st.NullCount <= m.NumValues {
		k.SetNullCount(*st.NullCount)
	}
	switch {
	case !float, k.HasNullCount && k.NullCount == m.NumValues:
		k.counted = true
	case st.NanCount != nil && *st.NanCount >= 0 && *st.NanCount <= m.NumValues:
		k.nans, k.counted = *st.NanCount, true
	}
	low, high := st.MinValue, st.MaxValue
	if col.ColumnOrder() != parquet.ColumnOrders.TypeDefinedOrder {
		// The fields of before there was an order compare as signed values, whatever the type.
		low, high = st.Min, st.Max
		if !plainlySigned(col) {
			return k
		}
	}
	inexact := func(exact *bool) bool { return exact != nil && !*exact }
	if low == nil || high == nil || inexact(st.IsMinValueExact) || inexact(st.IsMaxValueExact) || !sound(src, group, leaf) {
		return k
	}
	if low, high, ok := bounds(col, low, high); ok {
		k.SetMin(low)
		k.SetMax(high)
	}
	return k
}

// plainlySigned reports whether the deprecated bounds of a column are right: of integers. Those of floats are of
// writers that took NaN for a number.
func plainlySigned(col *schema.Column) bool {
	integer := col.PhysicalType() == parquet.Types.Int32 || col.PhysicalType() == parquet.Types.Int64
	return integer && col.SortOrder() == schema.SortSIGNED
}

// sound reports whether the library trusts the writer of the file with statistics of such a column.
func sound(src *Source, group, leaf int) (ok bool) {
	defer func() {
		if recover() != nil { // what is no value of the type
			ok = false
		}
	}()
	chunk, err := src.Reader.MetaData().RowGroup(group).ColumnChunk(leaf)
	if err != nil {
		return false
	}
	set, err := chunk.StatsSet()
	return err == nil && set
}

// bounds holds a lower and an upper bound against the type. Zeros are widened as the order of Iceberg wants it,
// in which -0.0 comes before 0.0; NaN is no bound.
func bounds(col *schema.Column, low, high []byte) ([]byte, []byte, bool) {
	size, ordered := 0, false
	switch col.PhysicalType() {
	case parquet.Types.Boolean:
		size, ordered = 1, true
	case parquet.Types.Int32:
		size = 4
		ordered = len(low) == 4 && len(high) == 4 && int32(binary.LittleEndian.Uint32(low)) <= int32(binary.LittleEndian.Uint32(high))
	case parquet.Types.Int64:
		size = 8
		ordered = len(low) == 8 && len(high) == 8 && int64(binary.LittleEndian.Uint64(low)) <= int64(binary.LittleEndian.Uint64(high))
	case parquet.Types.Float:
		if len(low) != 4 || len(high) != 4 {
			return nil, nil, false
		}
		a, b := math.Float32frombits(binary.LittleEndian.Uint32(low)), math.Float32frombits(binary.LittleEndian.Uint32(high))
		size, ordered = 4, a <= b
		if a == 0 {
			low = binary.LittleEndian.AppendUint32(nil, 1<<31)
		}
		if b == 0 {
			high = make([]byte, 4)
		}
	case parquet.Types.Double:
		if len(low) != 8 || len(high) != 8 {
			return nil, nil, false
		}
		a, b := math.Float64frombits(binary.LittleEndian.Uint64(low)), math.Float64frombits(binary.LittleEndian.Uint64(high))
		size, ordered = 8, a <= b
		if a == 0 {
			low = binary.LittleEndian.AppendUint64(nil, 1<<63)
		}
		if b == 0 {
			high = make([]byte, 8)
		}
	case parquet.Types.FixedLenByteArray:
		size, ordered = col.TypeLength(), true
		if _, decimal := col.LogicalType().(schema.DecimalLogicalType); !decimal {
			ordered = bytes.Compare(low, high) <= 0
		}
	case parquet.Types.ByteArray:
		ok := len(low) <= boundBytes && len(high) <= boundBytes && bytes.Compare(low, high) <= 0
		return low, high, ok
	}
	return low, high, ordered && len(low) == size && len(high) == size
}
