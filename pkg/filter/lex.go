package filter

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind int

const (
	end kind = iota
	word
	quoted // a name in double quotes
	text   // in single quotes
	hexText
	digits // a number
	symbol // an operator, parenthesis, comma or dot
)

// token is the smallest part of a filter's text.
type token struct {
	kind  kind
	value string // of quoted and text: without quotes
	at    span
}

// is reports whether the token is a word of the grammar, in any case.
func (t token) is(keyword string) bool { return t.kind == word && strings.EqualFold(t.value, keyword) }

func (t token) isSymbol(s string) bool { return t.kind == symbol && t.value == s }

// show names the token in a message.
func (t token) show() string {
	switch t.kind {
	case end:
		return "the end"
	case quoted:
		return quoteName(t.value)
	case text:
		return shorten(quoteText(t.value))
	case hexText:
		return shorten("X'" + t.value + "'")
	}
	return shorten(`"` + t.value + `"`)
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:39]) + "…"
	}
	return s
}

// lexer cuts a text into tokens.
type lexer struct {
	text string
	pos  int
}

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }
func isNamePart(r rune) bool {
	return isNameStart(r) || r == '$' || unicode.IsDigit(r) || unicode.IsMark(r)
}

func (l *lexer) next() (token, error) {
	for l.pos < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[l.pos:])
		if !unicode.IsSpace(r) {
			break
		}
		l.pos += size
	}
	from := l.pos
	if from == len(l.text) {
		return token{kind: end, at: span{from, from}}, nil
	}
	rest := l.text[from:]
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case r == utf8.RuneError && size == 1:
		return token{}, errorAt(l.text, span{from, from + 1}, "the filter is not UTF-8 text")
	case r == '\'':
		value, err := l.quotes('\'', "a text")
		return token{text, value, span{from, l.pos}}, err
	case r == '"':
		value, err := l.quotes('"', "a name")
		if err == nil && value == "" {
			return token{}, errorAt(l.text, span{from, l.pos}, "a name is empty")
		}
		return token{quoted, value, span{from, l.pos}}, err
	case (r == 'x' || r == 'X') && strings.HasPrefix(rest[1:], "'"):
		l.pos++
		value, err := l.quotes('\'', "a binary literal")
		return token{hexText, value, span{from, l.pos}}, err
	case isNameStart(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return !isNamePart(r) })
		if n < 0 {
			n = len(rest)
		}
		l.pos += n
		return token{word, rest[:n], span{from, l.pos}}, nil
	}
	if n := numberLength(rest); n > 0 {
		l.pos += n
		if r, _ := utf8.DecodeRuneInString(l.text[l.pos:]); isNamePart(r) || r == '.' {
			return token{}, errorAt(l.text, span{from, l.pos + 1}, "a number is followed by %q: put a space between them, or quotes around a text or name", string(r))
		}
		return token{digits, rest[:n], span{from, l.pos}}, nil
	}
	for _, s := range []string{"<=", ">=", "<>", "!=", "==", "<", ">", "=", "(", ")", ",", "."} {
		if strings.HasPrefix(rest, s) {
			l.pos += len(s)
			return token{symbol, s, span{from, l.pos}}, nil
		}
	}
	cure := ""
	switch r {
	case '`':
		cure = "; names stand in double quotes"
	case '‘', '’', '“', '”', '´':
		cure = "; texts stand in straight single quotes, names in straight double quotes"
	case ';':
		cure = "; a filter is one condition"
	}
	return token{}, errorAt(l.text, span{from, from + size}, "%q has no meaning in a filter%s", string(r), cure)
}

// quotes reads what stands in quotes, in which the quote itself is doubled.
func (l *lexer) quotes(quote byte, what string) (string, error) {
	from := l.pos
	var b strings.Builder
	for l.pos++; ; {
		end := strings.IndexByte(l.text[l.pos:], quote)
		if end < 0 {
			return "", errorAt(l.text, span{from, len(l.text)}, "%s is not closed: a %c is missing (inside it, the quote itself is doubled)", what, quote)
		}
		part := l.text[l.pos : l.pos+end]
		if !utf8.ValidString(part) {
			return "", errorAt(l.text, span{from, l.pos + end}, "the filter is not UTF-8 text; write bytes as X'…'")
		}
		b.WriteString(part)
		l.pos += end + 1
		if l.pos == len(l.text) || l.text[l.pos] != quote {
			return b.String(), nil
		}
		b.WriteByte(quote)
		l.pos++
	}
}

// numberLength is how much of the text's start is a number: 5, -5, +.5, 5., 1e-3. Zero: none.
func numberLength(s string) int {
	i := 0
	run := func() int {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i - from
	}
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	n := run()
	if i < len(s) && s[i] == '.' {
		i++
		n += run()
	}
	if n == 0 {
		return 0
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		mantissa := i
		i++
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
		if run() == 0 {
			return mantissa
		}
	}
	return i
}
