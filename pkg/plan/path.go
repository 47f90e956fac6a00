package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// The grammar of paths: parts joined by dots. A part that holds '.', ':', ',' or '"', or that is
// empty, stands in double quotes, in which '"' is doubled. The elements of a list are the part
// element, the keys and values of a map the parts key and value.
const special = `.:,"`

// FormatPath writes the parts of a path in their shortest form. ParsePath is its inverse.
func FormatPath(parts []string) string {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteByte('.')
		}
		if part != "" && !strings.ContainsAny(part, special) {
			b.WriteString(part)
			continue
		}
		b.WriteByte('"')
		b.WriteString(strings.ReplaceAll(part, `"`, `""`))
		b.WriteByte('"')
	}
	return b.String()
}

// ParsePath reads a path: total, items.element.sku, "a.b".c. An error quotes the text and says
// what is wrong with it.
func ParsePath(text string) ([]string, error) {
	parts, rest, err := scanPath(text)
	if err != nil {
		return nil, fmt.Errorf("path %s: %w", quoteText(text), err)
	}
	if rest != "" {
		return nil, fmt.Errorf("path %s: a part that holds %q stands in double quotes", quoteText(text), rest[:1])
	}
	return parts, nil
}

// ParseRename reads SRC:DST, two paths.
func ParseRename(text string) (Rename, error) {
	from, rest, err := scanPath(text)
	if err != nil {
		return Rename{}, fmt.Errorf("column mapping %s: %w", quoteText(text), err)
	}
	if !strings.HasPrefix(rest, ":") {
		return Rename{}, fmt.Errorf("column mapping %s: want SRC:DST", quoteText(text))
	}
	to, rest, err := scanPath(rest[1:])
	if err != nil {
		return Rename{}, fmt.Errorf("column mapping %s: %w", quoteText(text), err)
	}
	if rest != "" {
		return Rename{}, fmt.Errorf("column mapping %s: want SRC:DST once; a name that holds %q stands in double quotes",
			quoteText(text), rest[:1])
	}
	return Rename{From: FormatPath(from), To: FormatPath(to)}, nil
}

// ParseCoercion reads COL:TYPE, a path in the destination and an Iceberg primitive type.
func ParseCoercion(text string) (Coercion, error) {
	column, rest, err := scanPath(text)
	if err != nil {
		return Coercion{}, fmt.Errorf("type coercion %s: %w", quoteText(text), err)
	}
	if !strings.HasPrefix(rest, ":") {
		return Coercion{}, fmt.Errorf("type coercion %s: want COL:TYPE", quoteText(text))
	}
	t, err := parseType(rest[1:])
	if err != nil {
		return Coercion{}, fmt.Errorf("type coercion %s: %w", quoteText(text), err)
	}
	return Coercion{Column: FormatPath(column), Type: t.Type()}, nil
}

// scanPath reads a path from the start of text, up to an unquoted ':' or ','.
func scanPath(text string) (parts []string, rest string, err error) {
	rest = text
	for {
		var part string
		if part, rest, err = scanPart(rest); err != nil {
			return nil, "", err
		}
		if parts = append(parts, part); len(parts) > maxDepth {
			return nil, "", fmt.Errorf("more than %d parts", maxDepth)
		}
		if !strings.HasPrefix(rest, ".") {
			return parts, rest, nil
		}
		rest = rest[1:]
	}
}

// scanPart reads one part; rest is empty or starts with '.', ':' or ','.
func scanPart(text string) (part, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, special)
		if end < 0 {
			end = len(text)
		}
		switch {
		case end < len(text) && text[end] == '"':
			return "", "", fmt.Errorf(`a part that holds '"' stands in double quotes, with '"' doubled`)
		case end == 0:
			return "", "", fmt.Errorf("a part is empty")
		}
		return text[:end], text[end:], nil
	}

	var b strings.Builder
	for text = text[1:]; ; {
		end := strings.IndexByte(text, '"')
		if end < 0 {
			return "", "", fmt.Errorf("a double quote is not closed")
		}
		b.WriteString(text[:end])
		if text = text[end+1:]; !strings.HasPrefix(text, `"`) {
			break
		}
		b.WriteByte('"')
		text = text[1:]
	}
	if text != "" && !strings.ContainsRune(".:,", rune(text[0])) {
		return "", "", fmt.Errorf("want a dot after a closing double quote")
	}
	return b.String(), text, nil
}

// quote names a path in a message: "s.a", or as the grammar has it where that quotes already.
func quote(path []string) string {
	s := FormatPath(path)
	if strings.Contains(s, `"`) && isPrintable(s) {
		return s
	}
	return strconv.Quote(s)
}

// quoteText shows a text that a user gave, without escaping quotes where that is not needed.
func quoteText(s string) string {
	if strings.Contains(s, `"`) && !strings.Contains(s, "'") && isPrintable(s) {
		return "'" + s + "'"
	}
	return strconv.Quote(s)
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// quoteList names some of many paths.
func quoteList(paths [][]string) string {
	const most = 8
	var names []string
	for i, p := range paths {
		if i == most && len(paths) > most+1 {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(paths)-most)
		}
		names = append(names, quote(p))
	}
	return strings.Join(names, ", ")
}

// join returns parent and name as a path of its own memory.
func join(parent []string, name string) []string {
	return append(parent[:len(parent):len(parent)], name)
}
