package datafile

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// A partition is the rows that share a file: what the table's metadata says of them, and the folders
// that their files go to.
type partition struct {
	values map[int]any // by partition field ID; nil for an unpartitioned table
	folder string
}

// partitioner clusters rows by the values of a table's partition fields.
type partitioner struct {
	fields []partitionField
	plain  bool // no field tells rows apart: one partition
}

type partitionField struct {
	id   int
	name string
	void bool
	source
}

// newPartitioner refuses specs that rows cannot be clustered by, naming the field.
func newPartitioner(s *iceberg.Schema, spec iceberg.PartitionSpec) (*partitioner, error) {
	p := &partitioner{plain: true}
	for _, f := range spec.Fields() {
		pf := partitionField{id: f.FieldID, name: f.Name}
		switch {
		case f.Transform.Equals(iceberg.VoidTransform{}):
			pf.void = true // whatever its source, and be that gone
		case len(f.SourceIDs) != 1:
			return nil, fmt.Errorf("partition field %q has %d source columns: only one is known how to be written", f.Name, len(f.SourceIDs))
		default:
			tr := plainTransform(f.Transform)
			src, err := findSource(s, f.SourceID(), tr)
			if err != nil {
				return nil, fmt.Errorf("partition field %q: %w", f.Name, err)
			}
			if unknown, is := tr.(iceberg.UnknownTransform); is {
				return nil, fmt.Errorf("partition field %q has transform %q, which is not known how to be written", f.Name, unknown)
			}
			pf.source = src
			p.plain = false
		}
		p.fields = append(p.fields, pf)
	}
	return p, nil
}

// plainTransform takes the transforms that the library also hands around by pointer as values.
func plainTransform(t iceberg.Transform) iceberg.Transform {
	switch t := t.(type) {
	case *iceberg.BucketTransform:
		return *t
	case *iceberg.TruncateTransform:
		return *t
	}
	return t
}

// whole is the one partition of a table without partition fields that tell rows apart.
func (p *partitioner) whole() *partition {
	if len(p.fields) == 0 {
		return &partition{}
	}
	values := map[int]any{}
	for _, f := range p.fields {
		values[f.id] = nil
	}
	return &partition{values: values}
}

// cluster is rows of one partition, in their order.
type cluster struct {
	part *partition
	rows []int32
}

// split clusters n rows; column gives a column of them. Clusters come in the order of their first
// rows. Each of NULL, the empty string, the string "null", NaN, 0.0 and -0.0 is a value of its own
// (cases 62, 65).
func (p *partitioner) split(n int, column func(int) (arrow.Array, error)) ([]cluster, error) {
	var (
		ids   []int32 // partition of each row
		count int
		all   = make([]keys, len(p.fields))
	)
	for i, f := range p.fields {
		if f.void {
			continue
		}
		arr, err := column(f.top)
		if err != nil {
			return nil, err
		}
		k, err := f.keys(arr)
		if err != nil {
			return nil, fmt.Errorf("partition field %q: %w", f.name, err)
		}
		all[i] = k
		codes, distinct := k.codes()
		if ids == nil {
			ids, count = codes, distinct
			continue
		}
		ids, count = combine(ids, codes)
	}
	if ids == nil {
		ids, count = make([]int32, n), 1
	}
	return p.gather(ids, count, all), nil
}

// codes numbers the distinct values, in the order in which they come.
func (k keys) codes() ([]int32, int) {
	out := make([]int32, k.len())
	next, null := int32(0), int32(-1)
	fresh := func() int32 { next++; return next - 1 }
	codeOfNull := func() int32 {
		if null < 0 {
			null = fresh()
		}
		return null
	}
	if k.bytes != nil {
		seen := map[string]int32{}
		for i, b := range k.bytes {
			if k.null(i) {
				out[i] = codeOfNull()
				continue
			}
			c, ok := seen[string(b)]
			if !ok {
				c = fresh()
				seen[string(b)] = c
			}
			out[i] = c
		}
		return out, int(next)
	}
	seen := map[int64]int32{}
	last, lastCode := int64(0), int32(-1) // rows of a partition often come together
	for i, v := range k.ints {
		if k.null(i) {
			out[i] = codeOfNull()
			continue
		}
		if lastCode < 0 || v != last {
			c, ok := seen[v]
			if !ok {
				c = fresh()
				seen[v] = c
			}
			last, lastCode = v, c
		}
		out[i] = lastCode
	}
	return out, int(next)
}

// combine numbers the distinct pairs of two numberings.
func combine(a, b []int32) ([]int32, int) {
	seen := map[[2]int32]int32{}
	for i := range a {
		pair := [2]int32{a[i], b[i]}
		c, ok := seen[pair]
		if !ok {
			c = int32(len(seen))
			seen[pair] = c
		}
		a[i] = c
	}
	return a, len(seen)
}

func (p *partitioner) gather(ids []int32, count int, all []keys) []cluster {
	sizes := make([]int, count)
	for _, id := range ids {
		sizes[id]++
	}
	rows := make([]int32, len(ids))
	out := make([]cluster, count)
	at := 0
	for id, n := range sizes {
		out[id].rows = rows[at : at : at+n]
		at += n
	}
	for i, id := range ids {
		c := &out[id]
		if c.part == nil {
			c.part = p.partitionOf(all, i)
		}
		c.rows = append(c.rows, int32(i))
	}
	return out
}

func (p *partitioner) partitionOf(all []keys, row int) *partition {
	part := &partition{values: map[int]any{}}
	var folders []string
	for i, f := range p.fields {
		var v any
		human := "null"
		if !f.void {
			v = all[i].value(row)
			human = f.transform.ToHumanStrType(all[i].typ, v)
		}
		part.values[f.id] = v
		folders = append(folders, folder(f.name, human))
	}
	part.folder = strings.Join(folders, "/")
	return part
}
