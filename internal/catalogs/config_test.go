package catalogs

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder makes a folder with that configuration in it, or with none.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if text != "-" {
		if err := os.WriteFile(filepath.Join(dir, pyicebergFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The order of the files, the names of variables and their precedence are PyIceberg's
// (pyiceberg/utils/config.py).
func TestConfiguration(t *testing.T) {
	file := func(uri string) string { return "catalog:\n  a:\n    uri: " + uri + "\n" }
	for _, tt := range []struct {
		name           string
		set, home, dir string
		environ        []string
		ask            string
		want           map[string]string // nil: not configured
		from           string            // of set, home, dir, environment
	}{
		{name: "first PYICEBERG_HOME", set: file("1"), home: file("2"), dir: file("3"), ask: "a", want: map[string]string{"uri": "1"}, from: "set"},
		{name: "then home", set: "-", home: file("2"), dir: file("3"), ask: "a", want: map[string]string{"uri": "2"}, from: "home"},
		{name: "then the working directory", set: "-", home: "-", dir: file("3"), ask: "a", want: map[string]string{"uri": "3"}, from: "dir"},
		{name: "an empty file does not count", set: "# nothing\n", home: "", dir: file("3"), ask: "a", want: map[string]string{"uri": "3"}, from: "dir"},
		{name: "files are not merged", set: file("1"), home: "catalog:\n  b:\n    uri: 2\n", dir: "-", ask: "b"},
		{name: "a file without catalogs counts", set: "max-workers: 4\n", home: file("2"), dir: "-", ask: "a"},
		{name: "none", set: "-", home: "-", dir: "-", ask: "a"},

		{name: "names and keys in any case", set: "Catalog:\n  MyCat:\n    URI: X\n", home: "-", dir: "-", ask: "mYcAT", want: map[string]string{"uri": "X"}, from: "set"},
		{name: "text as it stands", set: "catalog:\n  a:\n    x: 0123\n    y: yes\n    z: 1e3\n    e:\n    q: \"a: b\"\n", home: "-", dir: "-", ask: "a",
			want: map[string]string{"x": "0123", "y": "yes", "z": "1e3", "e": "", "q": "a: b"}, from: "set"},
		{name: "nested", set: "catalog:\n  a:\n    s3:\n      endpoint: E\n      access-key-id: K\n", home: "-", dir: "-", ask: "a",
			want: map[string]string{"s3.endpoint": "E", "s3.access-key-id": "K"}, from: "set"},

		{name: "variables alone", set: "-", home: "-", dir: "-", ask: "a", environ: []string{"PYICEBERG_CATALOG__A__URI=sqlite:///x?a=b", "PYICEBERG_CATALOG__B__URI=y"},
			want: map[string]string{"uri": "sqlite:///x?a=b"}, from: "environment"},
		{name: "variables win", set: file("1") + "    type: sql\n", home: "-", dir: "-", ask: "a", environ: []string{"PYICEBERG_CATALOG__A__URI=2"},
			want: map[string]string{"uri": "2", "type": "sql"}, from: "set"},
		{name: "names of variables", set: "-", home: "-", dir: "-", ask: "my-cat", environ: []string{
			"PYICEBERG_CATALOG__MY_CAT__S3__ACCESS_KEY_ID=K", "pyiceberg_catalog__my_cat__uri=U"},
			want: map[string]string{"s3.access-key-id": "K", "uri": "U"}, from: "environment"},
		{name: "other variables", set: "-", home: "-", dir: "-", ask: "a", environ: []string{
			"PYICEBERG_CATALOG____URI=x", "PYICEBERG_MAX_WORKERS=3", "PYICEBERG_CATALOG_A_URI=x", "PATH=/bin"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			places := map[string]string{"set": folder(t, tt.set), "home": folder(t, tt.home), "dir": folder(t, tt.dir)}
			env := Env{Home: places["home"], Dir: places["dir"], Environ: append([]string{"PYICEBERG_HOME=" + places["set"]}, tt.environ...)}
			c, err := env.catalog(tt.ask)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == nil {
				if c != nil {
					t.Fatalf("got %+v, want none", c)
				}
				err := env.notConfigured(tt.ask, "--db-path")
				var ue *UsageError
				if !errors.As(err, &ue) || !strings.Contains(err.Error(), "PYICEBERG_CATALOG__A__URI") && tt.ask == "a" {
					t.Errorf("got %v", err)
				}
				return
			}
			if c == nil || !maps.Equal(c.properties, tt.want) {
				t.Fatalf("got %+v, want %v", c, tt.want)
			}
			from := "the environment"
			if dir, ok := places[tt.from]; ok {
				from = filepath.Join(dir, pyicebergFile)
			}
			if c.from != from {
				t.Errorf("from %q, want %q", c.from, from)
			}
		})
	}
}

func TestBrokenConfiguration(t *testing.T) {
	for name, tt := range map[string]struct{ text, says string }{
		"no YAML":       {"catalog: [\n", pyicebergFile},
		"not a mapping": {"catalog:\n  a: text\n", "not a list of properties"},
		"a list":        {"catalog:\n  a:\n    x:\n    - 1\n", `property "x" of catalog "a" is neither text nor a mapping`},
		"a flow":        {"catalog:\n  a:\n    x: [1, 2]\n", "line 3: PyIceberg takes no {…}"},
		"twice":         {"catalog:\n  a:\n    x: 1\n    x: 2\n", `"x" is there twice`},
		"an alias":      {"catalog:\n  b: &b\n    x: 1\n  a:\n    y: *b\n", "line 2: PyIceberg takes no anchors"},
		"a tag":         {"catalog:\n  a:\n    x: !!str 1\n", "line 3: PyIceberg takes no tags"},
		"a merge":       {"catalog:\n  a:\n    <<: x\n", "merge key"},
		"two documents": {"catalog:\n  a:\n    x: 1\n---\na: 1\n", "more than one document"},
		"text":          {"catalog\n", "it is not a mapping"},
		"no catalogs":   {"catalog: x\n", "catalog is not a list of catalogs"},
	} {
		t.Run(name, func(t *testing.T) {
			env := Env{Dir: folder(t, tt.text)}
			_, err := env.catalog("a")
			var ue *UsageError
			if err == nil || errors.As(err, &ue) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tt.says)
			}
		})
	}
	for _, environ := range [][]string{
		{"PYICEBERG_CATALOG__A=x"}, {"PYICEBERG_CATALOG=x"}, {"PYICEBERG_CATALOG__A=x", "PYICEBERG_CATALOG__A__URI=y"},
	} {
		env := Env{Environ: environ}
		if c, err := env.catalog("a"); err == nil || !strings.Contains(err.Error(), "PYICEBERG_CATALOG") {
			t.Errorf("%q: got %+v, %v", environ, c, err)
		}
	}
	env := Env{Dir: t.TempDir(), Home: folder(t, "catalog:\n  a:\n    x: 1\n")}
	if err := os.Mkdir(filepath.Join(env.Dir, pyicebergFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if c, err := env.catalog("a"); err != nil || c == nil {
		t.Errorf("a folder in the file's place: got %v, %v", c, err)
	}
}

// iceberg-go's own file counts for catalogs that PyIceberg's does not name.
func TestIcebergGoFile(t *testing.T) {
	home, other := folder(t, "catalog:\n  a:\n    uri: 1\n"), t.TempDir()
	for dir, text := range map[string]string{
		home:  "default-catalog: b\ncatalog:\n  a: {uri: 2}\n  b:\n    type: sql\n    uri: sql://file:x.db?mode=rwc\n    sql-dialect: sqlite\n    credential:\n    rest: {sigv4-enabled: true}\n",
		other: "catalog:\n  b: {uri: 3}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, icebergGoFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := Env{Home: home, Dir: "/dir"}
	b := map[string]string{"type": "sql", "uri": "sql://file:x.db?mode=rwc", "sql.dialect": "sqlite", "credential": "", "rest.sigv4-enabled": "true"}
	for _, tt := range []struct {
		ask  string
		env  Env
		want map[string]string
	}{
		{"a", env, map[string]string{"uri": "1"}}, {"b", env, b},
		{"b", Env{Home: home, Dir: "/dir", Environ: []string{"GOICEBERG_HOME=" + other}}, map[string]string{"uri": "3"}},
		{"b", Env{Home: home, Dir: "/dir", Environ: []string{"PYICEBERG_CATALOG__B__URI=4"}}, map[string]string{"uri": "4"}},
	} {
		if c, err := tt.env.catalog(tt.ask); err != nil || c == nil || !maps.Equal(c.properties, tt.want) {
			t.Errorf("%s: got %+v, %v, want %v", tt.ask, c, err, tt.want)
		}
	}
	ref, err := TableFlags{Namespace: "n", Table: "t"}.Resolve(env)
	if err != nil || ref.Place.Kind != "sqlite" || ref.Place.Name != "b" || ref.Place.DBPath != "/dir/x.db" {
		t.Errorf("got %+v, %v", ref, err)
	}
}

func TestDefaultCatalog(t *testing.T) {
	a := "catalog:\n  default:\n    uri: http://d\n  a:\n    uri: http://a\n"
	for _, tt := range []struct {
		text    string
		environ []string
		want    string
	}{
		{"default-catalog: a\n" + a, nil, "a"}, {a, nil, "default"}, {a, []string{"PYICEBERG_DEFAULT_CATALOG=a"}, "a"},
		{"default-catalog: a\n" + a, []string{"PYICEBERG_DEFAULT_CATALOG="}, "default"}, {"default-catalog: A\n" + a, nil, "A"},
		{"-", nil, ""}, {"default-catalog: b\n" + a, nil, ""}, {"default-catalog:\n  x: b\n" + a, nil, ""},
	} {
		ref, err := TableFlags{Namespace: "n", Table: "t"}.Resolve(Env{Dir: folder(t, tt.text), Environ: tt.environ})
		if ref.Place.Name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q, %q: got %q, %v", tt.text, tt.environ, ref.Place.Name, err)
		}
	}
}

func TestSQLitePath(t *testing.T) {
	literal := filepath.Join(t.TempDir(), "a%20b.db") // as SQLAlchemy 2.0 reads it
	if err := os.WriteFile(literal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ uri, want, err string }{
		{"sqlite:///rel.db", "/dir/rel.db", ""},
		{"sqlite:///./a/../rel.db", "/dir/rel.db", ""},
		{"sqlite:////abs.db", "/abs.db", ""},
		{"sqlite+pysqlite:////abs.db", "/abs.db", ""},
		{"sqlite:////a b%20#c.db?timeout=10&check_same_thread=false", "/a b #c.db", ""},
		{"sqlite:////100%.db", "/100%.db", ""},
		{"sqlite:///" + literal, literal, ""},
		{"sqlite:///file:rel.db?mode=ro&uri=true", "/dir/rel.db", ""},
		{"sqlite:///file:///abs.db?uri=true", "/abs.db", ""},
		{"sqlite://", "", "memory"},
		{"sqlite:///", "", "memory"},
		{"sqlite:///:memory:", "", "memory"},
		{"sqlite://host/a.db", "", "three slashes"},
		{"sqlite:a.db", "", "want a uri sqlite"},
		{"postgresql://u:hunter2@h/db", "", "want a uri sqlite"},
		{"", "", "want a uri sqlite"},
	} {
		got, err := sqlitePath(tt.uri, "/dir")
		if got != tt.want || (err != nil) != (tt.err != "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q: got %q, %v; want %q, %q", tt.uri, got, err, tt.want, tt.err)
		}
	}
}
