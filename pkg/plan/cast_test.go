package plan

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

var update = flag.Bool("update", false, "write the golden files anew")

// castColumn plans and projects one column by its boundaries, value by value in one go: results as text,
// or the rule that a value breaks.
func castColumn(t *testing.T, from, to iceberg.Type, o Options) (in, out []string, refused error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	src := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "c", Type: from})
	dst := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "c", Type: to})
	o.OnCastError = PolicyReject
	p, err := Build(src, dst, 3, o)
	if err != nil {
		return nil, nil, err
	}
	a := boundaries(t, mem, from)
	defer a.Release()
	sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType(), Nullable: true}}, nil)
	proj, err := p.Projector(sc, mem)
	if err != nil {
		t.Fatal(err)
	}
	rec := array.NewRecordBatch(sc, []arrow.Array{a}, int64(a.Len()))
	defer rec.Release()
	made, outcome, err := proj.ProjectRows(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Release()
	rejected := map[int64]*ValueError{}
	for _, e := range outcome.Rejects {
		rejected[e.Row] = e
	}
	kept := 0
	for i := range a.Len() {
		in = append(in, shownValue(a, i))
		if e := rejected[int64(i)]; e != nil {
			out = append(out, "! "+e.Rule)
			continue
		}
		out = append(out, shownValue(made.Column(0), kept))
		kept++
	}
	if int64(kept) != made.NumRows() {
		t.Fatalf("%d rows, %d of them seen", made.NumRows(), kept)
	}
	return in, out, nil
}

// TestCastValues holds every cast at its boundaries to the golden file, which is compared with other
// engines in internal/interop. Each value is cast among all the others; those that do not fit are named by
// their row.
func TestCastValues(t *testing.T) {
	var b strings.Builder
	for _, from := range castTypes {
		for _, to := range castTypes {
			f, d := must(parseType(from)), must(parseType(to))
			if f.Equals(d) {
				continue
			}
			zoned := ""
			in, out, err := castColumn(t, f, d, Options{})
			if err != nil && strings.Contains(err.Error(), "--assume-timezone") {
				zoned = ", assuming Europe/Berlin"
				in, out, err = castColumn(t, f, d, Options{AssumeTimezone: "Europe/Berlin"})
			}
			if r := ruleOf(f, d, 3, true); (err != nil) != (r.answer == AnswerRefuse) {
				t.Errorf("%s to %s: %v, and the rule says %s", from, to, err, r.answer)
			}
			if err != nil {
				continue
			}
			fmt.Fprintf(&b, "%s to %s%s\n", from, to, zoned)
			var rules []string
			broken := map[string][]string{}
			for i := range in {
				if rule, bad := strings.CutPrefix(out[i], "! "); bad {
					if broken[rule] == nil {
						rules = append(rules, rule)
					}
					broken[rule] = append(broken[rule], in[i])
					continue
				}
				fmt.Fprintf(&b, "\t%s\t%s\n", in[i], out[i])
			}
			for _, rule := range rules {
				fmt.Fprintf(&b, "\t! %s:\t%s\n", rule, strings.Join(broken[rule], " "))
			}
		}
	}
	golden(t, filepath.Join("testdata", "casts.golden"), b.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s:%d: %s, want %s (-update writes the file anew)", path, i+1, g[i], w[i])
		}
	}
	t.Fatalf("%s: %d lines, want %d (-update writes the file anew)", path, len(g), len(w))
}

// Steps that cast report Made, so that nobody takes the values from the file as they are there.
func TestCastsAreMade(t *testing.T) {
	for _, from := range append(castTypes, "unknown") {
		for _, to := range castTypes {
			f, d := must(parseType(from)), must(parseType(to))
			r := ruleOf(f, d, 3, true)
			if r.answer == AnswerRefuse {
				continue
			}
			src := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "c", Type: f})
			dst := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "c", Type: d})
			p := must(Build(src, dst, 3, Options{AssumeTimezone: "UTC"}))
			proj := must(p.Projector(arrow.NewSchema(arrowFields(src.Fields()), nil), memory.DefaultAllocator))
			switch origin := proj.Origins()[0]; {
			case r.answer == AnswerCast && origin != Made:
				t.Errorf("%s to %s is %s, and its origin %d", from, to, r.answer, origin)
			case r.answer == AnswerTake && origin != 0:
				t.Errorf("%s is not taken", from)
			}
		}
	}
}

// A required column has the values of a source that may hold null, which whoever takes them looks for; one that is cast
// is Made.
func TestRequiredOrigins(t *testing.T) {
	p := must(Build(schema(t, 1, "a int, b! int, c int"), schema(t, 1, "a! int, b! int, c! string"), 2, Options{}))
	proj := must(p.Projector(arrowSchema(schema(t, 1, "a int, b! int, c int").Fields()), memory.DefaultAllocator))
	if o := proj.Origins(); o[0] != 0 || o[1] != 1 || o[2] != Made {
		t.Error(o)
	}
}

