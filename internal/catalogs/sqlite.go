package catalogs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// busyTimeout is how long, in milliseconds, a statement waits for another process's lock (case 73).
const busyTimeout = "10000"

// settleSQLite finds the database: the path given, the configured uri, or base's.
func settleSQLite(ref *Ref, f TableFlags, env Env) error {
	given := f.DBPath
	if f.URI != "" {
		return usage("%s is the address of a rest catalog; a sqlite catalog is a file: give %s", ref.flag("uri"), ref.flag("db-path"))
	}
	ref.Place.Warehouse = absolute(cmp.Or(withoutUser(f.Warehouse), ref.Place.Warehouse), env.Dir)
	switch {
	case strings.HasPrefix(given, "sqlite:"):
		path, err := sqlitePath(given, env.Dir)
		if err != nil {
			return usage("%s: %v", ref.flag("db-path"), err)
		}
		ref.Place.DBPath, ref.origin = path, ref.flag("db-path")
	case given != "":
		path := given
		if !filepath.IsAbs(path) {
			path = filepath.Join(env.Dir, path)
		}
		ref.Place.DBPath, ref.origin = path, ref.flag("db-path")
	case ref.Place.DBPath != "":
	case ref.Properties["uri"] != "":
		path, err := sqlitePath(ref.Properties["uri"], env.Dir)
		if err != nil {
			return fmt.Errorf("%s: %w", ref.origin, err)
		}
		ref.Place.DBPath = path
	default:
		return usage("%s is missing: a sqlite catalog is a file", ref.flag("db-path"))
	}
	return nil
}

// sameSQLite tells whether configured properties are those of the database at place.
func sameSQLite(properties map[string]string, place rows.Place, env Env) bool {
	path, err := sqlitePath(properties["uri"], env.Dir)
	return err == nil && path == place.DBPath
}

// sqlitePath translates a uri as PyIceberg hands it to SQLAlchemy: three slashes before a path
// from the working directory, four before one from the root. Nothing in it is percent-encoded.
func sqlitePath(uri, dir string) (string, error) {
	scheme, rest, _ := strings.Cut(uri, "://")
	if scheme, _, _ = strings.Cut(scheme, "+"); scheme != "sqlite" {
		return "", fmt.Errorf("want a uri sqlite:///PATH")
	}
	path, ok := strings.CutPrefix(rest, "/")
	if !ok && rest != "" {
		return "", fmt.Errorf("uri %q: want three slashes before a path from the working directory, four before one from the root", "sqlite://"+beforeQuery(rest))
	}
	path = beforeQuery(path)
	if file, ok := strings.CutPrefix(path, "file:"); ok { // SQLite's own form, with uri=true
		path = strings.TrimPrefix(file, "//")
	}
	if path == "" || path == ":memory:" {
		return "", errors.New("a database in memory is empty in every new process: name a file, sqlite:///PATH")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path), nil
}

func beforeQuery(s string) string {
	s, _, _ = strings.Cut(s, "?")
	return s
}

// openSQLite opens the database, finds the name under which it lists the table, and loads it.
func openSQLite(ctx context.Context, ref Ref, mode Mode) (_ *Opened, err error) {
	db, done, err := openDatabase(ctx, ref, mode)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			done()
		}
	}()

	properties := iceberg.Properties{}
	maps.Copy(properties, ref.Properties)
	if ref.Place.Warehouse != "" {
		properties["warehouse"] = ref.Place.Warehouse
	}
	properties["init_catalog_tables"] = "false"           // creates nothing (case 91)
	delete(properties, icesql.SchemaVersionKey)           // and migrates nothing (case 74)
	named := func(name string) (*icesql.Catalog, error) { // costs two look-ups in the schema
		return icesql.NewCatalog(name, db, icesql.SQLite, properties)
	}

	names, err := catalogNames(ctx, db)
	if err != nil {
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
	opened := sqliteCatalog{Catalog: cat, ref: ref, db: db, properties: properties, last: &lastCommit{}}
	tbl, err := opened.LoadTable(ctx, ref.Identifier)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		return nil, notThere(ctx, ref, mode, db)
	}
	if err != nil {
		return nil, fmt.Errorf("load table %s: %w", ref, err)
	}
	return &Opened{Catalog: opened, Table: tbl, Ref: ref, close: func() error {
		return errors.Join(cat.Close(), done())
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
			plan.FormatPath(ref.Identifier), ref.Place.DBPath, quoted(found), ref.flag("catalog-name"))
	case len(names) == 1:
		return names[0], nil // loading the table tells what is near
	}
	return "", nil
}

