package catalogs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/catalog"

	"icepipe/internal/spelling"
	"icepipe/pkg/plan"
)

// notThereError is a missing table in our own words.
type notThereError struct{ text string }

func (e *notThereError) Error() string { return e.text }
func (e *notThereError) Unwrap() error { return catalog.ErrNoSuchTable }

// A listed table is one that the database has under some catalog name.
type listed struct {
	name       string
	identifier []string
	located    bool // has metadata
}

// notThere says that the table does not exist, what is near, and the cure.
func (d database) notThere(ctx context.Context, ref Ref, mode Mode) error {
	all, err := d.tables(ctx)
	if err != nil {
		return ref.databaseError(err)
	}
	want := plan.FormatPath(ref.Identifier)
	var here []listed
	var elsewhere []string
	for _, t := range all {
		same := plan.FormatPath(t.identifier) == want
		switch {
		case t.name == ref.Place.Name && same && !t.located:
			return &notThereError{fmt.Sprintf("table %s has no metadata location in catalog database %q: it was never committed", ref, ref.store())}
		case t.name == ref.Place.Name || ref.Place.Name == "":
			here = append(here, t)
		case same:
			elsewhere = append(elsewhere, t.name)
		}
	}

	text := fmt.Sprintf("table %s is not in catalog database %q", want, ref.store())
	if ref.Place.Name != "" {
		text = fmt.Sprintf("table %s is not in catalog %q of database %q", want, ref.Place.Name, ref.store())
	}
	if len(elsewhere) > 0 {
		return &notThereError{fmt.Sprintf("%s: it is there under %s, which %s takes as a name", text, quoted(elsewhere), ref.flag("catalog-name"))}
	}
	none := "it lists no tables"
	if len(all) > 0 {
		none = "the names in the database are " + quoted(namesOf(all))
	}
	return missing{ref, mode, text, "it", none}.told(here, here)
}

func (d database) tables(ctx context.Context) ([]listed, error) {
	rows, err := d.db.QueryContext(ctx, `SELECT catalog_name, table_namespace, table_name, metadata_location IS NOT NULL
		FROM iceberg_tables ORDER BY 1, 2, 3`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []listed
	for rows.Next() {
		var t listed
		var namespace, table string
		if err := rows.Scan(&t.name, &namespace, &table, &t.located); err != nil {
			return nil, err
		}
		t.identifier = append(levels(namespace), table)
		out = append(out, t)
	}
	return out, rows.Err()
}

// near returns up to five tables whose names are like the wanted one's, the most alike first: the
// same name in another namespace, another case, other dots, a slip of the pen.
func near(want []string, tables []listed) []string {
	const most = 5
	type candidate struct {
		path     string
		distance int
	}
	fold := func(parts []string) string { return strings.ToLower(strings.Join(parts, ".")) }
	last := func(parts []string) string { return strings.ToLower(parts[len(parts)-1]) }

	var found []candidate
	for _, t := range tables {
		whole, name := spelling.Distance(fold(want), fold(t.identifier)), spelling.Distance(last(want), last(t.identifier))
		if name > max(1, len(last(want))/3) && whole > 0 {
			continue
		}
		found = append(found, candidate{plan.FormatPath(t.identifier), min(whole, 2*name+1)})
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.path, b.path))
	})
	var out []string
	for _, c := range found {
		if !slices.Contains(out, c.path) && len(out) < most {
			out = append(out, c.path)
		}
	}
	return out
}

func namesOf(tables []listed) []string {
	var out []string
	for _, t := range tables {
		if !slices.Contains(out, t.name) {
			out = append(out, t.name)
		}
	}
	return out
}

// quoted joins names, in double quotes.
func quoted(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strconv.Quote(name)
	}
	return strings.Join(out, ", ")
}
