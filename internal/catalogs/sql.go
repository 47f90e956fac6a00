package catalogs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icesql "github.com/apache/iceberg-go/catalog/sql"

	"icepipe/internal/storage"
	"icepipe/pkg/plan"
)

// A database is a SQL catalog's, opened for its mode.
type database struct {
	db      *sql.DB
	dialect icesql.SupportedDialect
	done    func() error
}

// bind is a query in the database's own words for its arguments, which are written as question marks.
func (d database) bind(query string) string {
	if d.dialect != icesql.Postgres {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r == '?' {
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// openIn finds the name under which a database lists the table, and loads it. It closes the database when
// it fails.
func openIn(ctx context.Context, ref Ref, mode Mode, d database) (_ *Opened, err error) {
	defer func() {
		if err != nil {
			d.done()
		}
	}()
	properties := iceberg.Properties{}
	maps.Copy(properties, ref.Properties)
	delete(properties, "uri") // of which the library has no need, and which may hold a password
	if ref.Place.Warehouse != "" {
		properties["warehouse"] = ref.Place.Warehouse
	}
	properties["init_catalog_tables"] = "false"           // creates nothing (case 91)
	delete(properties, icesql.SchemaVersionKey)           // and migrates nothing (case 74)
	named := func(name string) (*icesql.Catalog, error) { // costs two look-ups in the schema
		return icesql.NewCatalog(name, d.db, d.dialect, properties)
	}

	names, err := d.names(ctx)
	if err != nil {
		return nil, ref.databaseError(err)
	}
	if ref.Identifier, err = d.identifier(ctx, ref); err != nil {
		return nil, ref.databaseError(err)
	}
	if ref.Place.Name == "" {
		if ref.Place.Name, err = findName(ctx, ref, names, named); err != nil {
			return nil, err
		}
	}
	cat, err := named(ref.Place.Name)
	if err != nil {
		return nil, ref.databaseError(err)
	}
	if view, err := cat.CheckViewExists(ctx, ref.Identifier); err != nil {
		return nil, ref.databaseError(err)
	} else if view {
		return nil, fmt.Errorf("%s is a view, not a table: name the table that it reads", ref)
	}
	opened := sqlCatalog{Catalog: cat, database: d, ref: ref, mode: mode, files: storage.New(properties), last: &lastCommit{}}
	tbl, err := opened.LoadTable(ctx, ref.Identifier)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		return nil, d.notThere(ctx, ref, mode)
	}
	if err != nil {
		return nil, fmt.Errorf("load table %s: %w", ref, err)
	}
	return &Opened{Catalog: opened, Table: tbl, Ref: ref, close: func() error {
		return errors.Join(cat.Close(), d.done())
	}}, nil
}

// findName returns the one name under which the database lists the table.
func findName(ctx context.Context, ref Ref, names []string, named func(string) (*icesql.Catalog, error)) (string, error) {
	var found []string
	for _, name := range names {
		cat, err := named(name)
		if err != nil {
			return "", ref.databaseError(err)
		}
		table, err := cat.CheckTableExists(ctx, ref.Identifier)
		if err != nil {
			return "", ref.databaseError(err)
		}
		view, err := cat.CheckViewExists(ctx, ref.Identifier)
		if err != nil {
			return "", ref.databaseError(err)
		}
		if table || view {
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("table %s is in catalog database %q under the names %s: choose one with %s",
			plan.FormatPath(ref.Identifier), ref.store(), quoted(found), ref.flag("catalog-name"))
	case len(names) == 1:
		return names[0], nil // loading the table tells what is near
	}
	return "", nil
}

// names are those of the catalogs that share the database.
func (d database) names(ctx context.Context) ([]string, error) {
	rows, err := d.db.QueryContext(ctx, `SELECT DISTINCT catalog_name FROM iceberg_tables ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// namespaceMark stands before a namespace that iceberg-go stores as JSON, since a level holds a dot.
const namespaceMark = "__iceberg_namespace_v1__:"

// stored is a namespace as iceberg-go stores it.
func stored(namespace []string) string {
	joined := strings.Join(namespace, ".")
	if !strings.Contains(joined, namespaceMark) && !slices.ContainsFunc(namespace, func(level string) bool { return strings.Contains(level, ".") }) {
		return joined
	}
	text, err := json.Marshal(namespace)
	if err != nil {
		return joined // cannot be: it is text
	}
	return namespaceMark + string(text)
}

// levels splits a namespace as the SQL catalog stores it: joined by dots, or, where a level holds
// a dot, as JSON behind a mark of iceberg-go's (case 69).
func levels(text string) []string {
	if encoded, ok := strings.CutPrefix(text, namespaceMark); ok {
		var out []string
		if json.Unmarshal([]byte(encoded), &out) == nil && len(out) > 0 {
			return out
		}
	}
	return strings.Split(text, ".")
}

// identifier is the table's as this database has it. PyIceberg and Java join the levels of a namespace by
// dots, so that to them "a.b" and a.b are one: where a level holds a dot and the table is not there as
// iceberg-go would store it, theirs is meant (case 69).
func (d database) identifier(ctx context.Context, ref Ref) ([]string, error) {
	namespace, name := ref.Identifier[:len(ref.Identifier)-1], ref.Identifier[len(ref.Identifier)-1]
	joined := strings.Join(namespace, ".")
	if !slices.ContainsFunc(namespace, func(level string) bool { return strings.Contains(level, ".") }) {
		return ref.Identifier, nil
	}
	there := func(namespace string) (n int, err error) {
		err = d.db.QueryRowContext(ctx, d.bind(`SELECT count(*) FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?`), namespace, name).Scan(&n)
		return n, err
	}
	if n, err := there(stored(namespace)); err != nil || n > 0 {
		return ref.Identifier, err
	}
	if n, err := there(joined); err != nil || n == 0 {
		return ref.Identifier, err
	}
	return append(strings.Split(joined, "."), name), nil
}

// store names the database of a SQL catalog, the folder of a hadoop catalog, or the address, for messages.
func (r Ref) store() string {
	switch r.Place.Kind {
	case "sqlite":
		return r.Place.DBPath
	case "hadoop":
		return r.Place.Warehouse
	}
	return r.Place.URI
}

// databaseError names the database in an error of its own.
func (r Ref) databaseError(err error) error {
	if r.Place.Kind == "sqlite" {
		return r.sqliteError(err)
	}
	return r.serverError(err)
}
