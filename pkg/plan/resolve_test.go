package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// evolved applies changes to a schema as a table does: new IDs, new columns last.
func evolved(t *testing.T, s *iceberg.Schema, changes []Change) *iceberg.Schema {
	t.Helper()
	next := 1000
	fields := s.Fields()
	for _, c := range changes {
		fields = evolve(fields, c.Path, c, &next)
	}
	return iceberg.NewSchema(s.ID+1, fields...)
}

func evolve(fields []iceberg.NestedField, path []string, c Change, next *int) []iceberg.NestedField {
	if len(path) == 1 && c.Kind == AddColumn {
		f := iceberg.NestedField{Name: path[0], Type: c.Type, Doc: c.Doc, InitialDefault: c.InitialDefault, WriteDefault: c.WriteDefault}
		return append(fields, withIDs([]iceberg.NestedField{f}, next)...)
	}
	for i := range fields {
		if fields[i].Name != path[0] {
			continue
		}
		if len(path) == 1 {
			fields[i].Type = c.Type
			continue
		}
		inside := evolve(children(fields[i].Type), path[1:], c, next)
		columns := make([]Column, len(inside))
		for k, f := range inside {
			columns[k].Target = f
		}
		fields[i].Type = withFields(fields[i].Type, columns)
	}
	return fields
}

func TestResolve(t *testing.T) {
	src := schema(t, 1, "order_id long, order_total double, region string, s struct<a int, n list<struct<k int>>>, p long")
	dst := schema(t, 1, "order_id long, total_amount double, channel string, s struct<a int, b int>, p int")
	o := Options{Mapping: []Rename{{"order_total", "total_amount"}}, MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd,
		Coercions: []Coercion{{"p", "long"}}}
	p := must(Build(src, dst, 2, o))

	if _, err := p.Resolve(dst); err == nil || !strings.Contains(err.Error(), "make the schema changes first") {
		t.Errorf("before the changes: %v", err)
	}
	ahead := must(p.ResolveAhead(dst))
	if string(must(ahead.MarshalJSON())) != string(must(p.MarshalJSON())) {
		t.Errorf("resolved ahead of the changes\n%s, want\n%s", must(ahead.MarshalJSON()), must(p.MarshalJSON()))
	}
	pending := must(p.Pending(dst))
	if got := fmt.Sprint(changeDocs(pending)); got != "[{add s.n list<struct<k: int>>} {promote p long} {add region string}]" {
		t.Errorf("pending: %s", got)
	}
	after := evolved(t, dst, pending)
	if left, err := p.Pending(after); err != nil || len(left) > 0 {
		t.Errorf("pending after the changes: %v, %v", left, err)
	}

	// Meanwhile somebody reorders, renames, and adds a column.
	fields := after.Fields()
	fields[1].Name = "amount"
	fields = append([]iceberg.NestedField{{ID: 2000, Name: "note", Type: iceberg.StringType{}}, fields[3]}, append(fields[:3:3], fields[4:]...)...)
	now := iceberg.NewSchema(9, fields...)
	r, err := p.Resolve(now)
	if err != nil {
		t.Fatal(err)
	}
	if ahead := must(p.ResolveAhead(now)); string(must(ahead.MarshalJSON())) != string(must(r.MarshalJSON())) {
		t.Errorf("resolved after the changes\n%s, want\n%s", must(ahead.MarshalJSON()), must(r.MarshalJSON()))
	}
	checkAhead(t, p, dst)
	want := "note null-fill, s take<s{s.a take<s.a, s.b null-fill, s.n add<s.n{s.n.element add<s.n.element{s.n.element.k add<s.n.element.k}}}, " +
		"order_id take<order_id, amount rename<order_total, channel null-fill, p take<p int->long, region add<region"
	if got := summary(r.Columns); got != want {
		t.Errorf("resolved\n%s, want\n%s", got, want)
	}
	if !r.Target().Equals(now) || r.SchemaID != 9 {
		t.Errorf("the target is not the destination's schema:\n%s\n%s", r.Target(), now)
	}
	checkDocument(t, r)
	again := must(r.Resolve(now))
	if string(must(again.MarshalJSON())) != string(must(r.MarshalJSON())) {
		t.Error("resolving a resolved plan changes it")
	}
	if left, err := r.Pending(now); err != nil || len(left) > 0 {
		t.Errorf("pending of the resolved plan: %v, %v", left, err)
	}
	checkCarry(t, p, r, now)
}