// catalogNames returns the names of the catalogs that share the database.
func catalogNames(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT DISTINCT catalog_name FROM iceberg_tables ORDER BY 1`)
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

// openDatabase opens the database for its mode; done closes it.
func openDatabase(ctx context.Context, ref Ref, mode Mode) (_ *sql.DB, done func() error, err error) {
	wal, err := checkDatabase(ref)
	if err != nil {
		return nil, nil, err
	}
	path, options := ref.Place.DBPath, url.Values{"_busy_timeout": {busyTimeout}}
	if mode == ReadWrite {
		options.Set("mode", "rw") // never rwc: the file is there
		options.Set("_txlock", "immediate")
		return openFile(ctx, ref, path, options)
	}
	options.Set("mode", "ro")
	if wal {
		copied, err := copyIdle(path)
		if err != nil {
			return nil, nil, ref.databaseError(err)
		}
		if copied != "" {
			options.Set("immutable", "1") // nobody else knows the copy
			return openCopy(ctx, ref, copied, options)
		}
	}
	db, done, err := openFile(ctx, ref, path, options)
	var se *sqlite.Error
	if !errors.As(err, &se) || se.Code() != sqlite3.SQLITE_READONLY_ROLLBACK {
		return db, done, err
	}
	copied, failed := copyCrashed(path)
	switch {
	case failed != nil:
		return nil, nil, ref.databaseError(failed)
	case copied == "":
		return openFile(ctx, ref, path, options) // another process has rolled it back
	}
	options.Set("mode", "rw")
	return openCopy(ctx, ref, copied, options)
}

// openCopy is openFile for a copy in a folder of its own, which done removes.
func openCopy(ctx context.Context, ref Ref, path string, options url.Values) (*sql.DB, func() error, error) {
	forget := func() error { return os.RemoveAll(filepath.Dir(path)) }
	db, done, err := openFile(ctx, ref, path, options)
	if err != nil {
		return nil, nil, errors.Join(err, forget())
	}
	return db, func() error { return errors.Join(done(), forget()) }, nil
}

// openFile opens a database file and asks it for the tables of a catalog; done closes it.
func openFile(ctx context.Context, ref Ref, path string, options url.Values) (_ *sql.DB, done func() error, err error) {
	db, err := sql.Open("sqlite", dsn(path, options))
	if err != nil {
		return nil, nil, ref.databaseError(err)
	}
	var there int
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'iceberg_tables'`).Scan(&there)
	if err == nil && there == 0 {
		err = errors.New("it has no table iceberg_tables, so it is no Iceberg catalog: see to " + ref.where())
	}
	if err != nil {
		db.Close()
		return nil, nil, ref.databaseError(err)
	}
	return db, db.Close, nil
}

// dsn names a database file to the driver. As a URI, since only there SQLite minds the mode.
func dsn(path string, options url.Values) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}
	return u.String()
}

// checkDatabase looks at the first bytes of the file: SQLite's own words for what is wrong with it
// say less. wal tells whether the database is in that journal mode.
func checkDatabase(ref Ref) (wal bool, err error) {
	f, err := os.Open(ref.Place.DBPath)
	if errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("catalog database %q is not there: see to %s (a catalog is never created)", ref.Place.DBPath, ref.where())
	}
	if err != nil {
		return false, fmt.Errorf("catalog database: %w", err)
	}
	defer f.Close()
	header := make([]byte, 20) // SQLite's file format, section 1.3: magic, page size, write and read version
	n, err := io.ReadFull(f, header)
	switch {
	case n == 0 && err == io.EOF:
		return false, fmt.Errorf("catalog database %q is an empty file: see to %s", ref.Place.DBPath, ref.where())
	case err != nil && err != io.ErrUnexpectedEOF:
		return false, fmt.Errorf("catalog database: %w", err)
	case !strings.HasPrefix(string(header), "SQLite format 3\x00"):
		return false, fmt.Errorf("catalog database %q is not a SQLite database: see to %s", ref.Place.DBPath, ref.where())
	}
	return header[19] == 2, nil
}

// databaseError names the database in an error of SQLite.
func (r Ref) databaseError(err error) error {
	var cure string
	var se *sqlite.Error
	if errors.As(err, &se) {
		switch {
		case se.Code()&0xff == sqlite3.SQLITE_BUSY:
			cure = " (another process holds it for long: try again)"
		case se.Code() == sqlite3.SQLITE_READONLY_ROLLBACK:
			cure = " (its last writer was killed in the middle of a transaction: open it once with the program that writes it)"
		}
	}
	return fmt.Errorf("catalog database %q: %w%s", r.Place.DBPath, err, cure)
}
