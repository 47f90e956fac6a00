package filter

import (
	"strings"
	"testing"
)

// TestJSON reads Iceberg's expression JSON and holds its meaning against the same filter as text.
func TestJSON(t *testing.T) {
	schema := everyType()
	for raw, text := range map[string]string{
		`true`:                               "TRUE",
		` false `:                            "FALSE",
		`{"type":"true"}`:                    "TRUE",
		`{"type":"literal","value":false}`:   "FALSE",
		`{"type":"eq","term":"l","value":5}`: "l = 5",
		`{"type":"EQ","term":{"type":"reference","term":"l"},"value":5}`:                                "l = 5",
		`{"type":"not-eq","term":"s","value":"x"}`:                                                      "s != 'x'",
		`{"type":"lt","term":"d","value":1e400}`:                                                        "d < 1e400",
		`{"type":"lt-eq","term":"dec","value":"14.20"}`:                                                 "dec <= 14.20",
		`{"type":"gt","term":"day","value":"2024-01-01"}`:                                               "day > '2024-01-01'",
		`{"type":"gt-eq","term":"tz","value":"2024-01-01T00:00:00.000001+00:00"}`:                       "tz >= '2024-01-01T00:00:00.000001Z'",
		`{"type":"in","term":"l","values":[3,1,2]}`:                                                     "l IN (1, 2, 3)",
		`{"type":"not-in","term":"u","values":["f79c3e09-677c-4bbd-a479-3f349cb785e7"]}`:                "u != 'f79c3e09-677c-4bbd-a479-3f349cb785e7'",
		`{"type":"is-null","term":"st"}`:                                                                "st IS NULL",
		`{"type":"not-null","term":"st.in.y"}`:                                                          "st.in.y IS NOT NULL",
		`{"type":"is-nan","term":"f"}`:                                                                  "f IS NAN",
		`{"type":"not-nan","term":"f"}`:                                                                 "f IS NOT NAN",
		`{"type":"starts-with","term":"s","value":"a%_\\"}`:                                             `s LIKE 'a\%\_\\%'`,
		`{"type":"not-starts-with","term":"s","value":"a"}`:                                             "s NOT LIKE 'a%'",
		`{"type":"eq","term":"bin","value":"00FF"}`:                                                     "bin = X'00ff'",
		`{"type":"eq","term":"fx","value":"00ff"}`:                                                      "fx = X'00ff'",
		`{"type":"eq","term":"a.b","value":3}`:                                                          `"a.b" = 3`,
		`{"type":"eq","term":"b","value":true}`:                                                         "b = TRUE",
		`{"type":"not","child":{"type":"eq","term":"l","value":5}}`:                                     "NOT l = 5",
		`{"type":"and","left":{"type":"eq","term":"l","value":5},"right":true}`:                         "l = 5 AND TRUE",
		`{"type":"or","left":{"type":"eq","term":"l","value":5},"right":{"type":"is-null","term":"s"}}`: "l = 5 OR s IS NULL",
	} {
		e, err := ParseJSON([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		b, err := e.Bind(schema)
		if err != nil {
			t.Errorf("%s: %v\n%s", raw, err, err.(*Error).Caret())
			continue
		}
		if want := bindText(t, schema, text).String(); b.String() != want {
			t.Errorf("%s\n got %s\nwant %s", raw, b, want)
		}
	}
}

func TestJSONRefused(t *testing.T) {
	schema := everyType()
	for raw, reason := range map[string]string{
		``:                                      "it is empty",
		`null`:                                  "leave it out",
		`5`:                                     "not an expression",
		`{"type":"eq","term":"l"}`:              `want "value"`,
		`{"type":"eq","value":5}`:               `"term" is missing`,
		`{"type":"eq","term":"l","value":5}x`:   "more behind its end",
		`{"type":"eq","term":"l","value":null}`: "not a text, a number, true or false",
		`{"type":"in","term":"l","values":[]}`:  "a list that is not empty",
		`{"type":"in","term":"l","value":1}`:    "a list that is not empty",
		`{"type":"is-null","term":"l","value":1}`: "takes no value",
		`{"type":"bbox","term":"l"}`:              `type "bbox" are not known`,
		`{"type":"eq","term":{"type":"transform","transform":"bucket[16]","term":"l"},"value":1}`: "compare the column itself",
		`{"type":"eq","term":"l","value":5,"extra":1}`:                                            "unknown field",
		`{"type":"not"}`: `"child" is missing`,
		`{"type":"and","left":true,"right":{"type":"eq"}}`:                                `"right" of "and": "eq": "term" is missing`,
		`{"type":"eq","term":"nope","value":5}`:                                           `there is no column "nope"`,
		`{"type":"eq","term":"l","value":"x"}`:                                            "'x' is no number",
		`{"type":"eq","term":"bin","value":"0g"}`:                                         "hexadecimal",
		strings.Repeat(`{"type":"not","child":`, 300) + "true" + strings.Repeat("}", 300): "nested deeper",
	} {
		e, err := ParseJSON([]byte(raw))
		if err == nil {
			_, err = e.Bind(schema)
		}
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want %q", raw, err, reason)
		}
	}
}
