package catalogs

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

// makeTable makes an empty table in a temporary catalog.
func makeTable(t *testing.T, cat catalog.Catalog, identifier ...string) *table.Table {
	t.Helper()
	for n := 1; n < len(identifier); n++ {
		err := cat.CreateNamespace(t.Context(), identifier[:n], nil)
		if err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
			t.Fatal(err)
		}
	}
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	tbl, err := cat.CreateTable(t.Context(), identifier, schema)
	if err != nil {
		t.Fatal(err)
	}
	return tbl
}

func temporary(t *testing.T) (cat catalog.Catalog, path string) {
	t.Helper()
	dir := t.TempDir()
	cat, err := Temporary(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cat.(catalog.Closer).Close(); err != nil {
			t.Error(err)
		}
	})
	return cat, filepath.Join(dir, "catalog.db")
}

// The layouts of a catalog's tables: V0 is Java's and PyIceberg's before 0.11, V1 has iceberg_type.
const (
	layoutV0 = `CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
		table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),
		PRIMARY KEY (catalog_name, table_namespace, table_name));
		CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
		property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key));`
	layoutV1 = layoutV0 + `ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5);`
)

// handmade makes a database by SQL and returns its path.
func handmade(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hand made?#%41.db")
	db := rawDB(t, path)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func rawDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func row(name, namespace, table, location string) string {
	return fmt.Sprintf(`INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location) VALUES ('%s', '%s', '%s', %s);`,
		name, namespace, table, location)
}

func at(path, name string, identifier ...string) Ref {
	return Ref{Place: rows.Place{Kind: "sqlite", Name: name, DBPath: path}, Identifier: identifier, prefix: "src-", origin: "--src-db-path"}
}

func mustOpen(t *testing.T, ref Ref, mode Mode) *Opened {
	t.Helper()
	o, err := Open(t.Context(), ref, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func TestOpenFinds(t *testing.T) {
	cat, path := temporary(t)
	one := makeTable(t, cat, "a", "t")
	makeTable(t, cat, "a", "b", "t")
	dotted := makeTable(t, cat, "a.b", "t") // case 69
	location := "'" + one.MetadataLocation() + "'"

	v0 := handmade(t, layoutV0, row("old", "a", "t", location))
	v1 := handmade(t, layoutV1, row("null type", "a", "t", location),
		`UPDATE iceberg_tables SET iceberg_type = NULL`)
	several := handmade(t, layoutV1, row("x", "a", "t", location), row("y", "b", "t", location))
	for _, tt := range []struct {
		name string
		ref  Ref
		uuid string
		want string // the catalog's name
	}{
		{"by name", at(path, TemporaryName, "a", "t"), one.Metadata().TableUUID().String(), TemporaryName},
		{"by the one name", at(path, "", "a", "t"), one.Metadata().TableUUID().String(), TemporaryName},
		{"a level with a dot", at(path, "", "a.b", "t"), dotted.Metadata().TableUUID().String(), TemporaryName},
		{"layout V0 (case 74)", at(v0, "", "a", "t"), one.Metadata().TableUUID().String(), "old"},
		{"type NULL (case 74)", at(v1, "null type", "a", "t"), one.Metadata().TableUUID().String(), "null type"},
		{"one of two names has the table", at(several, "", "b", "t"), one.Metadata().TableUUID().String(), "y"},
	} {
		for _, mode := range []Mode{ReadOnly, ReadWrite} {
			t.Run(fmt.Sprintf("%s, mode %d", tt.name, mode), func(t *testing.T) {
				o := mustOpen(t, tt.ref, mode)
				if got := o.Table.Metadata().TableUUID().String(); got != tt.uuid {
					t.Errorf("table %s, want %s", got, tt.uuid)
				}
				if o.Ref.Place.Name != tt.want || o.Ref.Place.DBPath != tt.ref.Place.DBPath {
					t.Errorf("place is %+v, want the name %q", o.Ref.Place, tt.want)
				}
			})
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	cat, path := temporary(t)
	for _, id := range [][]string{{"sales", "orders"}, {"sales", "orders_2024"}, {"archive", "orders"}, {"sales", "customers"}} {
		makeTable(t, cat, id...)
	}
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	empty := filepath.Join(dir, "empty.db")
	short := filepath.Join(dir, "short.db")
	hollow := filepath.Join(dir, "00000-hollow.metadata.json") // the library panics
	broken := filepath.Join(dir, "00000-broken.metadata.json")
	for path, content := range map[string]string{broken: `{"format-version":2,`, hollow: `{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"/x","last-updated-ms":1,"last-column-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[]}],"current-schema-id":0,"default-spec-id":0,"last-partition-id":999,"sort-orders":[],"default-sort-order-id":0,"last-sequence-number":0,"partition-specs":[{"spec-id":0,"fields":[null]}]}`, text: "PAR1 and then some more bytes", empty: "", short: "SQLite format 3\x00"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	foreign := handmade(t, `CREATE TABLE x (y)`)
	blank := handmade(t, layoutV1)
	two := handmade(t, layoutV1, row("x", "a", "t", "'/nowhere.metadata.json'"), row("y", "a", "t", "'/nowhere.metadata.json'"),
		row("y", "a", "u", "NULL"), row("y", "a", "gone", "'/nowhere/00000-a.metadata.json'"),
		row("y", "a", "v", "'/v'"), row("y", "a", "hollow", "'"+hollow+"'"), row("y", "a", "broken", "'"+broken+"'"), `UPDATE iceberg_tables SET iceberg_type = 'VIEW' WHERE table_name = 'v'`)

	for _, tt := range []struct {
		name   string
		ref    Ref
		says   []string
		absent bool // wraps catalog.ErrNoSuchTable
	}{
		{"damaged metadata", at(two, "y", "a", "hollow"), []string{`table "a.hollow"`, "its metadata is damaged"}, false},
		{"broken metadata", at(two, "y", "a", "broken"), []string{"load table y.a.broken", broken, "JSON"}, false},
		{"a slip of the pen", at(path, "", "sales", "ordres"), []string{"table sales.ordres is not in catalog", TemporaryName, path, "near are sales.orders"}, true},
		{"another case", at(path, "", "Sales", "Orders"), []string{"near are sales.orders, archive.orders"}, true},
		{"another namespace", at(path, "", "warehouse", "customers"), []string{"near are sales.customers"}, true},
		{"nothing near", at(path, "", "x", "zzzzzzzz"), []string{"it has 4 others, such as archive.orders"}, true},
		{"level with a dot for two levels", at(two, "y", "a.b", "t"), []string{"near are a.t"}, true},
		{"another name", at(path, "prod", "sales", "orders"), []string{`in catalog "prod"`, `it is there under "temporary", which --src-catalog-name takes`}, true},
		{"another name and table", at(path, "prod", "x", "y"), []string{`the names in the database are "temporary"`}, true},
		{"no tables at all", at(blank, "", "a", "t"), []string{"it lists no tables"}, true},
		{"several names", at(two, "", "a", "t"), []string{`under the names "x", "y": choose one with --src-catalog-name`}, false},
		{"none of several names", at(two, "", "a", "tt"), []string{"near are a.t"}, true},
		{"no metadata", at(two, "y", "a", "u"), []string{"y.a.u", "never committed"}, true},
		{"metadata is gone", at(two, "y", "a", "gone"), []string{"load table y.a.gone", "/nowhere/00000-a.metadata.json", "no such file"}, false},
		{"a view", at(two, "", "a", "v"), []string{"y.a.v is a view"}, false},
		{"no file", at(filepath.Join(dir, "no.db"), "", "a", "t"), []string{"is not there", "see to --src-db-path"}, false},
		{"a folder", at(dir, "", "a", "t"), []string{"is a directory"}, false},
		{"not SQLite", at(text, "", "a", "t"), []string{"is not a SQLite database"}, false},
		{"empty file", at(empty, "", "a", "t"), []string{"is an empty file"}, false},
		{"cut short", at(short, "", "a", "t"), []string{short}, false},
		{"another program's database", at(foreign, "", "a", "t"), []string{"no table iceberg_tables"}, false},
		{"no namespace", at(path, "", "t"), []string{"has a namespace and a name"}, false},
		{"another kind", Ref{Place: rows.Place{Kind: "dynamodb"}, Identifier: []string{"a", "t"}}, []string{`catalog kind "dynamodb" is not supported`}, false},
	} {
		for _, mode := range []Mode{ReadOnly, ReadWrite} {
			t.Run(fmt.Sprintf("%s, mode %d", tt.name, mode), func(t *testing.T) {
				o, err := Open(t.Context(), tt.ref, mode)
				if err == nil {
					o.Close()
					t.Fatal("no error")
				}
				for _, want := range tt.says {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got %q, want %q in it", err, want)
					}
				}
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("more than one line: %q", err)
				}
				if errors.Is(err, catalog.ErrNoSuchTable) != tt.absent {
					t.Errorf("errors.Is(%q, ErrNoSuchTable) is %v", err, !tt.absent)
				}
				if tt.absent && !strings.Contains(err.Error(), "never committed") && strings.Contains(err.Error(), "make the table first") != (mode == ReadWrite) && !strings.Contains(err.Error(), "it is there under") {
					t.Errorf("the cure is wrong: %q", err)
				}
			})
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "no.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a database was made: %v", err)
	}
	if st, err := os.Stat(empty); err != nil || st.Size() != 0 {
		t.Errorf("the empty file was written: %v, %v", st, err)
	}
}

// state is what a folder holds, to the byte.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		st, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = fmt.Sprintf("%x %v %v", sha256.Sum256(text), st.Mode(), st.ModTime())
	}
	return out
}

// A database that is opened ReadOnly stays as it is, whatever its layout and journal mode, and no
// file appears beside it (cases 74 and 91).
func TestReadOnlyLeavesNoTrace(t *testing.T) {
	cat, _ := temporary(t)
	location := "'" + makeTable(t, cat, "a", "t").MetadataLocation() + "'"
	for _, layout := range []string{layoutV0, layoutV1} {
		for _, journal := range []string{"delete", "wal"} {
			t.Run(fmt.Sprintf("%s, V1 %v", journal, layout == layoutV1), func(t *testing.T) {
				temp := t.TempDir()
				t.Setenv("TMPDIR", temp)
				path := handmade(t, `PRAGMA journal_mode = `+journal, layout, row("x", "a", "t", location))
				before := state(t, filepath.Dir(path))
				ref := at(path, "", "a", "t")
				ref.Properties = map[string]string{"init_catalog_tables": "true", "jdbc.schema-version": "V1"} // not even on demand
				o, err := Open(t.Context(), ref, ReadOnly)
				if err != nil {
					t.Fatal(err)
				}
				err = o.Catalog.CreateNamespace(t.Context(), []string{"new"}, nil)
				if err == nil {
					t.Error("a namespace was made through a ReadOnly catalog")
				}
				if during := state(t, filepath.Dir(path)); !reflect.DeepEqual(during, before) {
					t.Errorf("while open: %v, before: %v", during, before)
				}
				if err := o.Close(); err != nil {
					t.Error(err)
				}
				if after := state(t, filepath.Dir(path)); !reflect.DeepEqual(after, before) {
					t.Errorf("after: %v, before: %v", after, before)
				}
				if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
					t.Errorf("left in the temporary folder: %v, %v", left, err)
				}
			})
		}
	}
}

// A reader does not wait for a process that is about to write, in any journal mode, and sees what
// is committed.
func TestReadOnlyWhileAnotherWrites(t *testing.T) {
	cat, _ := temporary(t)
	location := "'" + makeTable(t, cat, "a", "t").MetadataLocation() + "'"
	for _, journal := range []string{"delete", "wal"} {
		t.Run(journal, func(t *testing.T) {
			path := handmade(t, `PRAGMA journal_mode = `+journal, layoutV1)
			writer := rawDB(t, path)
			writer.SetMaxOpenConns(1)
			if _, err := writer.Exec(row("x", "a", "t", location)); err != nil { // in the log of a wal database
				t.Fatal(err)
			}
			tx, err := writer.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if _, err := tx.Exec(row("y", "a", "t", location)); err != nil {
				t.Fatal(err)
			}
			if o := mustOpen(t, at(path, "", "a", "t"), ReadOnly); o.Ref.Place.Name != "x" {
				t.Errorf("found under %q, want x", o.Ref.Place.Name)
			}
		})
	}
}

// A table's own location that is relative says nothing of where its files would be written: beside whatever folder the
// program runs in.
func TestRelativeLocation(t *testing.T) {
	cat, path := temporary(t)
	made := makeTable(t, cat, "a", "t")
	file := strings.TrimPrefix(made.MetadataLocation(), "file://")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(fmt.Sprintf(`"location":%q`, made.Location())), []byte(`"location":"wh/a/t"`), 1)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), at(path, "", "a", "t"), ReadWrite); err == nil || !strings.Contains(err.Error(), `table "a.t": its location "wh/a/t" is relative`) {
		t.Error(err)
	}
	mustOpen(t, at(path, "", "a", "t"), ReadOnly)
}
