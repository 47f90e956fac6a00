package catalogs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/plan"
)

// nearTimeout bounds the search for what the user may have meant, and nearNamespaces the namespaces that
// it looks into.
const (
	nearTimeout    = 10 * time.Second
	nearNamespaces = 20
)

// missing tells of a table that is not there, with what is near. What cannot be found out about that is left out.
type missing struct {
	ref   Ref
	mode  Mode
	text  string // so far
	where string // what its namespace is called
	none  string // what is said where that lists no tables
}

// among is the error where the tables of a catalog are to be looked through: those of the table's namespace, and of
// the first of the others.
func (m missing) among(ctx context.Context, c catalog.Catalog, all []table.Identifier) error {
	namespace := m.ref.Identifier[:len(m.ref.Identifier)-1]
	here := tablesOf(ctx, c, namespace)
	known := slices.Clone(here)
	for _, n := range all[:min(len(all), nearNamespaces)] {
		if !slices.Equal(n, namespace) {
			known = append(known, tablesOf(ctx, c, n)...)
		}
	}
	return m.told(here, known)
}

// told is the error where tables are known, here those of the table's namespace.
func (m missing) told(here, known []listed) error {
	text := m.text
	switch tables := near(m.ref.Identifier, known); {
	case len(tables) > 0:
		text += ": near are " + strings.Join(tables, ", ")
	case len(here) > 0:
		text += fmt.Sprintf(": %s has %d others, such as %s", m.where, len(here), plan.FormatPath(here[0].identifier))
	case m.none != "":
		text += ": " + m.none
	}
	if m.mode == ReadWrite {
		text += " (a destination is never created: make the table first)"
	}
	return &notThereError{text}
}

// without says that a catalog has no such namespace, of a kind, and which are near.
func without(kind string, namespace []string, all []table.Identifier) string {
	text := ": it has no " + kind + " " + plan.FormatPath(namespace)
	var known []listed
	for _, n := range all {
		known = append(known, listed{identifier: n})
	}
	if close := near(namespace, known); len(close) > 0 {
		text += ", near are " + strings.Join(close, ", ")
	}
	return text
}

// tablesOf lists a namespace as far as it can be.
func tablesOf(ctx context.Context, c catalog.Catalog, namespace []string) (out []listed) {
	for identifier, err := range c.ListTables(ctx, namespace) {
		if err != nil {
			return out
		}
		out = append(out, listed{identifier: identifier})
	}
	return out
}
