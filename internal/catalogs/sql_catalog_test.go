package catalogs

import (
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// An error of SQLite names the database, whatever is asked of it.
func TestErrorsNameDatabase(t *testing.T) {
	cat, _ := temporary(t)
	location := "'" + makeTable(t, cat, "a", "t").MetadataLocation() + "'"
	path := handmade(t, layoutV1, row("x", "a", "t", location))
	o := mustOpen(t, at(path, "", "a", "t"), ReadWrite)
	if _, err := rawDB(t, path).Exec(`DROP TABLE iceberg_tables`); err != nil {
		t.Fatal(err)
	}
	_, loading := o.Catalog.LoadTable(t.Context(), o.Ref.Identifier)
	_, _, committing := o.Catalog.CommitTable(t.Context(), o.Ref.Identifier, nil,
		[]table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{"a": "b"})})
	for what, err := range map[string]error{"load": loading, "commit": committing} {
		if want := "catalog database " + strconv.Quote(path); err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%s: %v, want an error that names %s once", what, err, want)
		}
	}
}
