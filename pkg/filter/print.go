package filter

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// plainName is a name that needs no quotes.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]*$`)

// keywords are the words that mean something where a name may stand, or that read badly as names.
var keywords = []string{"AND", "OR", "NOT", "TRUE", "FALSE", "NULL", "IS", "IN", "LIKE", "BETWEEN", "NAN", "STARTS"}

// quoteName writes a name in double quotes.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quotePath names a column in a message.
func quotePath(parts []string) string {
	s := formatPath(parts)
	if strings.HasPrefix(s, `"`) {
		return s
	}
	return `"` + s + `"`
}

// quoteText writes a text in single quotes.
func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// formatPath writes a path as Parse reads it.
func formatPath(parts []string) string {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteByte('.')
		}
		if plainName.MatchString(part) && !slices.Contains(keywords, strings.ToUpper(part)) {
			b.WriteString(part)
		} else {
			b.WriteString(quoteName(part))
		}
	}
	return b.String()
}

func printLiteral(l literal) string {
	switch l.kind {
	case boolLiteral:
		if l.bool {
			return "TRUE"
		}
		return "FALSE"
	case numberLiteral:
		return l.number.String()
	case textLiteral:
		if l.as != "" {
			return l.as + " " + quoteText(l.text)
		}
		return quoteText(l.text)
	case binaryLiteral:
		return "X'" + hex.EncodeToString([]byte(l.text)) + "'"
	}
	return "NULL"
}

// printExpr writes a condition as Parse reads it.
func printExpr(n node) string {
	w := &writer{}
	w.write(n)
	return w.String()
}

// A writer writes conditions and notes where their parts stand.
type writer struct {
	strings.Builder
}

// write writes the condition and returns it with the places of its parts in the text.
func (w *writer) write(n node) node {
	switch n := n.(type) {
	case constant:
		w.WriteString(n.truth.String())
		return n
	case not:
		w.WriteString("NOT ")
		return not{w.inner(n.kid, true)}
	case logic:
		between := " AND "
		if n.or {
			between = " OR "
		}
		kids := make([]node, len(n.kids))
		for i, kid := range n.kids {
			if i > 0 {
				w.WriteString(between)
			}
			kids[i] = w.inner(kid, !n.or)
		}
		return logic{n.or, kids}
	}
	return w.predicate(n.(predicate))
}

// inner writes a condition inside another, in parentheses where it binds less, or where that reads
// better.
func (w *writer) inner(n node, tight bool) node {
	if l, ok := n.(logic); !ok || !tight && !l.or {
		return w.write(n)
	}
	w.WriteByte('(')
	n = w.write(n)
	w.WriteByte(')')
	return n
}

func (w *writer) predicate(p predicate) node {
	p.at.from = w.Len()
	p.column.at.from = w.Len()
	w.WriteString(formatPath(p.column.parts))
	p.column.at.to = w.Len()
	w.WriteByte(' ')
	literals := slices.Clone(p.literals)
	lit := func(i int) {
		literals[i].at.from = w.Len()
		w.WriteString(printLiteral(literals[i]))
		literals[i].at.to = w.Len()
	}
	switch p.op {
	case opIn, opNotIn:
		w.WriteString(p.op.String() + " (")
		for i := range literals {
			if i > 0 {
				w.WriteString(", ")
			}
			lit(i)
		}
		w.WriteByte(')')
	case opBetween, opNotBetween:
		w.WriteString(p.op.String() + " ")
		lit(0)
		w.WriteString(" AND ")
		lit(1)
	case opStarts, opNotStarts:
		if literals[0].kind != textLiteral || literals[0].as != "" {
			w.WriteString(p.op.String() + " ")
			lit(0)
			break
		}
		if p.op == opNotStarts {
			w.WriteString("NOT ")
		}
		w.WriteString("LIKE ")
		literals[0].at.from = w.Len()
		w.WriteString(quoteText(likePattern(literals[0].text)))
		literals[0].at.to = w.Len()
	default:
		w.WriteString(p.op.String())
		if len(literals) > 0 {
			w.WriteByte(' ')
			lit(0)
		}
	}
	p.literals = literals
	p.at.to = w.Len()
	return p
}

// likePattern is the pattern of LIKE for texts that begin with a prefix.
func likePattern(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(prefix) + "%"
}
