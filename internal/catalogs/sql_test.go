package catalogs

import (
	"slices"
	"strings"
	"testing"

	icesql "github.com/apache/iceberg-go/catalog/sql"
)

// Case 69. To PyIceberg and Java the namespaces "a.b" and a.b are one, to iceberg-go they are two: what is
// there is found by both names, and iceberg-go's own where there are both.
func TestDottedNamespaces(t *testing.T) {
	cat, _ := temporary(t)
	joined, own := makeTable(t, cat, "a", "t").MetadataLocation(), makeTable(t, cat, "b", "t").MetadataLocation()
	one := handmade(t, layoutV1, row("x", "a.b.c", "t.x", "'"+joined+"'"))
	both := handmade(t, layoutV0, row("x", "a.b", "t", "'"+joined+"'"), row("x", namespaceMark+`["a.b"]`, "t", "'"+own+"'"))
	for _, tt := range []struct {
		path       string
		identifier []string
		found      []string
		location   string
	}{
		{one, []string{"a", "b", "c", "t.x"}, []string{"a", "b", "c", "t.x"}, joined},
		{one, []string{"a.b", "c", "t.x"}, []string{"a", "b", "c", "t.x"}, joined},
		{one, []string{"a.b.c", "t.x"}, []string{"a", "b", "c", "t.x"}, joined},
		{both, []string{"a", "b", "t"}, []string{"a", "b", "t"}, joined},
		{both, []string{"a.b", "t"}, []string{"a.b", "t"}, own},
	} {
		for _, name := range []string{"", "x"} {
			o := mustOpen(t, at(tt.path, name, tt.identifier...), ReadWrite)
			if !slices.Equal(o.Ref.Identifier, tt.found) || !slices.Equal(o.Table.Identifier(), tt.found) || o.Table.MetadataLocation() != tt.location {
				t.Errorf("%q: found %q at %s", tt.identifier, o.Ref.Identifier, o.Table.MetadataLocation())
			}
		}
	}
	for _, identifier := range [][]string{{"a", "b", "t"}, {"a.b", "t"}} {
		o := mustOpen(t, at(both, "x", identifier...), ReadWrite)
		for _, value := range []string{"1", "2"} { // by the library, and on our own commit
			if err := set(t, o, "k", value); err != nil {
				t.Fatal(err)
			}
		}
		if got := mustOpen(t, at(both, "x", identifier...), ReadOnly).Table; got.Properties()["k"] != "2" || !strings.Contains(got.MetadataLocation(), "/00002-") {
			t.Errorf("%q: %q at %s", identifier, got.Properties(), got.MetadataLocation())
		}
	}
	if err := set(t, mustOpen(t, at(both, "x", "a.b", "t"), ReadOnly), "k", "3"); err == nil {
		t.Error("a catalog that is opened for reading takes a commit")
	}
}

func TestBind(t *testing.T) {
	const query = "a = ? AND b = ?"
	for dialect, want := range map[icesql.SupportedDialect]string{icesql.SQLite: query, icesql.MySQL: query, icesql.Postgres: "a = $1 AND b = $2"} {
		if got := (database{dialect: dialect}).bind(query); got != want {
			t.Errorf("%s: %s", dialect, got)
		}
	}
}