// checkAhead resolves a plan whose changes are still to be made, where somebody else made others.
func checkAhead(t *testing.T, p *Plan, dst *iceberg.Schema) {
	t.Helper()
	fields := dst.Fields()
	fields[3].Name = "renamed"
	fields = append(fields, iceberg.NestedField{ID: 2000, Name: "note", Type: iceberg.StringType{}})
	now := iceberg.NewSchema(9, fields...)
	ahead := must(p.ResolveAhead(now))
	checkDocument(t, ahead)
	pending := must(ahead.Pending(now))
	if got := fmt.Sprint(changeDocs(pending)); got != "[{add renamed.n list<struct<k: int>>} {promote p long} {add region string}]" {
		t.Errorf("pending: %s", got)
	}
	after := evolved(t, now, pending)
	if r := must(ahead.Resolve(after)); !r.Target().Equals(after) {
		t.Errorf("the target is not the destination's schema:\n%s\n%s", r.Target(), after)
	}
}

// checkCarry holds projecting and then carrying to be the same as projecting by the resolved plan.
func checkCarry(t *testing.T, p, r *Plan, now *iceberg.Schema) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	carry := must(p.Carry(now))
	if len(carry.Changes) > 0 {
		t.Errorf("carrying changes the schema: %v", carry.Changes)
	}
	checkDocument(t, carry)
	sc := arrowSchema(schema(t, 1, "order_id long, order_total double, region string, s struct<a int, n list<struct<k int>>>, p long").Fields())
	b := array.NewRecordBuilder(mem, sc)
	defer b.Release()
	for _, row := range []string{`{"order_id": 1, "order_total": 2.5, "region": "eu", "s": {"a": 1, "n": [{"k": 7}, null]}, "p": 5}`, `{"s": {}}`, `{}`} {
		if err := b.UnmarshalJSON([]byte(row)); err != nil {
			t.Fatal(err)
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	first := must(p.Projector(sc, mem))
	mid := must(first.Project(rec))
	defer mid.Release()
	two := must(must(carry.Projector(first.Schema(), mem)).Project(mid))
	defer two.Release()
	one := must(must(r.Projector(sc, mem)).Project(rec))
	defer one.Release()
	if !two.Schema().Equal(one.Schema()) || !array.RecordEqual(one, two) {
		t.Errorf("in one step\n%v, in two\n%v", one, two)
	}
}

func TestResolveRefuses(t *testing.T) {
	src := schema(t, 1, "a int, b int, s struct<x int>, new int")
	dst := schema(t, 1, "a int, b int, c int, s struct<x int>, d string")
	p := must(Build(src, dst, 2, Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd}))
	after := evolved(t, dst, p.Changes)
	change := func(f func([]iceberg.NestedField) []iceberg.NestedField) *iceberg.Schema {
		return iceberg.NewSchema(5, f(after.Fields())...)
	}
	for want, now := range map[string]*iceberg.Schema{
		`column "new": it was to be added, and the destination does not have it`: dst,
		`column "b" (field ID 2): the destination no longer has it`: change(func(f []iceberg.NestedField) []iceberg.NestedField {
			return append(f[:1:1], f[2:]...)
		}),
		`column "b": the destination has it as double, and the plan says int`: change(func(f []iceberg.NestedField) []iceberg.NestedField {
			f[1].Type = iceberg.Float64Type{}
			return f
		}),
		`column "s.y": the destination got it after the plan was made, and it is required`: change(func(f []iceberg.NestedField) []iceberg.NestedField {
			s := f[3].Type.(*iceberg.StructType)
			s.FieldList = append(s.FieldList, iceberg.NestedField{ID: 50, Name: "y", Required: true, Type: iceberg.Int64Type{}})
			return f
		}),
		`column "c": it is to be filled with null, and the destination requires a value meanwhile`: change(func(f []iceberg.NestedField) []iceberg.NestedField {
			f[2].Required = true
			return f
		}),
		`column "new": the destination has it as string, and the plan says int`: iceberg.NewSchema(5, append(dst.Fields(),
			iceberg.NestedField{ID: 60, Name: "new", Type: iceberg.StringType{}})...),
	} {
		if _, err := p.Resolve(now); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want %q", err, want)
		}
	}
	taken := iceberg.NewSchema(5, append(dst.Fields(), iceberg.NestedField{ID: 60, Name: "new", Type: iceberg.StringType{}})...)
	if _, err := p.Pending(taken); err == nil || !strings.Contains(err.Error(), `column "new": the destination has it meanwhile as string`) {
		t.Error(err)
	}
	wider := change(func(f []iceberg.NestedField) []iceberg.NestedField { f[2].Type = iceberg.Int64Type{}; return f })
	if r, err := p.Resolve(wider); err != nil || r.Columns[2].Action != NullFill {
		t.Errorf("null has every type: %v", err)
	}
}

