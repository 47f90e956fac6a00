package datafile

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/iceberg-go"
)

// TestStatistics: what cannot be relied on does not come along, bound by bound.
func TestStatistics(t *testing.T) {
	no := false
	le64 := func(bits uint64) []byte { return binary.LittleEndian.AppendUint64(nil, bits) }
	float := func(x float64) []byte { return le64(math.Float64bits(x)) }
	schema := iceberg.NewSchema(0, opt(1, "n", prim.Int64), opt(2, "f", prim.Float64), opt(3, "s", prim.String))
	one, minusOne := le64(1), le64(math.MaxUint64)
	for _, tt := range []struct {
		name     string
		leaf     int
		low      []byte
		high     []byte
		with     func(s *Source, leaf int)
		min, max []byte // nil: no bounds
		counted  bool
	}{
		{"as they are", 0, minusOne, one, nil, minusOne, one, true},
		{"the wrong way round", 0, one, minusOne, nil, nil, nil, true},
		{"of another length", 0, []byte{1}, one, nil, nil, nil, true},
		{"one alone", 0, minusOne, nil, nil, nil, nil, true},
		{"inexact", 0, minusOne, one, func(s *Source, leaf int) {
			s.Reader.MetaData().RowGroups[0].Columns[leaf].MetaData.Statistics.IsMaxValueExact = &no
		}, nil, nil, true},
		{"floats", 1, float(-1), float(2), nil, float(-1), float(2), false},
		{"zeros", 1, float(0), float(math.Copysign(0, -1)), nil, float(math.Copysign(0, -1)), float(0), false},
		{"NaN", 1, float(math.NaN()), float(2), nil, nil, nil, false},
		{"NaN above", 1, float(1), float(math.NaN()), nil, nil, nil, false},
		{"NaNs counted", 1, float(1), float(2), func(s *Source, leaf int) {
			n := int64(0)
			s.Reader.MetaData().RowGroups[0].Columns[leaf].MetaData.Statistics.NanCount = &n
		}, float(1), float(2), true},
		{"texts", 2, []byte("a"), []byte("ä"), nil, []byte("a"), []byte("ä"), true},
		{"long texts", 2, []byte("a"), bytes.Repeat([]byte("x"), 5000), nil, nil, nil, true},
		{"no order", 2, []byte("a"), []byte("b"), func(s *Source, _ int) { undefined(t, s) }, nil, nil, true},
		{"deprecated integers", 0, nil, nil, func(s *Source, leaf int) {
			st := s.Reader.MetaData().RowGroups[0].Columns[leaf].MetaData.Statistics
			st.Min, st.Max = minusOne, one
			undefined(t, s)
		}, minusOne, one, true},
		{"deprecated texts", 2, nil, nil, func(s *Source, leaf int) {
			st := s.Reader.MetaData().RowGroups[0].Columns[leaf].MetaData.Statistics
			st.Min, st.Max = []byte("a"), []byte("a")
			undefined(t, s)
		}, nil, nil, true},
		{"deprecated floats", 1, nil, nil, func(s *Source, leaf int) {
			st := s.Reader.MetaData().RowGroups[0].Columns[leaf].MetaData.Statistics
			st.Min, st.Max = float(1), float(2)
			undefined(t, s)
		}, nil, nil, false},
	} {
		s := copySource(t, schema, `[{"n":1,"f":1,"s":"a"},{"n":2,"f":null,"s":null}]`)
		st := s.Reader.MetaData().RowGroups[0].Columns[tt.leaf].MetaData.Statistics
		nulls := *st.NullCount
		st.Min, st.Max, st.MinValue, st.MaxValue = nil, nil, tt.low, tt.high
		if tt.with != nil {
			tt.with(s, tt.leaf)
		}
		k := statisticsOf(s, 0, tt.leaf)
		if !bytes.Equal(k.Min, tt.min) || !bytes.Equal(k.Max, tt.max) || k.HasMin != (tt.min != nil) || k.HasMax != (tt.max != nil) {
			t.Errorf("%s: bounds %x and %x, want %x and %x", tt.name, k.Min, k.Max, tt.min, tt.max)
		}
		if !k.HasNullCount || k.NullCount != nulls || k.counted != tt.counted {
			t.Errorf("%s: %d nulls, NaNs known: %v", tt.name, k.NullCount, k.counted)
		}
	}
}

// undefined takes away the order of all columns' values, as files of before there was one have it.
func undefined(t *testing.T, s *Source) {
	t.Helper()
	orders := make([]parquet.ColumnOrder, s.Reader.MetaData().Schema.NumColumns())
	for i := range orders {
		orders[i] = parquet.ColumnOrders.Undefined
	}
	if err := s.Reader.MetaData().Schema.UpdateColumnOrders(orders); err != nil {
		t.Fatal(err)
	}
}

// TestCountsThatNobodyKnows: a file one of whose chunks has no counts says nothing of nulls, nor of bounds.
func TestCountsThatNobodyKnows(t *testing.T) {
	schema := iceberg.NewSchema(0, opt(1, "n", prim.Int64), req(2, "r", prim.Int64))
	s := copySource(t, schema, `[{"n":1,"r":1},{"n":null,"r":2}]`)
	for _, c := range s.Reader.MetaData().RowGroups[0].Columns {
		c.MetaData.Statistics = nil
	}
	w := newWriter(t, copyConfig(t, schema, nil))
	for range 2 { // row groups
		if err := w.Take(t.Context(), partOf(s, schema, 0)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := w.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := files[0]
	if _, ok := f.NullValueCounts()[1]; ok || f.NullValueCounts()[2] != 0 {
		t.Errorf("null counts %v", f.NullValueCounts())
	}
	if len(f.LowerBoundValues())+len(f.UpperBoundValues()) > 0 || f.ValueCounts()[1] != 4 || f.ValueCounts()[2] != 4 {
		t.Errorf("bounds %v to %v, values %v", f.LowerBoundValues(), f.UpperBoundValues(), f.ValueCounts())
	}
}
