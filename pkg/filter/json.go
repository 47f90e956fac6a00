package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// ParseJSON reads a condition in the form of Iceberg's REST API (schema Expression). Errors about
// columns and literals later on show their place in the condition's text form.
//
// A term is a column's full name, parts joined by dots; terms that are transforms are refused.
// Values are those of Iceberg's JSON single-value form, so that binary ones are hexadecimal texts.
func ParseJSON(raw []byte) (*Expr, error) {
	if len(raw) > maxText {
		return nil, fmt.Errorf("the filter has %d bytes; %d are allowed", len(raw), maxText)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the filter is not UTF-8 text")
	}
	root, err := decodeCondition(raw, 0)
	if err != nil {
		return nil, err
	}
	w := &writer{}
	root = w.write(root)
	return &Expr{w.String(), root}, nil
}

// jsonNode is one condition on the wire.
type jsonNode struct {
	Type                            string
	Left, Right, Child, Term, Value json.RawMessage
	Values                          []json.RawMessage
}

var jsonOps = map[string]op{
	"lt": opLess, "lt-eq": opLessEq, "gt": opGreater, "gt-eq": opGreaterEq, "eq": opEqual, "not-eq": opNotEqual,
	"in": opIn, "not-in": opNotIn, "is-null": opIsNull, "not-null": opNotNull, "is-nan": opIsNaN, "not-nan": opNotNaN,
	"starts-with": opStarts, "not-starts-with": opNotStarts,
}

// unmarshal reads one JSON value and nothing behind it, without keys that are not known.
func unmarshal(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its end")
	}
	return nil
}

func decodeCondition(raw []byte, depth int) (node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the filter is nested deeper than %d", maxDepth)
	}
	if word := string(bytes.TrimSpace(raw)); word == "true" || word == "false" {
		return constant{truthOf(word == "true")}, nil
	} else if word == "null" {
		return nil, errors.New("the filter is null, which is no expression; leave it out to take all rows")
	}
	var n jsonNode
	if err := unmarshal(raw, &n); err != nil {
		return nil, fmt.Errorf("the filter is not an expression in JSON: %w", err)
	}
	within := func(key string, raw json.RawMessage) (node, error) {
		if raw == nil {
			return nil, fmt.Errorf("%q: %q is missing", n.Type, key)
		}
		kid, err := decodeCondition(raw, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%q of %q: %w", key, n.Type, err)
		}
		return kid, nil
	}
	switch strings.ToLower(n.Type) {
	case "true", "false":
		return constant{truthOf(strings.EqualFold(n.Type, "true"))}, nil
	case "literal":
		var truth bool
		if err := unmarshal(n.Value, &truth); err != nil || string(n.Value) == "null" {
			return nil, fmt.Errorf("\"literal\": want true or false as its value, not %s", n.Value)
		}
		return constant{truthOf(truth)}, nil
	case "not":
		kid, err := within("child", n.Child)
		return not{kid}, err
	case "and", "or":
		left, err := within("left", n.Left)
		if err != nil {
			return nil, err
		}
		right, err := within("right", n.Right)
		return join(strings.EqualFold(n.Type, "or"), left, right), err
	}
	o, ok := jsonOps[strings.ToLower(n.Type)]
	if !ok {
		return nil, fmt.Errorf("expressions of type %q are not known; true, false, and, or, not, eq, not-eq, lt, lt-eq, gt, gt-eq, in, not-in, is-null, not-null, is-nan, not-nan, starts-with and not-starts-with are", n.Type)
	}
	p, err := n.predicate(o)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", n.Type, err)
	}
	return p, nil
}

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

func (n jsonNode) predicate(o op) (node, error) {
	if n.Left != nil || n.Right != nil || n.Child != nil {
		return nil, errors.New("it has a term, and no left, right or child")
	}
	c, err := decodeTerm(n.Term)
	if err != nil {
		return nil, err
	}
	p := predicate{op: o, column: c}
	values := n.Values
	switch o {
	case opIsNull, opNotNull, opIsNaN, opNotNaN:
		if n.Value != nil || n.Values != nil {
			return nil, errors.New("it takes no value")
		}
	case opIn, opNotIn:
		if n.Value != nil || len(n.Values) == 0 {
			return nil, errors.New(`want "values", a list that is not empty`)
		}
	default:
		if n.Value == nil || n.Values != nil {
			return nil, errors.New(`want "value"`)
		}
		values = []json.RawMessage{n.Value}
	}
	for _, v := range values {
		lit, err := decodeLiteral(v)
		if err != nil {
			return nil, err
		}
		p.literals = append(p.literals, lit)
	}
	return p, nil
}

func decodeTerm(raw json.RawMessage) (column, error) {
	if raw == nil {
		return column{}, errors.New(`"term" is missing`)
	}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		var ref struct{ Type, Term, Transform string }
		if err := unmarshal(raw, &ref); err != nil {
			return column{}, fmt.Errorf("term %s is no column's name", shorten(string(raw)))
		}
		if ref.Type != "reference" {
			return column{}, fmt.Errorf("a term of type %q is not supported: compare the column itself", ref.Type)
		}
		name = ref.Term
	}
	if name == "" {
		return column{}, errors.New("the term is empty")
	}
	return column{parts: strings.Split(name, "."), joined: true}, nil
}

func decodeLiteral(raw json.RawMessage) (literal, error) {
	var v any
	if err := unmarshal(raw, &v); err != nil {
		return literal{}, fmt.Errorf("value %s: %w", shorten(string(raw)), err)
	}
	switch v := v.(type) {
	case bool:
		return literal{kind: boolLiteral, bool: v}, nil
	case string:
		return literal{kind: textLiteral, text: v, json: true}, nil
	case json.Number:
		n, ok := parseNumber(v.String())
		if !ok {
			return literal{}, fmt.Errorf("the number %s has more than %d digits, or an exponent beyond %d", shorten(v.String()), maxDigits, maxExponent)
		}
		return literal{kind: numberLiteral, number: n}, nil
	}
	return literal{}, fmt.Errorf("value %s is not a text, a number, true or false", shorten(string(raw)))
}
