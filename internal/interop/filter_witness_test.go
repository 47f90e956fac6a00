//go:build interop

package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
)

// The fixtures whose filters PyIceberg and Spark are asked too.
var witnessed = []string{
	"filter_matrix", "part_text_pyiceberg", "part_text_spark", "part_truncate", "part_bucket", "part_year", "part_month",
	"part_day", "part_hour", "part_identity_types", "part_float", "part_multi", "part_nulls", "part_long_text", "schema_promoted",
	"schema_promoted_partition", "schema_changed", "schema_defaults", "cow_deletes", "mor_file", "mor_v3", "eq_null_key",
	"primitives_spark_v2", "spec_evolved_v2", "names_odd",
}

// A difference is an answer that another engine gives otherwise, and why ours is right.
type difference struct {
	Engine string
	Table  string // a regular expression
	Filter string // a regular expression
	Reason string
}

// TestFilterWitnesses holds the number of rows that filters select against PyIceberg's and Spark's. What they
// say otherwise stands in filter_differences.json with the reason; with ICEPIPE_TORTURE=1, which asks twice as much, a
// difference that is not seen any more fails as well.
func TestFilterWitnesses(t *testing.T) {
	l := openTables(t)
	if len(l.only) > 0 {
		t.Skip("ONLY is set, and this test is about all tables at once")
	}
	content, err := os.ReadFile(filepath.Join(l.root, "testdata", "interop", "filter_differences.json"))
	if err != nil {
		t.Fatal(err)
	}
	var known []difference
	if err := json.Unmarshal(content, &known); err != nil {
		t.Fatal(err)
	}
	seen := make([]bool, len(known))
	asked := l.witnessQuestions(t)
	for _, engine := range []string{"pyiceberg", "spark"} {
		var questions []witnessQuestion
		for _, q := range asked {
			if q.by[engine] != "" {
				questions = append(questions, q)
			}
		}
		began := time.Now()
		answers := l.witnessAnswers(t, engine, questions)
		differ := 0
		for i, q := range questions {
			if answers[i] == fmt.Sprint(q.want) {
				continue
			}
			differ++
			at := slices.IndexFunc(known, func(d difference) bool {
				return d.Engine == engine && matches(d.Table, q.table) && matches(d.Filter, q.text)
			})
			if at < 0 {
				t.Errorf("%s says %s of %q on %s, we %d", engine, answers[i], q.by[engine], q.table, q.want)
				continue
			}
			seen[at] = true
		}
		say("%5.1f s  %d filters asked of %s, %d answers differ", time.Since(began).Seconds(), len(questions), engine, differ)
	}
	for i, d := range known {
		if !seen[i] && tortures() { // which asks all questions
			t.Errorf("%s does not differ any more on %s, %s (%s): take the line out", d.Engine, d.Table, d.Filter, d.Reason)
		}
	}
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// A witnessQuestion is a filter, as each engine is asked, and how many rows it selects.
type witnessQuestion struct {
	table, text string
	by          map[string]string
	want        int
}

func (l *lab) witnessQuestions(t *testing.T) []witnessQuestion {
	t.Helper()
	var out []witnessQuestion
	for _, f := range l.tables {
		if !slices.Contains(witnessed, f.Name) {
			continue
		}
		tbl := sourceTable(t, filepath.Join(l.out, f.DB), f.Catalog, f.Identifier)
		all := canonicalRows(t, filepath.Join(l.out, f.Expected["source"]))
		for _, column := range tbl.Schema().Fields() {
			most := 2
			if !tortures() {
				most = 1
			}
			for _, q := range questions(column, all, most) {
				got, _, err := selected(t.Context(), tbl, q.text, []string{}, false)
				if err != nil {
					t.Fatalf("%s: %s: %v", f.Name, q.text, err)
				}
				w := witnessQuestion{table: f.Identifier, text: q.text, want: len(got), by: map[string]string{"pyiceberg": q.text, "spark": sparkText(q.text, column)}}
				if is[iceberg.TimestampTzType](column.Type) {
					w.by["pyiceberg"] = strings.ReplaceAll(q.text, "Z'", "+00:00'") // it does not read Z
				}
				if is[iceberg.BinaryType](column.Type) || is[iceberg.FixedType](column.Type) || strings.Contains(column.Name, ".") {
					w.by["pyiceberg"] = "" // it has no literals for these, and no such names
				}
				if f.Unreadable["pyiceberg"] != "" {
					w.by["pyiceberg"] = ""
				}
				if f.Unreadable["spark"] != "" {
					w.by["spark"] = ""
				}
				out = append(out, w)
			}
		}
		for _, c := range f.Filters {
			got, _, err := selected(t.Context(), tbl, c.Filter, []string{}, false)
			if err != nil {
				t.Fatal(err)
			}
			if want := canonicalRows(t, filepath.Join(l.out, c.Expected)); len(want) != len(got) {
				t.Errorf("%s on %s: %d rows, want %d", c.Filter, f.Name, len(got), len(want))
			}
			out = append(out, witnessQuestion{table: f.Identifier, text: c.Filter, want: len(got), by: map[string]string{"pyiceberg": c.Filter, "spark": c.Filter}})
		}
	}
	return out
}

// sparkText is a filter by one column as Spark's SQL has it: names in backticks, texts with backslashes
// doubled, literals of dates and numbers with their type.
func sparkText(text string, f iceberg.NestedField) string {
	name := `"` + strings.ReplaceAll(f.Name, `"`, `""`) + `"`
	column := "`" + strings.ReplaceAll(f.Name, "`", "``") + "`"
	rest := strings.TrimPrefix(text, name)
	if is[iceberg.StringType](f.Type) {
		rest = strings.ReplaceAll(rest, `\`, `\\`)
	}
	kind := ""
	switch f.Type.(type) {
	case iceberg.DateType:
		kind = "DATE"
	case iceberg.TimestampType:
		kind = "TIMESTAMP_NTZ"
	case iceberg.TimestampTzType:
		kind = "TIMESTAMP"
	case iceberg.Float32Type, iceberg.Float64Type:
		cast := "CAST('$1' AS " + map[bool]string{true: "FLOAT", false: "DOUBLE"}[is[iceberg.Float32Type](f.Type)] + ")"
		return column + regexp.MustCompile(`'?(-?[0-9][0-9.e+-]*|NaN|-?Infinity)'?`).ReplaceAllString(rest, cast)
	}
	if kind != "" {
		rest = regexp.MustCompile(`'[^']*'`).ReplaceAllString(rest, kind+"$0")
	}
	return column + rest
}

func (l *lab) witnessAnswers(t *testing.T, engine string, questions []witnessQuestion) []string {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for _, q := range questions {
		line, err := json.Marshal(map[string]string{"table": q.table, "filter": q.by[engine]})
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	source, target := filepath.Join(dir, "questions"), filepath.Join(dir, "answers")
	if err := os.WriteFile(source, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(l.python, "-W", "ignore", filepath.Join(l.root, "testdata", "interop", "filter_witness.py"), engine, filepath.Join(l.out, "src.db"), "src", source, target)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", engine, err, out)
	}
	file, err := os.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []string
	in := json.NewDecoder(bufio.NewReader(file))
	for in.More() {
		var answer any
		if err := in.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(answer))
	}
	if len(out) != len(questions) {
		t.Fatalf("%s gave %d answers to %d questions", engine, len(out), len(questions))
	}
	return out
}
