package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

// summary shows what a plan does, a word for each column.
func summary(columns []Column) string {
	var words []string
	for _, c := range columns {
		w := fmt.Sprintf("%s %s", FormatPath(c.Path), c.Action)
		if c.Source != nil {
			w += "<" + FormatPath(c.Source)
		}
		if c.Was != nil {
			w += fmt.Sprintf(" %s->%s", c.Was, c.Target.Type)
		}
		if len(c.Fields) > 0 {
			w += "{" + summary(c.Fields) + "}"
		}
		words = append(words, w)
	}
	return strings.Join(words, ", ")
}

func TestBuild(t *testing.T) {
	null, skip, add := Options{MissingInSource: PolicyNull}, Options{MissingInSource: PolicySkip}, Options{MissingInDest: PolicyAutoAdd}
	cases := []struct {
		name     string
		src, dst string
		version  int
		o        Options
		want     string
		changes  string
		warnings int
	}{
		{name: "the reference's example",
			src: "order_id long, order_total double, region string", dst: "order_id long, total_amount double, channel string",
			o:    Options{Mapping: []Rename{{"order_total", "total_amount"}}, MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd},
			want: "order_id take<order_id, total_amount rename<order_total, channel null-fill, region add<region", changes: "add region string"},
		{name: "by name, never by position or ID", src: "a string, b string", dst: "b string, a string",
			want: "b take<b, a take<a"},
		{name: "a swap by mapping", src: "a string, b string", dst: "a string, b string",
			o:    Options{Mapping: []Rename{{"a", "b"}, {"b", "a"}}},
			want: "a rename<b, b rename<a"},
		{name: "promotions", src: "i int, f float, d decimal(9,2)", dst: "i long, f double, d decimal(18,2)",
			want: "i promote<i, f promote<f, d promote<d"},
		{name: "date to timestamp in v3", version: 3, src: "a date, b date, u unknown", dst: "a timestamp, b timestamp_ns, u string",
			want: "a promote<a, b promote<b, u promote<u", warnings: 1},
		{name: "casts", version: 2,
			src: "a long, d date, s struct<x string, l list<decimal(18,4)>>", dst: "s struct<l list<decimal(9,2)>, x uuid>, d timestamp, a int",
			want: "s take<s{s.l take<s.l{s.l.element cast<s.l.element}, s.x cast<s.x}, d cast<d, a cast<a", warnings: 3},
		{name: "a rename that casts is a cast", src: "a long", dst: "b string", o: Options{Mapping: []Rename{{"a", "b"}}}, want: "b cast<a"},
		{name: "zones with a zone", version: 2, src: "a timestamp, b timestamptz, c date", dst: "a timestamptz, b date, c timestamptz",
			o: Options{AssumeTimezone: "Europe/Berlin"}, want: "a cast<a, b cast<b, c cast<c", warnings: 3},
		{name: "casts of keys that stay apart", src: "m map<int, int>", dst: "m map<string, long>",
			want: "m take<m{m.key cast<m.key, m.value promote<m.value}"},
		{name: "ignore leaves out, nested too", src: "a int, b int, s struct<x int, y struct<z int>>", dst: "a int, s struct<x int>",
			o: Options{MissingInDest: PolicyIgnore}, want: "a take<a, s take<s{s.x take<s.x}"},
		{name: "a mapped namesake is left out too", src: "a int, b int", dst: "b int",
			o: Options{MissingInDest: PolicyIgnore, Mapping: []Rename{{"a", "b"}}}, want: "b rename<a"},
		{name: "drop", src: `a int, v variant, s struct<x int, y int>, n struct<p int, q int>`, dst: "a int, s struct<x int>",
			o:    Options{MissingInDest: PolicyAutoAdd, Drop: []string{"v", "s.y", "n.q"}},
			want: "a take<a, s take<s{s.x take<s.x}, n add<n{n.p add<n.p}", changes: "add n struct<p: int>"},
		{name: "drop a column that the destination has", src: "a int, b int", dst: "a int, b int", o: Options{MissingInSource: PolicyNull, Drop: []string{"b"}},
			want: "a take<a, b null-fill"},
		{name: "names without case", src: "ID int, S struct<Xy int>, l list<struct<K int>>", dst: "id int, s struct<xY long>, L list<struct<k int>>",
			o:    Options{IgnoreCase: true},
			want: "id rename<ID, s rename<S{s.xY promote<S.Xy}, L rename<l{L.element take<l.element{L.element.k rename<l.element.K}}"},
		{name: "options without case", src: "ID int, S struct<Xy int, Z int>, Gone int", dst: "key int, s struct<q int>",
			o: Options{IgnoreCase: true, Mapping: []Rename{{"id", "KEY"}, {"s.xy", "S.Q"}, {"S", "s"}}, Drop: []string{"gone", "s.z"},
				Coercions: []Coercion{{"Key", "long"}}},
			want: "key promote<ID int->long, s rename<S{s.q rename<S.Xy}", changes: "promote key to long"},
		{name: "one of two that differ by case is mapped", src: "a int, A int", dst: "a int, b int",
			o: Options{IgnoreCase: true, Mapping: []Rename{{"A", "b"}}}, want: "a take<a, b rename<A"},
		{name: "null and skip", src: "a int", dst: "a int, b struct<x! int>", o: null, want: "a take<a, b null-fill"},
		{name: "skip without a default", src: "a int", dst: "a int, b string", o: skip, want: "a take<a, b skip"},
		{name: "structs by name at every depth", // case 47
			src:  "s struct<a int, c struct<x int, y int>>, l list<struct<p int, q int>>, m map<string, struct<u int, w int>>",
			dst:  "s struct<c struct<y int, x int>, a long>, m map<string, struct<w int, u int>>, l list<struct<q int, p int>>",
			want: "s take<s{s.c take<s.c{s.c.y take<s.c.y, s.c.x take<s.c.x}, s.a promote<s.a}, m take<m{m.key take<m.key, m.value take<m.value{m.value.w take<m.value.w, m.value.u take<m.value.u}}, l take<l{l.element take<l.element{l.element.q take<l.element.q, l.element.p take<l.element.p}}"},
		{name: "nested renames inside a renamed struct",
			src: "s struct<a int, b int>, items list<struct<sku string>>", dst: "t struct<x int, b int>, items list<struct<code string>>",
			o:    Options{Mapping: []Rename{{"s", "t"}, {"s.a", "t.x"}, {"items.element.sku", "items.element.code"}}},
			want: "t rename<s{t.x rename<s.a, t.b take<s.b}, items take<items{items.element take<items.element{items.element.code rename<items.element.sku}}"},
		{name: "nested null-fill and nested add",
			src: "s struct<a int, n string>, l list<struct<p int>>", dst: "s struct<a int>, l list<struct<p int, r long>>",
			o:       Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd},
			want:    "s take<s{s.a take<s.a, s.n add<s.n}, l take<l{l.element take<l.element{l.element.p take<l.element.p, l.element.r null-fill}}",
			changes: "add s.n string"},
		{name: "a whole struct is added, optional at every depth, with renames and coercions in it", version: 2,
			src: "s! struct<a! int, l! list<! int>, m map<int, ! float>>", dst: "id long",
			o: Options{Mapping: []Rename{{"s.a", "s.b"}}, Coercions: []Coercion{{"s.b", "long"}, {"s.m.value", "double"}},
				MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd},
			want:    "id null-fill, s add<s{s.b add<s.a, s.l add<s.l{s.l.element add<s.l.element}, s.m add<s.m{s.m.key add<s.m.key, s.m.value add<s.m.value}}",
			changes: "add s struct<b: long, l: list<int>, m: map<int, double>>"},
		{name: "a coercion evolves the destination", src: "a long, s struct<f double>", dst: "a int, s struct<f float>, n int",
			o:       Options{Coercions: []Coercion{{"a", "long"}, {"s.f", "double"}, {"n", "long"}}, MissingInSource: PolicyNull},
			want:    "a take<a int->long, s take<s{s.f take<s.f float->double}, n null-fill int->long",
			changes: "promote a to long, promote s.f to double, promote n to long"},
		{name: "a coercion to the type that is there", src: "a int", dst: "a long", o: Options{Coercions: []Coercion{{"a", "long"}}},
			want: "a promote<a"},
		{name: "an added column gets a promotion of its type", src: "a int, b int, d date", dst: "a int", version: 3,
			o:       Options{MissingInDest: PolicyAutoAdd, Coercions: []Coercion{{"b", "long"}, {"d", "timestamp"}}},
			want:    "a take<a, b add<b, d add<d",
			changes: "add b long, add d timestamp"},
		{name: "a rename into an added column", src: "a int", dst: "x int", o: Options{Mapping: []Rename{{"a", "b"}}, MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd},
			want: "x null-fill, b add<a", changes: "add b int"},
		{name: "optional into required, nested too", src: "a int, l list<int>, s! struct<x int>", dst: "a! int, l list<! int>, s! struct<x! int>",
			want: "a take<a, l take<l{l.element take<l.element}, s take<s{s.x take<s.x}", warnings: 3},
		{name: "odd names", src: `"a.b" int`, dst: `"a.b" int`, want: `"""a.b""" take<"""a.b"""`},
		{name: "names that differ by case are two", src: "a int, A int", dst: "A int, a int", want: "A take<A, a take<a", warnings: 1},
		{name: "same name added in another struct", src: "s struct<a int>, a int", dst: "s struct<b int>",
			o: Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd}, want: "s take<s{s.b null-fill, s.a add<s.a}, a add<a",
			changes: "add s.a int, add a int"},
		{name: "no columns in common", src: "a int", dst: "b int", o: Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd},
			want: "b null-fill, a add<a", changes: "add a int"},
		{name: "empty source", src: "", dst: "b int", o: null, want: "b null-fill"},
		{name: "unknown is added in v3", version: 3, src: "a unknown", dst: "", o: add, want: "a add<a", changes: "add a unknown"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			version := max(c.version, 1)
			p, err := Build(schema(t, 1, c.src), schema(t, 100, c.dst), version, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(p.Columns); got != c.want {
				t.Errorf("plan\n%s, want\n%s", got, c.want)
			}
			var changes []string
			for _, d := range changeDocs(p.Changes) {
				changes = append(changes, fmt.Sprintf("%s %s %s", d.Kind, d.Column, map[bool]string{true: "to "}[d.Kind == PromoteColumn]+d.Type))
			}
			if got := strings.Join(changes, ", "); got != c.changes {
				t.Errorf("changes\n%s, want\n%s", got, c.changes)
			}
			if len(p.Warnings) != c.warnings {
				t.Errorf("%d warnings: %q", len(p.Warnings), p.Warnings)
			}
			checkDocument(t, p)
		})
	}
}

