//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"icepipe/internal/catalogs"
)

// A configCase is a world with configuration in it, and the catalog that is asked for.
type configCase struct {
	name           string
	pyhome         string // the text of .pyiceberg.yaml in PYICEBERG_HOME, "-" for none
	home, dir      string // likewise in the home folder and the working directory
	environ, given []string
	ask            string
	ours           map[string]string // where it is not PyIceberg's answer, for the reason that why gives
	why            string
	refused        bool // by PyIceberg, and by icepipe in one line
}

func catalogText(lines ...string) string {
	return "catalog:\n  a:\n    " + strings.Join(lines, "\n    ") + "\n"
}

var configCases = []configCase{
	// which file
	{name: "first PYICEBERG_HOME", pyhome: catalogText("uri: http://1"), home: catalogText("uri: http://2"), dir: catalogText("uri: http://3")},
	{name: "then home", pyhome: "-", home: catalogText("uri: http://2"), dir: catalogText("uri: http://3")},
	{name: "then the working directory", pyhome: "-", home: "-", dir: catalogText("uri: http://3")},
	{name: "files are not merged", pyhome: "catalog:\n  b:\n    uri: x\n", home: catalogText("uri: http://2"), dir: "-"},
	{name: "a file without catalogs counts", pyhome: "max-workers: 4\n", home: catalogText("uri: http://2"), dir: "-"},
	{name: "nothing at all", pyhome: "-", home: "-", dir: "-"},
	{name: "an empty file", pyhome: "", home: catalogText("uri: http://2"), dir: "-", ours: map[string]string{"uri": "http://2"}, why: "PyIceberg breaks on it with an AttributeError"},
	{name: "a file of comments", pyhome: "# nothing\n", home: catalogText("uri: http://2"), dir: "-", ours: map[string]string{"uri": "http://2"}, why: "PyIceberg breaks on it with an AttributeError"},
	{name: "a file in a relative PYICEBERG_HOME", home: catalogText("uri: http://2"), dir: catalogText("uri: http://3"), environ: []string{"PYICEBERG_HOME=."}},

	// values
	{name: "text", home: catalogText("x: a b", "y: 'it''s'", `z: "a: b\t#"`, "w: a#b # c")},
	{name: "numbers", home: catalogText("a: 0123", "b: 1e3", "c: 0x1F", "d: 1_000", "e: 1.50", "f: -0", "g: 12:30:45")},
	{name: "booleans and nulls", home: catalogText("a: yes", "b: True", "c: off", "d: ~", "e: null", "f: NULL")},
	{name: "dates", home: catalogText("a: 2024-01-01", "b: 2024-01-01T00:00:00Z")},
	{name: "empty", home: catalogText("a:", "b: ''", `c: ""`, "uri: http://x")},
	{name: "over several lines", home: catalogText("a: |", "  x", "  y", "b: >", "  x", "  y", "c: x", "  y")},
	{name: "letters of the world", home: "catalog:\n  a:\n    größe: Ü 漢\n    uri: http://x/%C3%BC\n"},
	{name: "keys that are numbers", home: catalogText("1: 2", "true: false")},
	{name: "a document's marks", home: "---\n" + catalogText("a: b") + "...\n"},

	// names
	{name: "names in any case", home: "Catalog:\n  MyCat:\n    URI: X\n    S3.Endpoint: E\n", ask: "mYcAT"},
	{name: "a name with a dash", home: "catalog:\n  my-cat:\n    uri: X\n", ask: "my-cat"},
	{name: "a name with a dot", home: "catalog:\n  my.cat:\n    uri: X\n", ask: "my.cat"},
	{name: "a name with an underscore", home: "catalog:\n  my_cat:\n    uri: X\n", ask: "my_cat", environ: []string{"PYICEBERG_CATALOG__MY_CAT__URI=Y"}},
	{name: "a quoted name", home: "catalog:\n  \"my cat\":\n    uri: X\n", ask: "my cat"},
	{name: "names that differ by case", home: catalogText("x: 1", "X: 2")},
	{name: "catalogs that differ by case", home: "catalog:\n  a:\n    x: 1\n  A:\n    y: 2\n"},
	{name: "another is asked for", home: catalogText("x: 1"), ask: "b"},

	// nested
	{name: "nested", home: catalogText("s3:", "  endpoint: E", "  access-key-id: K")},
	{name: "nested deeply", home: catalogText("ssl:", "  client:", "    cert: C", "    key: K", "  cabundle: B")},
	{name: "nested and flat", home: catalogText("s3:", "  endpoint: nested", "s3.endpoint: flat")},
	{name: "a variable over nested", home: catalogText("s3:", "  endpoint: nested", "  region: r"), environ: []string{"PYICEBERG_CATALOG__A__S3__ENDPOINT=E"}},
	{name: "a variable in the place of nested", home: catalogText("s3:", "  endpoint: nested"), environ: []string{"PYICEBERG_CATALOG__A__S3=E"}},

	// variables
	{name: "variables alone", environ: []string{"PYICEBERG_CATALOG__A__URI=sqlite:///x?a=b", "PYICEBERG_CATALOG__B__URI=y"}},
	{name: "variables win", home: catalogText("uri: 1", "type: sql"), environ: []string{"PYICEBERG_CATALOG__A__URI=2"}},
	{name: "an empty variable wins", home: catalogText("uri: 1", "type: sql"), environ: []string{"PYICEBERG_CATALOG__A__URI="}},
	{name: "dots and dashes in variables", environ: []string{"PYICEBERG_CATALOG__A__S3__ACCESS_KEY_ID=K", "PYICEBERG_CATALOG__A__A__B__C=D"}},
	{name: "lower case variables", environ: []string{"pyiceberg_catalog__a__uri=U", "Pyiceberg_Catalog__A__Token=T"}},
	{name: "two spellings of a variable", environ: []string{"pyiceberg_catalog__a__uri=1", "PYICEBERG_CATALOG__A__URI=2"}},
	{name: "two spellings, the other way", environ: []string{"PYICEBERG_CATALOG__A__URI=2", "pyiceberg_catalog__a__uri=1"}},
	{name: "a dash in a variable's catalog", environ: []string{"PYICEBERG_CATALOG__MY_CAT__URI=U"}, ask: "my-cat"},
	{name: "three underscores", environ: []string{"PYICEBERG_CATALOG__A___URI=1", "PYICEBERG_CATALOG__A__B___C=2", "PYICEBERG_CATALOG__A__B____C=3"}},
	{name: "no catalog's name", environ: []string{"PYICEBERG_CATALOG____URI=1"}, ask: ""},
	{name: "a variable's letters", environ: []string{"PYICEBERG_CATALOG__A__TOKEN= a=b ü\t'\""}},
	{name: "variables of other things", environ: []string{"PYICEBERG_MAX_WORKERS=3", "PYICEBERG_CATALOG_A_URI=x", "PYICEBERGCATALOG__A__URI=x"}},
	{name: "a catalog that is text", environ: []string{"PYICEBERG_CATALOG__A=x"}, refused: true},
	{name: "a catalog that is text and more", environ: []string{"PYICEBERG_CATALOG__A=x", "PYICEBERG_CATALOG__A__URI=y"}, refused: true},
	{name: "more and then text", environ: []string{"PYICEBERG_CATALOG__A__URI=y", "PYICEBERG_CATALOG__A=x"}, refused: true},
	{name: "catalogs that are text", environ: []string{"PYICEBERG_CATALOG=x"}, refused: true},
	{name: "a variable in text", home: catalogText("x: 1") + "  b: text\n", environ: []string{"PYICEBERG_CATALOG__B__URI=y"}, refused: true},

	// the default
	{name: "default-catalog", home: "default-catalog: a\n" + catalogText("x: 1")},
	{name: "default-catalog by a variable", home: "default-catalog: b\n" + catalogText("x: 1"), environ: []string{"PYICEBERG_DEFAULT_CATALOG=a"}},
	{name: "an empty default-catalog", home: "default-catalog: b\ncatalog:\n  default:\n    x: 1\n", environ: []string{"PYICEBERG_DEFAULT_CATALOG="}, ask: "default"},
	{name: "default-catalog in another case", home: "Default-Catalog: A\n" + catalogText("x: 1")},
	{name: "no default-catalog", home: "catalog:\n  default:\n    x: 1\n", ask: "DEFAULT"},
	{name: "default-catalog is no name", home: "default-catalog:\n  x: y\n" + catalogText("x: 1"), refused: true},

	// flags
	{name: "flags win", home: catalogText("uri: http://x", "token: T", "scope: S"), environ: []string{"PYICEBERG_CATALOG__A__TOKEN=V"}, given: []string{"token=F"}},
	{name: "flags add", home: catalogText("uri: http://x"), given: []string{"s3.endpoint=E", "header.x-y=a=b"}},
	{name: "an empty flag", home: catalogText("uri: http://x", "token: T"), given: []string{"token="},
		ours: map[string]string{"uri": "http://x", "token": ""}, why: "a flag that is given wins, and so empties"},

	// broken
	{name: "no YAML", home: "catalog: [\n", refused: true},
	{name: "a tab", home: "catalog:\n\ta: 1\n", refused: true},
	{name: "a flow mapping", home: "catalog:\n  a: {uri: x}\n", refused: true},
	{name: "a flow list", home: catalogText("x: [1, 2]"), refused: true},
	{name: "an anchor", home: catalogText("x: &y 1"), refused: true},
	{name: "an alias", home: catalogText("x: &y 1", "z: *y"), refused: true},
	{name: "a tag", home: catalogText("x: !!str 1"), refused: true},
	{name: "a merge key", home: catalogText("<<: x"), refused: true},
	{name: "twice", home: catalogText("x: 1", "x: 2"), refused: true},
	{name: "two documents", home: catalogText("x: 1") + "---\nx: 1\n", refused: true},
	{name: "text alone", home: "catalog\n", refused: true},
	{name: "a list alone", home: "- catalog\n", refused: true},
	{name: "a catalog without properties", home: "catalog:\n  a:\n", refused: true},
	{name: "no catalogs", home: "catalog:\n", refused: true},
	{name: "catalogs that are a list", home: "catalog:\n- a\n", refused: true},
	{name: "a property that is a list", home: catalogText("x:", "- 1"), refused: true},
	{name: "a colon in text", home: catalogText("x: a: b"), refused: true},
}

