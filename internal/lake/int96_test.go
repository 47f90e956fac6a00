package lake

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	iceio "github.com/apache/iceberg-go/io"
)

func int96Of(julian uint32, nanos uint64) (v parquet.Int96) {
	binary.LittleEndian.PutUint64(v[:8], nanos)
	binary.LittleEndian.PutUint32(v[8:], julian)
	return v
}

// int96File writes id, at and p with the given instants, "" for null.
func int96File(t *testing.T, tbl *Table, at []string) string {
	t.Helper()
	opt := parquet.Repetitions.Optional
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{
		schema.NewInt64Node("id", opt, 1), schema.NewInt96Node("at", opt, 2),
		schema.Must(schema.NewPrimitiveNodeLogical("p", opt, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, 3)),
	}, -1)
	if err != nil {
		t.Fatal(err)
	}
	path := tbl.Location() + "/data/int96.parquet"
	f, err := mustFS(t, tbl).(iceio.WriteFileIO).Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := file.NewParquetWriter(f, root)
	group, err := w.AppendBufferedRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	var levels, full []int16
	var values []parquet.Int96
	var ids []int64
	var texts []parquet.ByteArray
	for i, text := range at {
		full, ids, texts = append(full, 1), append(ids, int64(i)), append(texts, parquet.ByteArray("x"))
		if text == "" {
			levels = append(levels, 0)
			continue
		}
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		day := int64(math.Floor(float64(when.Unix()) / 86400))
		nanos := (when.Unix()-day*86400)*1e9 + int64(when.Nanosecond())
		levels, values = append(levels, 1), append(values, int96Of(uint32(day+2440588), uint64(nanos)))
	}
	column := func(i int) file.ColumnChunkWriter {
		c, err := group.Column(i)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	_, err1 := column(0).(*file.Int64ColumnChunkWriter).WriteBatch(ids, full, nil)
	_, err2 := column(1).(*file.Int96ColumnChunkWriter).WriteBatch(values, levels, nil)
	_, err3 := column(2).(*file.ByteArrayColumnChunkWriter).WriteBatch(texts, full, nil)
	for _, err := range []error{err1, err2, err3, w.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestMicroseconds(t *testing.T) {
	for _, c := range []struct {
		julian uint32
		nanos  uint64
		want   int64
		ok     bool
	}{
		{2440588, 0, 0, true},
		{2440587, 86_399_999_999_999, -1, true},
		{2440588, 86_400_000_000_000, 86_400_000_000, true},
		{2440588, 86_400_000_000_001, 0, false},
		{2440588, math.MaxUint64, 0, false},
		{math.MaxUint32, 0, 0, false},
		{0, 0, -2440588 * 86_400_000_000, true},
	} {
		got, err := microseconds(int96Of(c.julian, c.nanos))
		if (err == nil) != c.ok || c.ok && int64(got) != c.want {
			t.Errorf("day %d, %d ns: %d, %v", c.julian, c.nanos, got, err)
		}
	}
}
