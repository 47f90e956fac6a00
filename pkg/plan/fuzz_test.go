package plan

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// FuzzPlanDocument holds hostile plan documents to be an error or a sound plan: one whose document is
// stable, that can be explained, resolved against its own target, and carried out.
func FuzzPlanDocument(f *testing.F) {
	for _, pair := range [][2]string{
		{"a int", "a long"},
		{"order_id int, total double, region string", "order_id long, total double, channel string"},
		{`s struct<a int, n list<struct<k date>>>, m map<string, uuid>, "a.b" fixed[3]`, `m map<string, uuid>, s struct<b int, a long, n list<struct<k timestamp>>>, "a.b" fixed[3]`},
		{`a string, t timestamp, m map<int, list<double>>, gone int`, `a decimal(9,2), t timestamptz, m map<string, list<long>>`},
	} {
		o := Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd, AssumeTimezone: "+02:00", OnCastError: PolicyReject}
		if strings.Contains(pair[0], "gone") {
			o.Drop = []string{"gone"}
		}
		p, err := Build(schema(f, 1, pair[0]), schema(f, 1, pair[1]), 3, o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(must(p.MarshalJSON()))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		first := must(p.MarshalJSON())
		again, err := Parse(first)
		if err != nil {
			t.Fatalf("parse what was written: %v", err)
		}
		if second := must(again.MarshalJSON()); !bytes.Equal(first, second) {
			t.Fatalf("the document changes:\n%s\n%s", first, second)
		}
		if err := p.Explain(io.Discard); err != nil {
			t.Fatal(err)
		}
		resolves(t, p)
		projects(t, p)
	})
}

// resolves finds a plan's targets in its own target, unless a column has no ID yet.
func resolves(t *testing.T, p *Plan) {
	r, err := p.Resolve(p.Target())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(summary(r.Columns), summary(p.Columns)) {
		t.Fatalf("%s becomes %s", summary(p.Columns), summary(r.Columns))
	}
}

// projects carries a plan out on nulls.
func projects(t *testing.T, p *Plan) {
	var fields []arrow.Field
	for i := range p.Columns {
		if c := &p.Columns[i]; c.Source != nil {
			fields = append(fields, sourceField(c))
		}
	}
	sc := arrow.NewSchema(fields, nil)
	proj, err := p.Projector(sc, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for _, f := range b.Fields() {
		f.AppendNull()
		f.AppendEmptyValue()
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	if len(fields) == 0 {
		return
	}
	out, err := proj.Project(rec)
	if bad := new(ValueError); errors.As(err, &bad) { // an empty text is no number
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	out.Release()
}

// sourceField is the Arrow field that a column is taken from.
func sourceField(c *Column) arrow.Field {
	f := arrow.Field{Name: c.Source[len(c.Source)-1], Nullable: true}
	if c.SourceType != nil {
		f.Type = arrowType(c.SourceType)
		return f
	}
	var inner []arrow.Field
	for i := range c.Fields {
		if c.Fields[i].Source != nil {
			inner = append(inner, sourceField(&c.Fields[i]))
		}
	}
	switch arrowType(c.Target.Type).ID() {
	case arrow.STRUCT:
		f.Type = arrow.StructOf(inner...)
	case arrow.LIST:
		f.Type = arrow.ListOfField(inner[0])
	default:
		inner[0].Nullable = false
		f.Type = arrow.MapOfFields(inner[0], inner[1])
	}
	return f
}

// FuzzPath holds the grammar of paths to its inverse.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"a", "a.b", `"a.b".c`, `"say ""hi""":x`, "id:decimal(9,2)", `"":"."`, "a..b", `"a`, "s.x:s.y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if parts, err := ParsePath(text); err == nil {
			short := FormatPath(parts)
			if again, err := ParsePath(short); err != nil || !reflect.DeepEqual(again, parts) {
				t.Fatalf("%q: %q, %v", text, again, err)
			}
			if len(short) > len(text) {
				t.Fatalf("%q is written %q", text, short)
			}
		}
		if r, err := ParseRename(text); err == nil {
			if again, err := ParseRename(r.From + ":" + r.To); err != nil || again != r {
				t.Fatalf("%q: %v, %v", text, again, err)
			}
		}
		if c, err := ParseCoercion(text); err == nil {
			if again, err := ParseCoercion(c.Column + ":" + c.Type); err != nil || again != c {
				t.Fatalf("%q: %v, %v", text, again, err)
			}
		}
		parts := []string{text, "x"}
		if again, err := ParsePath(FormatPath(parts)); err != nil || !reflect.DeepEqual(again, parts) {
			t.Fatalf("%q: %q, %v", parts, again, err)
		}
	})
}
