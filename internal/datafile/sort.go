package datafile

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// sorter orders rows by a table's sort order.
type sorter struct {
	id     int // of the sort order; 0: files are not sorted
	fields []sortField
}

type sortField struct {
	source
	descending, nullsLast bool
}

// newSorter takes a sort order. One that cannot be followed, by a transform of a later version of the
// format for example, leaves files unsorted: they are right without it, and do not claim it.
func newSorter(s *iceberg.Schema, order table.SortOrder) *sorter {
	out := &sorter{id: order.OrderID()}
	for _, f := range order.Fields() {
		tr := plainTransform(f.Transform)
		if f.Transform.Equals(iceberg.VoidTransform{}) {
			continue // orders nothing
		}
		_, unknown := tr.(iceberg.UnknownTransform)
		src, err := findSource(s, f.SourceID(), tr)
		if unknown || err != nil || len(f.SourceIDs) != 1 {
			return &sorter{}
		}
		out.fields = append(out.fields, sortField{
			source:     src,
			descending: f.Direction == table.SortDESC,
			nullsLast:  f.NullOrder == table.NullsLast,
		})
	}
	if len(out.fields) == 0 {
		return &sorter{}
	}
	return out
}

func (s *sorter) sorts() bool { return len(s.fields) > 0 }

// sort orders rows in place: stable, NaN above every number (spec: Sorting).
func (s *sorter) sort(rows []int32, all []keys) {
	slices.SortStableFunc(rows, func(a, b int32) int {
		for i, f := range s.fields {
			if c := f.compare(all[i], int(a), int(b)); c != 0 {
				return c
			}
		}
		return 0
	})
}

// keys reads the sort columns of a batch.
func (s *sorter) keys(column func(int) (arrow.Array, error)) ([]keys, error) {
	all := make([]keys, len(s.fields))
	for i, f := range s.fields {
		arr, err := column(f.top)
		if err != nil {
			return nil, err
		}
		if all[i], err = f.keys(arr); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (f sortField) compare(k keys, a, b int) int {
	if an, bn := k.null(a), k.null(b); an || bn {
		switch {
		case an && bn:
			return 0
		case an == f.nullsLast:
			return 1
		}
		return -1
	}
	var c int
	if k.bytes != nil {
		c = bytes.Compare(k.bytes[a], k.bytes[b])
	} else {
		c = cmp.Compare(k.ints[a], k.ints[b])
	}
	if f.descending {
		return -c
	}
	return c
}