// A column that was widened meanwhile, so that a value fits, is found again; its values, and those that were
// projected before, go on as what they are.
func TestResolveWidened(t *testing.T) {
	src := schema(t, 1, "d decimal(9,2), l list<long>, s string")
	p := must(Build(src, schema(t, 1, "d decimal(4,2), l list<int>, s int"), 2, Options{}))
	wide := schema(t, 1, "d decimal(9,2), l list<long>, s long")
	r := must(p.Resolve(wide))
	if got := summary(r.Columns); got != "d take<d, l take<l{l.element take<l.element}, s cast<s" {
		t.Error(got)
	}
	checkDocument(t, r)
	c := must(p.Carry(wide))
	if got := summary(c.Columns); got != "d promote<d, l take<l{l.element promote<l.element}, s promote<s" {
		t.Error(got)
	}
	must(c.Projector(arrowSchema(p.Target().Fields()), memory.DefaultAllocator))
	if _, err := p.Resolve(schema(t, 1, "d decimal(9,3), l list<int>, s int")); err == nil {
		t.Error("another scale is found again")
	}
}

// The changes are such that iceberg-go assigns them IDs.
func TestChangesGetIDs(t *testing.T) {
	src := schema(t, 1, "s struct<a int, m map<string, list<struct<k int>>>>, b int")
	p := must(Build(src, schema(t, 1, ""), 2, Options{MissingInDest: PolicyAutoAdd}))
	for i, c := range p.Changes {
		got, err := iceberg.AssignFreshSchemaIDs(iceberg.NewSchema(0, iceberg.NestedField{Name: c.Path[0], Type: c.Type}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !sameType(got.Field(0).Type, src.Field(i).Type) {
			t.Errorf("%s", got)
		}
	}
}

func TestExplain(t *testing.T) {
	src := schema(t, 1, "order_id int, order_total double, region string, s struct<a float, b int>, esc string")
	dst := schema(t, 1, "order_id! long, total_amount double, channel string, s struct<b int, a double>, esc string, f float")
	p := must(Build(src, dst, 2, Options{Mapping: []Rename{{"order_total", "total_amount"}}, MissingInSource: PolicyNull,
		MissingInDest: PolicyAutoAdd, Coercions: []Coercion{{"f", "double"}}}))
	p.Columns[4].Path = []string{"esc\x1b[1m\n"}
	var out strings.Builder
	if err := p.Explain(&out); err != nil {
		t.Fatal(err)
	}
	want := `COLUMN        TYPE                       ACTION     SOURCE       NOTES
order_id      long                       promote    order_id     required; from int; source may hold null
total_amount  double                     rename     order_total
channel       string                     null-fill  -            null is written
s             struct<b: int, a: double>  take       s
s.b           int                        take       s.b
s.a           double                     promote    s.a          from float
esc\x1b[1m\n  string                     take       esc
f             double                     null-fill  -            destination's float becomes double; null is written
region        string                     add        region       new in the destination

Source columns left out: none

Schema changes of the destination:
  promote f to double
  add region string

Warnings:
  column "order_id": the source may hold null and the destination requires a value; a null stops the batch before it is written
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
}

func TestParseRefuses(t *testing.T) {
	src := schema(t, 1, "a int, s struct<x int>, n int")
	dst := schema(t, 1, "a long, s struct<x int>, f int")
	p := must(Build(src, dst, 2, Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd}))
	good := string(must(p.MarshalJSON()))
	if !json.Valid([]byte(good)) {
		t.Fatal(good)
	}
	for _, c := range []struct{ old, new, want string }{
		{`{"plan":1`, `{"plan":2`, "it has version 2, and this program reads version 1"},
		{`{"plan":1,`, `{`, `there is no member "plan"`},
		{`"settings"`, `"unknown_member":1,"settings"`, "unknown field"},
		{`"format_version":2`, `"format_version":7`, "format version 7"},
		{`"action":"promote"`, `"action":"take"`, `its action is promote, not "take"`},
		{`"action":"promote"`, `"action":"steal"`, `its action is promote, not "steal"`},
		{`"source_type":"int"`, `"source_type":"string"`, `its action is cast, not "promote"`},
		{`"source_type":"int"`, `"source_type":"uuid"`, "uuid does not become long"},
		{`"source_type":"int"`, `"source_type":"variant"`, "not carried"},
		{`"source":"s.x"`, `"source":"a"`, `its source "a" is in another place`},
		{`"source":"s.x"`, `"source":"s..x"`, "a part is empty"},
		{`"column":"s.x"`, `"column":"s.y"`, `its target is called "s.x"`},
		{`"action":"null-fill"`, `"action":"default"`, "its write-default cannot be written"},
		{`"action":"null-fill"`, `"action":"null-fill","source":"a"`, "it is filled and has a source"},
		{`"id":1,"name":"a"`, `"id":2,"name":"a"`, "field ID 2 is taken twice"},
		{`"id":1,"name":"a"`, `"id":-2,"name":"a"`, "field ID -2 is not one"},
		{`"id":1,"name":"a"`, `"id":2147483540,"name":"a"`, "is reserved"},
		{`"type":"long"`, `"type":"fixed[999999999]"`, "is not supported: a length"},
		{`"type":"long"`, `"type":"timestamp_ns"`, "needs format version 3"},
		{`"kind":"add"`, `"kind":"promote"`, "the changes are not those"},
		{`"name":"n","required":false`, `"name":"n","required":true`, "an added column is optional"},
		{`"name":"f","required":false`, `"name":"f","required":true`, "cannot be filled with null"},
		{`"identifier_field_ids":[]`, `"identifier_field_ids":[77]`, "identifier field 77"},
		{`"on_missing_in_source":"null"`, `"on_missing_in_source":"zero"`, `settings: on-missing-in-source "zero"`},
		{`"warnings":[]}`, `"warnings":[]} x`, "invalid character"},
		{`"warnings":[]}`, `"warnings":[`, "unexpected end"},
		{`"target":{`, `"target":7,"fields":[{`, "plan document"},
		{`"warnings":[]}`, `"warnings":[` + strings.Repeat("[", 600), "nested more than"},
		{`"warnings":[]}`, `"warnings":[` + strings.Repeat(`"",`, 1<<20), "members"},
		{`"warnings":[]}`, `"warnings":["` + strings.Repeat(`x`, 17<<20), "bytes"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if bad == good {
			t.Fatalf("%s is not in %s", c.old, good)
		}
		if _, err := Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40s for %s: %v; want %q", c.new, c.old, err, c.want)
		}
	}
}