// leastConfigCases is the number of cases when they were last counted.
const leastConfigCases = 74

// TestConfigurationIsPyIcebergs holds what files, variables and flags say of a catalog against PyIceberg's
// own reading of them.
func TestConfigurationIsPyIcebergs(t *testing.T) {
	root := checkout(t)
	python := filepath.Join(dependencies(t, root), "venv", "bin", "python")
	type question struct {
		Environ []string          `json:"environ"`
		Dir     string            `json:"dir"`
		Ask     string            `json:"ask"`
		Given   map[string]string `json:"given"`
	}
	var questions []question
	var envs []catalogs.Env
	for i := range configCases {
		c := &configCases[i]
		if c.ask == "" && c.name != "no catalog's name" {
			c.ask = "a"
		}
		at := t.TempDir()
		env := catalogs.Env{Home: filepath.Join(at, "home"), Dir: filepath.Join(at, "dir")}
		env.Environ = append([]string{"HOME=" + env.Home}, c.environ...)
		if c.pyhome != "" || c.name == "an empty file" {
			env.Environ = append(env.Environ, "PYICEBERG_HOME="+filepath.Join(at, "set"))
		}
		for dir, text := range map[string]string{"set": c.pyhome, "home": c.home, "dir": c.dir} {
			if err := os.Mkdir(filepath.Join(at, dir), 0o700); err != nil {
				t.Fatal(err)
			}
			if text == "-" || text == "" && c.name != "an empty file" || dir != "set" && text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(at, dir, ".pyiceberg.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		q := question{Environ: env.Environ, Dir: env.Dir, Ask: c.ask, Given: map[string]string{}}
		for _, g := range c.given {
			key, value, _ := strings.Cut(g, "=")
			q.Given[key] = value
		}
		questions, envs = append(questions, q), append(envs, env)
	}
	input, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, filepath.Join(root, "testdata", "interop", "config.py"))
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var answers []struct {
		Properties     map[string]string
		Default, Error string
	}
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(configCases) {
		t.Fatalf("%d answers, %v", len(answers), err)
	}

	values := 0
	for i, c := range configCases {
		t.Run(c.name, func(t *testing.T) {
			want := answers[i]
			got, fallback, err := asked(envs[i], c)
			switch {
			case c.refused && err == nil:
				t.Fatalf("got %q, want a refusal; PyIceberg says %q", got, want.Error)
			case c.refused && (want.Error == "" || strings.Contains(err.Error(), "\n")):
				t.Fatalf("refused with %q; PyIceberg reads %q", err, want.Properties)
			case c.refused:
				return
			case err != nil:
				t.Fatal(err)
			case c.why != "":
				if !maps.Equal(got, c.ours) {
					t.Errorf("got %q, want %q: %s", got, c.ours, c.why)
				}
				if maps.Equal(got, want.Properties) {
					t.Errorf("PyIceberg reads it alike by now: %s", c.why)
				}
				return
			}
			if want.Error != "" || !maps.Equal(got, want.Properties) || (got == nil) != (want.Properties == nil) {
				t.Errorf("got %q, PyIceberg reads %q %s", got, want.Properties, want.Error)
			}
			if fallback != want.Default && (fallback != "" || want.Default != "default") {
				t.Errorf("the default catalog is %q, with PyIceberg %q", fallback, want.Default)
			}
			values += len(got)
		})
	}
	say("configuration: %d cases, %d values as PyIceberg reads them", len(configCases), values)
	if len(configCases) < leastConfigCases {
		t.Errorf("%d cases, there were %d", len(configCases), leastConfigCases)
	}
}

// TestKnownProperties: every property that PyIceberg knows either does something here, or a warning names it.
func TestKnownProperties(t *testing.T) {
	root := checkout(t)
	out, err := exec.Command(filepath.Join(dependencies(t, root), "venv", "bin", "python"), filepath.Join(root, "testdata", "interop", "config.py"), "--keys").Output()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	if err := json.Unmarshal(out, &keys); err != nil || len(keys) < 60 {
		t.Fatalf("%q, %v", keys, err)
	}
	var flags catalogs.PairFlags
	flags.Source.URI = "http://x"
	for _, key := range keys {
		flags.Source.Property = append(flags.Source.Property, key+"=x")
	}
	overview, err := flags.Overview(catalogs.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range overview.Sides[0].Warnings {
		if strings.Contains(text, " is not known") {
			t.Error(text)
		}
	}
	say("configuration: %d properties of PyIceberg's, %d of them do nothing here", len(keys), len(overview.Sides[0].Warnings))
}

// asked is what icepipe reads.
func asked(env catalogs.Env, c configCase) (properties map[string]string, fallback string, err error) {
	if fallback, _, err = env.DefaultCatalog(); err != nil {
		return nil, "", err
	}
	if len(c.given) == 0 {
		properties, _, err = env.Configured(c.ask)
		return properties, fallback, err
	}
	ref, err := catalogs.TableFlags{CatalogName: c.ask, Namespace: "n", Table: "t", Property: c.given}.Resolve(env)
	return ref.Properties, fallback, err
}
