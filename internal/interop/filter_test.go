//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"icepipe/internal/catalogs"
	"icepipe/internal/lake"
	"icepipe/pkg/filter"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// openTables makes what openLab makes, but for the programs.
func openTables(t *testing.T) *lab {
	t.Helper()
	root := checkout(t)
	l := &lab{root: root, out: filepath.Join(root, ".cache", "tables")}
	l.python = filepath.Join(dependencies(t, root), "venv", "bin", "python")
	l.load(t)
	return l
}

// sourceTable opens a table of a SQLite catalog for reading.
func sourceTable(t *testing.T, db, name, identifier string) *lake.Table {
	t.Helper()
	ref := catalogs.Ref{Place: rows.Place{Kind: "sqlite", Name: name, DBPath: db}, Identifier: strings.Split(identifier, ".")}
	o, err := catalogs.Open(t.Context(), ref, catalogs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return &lake.Table{Catalog: o.Catalog, Table: o.Table}
}

// selected are the rows that a filtered scan gives, as JSON lines, sorted. Only the columns named are read.
func selected(ctx context.Context, tbl *lake.Table, text string, columns []string, whole bool) ([]string, lake.Skipped, error) {
	var e *filter.Expr
	if text != "" {
		var err error
		if e, err = filter.Parse(text); err != nil {
			return nil, lake.Skipped{}, err
		}
	}
	scan, err := tbl.PlanScan(ctx, lake.ScanOptions{Filter: e, Select: columns, BatchRows: 1 << 20, WholePlan: whole})
	if err != nil {
		return nil, lake.Skipped{}, err
	}
	stream := scan.Stream(ctx)
	var out []string
	for span, err := range rows.Opened(ctx, stream).Spans {
		if err != nil {
			return nil, lake.Skipped{}, err
		}
		content, err := span.Batch.MarshalJSON()
		span.Release()
		if err != nil {
			return nil, lake.Skipped{}, err
		}
		for _, line := range bytes.Split(bytes.Trim(content, "[]\n"), []byte("\n")) {
			out = append(out, string(bytes.TrimPrefix(line, []byte(","))))
		}
	}
	if _, err := stream.Seal(); err != nil {
		return nil, lake.Skipped{}, err
	}
	slices.Sort(out)
	return out, scan.Skipped(), nil
}

// canonicalRows reads a file of rows in canonical form.
func canonicalRows(t *testing.T, path string) []map[string]any {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []map[string]any
	in := bufio.NewReaderSize(file, 1<<20)
	d := json.NewDecoder(in)
	d.UseNumber()
	for d.More() {
		row := map[string]any{}
		if err := d.Decode(&row); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, row)
	}
	return out
}

// literalOf writes a canonical value as a literal of a filter; not ok for values that are not asked about.
func literalOf(v any, t iceberg.Type) (string, bool) {
	switch v := v.(type) {
	case bool:
		return strings.ToUpper(fmt.Sprint(v)), true
	case json.Number:
		return v.String(), true
	case string:
		switch t.(type) {
		case iceberg.DecimalType:
			return v, true
		case iceberg.Float32Type, iceberg.Float64Type:
			if v == "-0.0" {
				return v, true
			}
		case iceberg.BinaryType, iceberg.FixedType:
			return "X'" + v + "'", true
		}
		return "'" + strings.ReplaceAll(v, "'", "''") + "'", len(v) < 1000
	}
	return "", false
}

