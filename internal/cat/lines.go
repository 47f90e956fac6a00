package cat

import (
	"bufio"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// lines prints rows as JSON, one a line, the columns in their order.
type lines struct {
	out    *bufio.Writer
	schema *arrow.Schema
	buf    []byte
}

func (l *lines) batch(b arrow.RecordBatch, n int64) error {
	for i := range int(n) {
		if _, err := l.out.Write(append(AppendRow(l.buf[:0], b, i), '\n')); err != nil {
			return err
		}
	}
	return nil
}

// AppendRow appends row i of a record batch as a JSON object, the columns in their order. Values are as
// Iceberg's JSON has them, but for structs, whose fields go by name.
func AppendRow(b []byte, rec arrow.RecordBatch, i int) []byte {
	b = append(b, '{')
	for c, col := range rec.Columns() {
		if c > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, rec.ColumnName(c)), ':')
		b = appendJSON(b, col, i)
	}
	return append(b, '}')
}

func (l *lines) flush() error { return l.out.Flush() }

// csv prints rows by RFC 4180, but for the line feed that ends a line. A null is nothing at all, an
// empty string is "". Nested values are JSON.
type csv struct {
	out     *bufio.Writer
	schema  *arrow.Schema
	started bool
}

func (c *csv) batch(b arrow.RecordBatch, n int64) error {
	if err := c.start(); err != nil {
		return err
	}
	cells := make([]string, b.NumCols())
	for i := range int(n) {
		for k, col := range b.Columns() {
			cells[k] = csvCell(col, i)
		}
		if _, err := c.out.WriteString(strings.Join(cells, ",") + "\n"); err != nil {
			return err
		}
	}
	return nil
}

func (c *csv) start() error {
	if c.started {
		return nil
	}
	c.started = true
	names := make([]string, c.schema.NumFields())
	for i, f := range c.schema.Fields() {
		names[i] = csvText(f.Name)
	}
	_, err := c.out.WriteString(strings.Join(names, ",") + "\n")
	return err
}

func (c *csv) flush() error {
	if err := c.start(); err != nil {
		return err
	}
	return c.out.Flush()
}

func csvCell(arr arrow.Array, i int) string {
	if isNull(arr, i) {
		return ""
	}
	text, _ := cellText(arr, i)
	return csvText(text)
}

// csvText quotes what needs it. Line feeds and tabs stay as they are inside of quotes; other
// characters that would control a terminal are escaped.
func csvText(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !printable(r) || r == ',' || r == '"' }) && s != "" {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"':
			b.WriteString(`""`)
		case r == '\n' || r == '\t' || printable(r):
			b.WriteRune(r)
		default:
			b.WriteString(escape(string(r)))
		}
	}
	b.WriteByte('"')
	return b.String()
}
