package catalogs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"icepipe/pkg/rows"
)

// world is an Env with a configuration of two sqlite catalogs and a REST one.
func world(t *testing.T) Env {
	t.Helper()
	home := t.TempDir()
	text := `
catalog:
  prod:
    uri: sqlite:////data/prod.db
    warehouse: s3://key:hunter2@lake/wh
    s3.secret-access-key: hunter2
  Rel:
    type: SQL
    uri: sqlite+pysqlite:///rel.db
  away:
    uri: https://user:hunter2@example.com/iceberg
    credential: hunter2
    warehouse: main
  pg:
    uri: postgresql+psycopg2://user:hunter2@localhost/db
  bare:
    warehouse: wh
`
	if err := os.WriteFile(filepath.Join(home, pyicebergFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Env{Home: home, Dir: "/work dir"}
}

type pairCommand struct {
	PairFlags
}

// parsePair runs a command line through kong, as the commands do.
func parsePair(t *testing.T, line ...string) PairFlags {
	t.Helper()
	var cmd pairCommand
	parser, err := kong.New(&cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(line); err != nil {
		t.Fatal(err)
	}
	return cmd.PairFlags
}

func TestResolvePair(t *testing.T) {
	env := world(t)
	sqlite := func(name, path, warehouse string) rows.Place {
		return rows.Place{Kind: "sqlite", Name: name, DBPath: path, Warehouse: warehouse}
	}
	rest := func(name, uri, prefix, warehouse string) rows.Place {
		return rows.Place{Kind: "rest", Name: name, URI: uri, Prefix: prefix, Warehouse: warehouse}
	}
	prod := sqlite("prod", "/data/prod.db", "s3://lake/wh")
	pg := rows.Place{Kind: "sql", Name: "pg", URI: "postgresql://localhost/db"}
	for _, tt := range []struct {
		name     string
		line     []string
		src, dst Ref // Place and Identifier alone
		err      string
	}{
		{
			name: "the reference's example",
			line: []string{"--src-catalog=sqlite", "--src-db-path=src.db", "--src-warehouse=src_wh", "--src-namespace=sales", "--src-table=orders",
				"--dst-catalog=sqlite", "--dst-db-path=dst.db", "--dst-warehouse=dst_wh", "--dst-namespace=warehouse", "--dst-table=orders"},
			src: Ref{Place: sqlite("", "/work dir/src.db", "/work dir/src_wh"), Identifier: []string{"sales", "orders"}},
			dst: Ref{Place: sqlite("", "/work dir/dst.db", "/work dir/dst_wh"), Identifier: []string{"warehouse", "orders"}},
		},
		{
			name: "a uri wins, of another kind of database too",
			line: []string{"--src=prod.sales.orders", "--src-uri=postgresql://localhost/db", "--dst=prod.warehouse.orders"},
			src:  Ref{Place: rows.Place{Kind: "sql", Name: "prod", URI: "postgresql://localhost/db", Warehouse: "s3://lake/wh"}, Identifier: []string{"sales", "orders"}},
			dst:  Ref{Place: prod, Identifier: []string{"warehouse", "orders"}},
		},
		{
			name: "the reference's second example",
			line: []string{"--src-catalog=sqlite", "--src-db-path=src.db", "--src-namespace=sales", "--src-table=orders",
				"--dst-catalog-name=prod", "--dst-namespace=warehouse", "--dst-table=orders"},
			src: Ref{Place: sqlite("", "/work dir/src.db", ""), Identifier: []string{"sales", "orders"}},
			dst: Ref{Place: prod, Identifier: []string{"warehouse", "orders"}},
		},
		{
			name: "destination in the source's catalog",
			line: []string{"--src-catalog=sqlite", "--src-db-path=/a.db", "--src-warehouse=/wh", "--src-namespace=a", "--src-table=t", "--dst-namespace=b"},
			src:  Ref{Place: sqlite("", "/a.db", "/wh"), Identifier: []string{"a", "t"}},
			dst:  Ref{Place: sqlite("", "/a.db", "/wh"), Identifier: []string{"b", "t"}},
		},
		{
			name: "same catalog, warehouse and table of its own",
			line: []string{"--src-catalog-name=prod", "--src-namespace=a", "--src-table=t", "--dst-warehouse=/wh", "--dst-table=u"},
			src:  Ref{Place: prod, Identifier: []string{"a", "t"}},
			dst:  Ref{Place: sqlite("prod", "/data/prod.db", "/wh"), Identifier: []string{"a", "u"}},
		},
		{
			name: "another database of the same kind",
			line: []string{"--src-catalog-name=prod", "--src-namespace=a", "--src-table=t", "--dst-db-path=x.db"},
			src:  Ref{Place: prod, Identifier: []string{"a", "t"}},
			dst:  Ref{Place: sqlite("", "/work dir/x.db", ""), Identifier: []string{"a", "t"}},
		},
		{
			name: "paths do not carry over to a catalog that is named",
			line: []string{"--src-catalog=sqlite", "--src-db-path=/a.db", "--src-namespace=a", "--src-table=t", "--dst-catalog=sqlite"},
			err:  "--dst-db-path is missing",
		},
		{
			name: "short forms",
			line: []string{"--src=prod.a.b.t", `--dst=REL."a.b".t`},
			src:  Ref{Place: prod, Identifier: []string{"a", "b", "t"}},
			dst:  Ref{Place: sqlite("REL", "/work dir/rel.db", ""), Identifier: []string{"a.b", "t"}},
		},
		{
			name: "short form with a path: the row key",
			line: []string{"--src=anything.a.t", "--src-db-path=a.db", "--dst-namespace=b"},
			src:  Ref{Place: sqlite("anything", "/work dir/a.db", ""), Identifier: []string{"a", "t"}},
			dst:  Ref{Place: sqlite("anything", "/work dir/a.db", ""), Identifier: []string{"b", "t"}},
		},
		{
			name: "configured catalog with another path",
			line: []string{"--src-catalog-name=prod", "--src-db-path=/copy.db", "--src-namespace=a", "--src-table=t"},
			src:  Ref{Place: sqlite("prod", "/copy.db", "s3://lake/wh"), Identifier: []string{"a", "t"}},
			dst:  Ref{Place: sqlite("prod", "/copy.db", "s3://lake/wh"), Identifier: []string{"a", "t"}},
		},
		{
			name: "levels of a namespace",
			line: []string{"--src-db-path=/a.db", "--src-namespace=a.b", "--src-table=t", `--dst-namespace="a.b"`, `--dst-table="t.u"`},
			src:  Ref{Place: sqlite("", "/a.db", ""), Identifier: []string{"a", "b", "t"}},
			dst:  Ref{Place: sqlite("", "/a.db", ""), Identifier: []string{"a.b", "t.u"}},
		},
		{
			name: "a uri as path",
			line: []string{"--src-db-path=sqlite:///a.db", "--src-namespace=a", "--src-table=t", "--dst-db-path=sqlite:////b.db"},
			src:  Ref{Place: sqlite("", "/work dir/a.db", ""), Identifier: []string{"a", "t"}},
			dst:  Ref{Place: sqlite("", "/b.db", ""), Identifier: []string{"a", "t"}},
		},

		{name: "nothing", err: "--src-namespace is missing"},
		{name: "no catalog", line: []string{"--src-namespace=a", "--src-table=t"}, err: "one of --src-catalog KIND and --src-catalog-name NAME is needed"},
		{name: "no path", line: []string{"--src-catalog=sqlite", "--src-namespace=a", "--src-table=t"}, err: "--src-db-path is missing"},
		{name: "no table", line: []string{"--src-db-path=a.db", "--src-namespace=a"}, err: "--src-table is missing"},
		{
			name: "an address",
			line: []string{"--src-uri=https://user:hunter2@example.com/iceberg/?key=hunter2", "--src-warehouse=wh", "--src-property=prefix=p", "--src-namespace=a", "--src-table=t", "--dst-table=u"},
			src:  Ref{Place: rest("", "https://example.com/iceberg", "p", "wh"), Identifier: []string{"a", "t"}},
			dst:  Ref{Place: rest("", "https://example.com/iceberg", "p", "wh"), Identifier: []string{"a", "u"}},
		},
		{
			name: "from a file to an address",
			line: []string{"--src-db-path=/a.db", "--src-warehouse=/wh", "--src-namespace=a", "--src-table=t", "--dst-uri=http://127.0.0.1:1"},
			src:  Ref{Place: sqlite("", "/a.db", "/wh"), Identifier: []string{"a", "t"}},
			dst:  Ref{Place: rest("", "http://127.0.0.1:1", "", ""), Identifier: []string{"a", "t"}},
		},
		{
			name: "from a configured address to a file",
			line: []string{"--src=away.a.t", "--dst-db-path=/a.db"},
			src:  Ref{Place: rest("away", "https://example.com/iceberg", "", "main"), Identifier: []string{"a", "t"}},
			dst:  Ref{Place: sqlite("", "/a.db", ""), Identifier: []string{"a", "t"}},
		},
		{
			name: "a configured address with another one, and a name that is not configured",
			line: []string{"--src=away.a.t", "--src-uri=http://b", "--dst=nope.a.u", "--dst-catalog=rest", "--dst-uri=http://c"},
			src:  Ref{Place: rest("away", "http://b", "", "main"), Identifier: []string{"a", "t"}},
			dst:  Ref{Place: rest("nope", "http://c", "", ""), Identifier: []string{"a", "u"}},
		},

		{name: "configured, postgres", line: []string{"--src=pg.a.t", "--dst-namespace=b"},
			src: Ref{Place: pg, Identifier: []string{"a", "t"}}, dst: Ref{Place: pg, Identifier: []string{"b", "t"}}},
		{name: "servers by their addresses", line: []string{"--src-uri=postgresql+psycopg://u:hunter2%40@h:5433/d%2Fe?sslmode=require", "--src-namespace=a", "--src-table=t", "--dst-catalog=sql", "--dst-catalog-name=x", "--dst-uri=mysql+pymysql://u:hunter2@h/d"},
			src: Ref{Place: rows.Place{Kind: "sql", URI: "postgresql://h:5433/d%2Fe"}, Identifier: []string{"a", "t"}},
			dst: Ref{Place: rows.Place{Kind: "sql", Name: "x", URI: "mysql://h/d"}, Identifier: []string{"a", "t"}}},
		{name: "sqlite by its uri", line: []string{"--src-uri=sqlite:////a.db", "--src-namespace=a", "--src-table=t", "--dst-catalog=sql", "--dst-db-path=b.db"},
			src: Ref{Place: sqlite("", "/a.db", ""), Identifier: []string{"a", "t"}}, dst: Ref{Place: sqlite("", "/work dir/b.db", ""), Identifier: []string{"a", "t"}}},
		{name: "other kind", line: []string{"--src-catalog=dynamodb", "--src-namespace=a", "--src-table=t"}, err: `--src-catalog: catalog kind "dynamodb" is not supported in this version, which has: `},
		{name: "no address", line: []string{"--src-catalog=rest", "--src-namespace=a", "--src-table=t"}, err: "--src-uri is missing"},
		{name: "no address either", line: []string{"--src-uri=ftp://hunter2", "--src-namespace=a", "--src-table=t"}, err: `--src-uri: want a uri such as https://HOST/PATH, not one of scheme "ftp"`},
		{name: "a server's address for rest", line: []string{"--src-catalog=rest", "--src-uri=postgresql://u:hunter2@h/d", "--src-namespace=a", "--src-table=t"}, err: `not one of scheme "postgresql"`},
		{name: "a server's address as a file", line: []string{"--src-db-path=postgresql://u:hunter2@h/d", "--src-namespace=a", "--src-table=t"}, err: `give the address of a server as --src-uri`},
		{name: "another server", line: []string{"--src-catalog=sql", "--src-uri=oracle://u:hunter2@h/d", "--src-namespace=a", "--src-table=t"}, err: `databases of the dialect "oracle" are not supported`},
		{name: "a port that is none", line: []string{"--src-uri=postgresql://u:a@hunter2:b@h/d", "--src-namespace=a", "--src-table=t"}, err: "written %40"},
		{name: "a password that is not encoded", line: []string{"--src-uri=postgresql://u:a@hunter2@h/d", "--src-namespace=a", "--src-table=t"}, err: "written %40"},
		{name: "a parameter that is none", line: []string{"--src-uri=postgresql://u:hunter2@h/d?pool=hunter2", "--src-namespace=a", "--src-table=t"}, err: `parameter "pool"`},
		{name: "in memory", line: []string{"--src-catalog=in-memory", "--src-namespace=a", "--src-table=t"}, err: `uri is sqlite:///FILE`},
		{name: "dynamodb", line: []string{"--src-catalog=dynamodb", "--src-namespace=a", "--src-table=t"}, err: `register its tables in a catalog of another type`},
		{name: "property twice, of both", line: []string{"--src=prod.a.t", "--property=x=1", "--property=x=2"}, err: "--property x is there twice"},
		{name: "an address that cannot be read", line: []string{"--src-uri=http://hunter2:%/", "--src-namespace=a", "--src-table=t"}, err: "--src-uri: want a uri"},
		{name: "an address for sqlite", line: []string{"--src-catalog=sqlite", "--src-uri=http://a", "--src-namespace=a", "--src-table=t"}, err: "a sqlite catalog is a file: give --src-db-path"},
		{name: "a file for rest", line: []string{"--src-catalog=rest", "--src-db-path=a.db", "--src-namespace=a", "--src-table=t"}, err: "give --src-uri"},
		{name: "property without a value", line: []string{"--src-uri=http://a", "--src-property=hunter2", "--src-namespace=a", "--src-table=t"}, err: "--src-property: want KEY=VALUE"},
		{name: "property that has a flag", line: []string{"--src-uri=http://a", "--src-property=uri=hunter2", "--src-namespace=a", "--src-table=t"}, err: "--src-property uri=…: give --src-uri"},
		{name: "property twice", line: []string{"--src-uri=http://a", "--src-property=Token=hunter2", "--src-property=token=hunter2", "--src-namespace=a", "--src-table=t"}, err: "token is there twice"},
		{name: "another authentication", line: []string{"--src-uri=http://a", "--src-property=auth.type=entra", "--src-namespace=a", "--src-table=t"}, err: "--src-catalog rest: auth.type: \"entra\" is not supported: get a token by az account"},
		{name: "no time", line: []string{"--src-uri=http://a", "--src-property=rest.client.socket-timeout-ms=1s", "--src-namespace=a", "--src-table=t"}, err: `"1s": want milliseconds`},
		{name: "configured, no uri", line: []string{"--src=bare.a.t"}, err: `it has no uri`},
		{name: "kinds contradict", line: []string{"--src-catalog=rest", "--src-catalog-name=prod", "--src-namespace=a", "--src-table=t"}, err: `catalog "prod" is of kind "sqlite"`},
		{name: "not configured", line: []string{"--src=nope.a.t"}, err: `configured: away, bare, pg, prod, rel`},
		{name: "twice", line: []string{"--src=prod.a.t", "--src-table=t"}, err: "--src-table say the same thing twice"},
		{name: "short form too short", line: []string{"--src=a.t"}, err: "want CATALOG.namespace.table"},
		{name: "short form not closed", line: []string{`--src=prod."a.t`}, err: "not closed"},
		{name: "short form, empty part", line: []string{`--src=prod..t`}, err: "empty"},
		{name: "empty quoted part", line: []string{`--src=prod."".t`}, err: "empty"},
		{name: "dot in the table", line: []string{"--src-db-path=a.db", "--src-namespace=a", "--src-table=b.t"}, err: "double quotes"},
		{name: "destination too", line: []string{"--src=prod.a.t", "--dst=nope.a.t"}, err: "give --dst-db-path or --dst-uri"},
		{name: "database in memory", line: []string{"--src-db-path=sqlite://", "--src-namespace=a", "--src-table=t"}, err: "memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src, dst, err := parsePair(t, tt.line...).Resolve(env)
			if tt.err != "" {
				var ue *UsageError
				if !errors.As(err, &ue) || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("got %v (%T), want a UsageError with %q", err, err, tt.err)
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("a secret is in %q", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, side := range []struct{ got, want Ref }{{src, tt.src}, {dst, tt.dst}} {
				if side.got.Place != side.want.Place || !reflect.DeepEqual(side.got.Identifier, side.want.Identifier) {
					t.Errorf("got  %+v\nwant %+v", side.got, side.want)
				}
				if strings.Contains(strings.Join([]string{side.got.Place.DBPath, side.got.Place.URI, side.got.Place.Warehouse, side.got.String()}, " "), "hunter2") {
					t.Errorf("a secret is in %+v", side.got.Place)
				}
			}
			if src.Place.Name == "prod" && src.Properties["s3.secret-access-key"] != "hunter2" {
				t.Error("the storage does not get its key")
			}
		})
	}
}

type singleCommand struct {
	SingleFlags
}

func TestResolveSingle(t *testing.T) {
	env := world(t)
	for _, tt := range []struct {
		name string
		line []string
		want string
		err  string
	}{
		{"flags", []string{"--catalog-name=prod", "--namespace=a", "--table=t"}, "prod.a.t", ""},
		{"argument", []string{`prod.a."b.c"`}, `prod.a."b.c"`, ""},
		{"argument and path", []string{"--db-path=x.db", "key.a.t"}, "key.a.t", ""},
		{"path", []string{"--db-path=x.db", "--namespace=a", "--table=t"}, "a.t", ""},
		{"both", []string{"prod.a.t", "--namespace=a"}, "", "table \"prod.a.t\" and --namespace say the same thing twice"},
		{"none", nil, "", "--namespace is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var cmd singleCommand
			parser, err := kong.New(&cmd)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(tt.line); err != nil {
				t.Fatal(err)
			}
			if got := cmd.Flags().Given(); got != (tt.line != nil) {
				t.Errorf("Given is %v", got)
			}
			ref, err := cmd.Resolve(env)
			switch {
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got %v, want %q", err, tt.err)
			case tt.err == "" && (err != nil || ref.String() != tt.want):
				t.Errorf("got %s, %v; want %s", ref, err, tt.want)
			}
		})
	}
}

func TestFromPlace(t *testing.T) {
	env := world(t)
	place := rows.Place{Kind: "sqlite", Name: "prod", DBPath: "/data/prod.db", Warehouse: "s3://lake/wh"}
	ref, err := FromPlace(place, []string{"a", "t"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if ref.Place != place || ref.Properties["s3.secret-access-key"] != "hunter2" {
		t.Errorf("got %+v", ref)
	}
	elsewhere := place
	elsewhere.DBPath = "/data/copy.db"
	if ref, err := FromPlace(elsewhere, []string{"a", "t"}, env); err != nil || ref.Properties != nil {
		t.Errorf("another database gets the properties of the configured one: %+v, %v", ref, err)
	}
	if ref, err := (TableFlags{Table: "u", DBPath: "/other.db"}).ResolveOver(ref, env); err != nil || ref.String() != "a.u" || ref.Place.DBPath != "/other.db" {
		t.Errorf("flags over a place: %+v, %v", ref, err)
	}
	for name, p := range map[string]rows.Place{"kind": {Kind: "bigquery"}, "none": {}} {
		if _, err := FromPlace(p, []string{"a", "t"}, env); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := FromPlace(place, []string{"t"}, env); err == nil {
		t.Error("no namespace: no error")
	}
	server := rows.Place{Kind: "rest", Name: "away", URI: "https://example.com/iceberg", Prefix: "p"}
	if ref, err := FromPlace(server, []string{"a", "t"}, env); err != nil || ref.Place != server || ref.Properties["credential"] != "hunter2" {
		t.Errorf("a server: %+v, %v", ref, err)
	}
	server.URI = "https://example.org/iceberg"
	ref, err = FromPlace(server, []string{"a", "t"}, env)
	if err != nil || ref.Properties != nil {
		t.Errorf("another server gets the credential of the configured one: %+v, %v", ref, err)
	}
	if ref, err := (TableFlags{Property: []string{"token=x"}}).ResolveOver(ref, env); err != nil || ref.Place != server || ref.Properties["token"] != "x" || ref.Properties["uri"] != server.URI {
		t.Errorf("a property over a place: %+v, %v", ref, err)
	}
}

func TestWithoutUser(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "/a/b": "/a/b", "s3://bucket/a@b:c": "s3://bucket/a@b:c", "s3://k:s@bucket": "s3://bucket", "s3://k:s@bucket/": "s3://bucket/",
		"s3://k:s@t@bucket/a": "s3://bucket/a", "abfss://container@account.dfs.core.windows.net/a": "abfss://container@account.dfs.core.windows.net/a",
	} {
		if got := withoutUser(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
