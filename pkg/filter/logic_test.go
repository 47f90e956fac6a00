package filter

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
)

// The tests' own logic: a filter as a function of a row to true, false or unknown, written along with
// its text. It shares nothing with the package but the order of floats, which the tests state anew.

type verdict int // -1 false, 0 unknown, 1 true

type drawn struct {
	text string
	eval func(row map[string]cell) verdict
}

func known3(b bool) verdict {
	if b {
		return 1
	}
	return -1
}

// compareCells orders two cells that are not null, NaN after all, -0 with 0.
func compareCells(a, b cell) int {
	switch a := a.(type) {
	case bool:
		x, y := 0, 0
		if a {
			x = 1
		}
		if b.(bool) {
			y = 1
		}
		return x - y
	case string:
		return strings.Compare(a, b.(string))
	case *big.Rat:
		return a.Cmp(b.(*big.Rat))
	}
	x, y := a.(float64), b.(float64)
	switch {
	case math.IsNaN(x) && math.IsNaN(y), x == y:
		return 0
	case math.IsNaN(x), x > y:
		return 1
	}
	return -1
}

var paths = []string{"b", "i", "l", "f", "d", "dec", "day", "tod", "ts", "tz", "ns", "s", "u", "fx", "bin", "st.x", "st.in.y", `"a.b"`, "big"}

func poolName(path string) string {
	if path == `"a.b"` {
		return "a.b"
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

func drawFilter(r *rand.Rand, depth int) drawn {
	if depth > 0 && r.IntN(4) > 0 {
		switch r.IntN(3) {
		case 0:
			kid := drawFilter(r, depth-1)
			return drawn{"NOT (" + kid.text + ")", func(row map[string]cell) verdict { return -kid.eval(row) }}
		case 1:
			a, b := drawFilter(r, depth-1), drawFilter(r, depth-1)
			return drawn{"(" + a.text + ") AND (" + b.text + ")", func(row map[string]cell) verdict { return min(a.eval(row), b.eval(row)) }}
		}
		a, b := drawFilter(r, depth-1), drawFilter(r, depth-1)
		return drawn{"(" + a.text + ") or (" + b.text + ")", func(row map[string]cell) verdict { return max(a.eval(row), b.eval(row)) }}
	}
	return drawPredicate(r)
}

func drawPredicate(r *rand.Rand) drawn {
	path := pick(r, paths)
	name := poolName(path)
	switch r.IntN(9) {
	case 0:
		p := pick(r, append(paths, "st", "st.in", "un", "li"))
		return drawn{p + " is null", func(row map[string]cell) verdict { return known3(of(row, p) == nil) }}
	case 1:
		p := pick(r, append(paths, "st", "st.in", "un", "li"))
		return drawn{p + " IS NOT NULL", func(row map[string]cell) verdict { return known3(of(row, p) != nil) }}
	case 2:
		return drawSet(r, path, name)
	case 3:
		lo, hi := draw(r, name), draw(r, name)
		word, sign := "BETWEEN", verdict(1)
		if r.IntN(2) == 0 {
			word, sign = "NOT between", -1
		}
		return drawn{fmt.Sprintf("%s %s %s AND %s", path, word, lo.text, hi.text), func(row map[string]cell) verdict {
			v := of(row, path)
			return sign * min(comparison3(v, ">=", lo.value), comparison3(v, "<=", hi.value))
		}}
	case 4:
		if name == "f" || name == "d" {
			word, sign := "IS NAN", verdict(1)
			if r.IntN(2) == 0 {
				word, sign = "is not nan", -1
			}
			return drawn{path + " " + word, func(row map[string]cell) verdict {
				v, ok := of(row, path).(float64)
				if !ok {
					return 0
				}
				return sign * known3(math.IsNaN(v))
			}}
		}
	case 5:
		if name == "s" || name == "y" {
			return drawPrefix(r, path, name)
		}
	case 6:
		return pick(r, []drawn{
			{"TRUE", func(map[string]cell) verdict { return 1 }},
			{"false", func(map[string]cell) verdict { return -1 }},
			{"NULL", func(map[string]cell) verdict { return 0 }},
			{"un = 5", func(map[string]cell) verdict { return 0 }},
		})
	}
	lit := draw(r, name)
	o := pick(r, []string{"<", "<=", ">", ">=", "=", "==", "!=", "<>"})
	if r.IntN(4) == 0 {
		mirror := map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[o]
		if mirror == "" {
			mirror = o
		}
		return drawn{lit.text + mirror + path, func(row map[string]cell) verdict { return comparison3(of(row, path), o, lit.value) }}
	}
	return drawn{path + o + lit.text, func(row map[string]cell) verdict { return comparison3(of(row, path), o, lit.value) }}
}

func comparison3(v cell, o string, w cell) verdict {
	if v == nil || w == nil {
		return 0
	}
	c := compareCells(v, w)
	switch o {
	case "<":
		return known3(c < 0)
	case "<=":
		return known3(c <= 0)
	case ">":
		return known3(c > 0)
	case ">=":
		return known3(c >= 0)
	case "=", "==":
		return known3(c == 0)
	}
	return known3(c != 0)
}

func drawSet(r *rand.Rand, path, name string) drawn {
	n := 1 + r.IntN(4)
	var texts []string
	var literals []drawnLiteral
	for range n {
		l := draw(r, name)
		literals = append(literals, l)
		texts = append(texts, l.text)
	}
	word, sign := "IN", verdict(1)
	if r.IntN(2) == 0 {
		word, sign = "NOT IN", -1
	}
	return drawn{path + " " + word + " (" + strings.Join(texts, ", ") + ")", func(row map[string]cell) verdict {
		v := of(row, path)
		out := verdict(-1)
		for _, l := range literals {
			out = max(out, comparison3(v, "=", l.value))
		}
		return sign * out
	}}
}

func drawPrefix(r *rand.Rand, path, name string) drawn {
	prefix := pick(r, pools[name]).(string)
	text, word := "'"+strings.ReplaceAll(prefix, "'", "''")+"'", "STARTS WITH"
	if r.IntN(2) == 0 {
		pattern := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "'", "''").Replace(prefix)
		text, word = "'"+pattern+"%'", "LIKE"
	}
	sign := verdict(1)
	if r.IntN(2) == 0 {
		word, sign = "NOT "+word, -1
	}
	return drawn{path + " " + word + " " + text, func(row map[string]cell) verdict {
		v, ok := of(row, path).(string)
		if !ok {
			return 0
		}
		return sign * known3(strings.HasPrefix(v, prefix))
	}}
}

func selectedBy(d drawn, rows []map[string]cell) []bool {
	out := make([]bool, len(rows))
	for i, row := range rows {
		out[i] = d.eval(row) == 1
	}
	return out
}

// statsOf are the true statistics of a column of rows, whether a writer would know them or not.
func statsOf(rows []map[string]cell, path string) (lo, hi cell, s Stats) {
	s = Stats{Rows: int64(len(rows))}
	var cells []cell
	for _, row := range rows {
		v := of(row, path)
		if v == nil {
			s.Nulls++
			continue
		}
		if f, ok := v.(float64); ok && math.IsNaN(f) {
			s.NaNs++
			continue
		}
		cells = append(cells, v)
	}
	if len(cells) > 0 {
		lo, hi = slices.MinFunc(cells, compareCells), slices.MaxFunc(cells, compareCells)
	}
	return lo, hi, s
}
