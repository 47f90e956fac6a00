package cat

import (
	"bufio"
	"fmt"
	"strings"
	"unicode"

	"github.com/apache/arrow-go/v18/arrow"
)

const (
	nullMark  = "∅"
	pageRows  = 500 // rows that are aligned together
	cellWidth = 48
)

// A table aligns rows page by page; a column never gets narrower on the way.
type table struct {
	out     *bufio.Writer
	limit   int
	names   []string
	right   []bool // numbers
	widths  []int
	page    [][]string
	started bool
}

func newTable(out *bufio.Writer, schema *arrow.Schema, width int) *table {
	t := &table{out: out, limit: width}
	if width == 0 {
		t.limit = cellWidth
	}
	for _, f := range schema.Fields() {
		name := t.clip(escape(f.Name))
		t.names = append(t.names, name)
		t.widths = append(t.widths, columns(name))
		_, decimal := f.Type.(arrow.DecimalType)
		t.right = append(t.right, decimal || arrow.IsInteger(f.Type.ID()) || arrow.IsFloating(f.Type.ID()))
	}
	return t
}

func (t *table) batch(b arrow.RecordBatch, n int64) error {
	for i := range int(n) {
		row := make([]string, 0, len(t.names))
		for c, col := range b.Columns() {
			text := t.clip(cell(col, i))
			t.widths[c] = max(t.widths[c], columns(text))
			row = append(row, text)
		}
		if t.page = append(t.page, row); len(t.page) == pageRows {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *table) flush() error {
	if !t.started {
		t.started = true
		t.line(t.names)
		rule := make([]string, len(t.names))
		for c := range rule {
			rule[c] = strings.Repeat("─", t.widths[c])
		}
		t.line(rule)
	}
	for _, row := range t.page {
		t.line(row)
	}
	t.page = t.page[:0]
	return t.out.Flush()
}

func (t *table) line(cells []string) {
	var b strings.Builder
	for c, text := range cells {
		if c > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", max(0, t.widths[c]-columns(text)))
		if t.right[c] {
			b.WriteString(pad + text)
		} else {
			b.WriteString(text + pad)
		}
	}
	fmt.Fprintln(t.out, strings.TrimRight(b.String(), " "))
}

// cell is a value as people read it. A string that could be taken for something else is quoted.
func cell(arr arrow.Array, i int) string {
	if isNull(arr, i) {
		return nullMark
	}
	text, quoted := cellText(arr, i)
	if quoted && (text == "" || text == nullMark || text != strings.TrimSpace(text) || text != escape(text) || text[0] == '"') {
		return string(appendText(nil, text))
	}
	return text
}

// clip shortens a cell that is too wide.
func (t *table) clip(s string) string {
	if t.limit < 0 || columns(s) <= t.limit {
		return s
	}
	n := 1 // of the ellipsis
	for i, r := range s {
		if n += width(r); n > t.limit {
			return s[:i] + "…"
		}
	}
	return s
}

// columns is how wide a text is on a terminal, roughly.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += width(r)
	}
	return n
}

func width(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
