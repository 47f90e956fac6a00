// Package filter is the row filter: a condition on the rows of a table, as text or as Iceberg's REST
// expression JSON, that selects exactly the rows SQL would.
//
// Parse and ParseJSON read a condition, Bind ties it to a schema and its literals to the types of
// the columns. What comes out, a Bound, has one text for one meaning (String), tells which rows of a
// record batch it selects (Mask), and what may be left unread because no row of it can be selected
// (Pruning, Possible). The grammar and the meaning of every part are in docs/FILTER.md.
//
// SQL's three-valued logic is kept by rewriting, not by a third value at run time: Bind pushes every
// NOT down to the comparisons, where it has an exact opposite (NOT (a < 5) is a >= 5, both unknown
// for a null). What is left are ANDs and ORs, in which unknown and false select the same rows, so
// that each comparison need only say where it is true.
package filter

import (
	"fmt"
	"strings"
)

// An Expr is a condition that was read and is not tied to a schema yet.
type Expr struct {
	text string
	root node
}

// String writes the condition in the grammar of Parse, as it was read but for spaces, needless
// parentheses and the spelling of operators, keywords and numbers. Parse reads it back as the same
// expression.
func (e *Expr) String() string { return printExpr(e.root) }

// A node is part of a condition: logic, not, constant or predicate.
type node interface{}

// logic is two or more conditions joined by AND or by OR.
type logic struct {
	or   bool
	kids []node
}

type not struct{ kid node }

// constant is TRUE, FALSE or NULL in the place of a condition.
type constant struct{ truth truth }

type truth int

const (
	unknown truth = iota
	isFalse
	isTrue
)

func (t truth) String() string { return [...]string{"NULL", "FALSE", "TRUE"}[t] }

// predicate is a question about one column.
type predicate struct {
	op       op
	column   column
	literals []literal // none, one, those of a set, or the two ends of BETWEEN
	at       span      // the whole of it in the text
}

// column is a path: the name of a top-level column, then of fields of structs.
type column struct {
	parts  []string
	joined bool // the parts are one name joined by dots, as JSON has it
	at     span
}

// span is a range of bytes in the text.
type span struct{ from, to int }

// op is what a predicate asks.
type op int

const (
	opLess op = iota
	opLessEq
	opGreater
	opGreaterEq
	opEqual
	opNotEqual
	opIn
	opNotIn
	opBetween
	opNotBetween
	opIsNull
	opNotNull
	opIsNaN
	opNotNaN
	opStarts
	opNotStarts
)

var opTexts = [...]string{
	"<", "<=", ">", ">=", "=", "!=", "IN", "NOT IN", "BETWEEN", "NOT BETWEEN",
	"IS NULL", "IS NOT NULL", "IS NAN", "IS NOT NAN", "STARTS WITH", "NOT STARTS WITH",
}

func (o op) String() string { return opTexts[o] }

// opposite is the operator that is true where o is false, false where o is true, and unknown where o is.
func (o op) opposite() op {
	return [...]op{
		opGreaterEq, opGreater, opLessEq, opLess, opNotEqual, opEqual, opNotIn, opIn, opNotBetween, opBetween,
		opNotNull, opIsNull, opNotNaN, opIsNaN, opNotStarts, opStarts,
	}[o]
}

// mirrored is the operator with its sides exchanged: 5 < a is a > 5.
func (o op) mirrored() op {
	switch o {
	case opLess:
		return opGreater
	case opLessEq:
		return opGreaterEq
	case opGreater:
		return opLess
	case opGreaterEq:
		return opLessEq
	}
	return o
}

// An Error says what is wrong with a filter, and where.
type Error struct {
	Reason string // one line, with the cure
	Text   string // the filter
	At     int    // byte of Text where it is wrong
	To     int    // byte after that
}

// Error is the reason, one line.
func (e *Error) Error() string { return e.Reason }

// Caret shows the place in the text: the line that holds it, shortened where it is long, and under
// it a caret with a tail under all that is wrong.
func (e *Error) Caret() string {
	const around = 50
	from := strings.LastIndexByte(e.Text[:e.At], '\n') + 1
	to := len(e.Text)
	if end := strings.IndexByte(e.Text[e.At:], '\n'); end >= 0 {
		to = e.At + end
	}
	before, after := []rune(e.Text[from:e.At]), []rune(e.Text[e.At:to])
	wrong := len([]rune(e.Text[e.At:max(e.At, min(e.To, to))]))
	if len(before) > around {
		before = append([]rune("…"), before[len(before)-around:]...)
	}
	if most := max(wrong, around); len(after) > most {
		after = append(after[:most:most], '…')
	}
	line := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, string(before)+string(after))
	return line + "\n" + strings.Repeat(" ", len(before)) + "^" + strings.Repeat("~", max(0, wrong-1))
}

func errorAt(text string, at span, format string, args ...any) *Error {
	return &Error{Reason: fmt.Sprintf(format, args...), Text: text, At: min(at.from, len(text)), To: max(at.from, at.to)}
}
