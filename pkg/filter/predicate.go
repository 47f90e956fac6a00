package filter

import (
	"fmt"
	"strings"
)

// predicate reads what is asked of a column.
func (p *parser) predicate(c column, from int) (node, error) {
	finish := func(o op, literals []literal, err error) (node, error) {
		return predicate{o, c, literals, span{from, p.before()}}, err
	}
	o, ok, err := p.comparison()
	if err != nil {
		return nil, err
	}
	if ok {
		lit, err := p.mustLiteral("after " + o.String())
		return finish(o, []literal{lit}, err)
	}
	if is, err := p.accept("IS"); is || err != nil {
		if err != nil {
			return nil, err
		}
		return p.is(finish)
	}
	negated, err := p.accept("NOT")
	if err != nil {
		return nil, err
	}
	start := p.now
	for _, k := range []struct {
		word string
		op   op
		read func() (op, []literal, error)
	}{
		{"IN", opIn, p.set},
		{"BETWEEN", opBetween, p.between},
		{"LIKE", opStarts, p.like},
		{"STARTS", opStarts, p.starts},
	} {
		if !p.now.is(k.word) {
			continue
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		o, literals, err := k.read()
		if negated {
			o = o.opposite()
		}
		return finish(o, literals, err)
	}
	what := fmt.Sprintf("column %s", quotePath(c.parts))
	switch {
	case negated:
		return nil, p.wrong(start, "want IN, BETWEEN, LIKE or STARTS WITH after NOT, not %s", start.show())
	case p.now.is("ILIKE") || p.now.is("RLIKE") || p.now.is("REGEXP") || p.now.is("SIMILAR"):
		return nil, p.wrong(start, "%s is not known; LIKE with a %% at the end of its pattern is, and STARTS WITH", strings.ToUpper(start.value))
	case p.now.isSymbol("("):
		return nil, p.wrong(start, "there are no functions in a filter: %s is taken for a column, and want a comparison after it", quotePath(c.parts))
	}
	return nil, p.wrong(start, "want a comparison after %s, not %s (a column of truth values is compared too: %s = TRUE)", what, start.show(), formatPath(c.parts))
}

// before is where the last token that was taken ends.
func (p *parser) before() int {
	return len(strings.TrimRight(p.text[:p.now.at.from], " \t\r\n"))
}

func (p *parser) is(finish func(op, []literal, error) (node, error)) (node, error) {
	negated, err := p.accept("NOT")
	if err != nil {
		return nil, err
	}
	var o op
	switch {
	case p.now.is("NULL"):
		o = opIsNull
	case p.now.is("NAN"):
		o = opIsNaN
	case p.now.is("TRUE"), p.now.is("FALSE"):
		return nil, p.wrong(p.now, "IS %s is not known; write = %s", strings.ToUpper(p.now.value), strings.ToUpper(p.now.value))
	default:
		return nil, p.wrong(p.now, "want NULL, NAN, NOT NULL or NOT NAN after IS, not %s", p.now.show())
	}
	if negated {
		o = o.opposite()
	}
	err = p.advance()
	return finish(o, nil, err)
}

func (p *parser) set() (op, []literal, error) {
	if err := p.expect("(", "after IN"); err != nil {
		return opIn, nil, err
	}
	var literals []literal
	for {
		lit, err := p.mustLiteral("in the list of IN")
		if err != nil {
			return opIn, nil, err
		}
		literals = append(literals, lit)
		more, err := p.accept(",")
		if err != nil {
			return opIn, nil, err
		}
		if !more {
			return opIn, literals, p.expect(")", "or a comma in the list of IN")
		}
	}
}

func (p *parser) between() (op, []literal, error) {
	from, err := p.mustLiteral("after BETWEEN")
	if err != nil {
		return opBetween, nil, err
	}
	if err := p.expect("AND", "between the two ends of BETWEEN"); err != nil {
		return opBetween, nil, err
	}
	to, err := p.mustLiteral("after the AND of BETWEEN")
	return opBetween, []literal{from, to}, err
}

func (p *parser) starts() (op, []literal, error) {
	if err := p.expect("WITH", "after STARTS"); err != nil {
		return opStarts, nil, err
	}
	lit, err := p.mustLiteral("after STARTS WITH")
	return opStarts, []literal{lit}, err
}

// like reads the pattern of LIKE: a text, or the beginning of one with a % behind it.
func (p *parser) like() (op, []literal, error) {
	lit, err := p.mustLiteral("after LIKE")
	if err != nil || lit.kind == nullLiteral {
		return opEqual, []literal{lit}, err
	}
	if lit.kind != textLiteral || lit.as != "" {
		return 0, nil, errorAt(p.text, lit.at, "want a text after LIKE, not %s", lit.show())
	}
	if p.now.is("ESCAPE") {
		return 0, nil, p.wrong(p.now, `ESCAPE is not known; \ stands before a %%, _ or \ that means itself`)
	}
	var plain strings.Builder
	pattern := lit.text
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern) && strings.IndexByte(`%_\`, pattern[i+1]) >= 0:
			i++
			plain.WriteByte(pattern[i])
		case c == '\\':
			return 0, nil, errorAt(p.text, lit.at, `a \ in the pattern of LIKE stands before %%, _ or \; write \\ for itself`)
		case c == '%' && i == len(pattern)-1:
			lit.text = plain.String()
			return opStarts, []literal{lit}, nil
		case c == '%':
			return 0, nil, errorAt(p.text, lit.at, `a %% is allowed at the end of the pattern of LIKE alone; write \%% for itself`)
		case c == '_':
			return 0, nil, errorAt(p.text, lit.at, `a _ in the pattern of LIKE is any one letter in SQL and itself in PyIceberg: write \_ for itself; any one letter cannot be asked for`)
		default:
			plain.WriteByte(c)
		}
	}
	lit.text = plain.String()
	return opEqual, []literal{lit}, nil
}
