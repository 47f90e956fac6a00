package cat

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/pkg/rows"
)

// printHeader prints what a stream says of itself before its rows.
func printHeader(w io.Writer, in rows.Stream) error {
	h := in.Header
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-13s %s\n", name, escape(value))
		}
	}
	if h.Foreign {
		line("stream", "of another program: no source, no places, no seal")
	} else {
		line("stream", fmt.Sprintf("%s, protocol %d", h.Stream, h.Protocol))
		line("requires", strings.Join(h.Requires, ", "))
		printTable(line, "source", h.Source)
		line("row filter", h.RowFilter)
		line("columns", strings.Join(h.Select, ", "))
		line("batch rows", strconv.FormatInt(h.BatchRows, 10))
		line("files", h.Files)
		line("first", h.First.String())
		line("expected", fmt.Sprintf("at most %d rows, %d bytes, %d files", h.Expected.Rows, h.Expected.Bytes, h.Expected.Files))
		if h.Trial {
			line("trial", "cut short by --limit")
		}
		if h.Destination != nil {
			printTable(line, "destination", *h.Destination)
		}
		line("plan", string(h.Plan))
		line("reconciler", string(h.Reconciler))
	}
	b.WriteString("schema\n")
	for _, f := range in.Schema.Fields() {
		printField(&b, f, 1)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printTable(line func(name, value string), name string, t rows.Table) {
	what := make([]string, 0, len(t.Identifier))
	for _, part := range t.Identifier {
		if strings.ContainsAny(part, `."`) {
			part = `"` + strings.ReplaceAll(part, `"`, `""`) + `"`
		}
		what = append(what, part)
	}
	line(name, strings.Join(what, "."))
	line("  uuid", t.UUID)
	line("  location", t.Location)
	if t.SnapshotID != nil {
		line("  snapshot", strconv.FormatInt(*t.SnapshotID, 10))
	}
	line("  branch", t.Branch)
	line("  schema", fmt.Sprintf("%d, format version %d", t.SchemaID, t.Version))
	if p := t.Place; p != nil {
		line("  catalog", strings.Join(strings.Fields(p.Kind+" "+p.Name), " "))
		line("  db path", p.DBPath)
		line("  warehouse", p.Warehouse)
	}
}

// printField prints a field and, below it, the fields that it is made of.
func printField(b *strings.Builder, f arrow.Field, depth int) {
	id, ok := f.Metadata.GetValue("PARQUET:field_id")
	if !ok {
		id = "-"
	}
	name := f.Type.String()
	nested, ok := f.Type.(arrow.NestedType)
	if _, ext := f.Type.(arrow.ExtensionType); ext {
		ok = false // says that it is nested, whatever it is
	}
	if ok {
		name = f.Type.Name()
	}
	null := "optional"
	if !f.Nullable {
		null = "required"
	}
	fmt.Fprintf(b, "%s%s %s %s %s\n", strings.Repeat("  ", depth), escape(id), escape(f.Name), escape(name), null)
	if !ok {
		return
	}
	for _, child := range nested.Fields() {
		if m, ok := f.Type.(*arrow.MapType); ok {
			printField(b, m.KeyField(), depth+1)
			printField(b, m.ItemField(), depth+1)
			return
		}
		printField(b, child, depth+1)
	}
}
