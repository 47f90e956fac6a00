package lake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/iceberg-go"
)

// An int96Column reads a column of the old INT96 timestamps as microseconds. arrow-go reads them as
// nanoseconds and refuses what lies outside of 1677 to 2262 (cases 39, 40).
type int96Column struct {
	chunk  *file.Int96ColumnChunkReader
	values []parquet.Int96
	levels []int16
	kind   *arrow.TimestampType
	mem    memory.Allocator
}

// int96Type is what an INT96 column is read as where the table has it as t: an instant, or a time
// without a zone.
func int96Type(t iceberg.Type) *arrow.TimestampType {
	if _, naive := t.(iceberg.TimestampType); naive {
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	}
	return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
}

// isInt96 reports whether a leaf column is a top-level INT96 one.
func (s *source) isInt96(leaf int) bool {
	column := s.reader.MetaData().Schema.Column(leaf)
	return column.PhysicalType() == parquet.Types.Int96 && column.MaxRepetitionLevel() == 0 && column.MaxDefinitionLevel() <= 1 &&
		len(column.ColumnPath()) == 1
}

func (s *source) newInt96(group, leaf int, kind *arrow.TimestampType) (*int96Column, error) {
	reader, err := s.reader.RowGroup(group).Column(leaf)
	if err != nil {
		return nil, err
	}
	chunk, ok := reader.(*file.Int96ColumnChunkReader)
	if !ok {
		return nil, fmt.Errorf("column %d is not INT96", leaf)
	}
	return &int96Column{chunk: chunk, kind: kind, mem: s.mem}, nil
}

// next reads the next n rows.
func (c *int96Column) next(n int64) (arrow.Array, error) {
	b := array.NewTimestampBuilder(c.mem, c.kind)
	defer b.Release()
	optional := c.chunk.Descriptor().MaxDefinitionLevel() > 0
	if int64(len(c.values)) < n {
		c.values, c.levels = make([]parquet.Int96, n), make([]int16, n)
	}
	for n > 0 {
		if !c.chunk.HasNext() {
			return nil, errors.Join(errors.New("the column ends early"), c.chunk.Err())
		}
		total, read, err := c.chunk.ReadBatch(n, c.values, c.levels, nil)
		if err != nil {
			return nil, err
		}
		at := 0
		for i := range int(total) {
			if optional && c.levels[i] == 0 {
				b.AppendNull()
				continue
			}
			us, err := microseconds(c.values[at])
			if err != nil {
				return nil, err
			}
			at++
			b.Append(us)
		}
		if at != read {
			return nil, fmt.Errorf("%d values for %d rows", read, total)
		}
		n -= total
	}
	return b.NewArray(), nil
}

// microseconds since 1970 of a Julian day and the nanoseconds in it.
func microseconds(v parquet.Int96) (arrow.Timestamp, error) {
	const epoch, day = 2440588, 86_400_000_000
	nanos := int64(binary.LittleEndian.Uint64(v[:8]))
	days := int64(binary.LittleEndian.Uint32(v[8:])) - epoch
	if days > math.MaxInt64/day-1 || days < math.MinInt64/day+1 || nanos < 0 || nanos > day*1000 {
		return 0, fmt.Errorf("an INT96 timestamp of Julian day %d and %d ns is outside the range of timestamps", days+epoch, nanos)
	}
	return arrow.Timestamp(days*day + nanos/1000), nil
}
