package filter

import (
	"encoding/hex"
	"fmt"
)

const (
	maxDepth = 200     // of parentheses and NOTs, so that hostile text cannot exhaust the stack
	maxText  = 1 << 20 // bytes of a filter
)

// Parse reads a condition in PyIceberg's grammar, with additions; docs/FILTER.md has all of it.
// What it returns as an error is an *Error.
func Parse(s string) (*Expr, error) {
	if len(s) > maxText {
		return nil, errorAt(s[:80], span{}, "the filter has %d bytes; %d are allowed", len(s), maxText)
	}
	p := &parser{lexer: lexer{text: s}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.now.kind == end {
		return nil, p.wrong(p.now, "the filter is empty; leave it out to take all rows")
	}
	root, err := p.condition(0)
	if err != nil {
		return nil, err
	}
	switch {
	case p.now.kind == end:
		return &Expr{s, root}, nil
	case p.now.isSymbol(")"):
		return nil, p.wrong(p.now, "there is a ) without its (")
	}
	return nil, p.wrong(p.now, "want AND, OR or the end, not %s", p.now.show())
}

// A parser reads a condition by the binding power of its operators (Pratt): OR binds less than AND, AND
// less than NOT, NOT less than comparisons.
type parser struct {
	lexer
	now   token
	depth int
}

const (
	powerOr = iota + 1
	powerAnd
	powerNot
)

func (p *parser) wrong(t token, format string, args ...any) error {
	return errorAt(p.text, t.at, format, args...)
}

func (p *parser) advance() error {
	var err error
	p.now, err = p.next()
	return err
}

// peek is the token after p.now; what is wrong with it shows when it is reached.
func (p *parser) peek() token {
	ahead := p.lexer
	t, err := ahead.next()
	if err != nil {
		return token{}
	}
	return t
}

// accept takes the token if it is the given word or symbol.
func (p *parser) accept(s string) (bool, error) {
	if !p.now.is(s) && !p.now.isSymbol(s) {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) expect(s, why string) error {
	ok, err := p.accept(s)
	if err == nil && !ok {
		err = p.wrong(p.now, "want %s %s, not %s", s, why, p.now.show())
	}
	return err
}

// condition reads operands joined by operators that bind more than power.
func (p *parser) condition(power int) (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.wrong(p.now, "the filter is nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	left, err := p.operand()
	for err == nil {
		binds := 0
		switch {
		case p.now.is("OR"):
			binds = powerOr
		case p.now.is("AND"):
			binds = powerAnd
		}
		if binds <= power {
			return left, nil
		}
		if err = p.advance(); err != nil {
			break
		}
		var right node
		if right, err = p.condition(binds); err == nil {
			left = join(binds == powerOr, left, right)
		}
	}
	return nil, err
}

// join makes one list of what is joined by one operator.
func join(or bool, left, right node) node {
	kids := func(n node) []node {
		if l, ok := n.(logic); ok && l.or == or {
			return l.kids
		}
		return []node{n}
	}
	return logic{or, append(kids(left), kids(right)...)} // nobody else holds what is on the left
}

func (p *parser) operand() (node, error) {
	switch {
	case p.now.is("NOT"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		kid, err := p.condition(powerNot)
		return not{kid}, err
	case p.now.isSymbol("("):
		open := p.now
		if err := p.advance(); err != nil {
			return nil, err
		}
		inner, err := p.condition(0)
		if err != nil {
			return nil, err
		}
		if p.now.kind == end {
			return nil, p.wrong(open, "there is a ( without its )")
		}
		return inner, p.expect(")", "after a condition")
	}
	from := p.now.at.from
	lit, ok, err := p.literal()
	if err != nil {
		return nil, err
	}
	if ok {
		return p.reversed(lit, from)
	}
	c, err := p.column()
	if err != nil {
		return nil, err
	}
	return p.predicate(c, from)
}

// reversed reads on from a literal: 5 < a; or TRUE, FALSE and NULL as conditions.
func (p *parser) reversed(lit literal, from int) (node, error) {
	o, ok, err := p.comparison()
	if err != nil {
		return nil, err
	}
	if !ok {
		switch lit.kind {
		case nullLiteral:
			return constant{unknown}, nil
		case boolLiteral:
			if lit.bool {
				return constant{isTrue}, nil
			}
			return constant{isFalse}, nil
		}
		return nil, p.wrong(p.now, "want a comparison after the literal %s, not %s", lit.show(), p.now.show())
	}
	if other, ok, err := p.literal(); err != nil || ok {
		if err == nil {
			err = errorAt(p.text, span{from, other.at.to}, "two literals are compared; one side must be a column%s", nameHint(lit, other))
		}
		return nil, err
	}
	c, err := p.column()
	return predicate{o.mirrored(), c, []literal{lit}, span{from, c.at.to}}, err
}

// nameHint helps those who write names in single quotes.
func nameHint(literals ...literal) string {
	for _, l := range literals {
		if l.kind == textLiteral && l.as == "" {
			return fmt.Sprintf(" (%s is a text; a name stands in double quotes)", l.show())
		}
	}
	return ""
}

// comparison reads a comparison operator, if there is one.
func (p *parser) comparison() (op, bool, error) {
	if p.now.kind != symbol {
		return 0, false, nil
	}
	o, ok := map[string]op{
		"<": opLess, "<=": opLessEq, ">": opGreater, ">=": opGreaterEq, "=": opEqual, "==": opEqual, "!=": opNotEqual, "<>": opNotEqual,
	}[p.now.value]
	if !ok {
		return 0, false, nil
	}
	return o, true, p.advance()
}

// column reads a path.
func (p *parser) column() (column, error) {
	c := column{at: p.now.at}
	for {
		if p.now.kind != word && p.now.kind != quoted {
			if len(c.parts) > 0 {
				return c, p.wrong(p.now, "want a name after the dot, not %s", p.now.show())
			}
			return c, p.wrong(p.now, "want a column, a literal, NOT or (, not %s", p.now.show())
		}
		c.parts = append(c.parts, p.now.value)
		c.at.to = p.now.at.to
		if err := p.advance(); err != nil {
			return c, err
		}
		if dot, err := p.accept("."); !dot || err != nil {
			return c, err
		}
		if len(c.parts) == maxDepth {
			return c, p.wrong(p.now, "a path has more than %d parts", maxDepth)
		}
	}
}

func (p *parser) mustLiteral(where string) (literal, error) {
	lit, ok, err := p.literal()
	if err == nil && !ok {
		err = p.wrong(p.now, "want a literal %s, not %s", where, p.now.show())
		if p.now.kind == word || p.now.kind == quoted {
			err = p.wrong(p.now, "want a literal %s, not %s (a text stands in single quotes; columns are not compared with columns)", where, p.now.show())
		}
	}
	return lit, err
}

// literal reads a literal, if there is one.
func (p *parser) literal() (literal, bool, error) {
	lit := literal{at: p.now.at}
	switch t := p.now; t.kind {
	case digits:
		n, ok := parseNumber(t.value)
		if !ok {
			return lit, false, p.wrong(t, "the number has more than %d digits, or an exponent beyond %d", maxDigits, maxExponent)
		}
		lit.kind, lit.number = numberLiteral, n
	case text:
		lit.kind, lit.text = textLiteral, t.value
	case hexText:
		bytes, err := hex.DecodeString(t.value)
		if err != nil {
			return lit, false, p.wrong(t, "a binary literal is pairs of hexadecimal digits: X'00ff'")
		}
		lit.kind, lit.text = binaryLiteral, string(bytes)
	case word:
		typed := ""
		for _, w := range typedTexts {
			if t.is(w) && p.peek().kind == text {
				typed = w
			}
		}
		switch {
		case typed != "":
			if err := p.advance(); err != nil {
				return lit, false, err
			}
			lit.kind, lit.text, lit.as, lit.at.to = textLiteral, p.now.value, typed, p.now.at.to
		case p.peek().isSymbol("."):
			return lit, false, nil
		case t.is("NULL"):
			lit.kind = nullLiteral
		case t.is("TRUE"), t.is("FALSE"):
			lit.kind, lit.bool = boolLiteral, t.is("TRUE")
		default:
			return lit, false, nil
		}
	default:
		return lit, false, nil
	}
	return lit, true, p.advance()
}
