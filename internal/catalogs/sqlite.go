package catalogs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	icesql "github.com/apache/iceberg-go/catalog/sql"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"icepipe/pkg/rows"
)

// busyTimeout is how long, in milliseconds, a statement waits for another process's lock (case 73).
const busyTimeout = "10000"

// settleSQLite finds the database: the path or uri given, the configured uri, or base's.
func settleSQLite(ref *Ref, f TableFlags, env Env) error {
	ref.Place.Warehouse = absolute(cmp.Or(withoutUser(f.Warehouse), ref.Place.Warehouse), env.Dir)
	given, flag := f.DBPath, ref.flag("db-path")
	if f.URI != "" {
		if schemeOf(f.URI) != "sqlite" {
			return usage("%s is the address of a server; a sqlite catalog is a file: give %s", ref.flag("uri"), ref.flag("db-path"))
		}
		if given != "" {
			return usage("%s and %s say the same thing twice: leave one out", ref.flag("uri"), flag)
		}
		given, flag = f.URI, ref.flag("uri")
	}
	switch {
	case strings.HasPrefix(given, "sqlite:"), strings.HasPrefix(given, "sqlite+"):
		path, err := sqlitePath(given, env.Dir)
		if err != nil {
			return usage("%s: %v", flag, err)
		}
		ref.Place.DBPath, ref.origin = path, flag
	case isServer(schemeOf(given)) && strings.Contains(given, "://"):
		return usage("%s is the file of a sqlite catalog; give the address of a server as %s", flag, ref.flag("uri"))
	case given != "":
		ref.Place.DBPath, ref.origin = absolutePath(given, env.Dir), flag
	case ref.Place.DBPath != "":
	case ref.Properties["uri"] != "":
		path, err := configuredSQLite(ref.Properties, env.Dir)
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
	path, err := configuredSQLite(properties, env.Dir)
	return err == nil && path == place.DBPath
}

// configuredSQLite is the database of a configured catalog. iceberg-go's own configuration names it as
// Go's driver wants it: file:PATH, or a path.
func configuredSQLite(properties map[string]string, dir string) (string, error) {
	uri := properties["uri"]
	if properties["sql.dialect"] != "sqlite" || schemeOf(uri) == "sqlite" {
		return sqlitePath(uri, dir)
	}
	path := beforeQuery(strings.TrimPrefix(strings.TrimPrefix(uri, "sql://"), "file:"))
	if path == "" || path == ":memory:" {
		return "", errInMemory
	}
	return absolutePath(path, dir), nil
}

func absolutePath(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// errInMemory says that a database cannot be shared with the program that made it.
var errInMemory = errors.New("a database in memory is empty in every new process: name a file, sqlite:///PATH")

// sqlitePath translates a uri as PyIceberg hands it to SQLAlchemy: three slashes before a path
// from the working directory, four before one from the root. SQLAlchemy decodes percent signs from 2.1 on:
// where there is no such file, and one that is named as it is written, that one is meant.
func sqlitePath(uri, dir string) (string, error) {
	scheme, rest, _ := strings.Cut(uri, "://")
	if scheme, _, _ = strings.Cut(scheme, "+"); !strings.EqualFold(scheme, "sqlite") {
		return "", fmt.Errorf("want a uri sqlite:///PATH")
	}
	path, ok := strings.CutPrefix(rest, "/")
	if !ok && rest != "" {
		return "", errors.New("the uri of a sqlite catalog has three slashes before a path from the working directory, four before one from the root: sqlite:///PATH")
	}
	path = beforeQuery(path)
	if file, ok := strings.CutPrefix(path, "file:"); ok { // SQLite's own form, with uri=true
		path = strings.TrimPrefix(file, "//")
	}
	if path == "" || path == ":memory:" {
		return "", errInMemory
	}
	written := filepath.Clean(absolutePath(path, dir))
	decoded := filepath.Clean(absolutePath(unquote(path), dir))
	if decoded != written && !isFile(decoded) && isFile(written) {
		return written, nil
	}
	return decoded, nil
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func beforeQuery(s string) string {
	s, _, _ = strings.Cut(s, "?")
	return s
}

// openSQLite opens the database, finds the name under which it lists the table, and loads it.
func openSQLite(ctx context.Context, ref Ref, mode Mode) (*Opened, error) {
	db, done, err := openDatabase(ctx, ref, mode)
	if err != nil {
		return nil, err
	}
	return openIn(ctx, ref, mode, database{db: db, dialect: icesql.SQLite, done: done})
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

// sqliteError names the database in an error of SQLite.
func (r Ref) sqliteError(err error) error {
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