// orderCanonical orders two canonical values of one column as SQL does.
func orderCanonical(a, b any, t iceberg.Type) int {
	number := func(v any) *big.Rat {
		r, ok := new(big.Rat).SetString(fmt.Sprint(v))
		if !ok {
			panic(fmt.Sprintf("%v is no number", v))
		}
		return r
	}
	switch t.(type) {
	case iceberg.BooleanType:
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) // false before true
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.DecimalType:
		return number(a).Cmp(number(b))
	case iceberg.Float32Type, iceberg.Float64Type:
		float := func(v any) float64 {
			switch fmt.Sprint(v) {
			case "NaN":
				return math.NaN()
			case "Infinity":
				return math.Inf(1)
			case "-Infinity":
				return math.Inf(-1)
			}
			f, _ := number(v).Float64()
			return f
		}
		x, y := float(a), float(b)
		if math.IsNaN(x) || math.IsNaN(y) {
			return -cmp.Compare(y, x) * map[bool]int{true: 0, false: -1}[math.IsNaN(x) && math.IsNaN(y)]
		}
		return cmp.Compare(x, y)
	case iceberg.DateType, iceberg.TimestampType, iceberg.TimestampTzType:
		far := func(v any) int { // years of more than four digits have a sign
			switch fmt.Sprint(v)[0] {
			case '+':
				return 1
			case '-':
				return -1
			}
			return 0
		}
		if c := cmp.Compare(far(a), far(b)); c != 0 {
			return c
		}
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// A question is a filter and what it selects of canonical rows.
type question struct {
	text string
	test func(row map[string]any) bool
}

// questions are filters by one column: by each of its values, up to a number, by ranges that end at some of
// them, by null and by sets.
func questions(f iceberg.NestedField, all []map[string]any, most int) []question {
	name := f.Name
	column := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	out := []question{
		{column + " IS NULL", func(row map[string]any) bool { return row[name] == nil }},
		{column + " IS NOT NULL", func(row map[string]any) bool { return row[name] != nil }},
	}
	if _, ok := f.Type.(iceberg.PrimitiveType); !ok {
		return out
	}
	var values []any
	var texts []string
	for _, row := range all {
		v := row[name]
		text, ok := literalOf(v, f.Type)
		if v == nil || !ok || slices.Contains(texts, text) {
			continue
		}
		values, texts = append(values, v), append(texts, text)
	}
	step := max(1, len(values)/most)
	var few []int
	for i := 0; i < len(values); i += step {
		few = append(few, i)
	}
	const ranges = 5
	for n, i := range few {
		v, text := values[i], texts[i]
		by := func(o string, holds func(c int) bool) question {
			return question{column + " " + o + " " + text, func(row map[string]any) bool {
				return row[name] != nil && holds(orderCanonical(row[name], v, f.Type))
			}}
		}
		out = append(out, by("=", func(c int) bool { return c == 0 }))
		if n%max(1, len(few)/ranges) != 0 {
			continue
		}
		out = append(out, by("!=", func(c int) bool { return c != 0 }),
			by("<", func(c int) bool { return c < 0 }), by(">=", func(c int) bool { return c >= 0 }))
		if s, ok := v.(string); ok && is[iceberg.StringType](f.Type) && len(s) > 0 {
			prefix := string([]rune(s)[:1])
			escaped := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "'", "''").Replace(prefix)
			out = append(out, question{column + " LIKE '" + escaped + "%'", func(row map[string]any) bool {
				text, ok := row[name].(string)
				return ok && strings.HasPrefix(text, prefix)
			}})
		}
	}
	if len(few) > 1 {
		in := func(row map[string]any) bool {
			return slices.ContainsFunc(few[:2], func(i int) bool {
				return row[name] != nil && orderCanonical(row[name], values[i], f.Type) == 0
			})
		}
		set := "(" + texts[few[0]] + ", " + texts[few[1]] + ")"
		out = append(out, question{column + " IN " + set, in}, question{column + " NOT IN " + set, func(row map[string]any) bool {
			return row[name] != nil && !in(row)
		}})
	}
	return out
}

func is[T iceberg.Type](t iceberg.Type) bool { _, ok := t.(T); return ok }

// TestFilterFixtures asks every table of the fixtures for the values of every column that its expected
// rows hold: cases 23, 39, 43, 44, 47, 52, 53, 58, 61, 62, 64 and 65, on files, partitions and deletes
// of PyIceberg and Spark. Nothing that passes may be pruned. ICEPIPE_TORTURE=1 asks for five times as many.
func TestFilterFixtures(t *testing.T) {
	l := openTables(t)
	began := time.Now()
	var tables atomic.Int64
	var tally filterTally
	var fixtures []*fixture
	for i := range l.tables {
		if f := &l.tables[i]; f.Expected["source"] != "" && f.Rows > 0 {
			fixtures = append(fixtures, f)
		}
	}
	inPairs(fixtures, func(f *fixture) {
		t.Run(f.Name, func(t *testing.T) {
			tbl := sourceTable(t, filepath.Join(l.out, f.DB), f.Catalog, f.Identifier)
			if _, err := tbl.PlanScan(t.Context(), lake.ScanOptions{}); err != nil {
				if f.ExpectError == "" && f.MayRefuse == "" {
					t.Fatal(err)
				}
				return
			}
			all := canonicalRows(t, filepath.Join(l.out, f.Expected["source"]))
			fields := tbl.Schema().Fields()
			most := 6
			switch {
			case len(all) > 100 || len(fields) > 20:
				most = 2
			case strings.HasPrefix(f.Name, "part_"):
				most = 30 // every value that a partition may have
			}
			if !tortures() {
				most = (most + 4) / 5
			}
			tables.Add(1)
			for _, column := range fields {
				if _, ok := all[0][column.Name]; !ok {
					continue
				}
				for _, q := range questions(column, all, most) {
					ids := slices.ContainsFunc(fields, func(f iceberg.NestedField) bool { return f.Name == "id" && is[iceberg.Int64Type](f.Type) })
					var want []string
					for _, row := range all {
						if q.test(row) {
							line := "{}"
							if ids {
								line = fmt.Sprintf(`{"id":%s}`, orNull(row["id"]))
							}
							want = append(want, line)
						}
					}
					slices.Sort(want)
					columns := []string{}
					if ids {
						columns = []string{"id"}
					}
					got, skip, err := selected(t.Context(), tbl, q.text, columns, false)
					if err != nil {
						t.Fatalf("%s: %v", q.text, err)
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s (case of table %v): got %d rows, want %d\n got %.300s\nwant %.300s", q.text, plan.FormatPath([]string{f.Name}), len(got), len(want), got, want)
					}
					tally.add(len(got), skip)
				}
			}
		})
	})
	asked, skipped := tables.Load(), tally.skipped
	say("%5.1f s  %d filters on %d tables; %d manifests, %d files and %d row groups were not read", time.Since(began).Seconds(), tally.asked, asked, skipped.Manifests, skipped.Files, skipped.RowGroups)
	if len(l.only) == 0 && (asked < 100 || skipped.Manifests == 0 || skipped.RowGroups == 0) {
		t.Errorf("only %d tables were asked, or nothing was pruned", asked)
	}
}

func orNull(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}
