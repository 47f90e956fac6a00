package plan

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// value shows a slot in a form that says what it means, whatever its type: numbers, decimals and
// points in time as fractions, text and bytes as strings. Promotions and normalisations change
// nothing of it.
func value(a arrow.Array, i int) any {
	if a.IsNull(i) || a.DataType().ID() == arrow.NULL {
		return nil
	}
	switch a := a.(type) {
	case *array.Struct:
		out := map[string]any{}
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			out[f.Name] = value(a.Field(k), i)
		}
		return out
	case *array.Map:
		out := []any{}
		for from, to := a.ValueOffsets(i); from < to; from++ {
			out = append(out, [2]any{value(a.Keys(), int(from)), value(a.Items(), int(from))})
		}
		return out
	case array.ListLike:
		out := []any{}
		for from, to := a.ValueOffsets(i); from < to; from++ {
			out = append(out, value(a.ListValues(), int(from)))
		}
		return out
	case *array.Dictionary:
		return value(a.Dictionary(), a.GetValueIndex(i))
	case *array.RunEndEncoded:
		return value(a.Values(), a.GetPhysicalIndex(i))
	case *extensions.UUIDArray:
		return value(a.Storage(), i)
	}
	return scalar(a, i)
}

func scalar(a arrow.Array, i int) any {
	days, ns := big.NewRat(86400, 1), func(v int64, perSecond int64) any { return big.NewRat(v, perSecond).RatString() }
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Float16:
		return float64(a.Value(i).Float32())
	case *array.Float32:
		return comparable64(float64(a.Value(i)))
	case *array.Float64:
		return comparable64(a.Value(i))
	case *array.FixedSizeBinary:
		return string(a.Value(i))
	case *array.Date32:
		return days.Mul(days, big.NewRat(int64(a.Value(i)), 1)).RatString()
	case *array.Date64:
		return ns(int64(a.Value(i)), 1000)
	case *array.Time32:
		return ns(int64(a.Value(i)), perSecond(a.DataType().(*arrow.Time32Type).Unit))
	case *array.Time64:
		return ns(int64(a.Value(i)), perSecond(a.DataType().(*arrow.Time64Type).Unit))
	case *array.Timestamp:
		return ns(int64(a.Value(i)), perSecond(a.DataType().(*arrow.TimestampType).Unit))
	case *array.Decimal32:
		return decimal128.FromI64(int64(a.Value(i))).ToString(a.DataType().(arrow.DecimalType).GetScale())
	case *array.Decimal64:
		return decimal128.FromI64(int64(a.Value(i))).ToString(a.DataType().(arrow.DecimalType).GetScale())
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(arrow.DecimalType).GetScale())
	case interface{ Value(int) string }:
		return a.Value(i)
	case interface{ Value(int) []byte }:
		return string(a.Value(i))
	}
	return fmt.Sprint(reflect.ValueOf(a).MethodByName("Value").Call([]reflect.Value{reflect.ValueOf(i)})[0])
}

// comparable64 makes NaN equal to itself.
func comparable64(v float64) any {
	if v != v {
		return "NaN"
	}
	return v
}

// want is what a column must show for a source value, the slow and obvious way.
func want(c *Column, v any) any {
	if v == nil || c.Action.fills() {
		return nil
	}
	switch c.Target.Type.(type) {
	case *iceberg.StructType:
		return wantFields(c.Fields, v.(map[string]any))
	case *iceberg.ListType:
		out := []any{}
		for _, e := range v.([]any) {
			out = append(out, want(&c.Fields[0], e))
		}
		return out
	case *iceberg.MapType:
		out := []any{}
		for _, e := range v.([]any) {
			out = append(out, [2]any{want(&c.Fields[0], e.([2]any)[0]), want(&c.Fields[1], e.([2]any)[1])})
		}
		return out
	}
	return v
}

func wantFields(columns []Column, row map[string]any) map[string]any {
	out := map[string]any{}
	for i := range columns {
		c := &columns[i]
		out[c.Target.Name] = nil
		if c.Source != nil {
			out[c.Target.Name] = want(c, row[c.Source[len(c.Source)-1]])
		}
	}
	return out
}

func row(rec arrow.RecordBatch, i int) map[string]any {
	out := map[string]any{}
	for k, f := range rec.Schema().Fields() {
		out[f.Name] = value(rec.Column(k), i)
	}
	return out
}

// TestProjectRandom projects random record batches by random plans and compares every value with
// what the plan says of it.
func TestProjectRandom(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { projectRandom(t, uint64(seed)) })
	}
}

func projectRandom(t *testing.T, seed uint64) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	m := &maker{rng: rand.New(rand.NewPCG(seed, 7)), mem: mem}

	var fields []arrow.Field
	for range 1 + m.n(5) {
		fields = append(fields, m.field(m.name(), 3))
	}
	sc := arrow.NewSchema(fields, nil)
	src, err := FromArrow(sc, m.chance(0.5))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd}
	next := 0
	dst := iceberg.NewSchema(0, withIDs(m.mutate(src.Fields(), nil, nil, false, &o), &next)...)
	p, err := Build(src, dst, 3, o)
	if err != nil {
		t.Fatalf("%v\n%s\n%s\n%+v", err, src, dst, o)
	}
	checkDocument(t, p)
	proj, err := p.Projector(sc, mem)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		rec := m.batch(sc, m.n(40))
		checkProjection(t, p, proj, rec)
		rec.Release()
	}
}

func (m *maker) batch(sc *arrow.Schema, rows int) arrow.RecordBatch {
	var columns []arrow.Array
	for _, f := range sc.Fields() {
		c := m.array(f, rows, nil)
		defer c.Release()
		columns = append(columns, c)
	}
	rec := array.NewRecordBatch(sc, columns, int64(rows))
	if !m.chance(0.5) {
		return rec
	}
	defer rec.Release()
	from := m.n(rows + 1)
	return rec.NewSlice(int64(from), int64(from+m.n(rows-from+1)))
}

func checkProjection(t *testing.T, p *Plan, proj *Projector, rec arrow.RecordBatch) {
	t.Helper()
	out, err := proj.Project(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	if !out.Schema().Equal(proj.Schema()) || out.NumRows() != rec.NumRows() {
		t.Fatalf("%d rows of %s", out.NumRows(), out.Schema())
	}
	for i, f := range proj.Schema().Fields() {
		if !arrow.TypeEqual(out.Column(i).DataType(), f.Type, arrow.CheckMetadata()) {
			t.Fatalf("column %d is %s, not %s", i, out.Column(i).DataType(), f.Type)
		}
	}
	for i := range int(rec.NumRows()) {
		if got, want := row(out, i), wantFields(p.Columns, row(rec, i)); !reflect.DeepEqual(got, want) {
			t.Fatalf("row %d\n%v, want\n%v\n%s", i, got, want, summary(p.Columns))
		}
	}
	throughIPC(t, out)
}

// throughIPC holds a projected record batch to be sound: it survives the wire.
func throughIPC(t *testing.T, rec arrow.RecordBatch) {
	t.Helper()
	var wire bytes.Buffer
	w := ipc.NewWriter(&wire, ipc.WithSchema(rec.Schema()))
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&wire)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	back, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	for i := range int(rec.NumRows()) {
		if got, want := row(back, i), row(rec, i); !reflect.DeepEqual(got, want) {
			t.Fatalf("through the wire: row %d\n%v, want\n%v", i, got, want)
		}
	}
}