// checkDocument holds a plan's document to be stable and its own inverse.
func checkDocument(t *testing.T, p *Plan) {
	t.Helper()
	text := must(p.MarshalJSON())
	back, err := Parse(text)
	if err != nil {
		t.Fatalf("parse what was written: %v\n%s", err, text)
	}
	if again := must(back.MarshalJSON()); string(again) != string(text) {
		t.Errorf("the document changes:\n%s\n%s", text, again)
	}
	if string(must(json.Marshal(back.Target()))) != string(must(json.Marshal(p.Target()))) {
		t.Errorf("the target changes: %v, %v", back.Target(), p.Target())
	}
	var a, b strings.Builder
	if p.Explain(&a) != nil || back.Explain(&b) != nil || a.String() != b.String() {
		t.Errorf("the explanation changes:\n%s\n%s", &a, &b)
	}
}

func TestBuildRefuses(t *testing.T) {
	null, skip, add := Options{MissingInSource: PolicyNull}, Options{MissingInSource: PolicySkip}, Options{MissingInDest: PolicyAutoAdd}
	maps := func(from, to string) Options { return Options{Mapping: []Rename{{from, to}}} }
	coerce := func(c, t string) Options {
		return Options{Coercions: []Coercion{{c, t}}, MissingInDest: PolicyAutoAdd}
	}
	cases := []struct {
		src, dst string
		version  int
		o        Options
		want     []string
	}{
		{"a int", "a int, b int, s struct<c int>", 2, Options{}, []string{`destination's "b", "s":`, "--column-mapping SRC:b", "--on-missing-in-source null or skip"}},
		{"a int, s struct<x int, y int>", "s struct<x int>", 2, Options{}, []string{`source's "s.y", "a":`, "--column-mapping s.y:DST", "--on-missing-in-dest auto_add"}},
		{"Region int", "region int", 2, null, []string{`source's "Region"`, "--column-mapping Region:region"}},
		{"Region int", "region int", 2, Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd}, []string{"differ only by case", "--column-mapping Region:region"}},
		{"a int, A int", "", 2, add, []string{"differ only by case"}},
		{"a int", "a int, b! int", 2, null, []string{`column "b"`, "required", "null cannot be written", "--column-mapping SRC:b"}},
		{"s struct<a int>", "s struct<a int, b! int>", 2, skip, []string{`column "s.b"`, "no write-default"}},
		{"a int", "a int", 2, maps("b", "a"), []string{`column mapping b:a: the source has no column "b"`}},
		{"Total int", "a int", 2, maps("total", "a"), []string{`the source has no column "total"; "Total" differs by case`}},
		{"s struct<a int>", "a int", 2, maps("s.a", "a"), []string{"moving it into or out of a struct is not supported"}},
		{"a int, s struct<b int>", "s struct<a int, b int>", 2, maps("a", "s.a"), []string{"column mapping a:s.a", "not supported"}},
		{"l list<int>", "l list<int>", 2, maps("l.element", "l.item"), []string{"only the fields of structs"}},
		{"a int, b int", "b int", 2, maps("a", "b"), []string{`source column "b": the destination's "b" comes from another source column`}},
		{"a int", "b int", 2, Options{Mapping: []Rename{{"a", "c"}}, MissingInSource: PolicyNull}, []string{`source's "a" ("a" is mapped to "c")`}},
		// casts
		{"a timestamp", "a timestamptz", 2, Options{}, []string{"one has a time zone and the other none", "--assume-timezone ZONE"}}, // case 37
		{"a timestamptz", "a timestamp", 2, Options{}, []string{"one has a time zone and the other none"}},                           // case 37
		{"a timestamptz_ns", "a timestamp_ns", 3, Options{}, []string{"one has a time zone and the other none"}},                     // case 37
		{"a date", "a timestamptz", 3, Options{}, []string{"--assume-timezone ZONE"}},
		{"a timestamptz", "a date", 3, Options{}, []string{"--assume-timezone ZONE"}},
		{"s struct<a list<long>>", "s struct<a list<binary>>", 3, Options{}, []string{`column "s.a.element": the source has long and the destination binary: neither says what the other means; convert it upstream`}},
		{"a fixed[3]", "a fixed[4]", 2, Options{}, []string{"their lengths differ"}},
		{"a int", "a unknown", 3, Options{}, []string{"nothing but null"}},
		{"a time", "a timestamp", 3, Options{}, []string{"neither says"}},
		{"m map<string, int>", "m map<int, int>", 2, Options{}, []string{`column "m.key"`, "two keys of a map could become the same one"}},
		{"m map<struct<a double>, int>", "m map<struct<a float>, int>", 2, Options{}, []string{`column "m.key.a"`, "two keys"}},
		{"m map<string, int>", "", 2, coerce("m.key", "int"), []string{"two keys"}},
		// case of letters
		{"a int, A int", "a int", 2, Options{IgnoreCase: true}, []string{`source columns "a" and "A" differ only by case`, "--drop"}},
		{"a int", "a int, A int", 2, Options{IgnoreCase: true, MissingInSource: PolicyNull}, []string{`destination columns "a" and "A" differ only by case`}},
		{"s struct<a int, A int>", "s struct<a int>", 2, Options{IgnoreCase: true}, []string{`"s.a" and "s.A"`}},
		{"Ab int, aB int", "x int", 2, Options{IgnoreCase: true, Mapping: []Rename{{"ab", "x"}}}, []string{`"Ab" and "aB" differ from "ab" only by case`}},
		{"a int", "b int, c int", 2, Options{IgnoreCase: true, Mapping: []Rename{{"a", "b"}, {"A", "c"}}}, []string{"mapped already under a name that differs by case"}},
		// drop
		{"a int", "a int", 2, Options{Drop: []string{"b"}}, []string{`drop b: the source has no column "b"`}},
		{"A int", "a int", 2, Options{Drop: []string{"a"}}, []string{`"A" differs by case`}},
		{"l list<int>", "l list<int>", 2, Options{Drop: []string{"l.element"}}, []string{"drop l.element: only columns and the fields of structs"}},
		{"a int", "a int", 2, Options{Drop: []string{"a"}}, []string{`no source column for the destination's "a"`}},
		{"a int", "a int", 2, Options{Drop: []string{"a"}, Mapping: []Rename{{"a", "a"}}}, []string{"is mapped too"}},
		{"s struct<x int>", "", 2, Options{Drop: []string{"s.x"}, MissingInDest: PolicyAutoAdd}, []string{"all of its fields are dropped"}},
		{"a int, b int", "a int", 2, Options{Mapping: []Rename{{"b", "c"}}, MissingInDest: PolicyIgnore}, []string{`("b" is mapped to "c")`}},
		{"a struct<x int>", "a int", 2, Options{}, []string{"the source has a struct and the destination int", "map another column"}},
		{"a list<int>", "a struct<x int>", 2, Options{}, []string{"a list", "a struct"}},
		{"a map<int,int>", "a list<int>", 2, Options{}, []string{"a map", "a list"}},
		{"a unknown", "a! int", 3, Options{}, []string{"always null"}},
		// coercions
		{"a int", "a string", 2, coerce("a", "binary"), []string{"type coercion of \"a\": the destination's type string cannot be promoted to binary"}},
		{"a date", "a date", 2, coerce("a", "timestamp"), []string{"needs format version 3"}},
		{"a long", "a long", 2, coerce("a", "int"), []string{"long cannot be promoted to int"}},
		{"a int", "a int", 2, coerce("b", "int"), []string{`the destination has no column "b"`}},
		{"s struct<a int>", "s struct<a int>", 2, coerce("s", "int"), []string{"it is a struct; name the columns in it"}},
		{"a long", "b long", 2, Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd, Coercions: []Coercion{{"a", "uuid"}}}, []string{"the source has long and the destination uuid"}},
		{"m map<int,int>", "m map<int,int>", 2, coerce("m.key", "long"), []string{"the key of a map keeps its type"}},
		{"m map<struct<a int, b int>,int>", "m map<struct<a int>,int>", 2, add, []string{"cannot be added to the key of a map"}},
		{"a timestamp_ns", "", 2, add, []string{"needs format version 3", "upgrade the destination"}},
		{"a unknown", "", 2, add, []string{"--type-coercion a:TYPE"}},
		{"a int", "a int", 3, coerce("a", "variant"), []string{"values of type variant are not carried"}},
		// names and types that are not carried
		{"_file int", "_file int", 2, Options{}, []string{`destination column "_file": the name is reserved`}}, // case 58
		{"_row_id int", "a int", 2, Options{MissingInSource: PolicyNull, MissingInDest: PolicyAutoAdd}, []string{`"_row_id"`, "--column-mapping _row_id:NAME"}},
		{"a int, a int", "a int", 2, Options{}, []string{`source column "a": the name is there twice`}},
		{"s struct<a int>", "s struct<a int, a int>", 2, Options{}, []string{`destination column "s.a": the name is there twice`}},
		{"a variant", "b int", 3, Options{}, []string{`source column "a": values of type variant are not carried; give --drop a`}},
		{"a int", "s struct<g geometry>", 3, Options{}, []string{`destination column "s.g": values of type geometry are not carried`}},
		{"s struct<x int>", "s struct<a int>", 4, Options{}, []string{"format version 4 is not supported"}},
	}
	for _, c := range cases {
		_, err := Build(schema(t, 1, c.src), schema(t, 1, c.dst), c.version, c.o)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s into %s with %+v:\n%v; want %q in one line", c.src, c.dst, c.o, err, want)
				break
			}
		}
	}
}

