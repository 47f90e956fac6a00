//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A rowSet is a multiset of rows in the canonical form of testdata/interop/README.md. It forgives
// what compare.py forgives: the order of lines and keys, the spelling of escapes, 1 against 1.0.
type rowSet map[string]int

// rowsOf reads a JSON Lines file; change, if not nil, is applied to each row.
func rowsOf(path string, change func(map[string]any)) (rowSet, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := rowSet{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 1<<30)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var row map[string]any
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.UseNumber()
		if err := decoder.Decode(&row); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if change != nil {
			change(row)
		}
		text, err := canonical(row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		set[text]++
	}
	return set, lines.Err()
}

// canonical is the JSON text of a value in which equal numbers look the same.
func canonical(value any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(normal(value))
	return strings.TrimSuffix(b.String(), "\n"), err
}

func normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = normal(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = normal(item)
		}
		return out
	case json.Number:
		return number(v.String())
	}
	return value
}

// number spells whole numbers below 2^53 as integers, and other floats the shortest way.
func number(text string) json.Number {
	if text == "-0" {
		return "0"
	}
	if !strings.ContainsAny(text, ".eE") {
		return json.Number(text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return json.Number(text)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return json.Number(strconv.FormatInt(int64(f), 10))
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

// total counts the rows.
func (s rowSet) total() int {
	n := 0
	for _, count := range s {
		n += count
	}
	return n
}

// differ says how got differs from want, "" when it does not.
func differ(want, got rowSet) string {
	missing, surplus := minus(want, got), minus(got, want)
	if len(missing)+len(surplus) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "want %d rows, got %d; - is missing, + is too much", want.total(), got.total())
	for _, side := range []struct {
		sign  string
		lines []string
	}{{"-", missing}, {"+", surplus}} {
		for _, line := range side.lines[:min(3, len(side.lines))] {
			fmt.Fprintf(&b, "\n%s %.600s", side.sign, line)
		}
	}
	return b.String()
}

// minus returns the rows that a holds more often than b, sorted.
func minus(a, b rowSet) []string {
	var out []string
	for row, n := range a {
		if n > b[row] {
			out = append(out, fmt.Sprintf("%.800s (%d times)", row, n-b[row]))
		}
	}
	slices.Sort(out)
	return out
}

func TestRowsCompareAsTheirReadmeSays(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"order of keys and lines", "{\"a\":1,\"b\":2}\n{\"a\":3}", "{\"a\":3}\n{\"b\":2,\"a\":1}", true},
		{"escapes", `{"a":"\u00e9<"}`, `{"a":"é\u003c"}`, true},
		{"whole floats", `{"a":1.0}`, `{"a":1}`, true},
		{"large longs keep their digits", `{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{"a long is not the float beside it", `{"a":9007199254740993}`, `{"a":9007199254740992.0}`, false},
		{"exponents", `{"a":1e300}`, `{"a":1.0E+300}`, true},
		{"text is no number", `{"a":"1"}`, `{"a":1}`, false},
		{"null is no missing key", `{"a":null}`, `{}`, false},
		{"counts", "{\"a\":1}\n{\"a\":1}", `{"a":1}`, false},
		{"deep", `{"a":[["k",{"x":1.0}]]}`, `{"a":[["k",{"x":1}]]}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sets [2]rowSet
			for i, text := range []string{c.a, c.b} {
				path := t.TempDir() + "/rows.jsonl"
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				set, err := rowsOf(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				sets[i] = set
			}
			if got := differ(sets[0], sets[1]) == ""; got != c.same {
				t.Errorf("same is %v, want %v", got, c.same)
			}
		})
	}
}
