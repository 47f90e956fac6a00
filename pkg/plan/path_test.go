package plan

import (
	"reflect"
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	for text, want := range map[string][]string{
		"total":                {"total"},
		"a.b":                  {"a", "b"},
		`"a.b"`:                {"a.b"},
		`"a.b".c`:              {"a.b", "c"},
		"items.element.sku":    {"items", "element", "sku"},
		"tags.value.x":         {"tags", "value", "x"},
		`"say ""hi""".x`:       {`say "hi"`, "x"},
		`"a:b"."c,d"`:          {"a:b", "c,d"},
		"a b":                  {"a b"},
		`""`:                   {""},
		"ä#%/=":                {"ä#%/="},
		`"""".""""""`:          {`"`, `""`},
		"_x.1a.element.select": {"_x", "1a", "element", "select"},
	} {
		got, err := ParsePath(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParsePath(%s) = %q, %v; want %q", text, got, err, want)
			continue
		}
		if back := FormatPath(got); back != text {
			t.Errorf("FormatPath(%q) = %s, want %s", got, back, text)
		}
	}
	if got := FormatPath(must(ParsePath(`"a"."b"`))); got != "a.b" {
		t.Errorf("needless quotes stay: %s", got)
	}
}

func TestPathErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "a part is empty",
		"a.":                         "a part is empty",
		".a":                         "a part is empty",
		"a..b":                       "a part is empty",
		`"a`:                         "not closed",
		`"a"b`:                       "want a dot",
		`a"b`:                        "stands in double quotes",
		"a:b":                        `a part that holds ":" stands in double quotes`,
		"a,b":                        `a part that holds ","`,
		"x\ny:z":                     `path "x\ny:z"`,
		strings.Repeat("a.", 99):     "more than 64 parts",
		strings.Repeat(`"`, 101):     "not closed",
		`"a.b":`:                     "stands in double quotes",
		`"a".` + "\x00" + `.b.` + ``: "a part is empty",
	} {
		_, err := ParsePath(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("ParsePath(%q): %v; want %q in one line", text, err, want)
		}
	}
}

func TestParseRename(t *testing.T) {
	for text, want := range map[string]Rename{
		"order_total:total_amount": {"order_total", "total_amount"},
		`"a:b":c`:                  {`"a:b"`, "c"},
		`"a":"b"`:                  {"a", "b"},
		`s."x.y":s.z`:              {`s."x.y"`, "s.z"},
	} {
		if got, err := ParseRename(text); err != nil || got != want {
			t.Errorf("ParseRename(%s) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"a": "want SRC:DST", "a:": "a part is empty", ":a": "a part is empty", "a:b:c": "want SRC:DST once", "a:b,c:d": "want SRC:DST once",
	} {
		if _, err := ParseRename(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRename(%s): %v; want %q", text, err, want)
		}
	}
}

func TestParseCoercion(t *testing.T) {
	for text, want := range map[string]Coercion{
		"id:long":                {"id", "long"},
		"s.d:decimal(18,2)":      {"s.d", "decimal(18, 2)"},
		`"a:b": timestamp_ns `:   {`"a:b"`, "timestamp_ns"},
		"items.element:fixed[3]": {"items.element", "fixed[3]"},
	} {
		if got, err := ParseCoercion(text); err != nil || got != want {
			t.Errorf("ParseCoercion(%s) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"id": "want COL:TYPE", "id:": "not an Iceberg primitive type", "id:bigint": `"bigint" is not`, "id:struct<>": "is not",
		"id:decimal(99,2)": "is not", "id,x:int": "want COL:TYPE", `id:"int"`: "is not", "id:list": "is not",
	} {
		if _, err := ParseCoercion(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseCoercion(%s): %v; want %q", text, err, want)
		}
	}
}

func TestCanonical(t *testing.T) {
	a := Options{
		Mapping:       []Rename{{`"b"`, "y"}, {"a", "x"}, {"same", `"same"`}},
		MissingInDest: PolicyAutoAdd,
		Coercions:     []Coercion{{"z", "decimal( 9 ,2)"}, {`"q"`, " long"}},
	}
	b := Options{
		Mapping:         []Rename{{"a", `"x"`}, {"b", "y"}, {"a", "x"}},
		MissingInSource: PolicyError, MissingInDest: PolicyAutoAdd,
		Coercions: []Coercion{{"q", "long"}, {"z", "decimal(9, 2)"}},
	}
	if string(a.Canonical()) != string(b.Canonical()) {
		t.Errorf("two spellings differ:\n%s\n%s", a.Canonical(), b.Canonical())
	}
	b.MissingInSource = PolicyNull
	if string(a.Canonical()) == string(b.Canonical()) {
		t.Error("another policy is the same setting")
	}
	b = Options{Drop: []string{"b", `"a"`, "a"}, OnCastError: PolicyError}
	if got := string(b.Canonical()); !strings.HasSuffix(got, `"type_coercions":[],"drop":["a","b"]}`) {
		t.Errorf("drop: %s", got)
	}
	want := `{"column_mapping":[],"on_missing_in_source":"error","on_missing_in_dest":"error","type_coercions":[]}`
	if got := string((Options{}).Canonical()); got != want {
		t.Errorf("no options: %s", got)
	}
}

func TestOptionsCheck(t *testing.T) {
	for want, o := range map[string]Options{
		`on-missing-in-source "zero"`:               {MissingInSource: "zero"},
		`on-missing-in-dest "leave"`:                {MissingInDest: "leave"},
		`on-cast-error "zero"`:                      {OnCastError: "zero"},
		`time zone "Local" is not known`:            {AssumeTimezone: "Local"},
		`time zone "Europe/Nowhere" is not known`:   {AssumeTimezone: "Europe/Nowhere"},
		`time zone "+25:00" is not known`:           {AssumeTimezone: "+25:00"},
		`source column "a" is mapped too`:           {Mapping: []Rename{{"a", "b"}}, Drop: []string{`"a"`}},
		`drop: path "a..b"`:                         {Drop: []string{"a..b"}},
		`source column "a" is mapped twice`:         {Mapping: []Rename{{"a", "b"}, {`"a"`, "c"}}},
		`two source columns are mapped to "c"`:      {Mapping: []Rename{{"a", "c"}, {"b", `"c"`}}},
		`column "a" is named twice`:                 {Coercions: []Coercion{{"a", "int"}, {"a", "long"}}},
		`"text" is not an Iceberg primitive type`:   {Coercions: []Coercion{{"a", "text"}}},
		`column mapping: path "a..b": a part is em`: {Mapping: []Rename{{"a..b", "c"}}},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", o, err, want)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
