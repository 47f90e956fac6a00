// Package catalogs finds and opens the tables that a command line names.
//
// It has two halves. Resolving turns flags, .pyiceberg.yaml and the environment into a Ref, and
// touches no catalog: what goes wrong there is a UsageError or a broken configuration. Opening
// takes a Ref to the catalog and loads the table.
//
// A catalog that is opened ReadOnly is left as it was found, to the file: nothing of it is made,
// altered, migrated or switched to another journal mode. One that is opened ReadWrite changes by
// commits to its tables alone. No catalog and no table is ever created, Temporary apart.
//
// Importing the package registers the storages of table files: the local file system in a form
// that reads paths as PyIceberg and Spark write them and syncs what it writes, and, unless built
// with the tag noclouds, S3, GCS and Azure.
package catalogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	_ "icepipe/internal/localdisk" // the local file system
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// A UsageError says that the command line is wrong, which could be told without a catalog.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

func usage(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// A Ref names a table and how to reach its catalog.
type Ref struct {
	Place      rows.Place // with an absolute DBPath; an empty Name is found by looking for the table
	Identifier []string   // namespace levels, then the name

	// Properties are those of the configured catalog, for storage and catalog. They may hold
	// secrets: they go to the library and nowhere else.
	Properties map[string]string

	prefix  string            // of the flags, for messages: "src-", "dst-" or none
	origin  string            // where the database or the address comes from, for messages
	from    string            // where the catalog is configured, for messages
	flagged []string          // the properties that flags gave
	origins map[string]string // where each property comes from: a file, a variable or a flag
}

// String returns CATALOG.namespace.table, or namespace.table where the catalog's name is not known.
func (r Ref) String() string {
	if r.Place.Name == "" {
		return plan.FormatPath(r.Identifier)
	}
	return plan.FormatPath(append([]string{r.Place.Name}, r.Identifier...))
}

// flag returns a flag's name as the user writes it.
func (r Ref) flag(name string) string { return "--" + r.prefix + name }

// property names a property where it was given, or where it can be.
func (r Ref) property(key string) string {
	switch {
	case slices.Contains(r.flagged, key) || r.Place.Name == "":
		return r.flag("property") + " " + key + "=…"
	case r.from != "":
		return fmt.Sprintf("%s of catalog %q in %s", key, r.Place.Name, cmp.Or(r.origins[key], r.from))
	}
	return fmt.Sprintf("%s, or %s", r.flag("property")+" "+key+"=…", variableOf(r.Place.Name, key))
}

// where says what to look at when the database or the address is not what it should be.
func (r Ref) where() string {
	switch {
	case r.origin != "":
		return r.origin
	case r.Place.Kind == "sqlite":
		return r.flag("db-path")
	case r.Place.Kind == "hadoop":
		return r.flag("warehouse")
	}
	return r.flag("uri")
}

// FromPlace returns the Ref of a table by what a stream header or a checkpoint holds of it. A
// place holds no secrets: the catalog's properties are looked up by its name in env, and taken if
// a catalog of that name is configured for the same database or address.
func FromPlace(place rows.Place, identifier []string, env Env) (Ref, error) {
	r := Ref{Place: place, Identifier: slices.Clone(identifier), origin: "the recorded place"}
	if len(identifier) < 2 {
		return Ref{}, fmt.Errorf("recorded table %q has no namespace", plan.FormatPath(identifier))
	}
	if err := checkKind(place.Kind, ""); err != nil {
		return Ref{}, err
	}
	if place.Name == "" {
		return r, nil
	}
	c, err := env.catalog(place.Name)
	if err != nil {
		return Ref{}, err
	}
	if c == nil {
		return r, nil
	}
	if kinds[place.Kind].same(c.properties, place, env) {
		r.Properties, r.from, r.origins = c.properties, c.from, c.origins
	}
	return r, nil
}

// A Mode says what an opened catalog is for.
type Mode int

const (
	ReadOnly  Mode = iota // a source, or a destination that is only looked at
	ReadWrite             // a destination
)

// An Opened table is loaded, and its catalog is open until Close.
type Opened struct {
	Catalog catalog.Catalog
	Table   *table.Table
	Ref     Ref // with the catalog's name found

	close func() error
}

// Close gives the catalog back. The table must not be used after it.
func (o *Opened) Close() error { return o.close() }

// Open opens the catalog that ref names and loads the table. The error of a table that is not
// there wraps catalog.ErrNoSuchTable, and names what is near.
func Open(ctx context.Context, ref Ref, mode Mode) (o *Opened, err error) {
	if err := checkKind(ref.Place.Kind, ref.flag("catalog")); err != nil {
		return nil, err
	}
	if len(ref.Identifier) < 2 || slices.Contains(ref.Identifier, "") {
		return nil, fmt.Errorf("table %q: a table has a namespace and a name", plan.FormatPath(ref.Identifier))
	}
	defer func() {
		if p := recover(); p != nil { // the library takes much of what metadata says for granted
			o, err = nil, fmt.Errorf("table %q: its metadata is damaged, and cannot be read (%v)", plan.FormatPath(ref.Identifier), p)
		}
	}()
	o, err = kinds[ref.Place.Kind].open(ctx, ref, mode)
	if err != nil {
		return nil, err
	}
	if at := o.Table.Location(); mode == ReadWrite && !strings.HasPrefix(at, "/") && !strings.Contains(at, ":/") {
		err := fmt.Errorf("table %q: its location %q is relative, and nothing says to what: set it to a path from the root, or a URI", plan.FormatPath(ref.Identifier), at)
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// A kind is a sort of catalog.
type kind struct {
	// settle checks the place of ref for what the kind needs, and completes it from the flags and
	// ref's Properties.
	settle func(ref *Ref, f TableFlags, env Env) error
	// same tells whether configured properties are those of the catalog at place.
	same func(properties map[string]string, place rows.Place, env Env) bool
	open func(ctx context.Context, ref Ref, mode Mode) (*Opened, error)
}

// kinds are those that this version can open; another kind is another line here.
var kinds map[string]kind

func init() { // in init, since the functions refer to Open's own table of kinds
	kinds = map[string]kind{
		"sqlite": {settle: settleSQLite, same: sameSQLite, open: openSQLite},
		"sql":    {settle: settleServer, same: sameServer, open: openServer},
		"rest":   {settle: settleREST, same: sameREST, open: openREST},
		"hadoop": {settle: settleHadoop, same: sameHadoop, open: openHadoop},
		"hive":   {settle: settleHive, same: sameHive, open: openHive},
	}
	maps.Copy(kinds, cloudKinds())
}

// refused are kinds of PyIceberg's and Java's that are not among them, and what to do.
var refused = map[string]string{
	"in-memory": "it is empty in every new process: keep the tables in a catalog of type sql, whose uri is sqlite:///FILE",
	"dynamodb":  "register its tables in a catalog of another type",
	"bigquery":  "give the catalog's REST address, as one of type rest",
	"nessie":    "give its REST address, as a catalog of type rest: https://HOST/iceberg",
	"jdbc":      "say sql, with a uri postgresql://…, mysql://… or sqlite:///FILE",
	"snowflake": "give its REST address, as a catalog of type rest",
	"s3tables":  "give its REST address, as a catalog of type rest, with rest.sigv4-enabled",
}

// checkKind refuses kinds that this version does not have.
func checkKind(name, where string) error {
	if _, ok := kinds[name]; ok {
		return nil
	}
	if where != "" {
		where += ": "
	}
	cure := ""
	if text := refused[name]; text != "" {
		cure = ": " + text
	}
	return usage("%scatalog kind %q is not supported in this version, which has: %s%s",
		where, name, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "), cure)
}
