package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// FuzzProject casts random record batches by random plans. Whatever they hold, the three policies agree about
// which rows fit, parts of a record batch become the parts of what it becomes, and no memory is left over.
func FuzzProject(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, uint8(20), uint8(7))
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, cut uint8) { castRandom(t, seed, int(rows)%60, int(cut)) })
}

// TestCastRandom is FuzzProject on seeds that are always the same.
func TestCastRandom(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	fits, refused := 0, 0
	for seed := range rounds {
		n, bad := castRandom(t, uint64(seed)+1000, 24, seed)
		fits, refused = fits+n, refused+bad
	}
	if fits < rounds || refused < rounds {
		t.Errorf("%d rows fit and %d do not: that is no test of both", fits, refused)
	}
}

func castRandom(t *testing.T, seed uint64, n, cut int) (fits, refused int) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	m := &maker{rng: rand.New(rand.NewPCG(seed, 11)), mem: mem, casts: true}
	var fields []arrow.Field
	for range 1 + m.n(3) {
		fields = append(fields, m.field(m.name(), 2))
	}
	sc := arrow.NewSchema(fields, nil)
	src, err := FromArrow(sc, m.chance(0.5))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd, AssumeTimezone: "Europe/Berlin"}
	next := 0
	dst := iceberg.NewSchema(0, withIDs(m.mutate(src.Fields(), nil, nil, false, &o), &next)...)
	p, err := Build(src, dst, 3, o)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s\n%s", seed, err, src, dst)
	}
	checkDocument(t, p)
	rec := m.batch(sc, n)
	defer rec.Release()

	strict := must(p.Projector(sc, mem))
	sorting := must(p.WithPolicy(PolicyReject).Projector(sc, mem))
	whole, outcome, err := sorting.ProjectRows(rec)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	defer whole.Release()
	throughIPC(t, whole)
	rejected := map[int]*ValueError{}
	for _, e := range outcome.Rejects {
		if rejected[int(e.Row)] != nil || e.Row < 0 || e.Row >= rec.NumRows() || e.Value == "" || e.Rule == "" {
			t.Fatalf("seed %d: reject %+v", seed, e)
		}
		rejected[int(e.Row)] = e
	}
	if int(whole.NumRows())+len(rejected) != int(rec.NumRows()) {
		t.Fatalf("seed %d: %d rows and %d rejects of %d", seed, whole.NumRows(), len(rejected), rec.NumRows())
	}
	strictly(t, seed, strict, rec, rejected)
	inParts(t, seed, sorting, rec, whole, cut)
	nulling(t, seed, must(p.WithPolicy(PolicyNull).Projector(sc, mem)), rec, whole, rejected)
	return int(whole.NumRows()), len(rejected)
}

// strictly projects each row alone: it is an error if and only if it was rejected, for the same reason.
func strictly(t *testing.T, seed uint64, p *Projector, rec arrow.RecordBatch, rejected map[int]*ValueError) {
	t.Helper()
	for i := range int(rec.NumRows()) {
		row := rec.NewSlice(int64(i), int64(i)+1)
		out, err := p.Project(row)
		row.Release()
		bad := new(ValueError)
		switch want := rejected[i]; {
		case err == nil:
			out.Release()
			if want != nil {
				t.Fatalf("seed %d: row %d fits alone, and is rejected: %v", seed, i, want)
			}
		case !errors.As(err, &bad):
			t.Fatalf("seed %d: %v", seed, err)
		case want == nil || bad.Path != want.Path || bad.Rule != want.Rule || bad.Value != want.Value || bad.Row != 0:
			t.Fatalf("seed %d: row %d alone: %v, among others: %v", seed, i, err, want)
		}
	}
}

// inParts projects a record batch in two parts.
func inParts(t *testing.T, seed uint64, p *Projector, rec, whole arrow.RecordBatch, cut int) {
	t.Helper()
	at := int64(0)
	if rec.NumRows() > 0 {
		at = int64(cut) % (rec.NumRows() + 1)
	}
	next := 0
	for _, part := range []arrow.RecordBatch{rec.NewSlice(0, at), rec.NewSlice(at, rec.NumRows())} {
		out, _, err := p.ProjectRows(part)
		part.Release()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range int(out.NumRows()) {
			if got, want := fmt.Sprint(row(out, i)), fmt.Sprint(row(whole, next)); got != want {
				t.Fatalf("seed %d: row %d\n%s in parts,\n%s whole", seed, next, got, want)
			}
			next++
		}
		out.Release()
	}
	if next != int(whole.NumRows()) {
		t.Fatalf("seed %d: %d rows in parts, %d whole", seed, next, whole.NumRows())
	}
}

// nulling projects with null in the place of what does not fit: all rows are there, and those that fit as they
// were.
func nulling(t *testing.T, seed uint64, p *Projector, rec, whole arrow.RecordBatch, rejected map[int]*ValueError) {
	t.Helper()
	out, o, err := p.ProjectRows(rec)
	if err != nil { // in a key, or where a value is required
		if bad := new(ValueError); !errors.As(err, &bad) || len(rejected) == 0 {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return
	}
	defer out.Release()
	throughIPC(t, out)
	if (o.Nulled == 0) != (len(rejected) == 0) || out.NumRows() != rec.NumRows() || len(o.Rejects) > 0 {
		t.Fatalf("seed %d: %d nulls for %d rejects, %d rows", seed, o.Nulled, len(rejected), out.NumRows())
	}
	next := 0
	for i := range int(out.NumRows()) {
		if rejected[i] != nil {
			continue
		}
		if got, want := row(out, i), row(whole, next); !reflect.DeepEqual(got, want) && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: row %d\n%v with nulls,\n%v", seed, i, got, want)
		}
		next++
	}
}