func TestReservedIDs(t *testing.T) { // case 58
	ok := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.Int32Type{}})
	bad := iceberg.NewSchema(0, iceberg.NestedField{ID: 2147483447, Name: "a", Type: iceberg.Int32Type{}})
	for side, pair := range map[string][2]*iceberg.Schema{"source": {bad, ok}, "destination": {ok, bad}} {
		_, err := Build(pair[0], pair[1], 2, Options{})
		if err == nil || !strings.Contains(err.Error(), side+` column "a": its field ID 2147483447 is reserved`) {
			t.Errorf("%s: %v", side, err)
		}
	}
	from := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "_pos", Type: iceberg.Int32Type{}})
	if _, err := Build(from, ok, 2, Options{Mapping: []Rename{{"_pos", "a"}}}); err != nil {
		t.Errorf("a reserved name in the source, mapped to another: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	dst := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.Int32Type{}},
		iceberg.NestedField{ID: 2, Name: "r", Type: iceberg.Int32Type{}, Required: true, WriteDefault: int32(7)},
		iceberg.NestedField{ID: 3, Name: "d", Type: iceberg.DateType{}, WriteDefault: "1969-12-31"},
	)
	src := schema(t, 1, "a int")
	p, err := Build(src, dst, 3, Options{MissingInSource: PolicySkip})
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(p.Columns); got != "a take<a, r default, d default" {
		t.Error(got)
	}
	checkDocument(t, p)
	_, err = Build(src, dst, 3, Options{MissingInSource: PolicyNull})
	if err == nil || !strings.Contains(err.Error(), "--on-missing-in-source skip for its write-default") {
		t.Error(err)
	}

	bad := iceberg.NewSchema(0, dst.Field(0), iceberg.NestedField{ID: 3, Name: "d", Type: iceberg.Int64Type{}, WriteDefault: 9007199254740994.0})
	_, err = Build(src, bad, 3, Options{MissingInSource: PolicySkip})
	if err == nil || !strings.Contains(err.Error(), `column "d": its write-default cannot be written`) {
		t.Error(err)
	}

	// Added columns take docs, and defaults where the format has them.
	from := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "n", Type: iceberg.Int32Type{}, Required: true, Doc: "count",
		InitialDefault: int32(1), WriteDefault: int32(2)})
	p = must(Build(from, iceberg.NewSchema(0), 3, Options{MissingInDest: PolicyAutoAdd}))
	if c := p.Changes[0]; c.Doc != "count" || c.InitialDefault != int32(1) || c.WriteDefault != int32(2) || p.Columns[0].Target.Required {
		t.Errorf("v3: %+v", c)
	}
	p = must(Build(from, iceberg.NewSchema(0), 2, Options{MissingInDest: PolicyAutoAdd}))
	if c := p.Changes[0]; c.Doc != "count" || c.InitialDefault != nil || len(p.Warnings) != 1 {
		t.Errorf("v2: %+v %q", c, p.Warnings)
	}
}
