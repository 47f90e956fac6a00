package plan

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

// docTypes are the types of the table in docs/CASTS.md.
var docTypes = []string{"boolean", "int", "long", "float", "double", "decimal", "date", "time", "timestamp", "timestamptz",
	"timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed", "binary", "unknown", "variant", "geometry", "geography"}

// docPairs are the types that stand for two names in the table: where parameters matter, those with which
// there is a meaning.
func docPair(t *testing.T, from, to string) (iceberg.Type, iceberg.Type) {
	t.Helper()
	param := func(name, other string) iceberg.Type {
		switch {
		case name == "decimal":
			return iceberg.DecimalTypeOf(18, 4)
		case name == "fixed":
			return iceberg.FixedTypeOf(16)
		}
		return must(typeFromJSON([]byte(fmt.Sprintf("%q", name))))
	}
	f, d := param(from, to), param(to, from)
	if from == to && from == "decimal" {
		d = iceberg.DecimalTypeOf(9, 2)
	}
	return f, d
}

// castTable is the documentation of all pairs of types, made by what decides about them.
func castTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| from \\ to | " + strings.Join(docTypes, " | ") + " |\n|---" + strings.Repeat("|---", len(docTypes)) + "|\n")
	words := map[Answer]string{AnswerTake: "take", AnswerPromote: "promote", AnswerCast: "cast", AnswerRefuse: "–"}
	for _, from := range docTypes {
		fmt.Fprintf(&b, "| **%s** |", from)
		for _, to := range docTypes {
			f, d := docPair(t, from, to)
			r := ruleOf(f, d, 3, true)
			word := words[r.answer]
			switch {
			case r.answer == AnswerCast && r.zone:
				word = "cast (zone)"
			case r.answer != AnswerRefuse && ruleOf(f, d, 2, true).answer != r.answer:
				word = "promote (v3), cast"
			case from == to && from == "decimal":
				word = "take, promote, cast"
			case from == to && from == "fixed":
				word = "take, –"
			}
			fmt.Fprintf(&b, " %s |", word)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| from | to | given up on purpose | does not fit |\n|---|---|---|---|\n")
	for _, from := range docTypes {
		for _, to := range docTypes {
			f, d := docPair(t, from, to)
			r := ruleOf(f, d, 3, true)
			if r.loses == "" && r.fails == "" || r.answer == AnswerRefuse {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", typeText(f), typeText(d), r.loses, r.fails)
		}
	}
	b.WriteString("\n| from | to | refused, since |\n|---|---|---|\n")
	last, why := "", ""
	var targets []string
	flush := func() {
		if targets != nil {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", last, strings.Join(targets, ", "), why)
		}
		targets = nil
	}
	for _, from := range docTypes {
		for _, to := range docTypes {
			f, d := docPair(t, from, to)
			if from == to && from == "fixed" {
				d = iceberg.FixedTypeOf(3)
			}
			r := ruleOf(f, d, 3, true)
			if r.answer != AnswerRefuse {
				continue
			}
			if from != last || r.why != why {
				flush()
			}
			last, why = from, r.why
			targets = append(targets, to)
		}
	}
	flush()
	return b.String()
}

// TestCastTable holds the tables of docs/CASTS.md to the code.
func TestCastTable(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "CASTS.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(text), "tables", castTable(t))
	want = between(t, want, "differences", differenceTable(t))
	golden(t, path, want)
}

// between puts a table between the marks of its name.
func between(t *testing.T, text, name, table string) string {
	t.Helper()
	begin := "<!-- " + name + ": go test ./pkg/plan -run TestCastTable -update -->\n"
	end := "<!-- end of " + name + " -->"
	head, rest, ok := strings.Cut(text, begin)
	_, tail, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("there is no place for the %s", name)
	}
	return head + begin + "\n" + table + "\n" + end + tail
}

// differenceTable is the list of intended differences, which internal/interop holds the other engines to.
func differenceTable(t *testing.T) string {
	var list []struct{ Engine, From, To, Ours, Value, Why string }
	if err := json.Unmarshal(must(os.ReadFile(filepath.Join("..", "..", "testdata", "interop", "casts_differences.json"))), &list); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| engine | from | to | ours | why |\n|---|---|---|---|---|\n")
	for _, d := range list {
		words := strings.NewReplacer("|", ", ", ".*", "…")
		ours := map[bool]string{true: "does not fit", false: "another value"}[strings.HasPrefix(d.Ours, "! ")]
		if rule, ok := strings.CutPrefix(d.Ours, "! "); ok {
			ours += " (" + rule + "…)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", d.Engine, words.Replace(d.From), words.Replace(d.To), ours, d.Why)
	}
	return b.String()
}

// Every pair has one answer, whatever the parameters; what is promoted loses nothing.
func TestEveryPairHasAnAnswer(t *testing.T) {
	all := append(append([]string{}, castTypes...), "unknown", "variant", "geometry", "geography")
	for _, version := range []int{1, 2, 3} {
		for _, from := range all {
			for _, to := range all {
				f, d := must(typeFromJSON([]byte(fmt.Sprintf("%q", from)))), must(typeFromJSON([]byte(fmt.Sprintf("%q", to))))
				for _, zone := range []bool{false, true} {
					r := ruleOf(f, d, version, zone)
					switch {
					case r.answer == AnswerRefuse && r.why == "":
						t.Errorf("%s to %s is refused without a reason", from, to)
					case r.answer == AnswerPromote && (r.loses != "" || !promotes(f, d, version) && from != "unknown"):
						t.Errorf("%s to %s in v%d is no promotion: %+v", from, to, version, r)
					case promotes(f, d, version) && r.answer != AnswerPromote:
						t.Errorf("%s to %s in v%d is a promotion: %+v", from, to, version, r)
					case r.answer == AnswerTake && from != to:
						t.Errorf("%s is taken as %s", from, to)
					case r.answer == "":
						t.Errorf("%s to %s has no answer", from, to)
					}
					if _, ok := castStep(f, d, arrowType(d), site{}, nil); ok != (r.answer == AnswerPromote || r.answer == AnswerCast) && zone && !f.Equals(d) {
						t.Errorf("%s to %s: %s, and a step: %v", from, to, r.answer, ok)
					}
				}
			}
		}
	}
}
