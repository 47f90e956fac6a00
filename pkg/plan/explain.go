package plan

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Explain prints the plan for people: a row for each destination column, and for those inside one
// where they are not all taken as they are; then the source columns left out, the schema changes
// and the warnings.
func (p *Plan) Explain(w io.Writer) error {
	out := &strings.Builder{}
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "COLUMN\tTYPE\tACTION\tSOURCE\tNOTES")
	for i := range p.Columns {
		explainColumn(t, &p.Columns[i])
	}
	if err := t.Flush(); err != nil {
		return err
	}

	var left, changes []string
	for _, l := range p.LeftOut {
		left = append(left, printable(FormatPath(l.Path))+"  "+typeText(l.Type))
	}
	for _, c := range p.Changes {
		switch c.Kind {
		case AddColumn:
			changes = append(changes, fmt.Sprintf("add %s %s", printable(FormatPath(c.Path)), typeText(c.Type)))
		case PromoteColumn:
			changes = append(changes, fmt.Sprintf("promote %s to %s", printable(FormatPath(c.Path)), typeText(c.Type)))
		}
	}
	explainList(out, "Source columns left out", left)
	explainList(out, "Schema changes of the destination", changes)
	explainList(out, "Warnings", p.Warnings)
	_, err := io.WriteString(w, trimLines(out.String()))
	return err
}

func explainColumn(w io.Writer, c *Column) {
	source := "-"
	if c.Source != nil {
		source = printable(FormatPath(c.Source))
	}
	typ := []rune(typeText(c.Target.Type))
	if len(typ) > 40 {
		typ = append(typ[:39], '…')
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", printable(FormatPath(c.Path)), string(typ), c.Action, source, strings.Join(notes(c), "; "))
	if plain(c.Fields) {
		return
	}
	for i := range c.Fields {
		explainColumn(w, &c.Fields[i])
	}
}

// plain tells whether columns are all taken as they are, or are part of an added one.
func plain(columns []Column) bool {
	for i := range columns {
		c := &columns[i]
		if c.Was != nil || c.SourceType != nil && !c.SourceType.Equals(c.Target.Type) || !plain(c.Fields) {
			return false
		}
		if c.Action != Take && (c.Action != Add || c.Path[len(c.Path)-1] != c.Source[len(c.Source)-1]) {
			return false
		}
	}
	return true
}

func notes(c *Column) []string {
	var out []string
	if c.Target.Required {
		out = append(out, "required")
	}
	if c.SourceType != nil && !c.SourceType.Equals(c.Target.Type) {
		out = append(out, "from "+typeText(c.SourceType))
	}
	if s := c.Loses(); s != "" {
		out = append(out, s)
	}
	if s := c.Fails(); s != "" {
		out = append(out, "does not fit: "+s)
	}
	if c.Was != nil {
		out = append(out, fmt.Sprintf("destination's %s becomes %s", typeText(c.Was), typeText(c.Target.Type)))
	}
	if c.Source != nil && !c.SourceRequired && c.Target.Required {
		out = append(out, "source may hold null")
	}
	switch c.Action {
	case Add:
		out = append(out, "new in the destination")
	case NullFill, Skip:
		out = append(out, "null is written")
	case Default:
		value := defaultText(c.Target.WriteDefault)
		if r := []rune(value); len(r) > 40 {
			value = string(r[:39]) + "…"
		}
		out = append(out, "writes "+value)
	}
	return out
}

// defaultText shows a default as the schema's JSON has it.
func defaultText(v any) string {
	if b, err := bytesLiteral(v); err == nil && !isString(v) {
		v = hex.EncodeToString(b)
	}
	if text, err := json.Marshal(v); err == nil {
		return printable(string(text))
	}
	return printable(fmt.Sprint(v))
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

func explainList(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		fmt.Fprintf(w, "\n%s: none\n", title)
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, l := range lines {
		fmt.Fprintf(w, "  %s\n", printable(l))
	}
}

// trimLines takes the blanks off the ends of lines, which tabwriter leaves.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}
