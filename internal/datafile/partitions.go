package datafile

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// Partitions tells to which partition of a spec the rows of record batches belong.
type Partitions struct{ p *partitioner }

// A Partition of a table. Partitions of one spec with the same Key are the same.
type Partition struct {
	Key  string // of no use but to compare
	Text string // name=value/…, for people; "" for that of an unpartitioned table
}

// NewPartitions returns the partitions of a spec for record batches of a schema. A spec that rows cannot be
// clustered by is an error that names the field.
func NewPartitions(s *iceberg.Schema, spec iceberg.PartitionSpec) (*Partitions, error) {
	p, err := newPartitioner(s, spec)
	if err != nil {
		return nil, err
	}
	return &Partitions{p}, nil
}

// Split says for each row of a record batch which of the partitions found it belongs to.
func (ps *Partitions) Split(batch arrow.RecordBatch) (of []int32, found []Partition, err error) {
	n := int(batch.NumRows())
	clusters, err := ps.p.split(n, func(i int) (arrow.Array, error) { return batch.Column(i), nil })
	if err != nil {
		return nil, nil, err
	}
	of = make([]int32, n)
	for i, c := range clusters {
		for _, row := range c.rows {
			of[row] = int32(i)
		}
		found = append(found, ps.partition(c.part))
	}
	return of, found, nil
}

// SplitValues is Split with the values of each partition by field ID, as a data file has them.
func (ps *Partitions) SplitValues(batch arrow.RecordBatch) (of []int32, found []map[int]any, err error) {
	n := int(batch.NumRows())
	clusters, err := ps.p.split(n, func(i int) (arrow.Array, error) { return batch.Column(i), nil })
	if err != nil {
		return nil, nil, err
	}
	of = make([]int32, n)
	for i, c := range clusters {
		for _, row := range c.rows {
			of[row] = int32(i)
		}
		found = append(found, c.part.values)
	}
	return of, found, nil
}

func (ps *Partitions) partition(p *partition) Partition {
	var texts []string
	for _, f := range ps.p.fields {
		text := "null"
		if v := p.values[f.id]; !f.void && v != nil {
			text = f.transform.ToHumanStrType(f.transform.ResultType(f.typ), v)
		}
		texts = append(texts, f.name+"="+text)
	}
	return Partition{Key: ps.Key(p.values), Text: strings.Join(texts, "/")}
}

// Key is the key of the partition with these values by field ID, as a data file has them.
func (ps *Partitions) Key(values map[int]any) string {
	var b []byte
	for _, f := range ps.p.fields {
		b = appendValue(b, values[f.id])
	}
	return string(b)
}

// ValuesKey is a key of partition values as data files have them: the same for the same values.
func ValuesKey(values ...any) string {
	var b []byte
	for _, v := range values {
		b = appendValue(b, v)
	}
	return string(b)
}

// appendValue appends a partition value so that the same values have the same bytes, whatever Go type the
// library has for them.
func appendValue(b []byte, v any) []byte {
	text := func(kind byte, s string) []byte {
		return append(binary.BigEndian.AppendUint64(append(b, kind), uint64(len(s))), s...)
	}
	switch v := v.(type) {
	case nil:
		return append(b, 'n')
	case iceberg.Decimal:
		return text('d', v.Val.ToString(int32(v.Scale)))
	case iceberg.DecimalLiteral:
		return text('d', v.Val.ToString(int32(v.Scale)))
	case uuid.UUID:
		return text('t', string(v[:]))
	case []byte:
		return text('t', string(v))
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Bool:
		if r.Bool() {
			return append(b, 'b', 1)
		}
		return append(b, 'b', 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(r.Int()))
	case reflect.Float32, reflect.Float64:
		x := r.Float()
		bits := math.Float64bits(x)
		if x != x {
			bits = 0x7ff8000000000000
		}
		return binary.BigEndian.AppendUint64(append(b, 'f'), bits)
	case reflect.String:
		return text('t', r.String())
	}
	return text('?', fmt.Sprint(v))
}