func TestCastPolicies(t *testing.T) {
	null, reject := Options{OnCastError: PolicyNull}, Options{OnCastError: PolicyReject}
	for _, c := range []struct {
		in       arrow.DataType
		values   string
		src, dst string
		o        Options
		want     string // the rows, or an error
		rejects  string
		nulled   int64
	}{
		{arrow.PrimitiveTypes.Int64, `[1, 3000000000, null, 4]`, "long", "int", Options{}, `row 1 of the record batch: column "c": 3000000000 is beyond the range of int`, "", 0},
		{arrow.PrimitiveTypes.Int64, `[1, 3000000000, null, 4]`, "long", "int", null, `[1,null,null,4]`, "", 1},
		{arrow.PrimitiveTypes.Int64, `[1, 3000000000, null, 4, -3000000000]`, "long", "int", reject, `[1,null,4]`, "1 3000000000 is beyond the range of int, 4 -3000000000 is beyond the range of int", 0},
		{arrow.PrimitiveTypes.Int64, `[3000000000, 1]`, "long", "int", reject, `[1]`, "0 3000000000 is beyond the range of int", 0},
		{arrow.PrimitiveTypes.Int64, `[3000000000]`, "long", "int", reject, `[]`, "0 3000000000 is beyond the range of int", 0},
		// null into required, by every policy (case 28)
		{arrow.PrimitiveTypes.Int64, `[1, null, 3]`, "long", "! long", Options{}, `row 1 of the record batch: column "c": null where a value is required`, "", 0},
		{arrow.PrimitiveTypes.Int64, `[1, null, 3]`, "long", "! long", null, `row 1 of the record batch: column "c": null where a value is required`, "", 0},
		{arrow.PrimitiveTypes.Int64, `[1, null, 3]`, "long", "! long", reject, `[1,3]`, "1 null where a value is required", 0},
		{arrow.PrimitiveTypes.Int64, `[3000000000, null, 3]`, "long", "! int", null, `row 0 of the record batch: column "c": 3000000000 is beyond the range of int`, "", 0},
		{arrow.PrimitiveTypes.Int64, `[3000000000, null, 3]`, "long", "! int", reject, `[3]`, "0 3000000000 is beyond the range of int, 1 null where a value is required", 0},
		// at every depth: null in something null is none
		{arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), `[{"x": 1}, null, {"x": null}, {"x": 4000000000}]`,
			"struct<x long>", "struct<x! int>", reject, `[{"x":1},null]`, "2 null where a value is required, 3 4000000000 is beyond the range of int", 0},
		{arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1], [2, null], null, [], [5000000000, 6000000000]]`, "list<long>", "list<! int>", reject, `[[1],null,[]]`,
			"1 null where a value is required, 4 5000000000 is beyond the range of int", 0},
		{arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1], [2, null], [5000000000, 6000000000, 7]]`, "list<long>", "list<int>", null, `[[1],[2,null],[null,null,7]]`, "", 2},
		{arrow.MapOf(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String), `[[{"key": 1, "value": "5"}], [{"key": 5000000000, "value": "6"}], [{"key": 3, "value": "x"}]]`,
			"map<long, string>", "map<int, long>", reject, `[[{"key":1,"value":5}]]`, "1 5000000000 is beyond the range of int, 2 \"x\" does not read as long", 0},
		{arrow.MapOf(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String), `[[{"key": 5000000000, "value": "6"}]]`, "map<long, string>", "map<int, long>", null,
			`row 0 of the record batch: column "c.key": 5000000000 is beyond the range of int`, "", 0},
		{arrow.BinaryTypes.Binary, `["YWJj", "/w==", null, "eA=="]`, "binary", "string", null, `["abc",null,null,"x"]`, "", 1},
		{arrow.ListOf(arrow.BinaryTypes.Binary), `[["YWJj", "/w=="], null, ["/w==", "eA=="]]`, "list<binary>", "list<string>", null, `[["abc",null],null,[null,"x"]]`, "", 2},
		{arrow.BinaryTypes.Binary, `["YWJj", "/w==", null, "eA=="]`, "binary", "string", reject, `["abc",null,"x"]`, "1 0xff is not UTF-8", 0},
		{arrow.BinaryTypes.LargeString, `["1", " 2 ", "x", null]`, "string", "boolean", null, `[true,null,null,null]`, "", 2},
	} {
		name := fmt.Sprintf("%s %s as %s into %s, %s", c.in, c.values, c.src, c.dst, c.o.OnCastError)
		got, o, err := projectRows(t, c.in, c.values, c.src, c.dst, c.o)
		if err != nil {
			if !errors.As(err, new(*ValueError)) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
			continue
		}
		var rejects []string
		for _, r := range o.Rejects {
			rejects = append(rejects, fmt.Sprintf("%d %s %s", r.Row, r.Value, r.Rule))
		}
		if got != c.want || strings.Join(rejects, ", ") != c.rejects || o.Nulled != c.nulled {
			t.Errorf("%s:\n%s, rejects %q, %d nulled; want\n%s, %q, %d", name, got, rejects, o.Nulled, c.want, c.rejects, c.nulled)
		}
	}
}

func projectRows(t *testing.T, in arrow.DataType, values, src, dst string, o Options) (string, Outcome, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	p := must(Build(schema(t, 1, "c "+src), schema(t, 1, "c"+spaced(dst)), 3, o))
	checkDocument(t, p)
	sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: in, Nullable: true}}, nil)
	proj := must(p.Projector(sc, mem))
	arr, _, err := array.FromJSON(mem, in, strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	defer arr.Release()
	rec := array.NewRecordBatch(sc, []arrow.Array{arr}, int64(arr.Len()))
	defer rec.Release()
	out, outcome, err := proj.ProjectRows(rec)
	if err != nil {
		return "", outcome, err
	}
	defer out.Release()
	throughIPC(t, out)
	return strings.ReplaceAll(string(must(out.Column(0).MarshalJSON())), "\n", ""), outcome, nil
}

// spaced puts a blank before a type, unless '!' says that it is required.
func spaced(typ string) string {
	if strings.HasPrefix(typ, "!") {
		return typ
	}
	return " " + typ
}
