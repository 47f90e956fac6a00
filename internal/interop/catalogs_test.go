//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// everywhere is a folder with a .pyiceberg.yaml that names a catalog of each kind, by which PyIceberg and
// the programs find them; secrets are planted in it.
type everywhere struct {
	t            *testing.T
	root, python string
	bin, armed   string // the programs, and ice-migrate that can be killed
	dir          string // home and working directory of all
	objects      string // the files of S3's buckets
	users        map[string]map[string]string
	admins       map[string]string // URIs of the databases by their owner

	sync.Mutex
	runs    []run
	printed bytes.Buffer // by all of them
}

// kindsOfCatalogs are those of the configuration that all of these tests are for; placesOfCatalogs has more.
var kindsOfCatalogs = []string{"sqlite", "postgres", "mariadb", "rest"}

// planted are the secrets of the configuration: as they are, and as a URI has them.
var planted = []string{
	"planted", "icepipe-secret", "p@ss:w/rd", "p%40ss",
}

// newEverywhere starts the servers and writes the configuration.
func newEverywhere(t *testing.T) *everywhere {
	t.Helper()
	root := checkout(t)
	deps := dependencies(t, root)
	e := &everywhere{t: t, root: root, dir: t.TempDir(), python: filepath.Join(deps, "venv", "bin", "python"), bin: build(t, root)}
	e.armed = filepath.Join(t.TempDir(), "ice-migrate")
	call(t, exec.Command("go", "build", "-C", root, "-tags", "crash", "-ldflags", "-s -w", "-o", e.armed, "./cmd/ice-migrate"))

	fixtures := filepath.Join(root, "testdata", "interop", "rest")
	data := t.TempDir()
	hive := begin(t, filepath.Join(root, "testdata", "interop", "hive", "hms.sh"), filepath.Join(deps, "venv"), filepath.Join(data, "hive"))
	if err := os.Chmod(filepath.Dir(data), 0o755); err != nil { // as root, PostgreSQL runs as another user
		t.Fatal(err)
	}
	uris := map[string]string{
		"sqlite":   "sqlite:///" + filepath.Join(e.dir, "lite.db"),
		"postgres": serve(t, filepath.Join(fixtures, "postgres.sh"), filepath.Join(data, "postgres")),
		"mariadb":  serve(t, filepath.Join(fixtures, "mariadb.sh"), filepath.Join(deps, "mariadb"), filepath.Join(data, "mariadb")),
		"rest": serve(t, filepath.Join(fixtures, "run.sh"), filepath.Join(deps, "jars"), filepath.Join(root, ".cache", "rest"),
			"--db", filepath.Join(data, "rest.db"), "--warehouse", "file://"+filepath.Join(e.dir, "rest"), "--token", "planted-token"),
	}
	uris["hive"] = hive()
	e.users, e.admins = map[string]map[string]string{}, map[string]string{}
	for _, kind := range []string{"postgres", "mariadb"} {
		made := map[string]string{}
		if err := json.Unmarshal(e.script("users", nil, uris[kind]), &made); err != nil {
			t.Fatal(err)
		}
		e.admins[kind], e.users[kind], uris[kind] = uris[kind], made, made["odd"]
	}
	text := "default-catalog: sqlite\ncatalog:\n"
	for _, kind := range kindsOfCatalogs {
		text += fmt.Sprintf("  %s:\n    uri: %s\n    warehouse: file://%s\n    s3.secret-access-key: planted-key\n    s3.access-key-id: planted-id\n", kind, uris[kind], filepath.Join(e.dir, kind))
		switch kind {
		case "mariadb":
			text += "    type: sql\n"
		case "rest":
			text += "    token: planted-token\n    header.x-mark: planted-header\n"
		}
	}
	text += e.startClouds(deps, data, uris)
	if err := os.WriteFile(filepath.Join(e.dir, ".pyiceberg.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return e
}

// script runs catalog_tables.py, which reads the same configuration.
func (e *everywhere) script(command string, input any, args ...string) []byte {
	e.t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		e.t.Fatal(err)
	}
	cmd := exec.Command(e.python, append([]string{filepath.Join(e.root, "testdata", "interop", "catalog_tables.py"), command}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, &said
	cmd.Dir, cmd.Env = e.dir, environment(program{dir: e.dir})
	if err := cmd.Run(); err != nil {
		e.t.Fatalf("%s: %v\n%s", command, err, said.String())
	}
	return out.Bytes()
}

// A place is a table of a catalog.
type place struct {
	Catalog    string   `json:"catalog"`
	Identifier []string `json:"identifier"`
	First      int      `json:"first"`
	Rows       int      `json:"rows"`
	Files      int      `json:"files"`
	Location   string   `json:"location,omitempty"`
}

// String is the table as a command line has it.
func (p place) String() string {
	parts := []string{p.Catalog}
	for _, part := range p.Identifier {
		parts = append(parts, `"`+strings.ReplaceAll(part, `"`, `""`)+`"`)
	}
	return strings.Join(parts, ".")
}

// states is what PyIceberg finds in tables.
func (e *everywhere) states(list []place) (found []tableState) {
	e.t.Helper()
	if err := json.Unmarshal(e.script("state", list), &found); err != nil || len(found) != len(list) {
		e.t.Fatalf("%d states, %v", len(found), err)
	}
	return found
}

// run runs a pipe of programs, of which env is the environment beside the plain one.
func (e *everywhere) run(env []string, stages ...[]string) (run, string) {
	e.t.Helper()
	var out bytes.Buffer
	made := pipe(e.t, programsOf(e.bin, program{dir: e.dir, env: env}, stages), &out)
	e.Lock()
	defer e.Unlock()
	e.runs = append(e.runs, made...)
	e.printed.Write(out.Bytes())
	return made[len(made)-1], out.String()
}

// TestCatalogs moves tables between each two of SQLite, PostgreSQL, MariaDB, REST, Glue, Hive and Hadoop, on the
// local disk and on S3, all of them found by one .pyiceberg.yaml, by PyIceberg too.
func TestCatalogs(t *testing.T) {
	e := newEverywhere(t)
	t.Run("pairs", e.pairs)
	t.Run("names", e.names)
	t.Run("writers", e.writers)
	t.Run("races", e.races)
	t.Run("hadoop", e.hadoop)
	t.Run("layouts", e.layouts)
	t.Run("errors", e.errors)
	t.Run("programs", e.programs)
	t.Run("secrets", e.secrets)
}

// oddNames are tables whose names want care somewhere (case 69).
var oddNames = [][]string{
	{"a", "b", "c", "d", "t"}, {"a", "b", "t"}, {"a.x", "t"}, {"s", "t.x"}, {"v1.2", "w", "t.1"}, {"s p a c e", " t t "},
	{`q"uo'te`, `t"'`}, {"größe", "表"}, {"UPPER", "Table"}, {"upper", "table"}, {"select", "from"}, {"a+b", "c&d=e"}, {"a:b", "c,d;e"},
	{"100%", "%41"}, {"a#b", "c?d"}, {"_", "-"}, {"1", "2"}, {`back\slash`, "$t"}, {"ice🧊", "t~(){}[]"}, {"l", strings.Repeat("long", 50)},
}

// names: tables of odd names are moved from one catalog to the next under their own names.
func (e *everywhere) names(t *testing.T) {
	var list []place
	for i, identifier := range oddNames {
		for n, kind := range kindsOfCatalogs {
			p := place{Catalog: kind, Identifier: identifier}
			if n == 0 {
				p.Rows = 5
			}
			if strings.ContainsAny(strings.Join(identifier, ""), "#?") || len(identifier[1]) > 100 {
				p.Location = fmt.Sprintf("file://%s/%s/plain/%d", e.dir, kind, i) // PyIceberg cuts a URI there; no folder is that long
			}
			list = append(list, p)
		}
	}
	e.script("make", list)
	inPairs(slices.Collect(slices.Chunk(list, len(kindsOfCatalogs))), func(chain []place) {
		for n := range chain[1:] {
			src, dst := chain[n], chain[n+1]
			if r, _ := e.run(nil, []string{"ice-migrate", "--src", src.String(), "--dst-catalog-name", dst.Catalog, "-q", "--verify", "row_count"}); r.code != 0 {
				t.Error(told([]run{r}))
			}
		}
	})
	for i, s := range e.states(list) {
		if len(s.IDs) != 5 || len(s.Gone) > 0 {
			t.Errorf("%s: ids %v, %q are gone", list[i], s.IDs, s.Gone)
		}
	}
	say("catalogs: %d names in %d catalogs", len(oddNames), len(kindsOfCatalogs))
}
