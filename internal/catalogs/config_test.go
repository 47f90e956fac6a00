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
		if err := os.WriteFile(filepath.Join(dir, configFile), []byte(text), 0o600); err != nil {
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
			"PYICEBERG_CATALOG__A=x", "PYICEBERG_CATALOG____URI=x", "PYICEBERG_MAX_WORKERS=3", "PYICEBERG_CATALOG_A_URI=x", "PATH=/bin"}},
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
				from = filepath.Join(dir, configFile)
			}
			if c.from != from {
				t.Errorf("from %q, want %q", c.from, from)
			}
		})
	}
}

func TestBrokenConfiguration(t *testing.T) {
	for name, tt := range map[string]struct{ text, says string }{
		"no YAML":       {"catalog: [\n", configFile},
		"not a mapping": {"catalog:\n  a: text\n", "not a list of properties"},
		"a list":        {"catalog:\n  a:\n    x: [1, 2]\n", `"x" is neither text nor a mapping`},
		"twice":         {"catalog:\n  a:\n    x: 1\n    X: 2\n", `"x" is there twice`},
		"an alias":      {"catalog:\n  b: &b\n    x: 1\n  a:\n    y: *b\n", `"y" is neither`},
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
	env := Env{Dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(env.Dir, configFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := env.catalog("a"); err == nil {
		t.Error("a folder in the file's place: no error")
	}
}

func TestSQLitePath(t *testing.T) {
	for _, tt := range []struct{ uri, want, err string }{
		{"sqlite:///rel.db", "/dir/rel.db", ""},
		{"sqlite:///./a/../rel.db", "/dir/rel.db", ""},
		{"sqlite:////abs.db", "/abs.db", ""},
		{"sqlite+pysqlite:////abs.db", "/abs.db", ""},
		{"sqlite:////a b%20#c.db?timeout=10&check_same_thread=false", "/a b%20#c.db", ""},
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
