//go:build interop

package interop

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layouts: case 74. The catalog's tables without the column iceberg_type, as Java makes them, and with nulls
// in it.
func (e *everywhere) layouts(t *testing.T) {
	src := place{Catalog: "mariadb", Identifier: []string{"l", "src"}, Rows: 10}
	list := []place{src, {Catalog: "postgres", Identifier: []string{"l", "dst"}}, {Catalog: "mariadb", Identifier: []string{"l", "dst"}}}
	e.script("make", list)
	for _, version := range []string{"V0", "V1"} {
		for _, kind := range []string{"postgres", "mariadb"} {
			e.script("layout", nil, e.users[kind]["odd"], version)
		}
		for _, dst := range list[1:] {
			if r, _ := e.run(nil, []string{"ice-migrate", "--src", src.String(), "--dst", dst.String(), "--batch-rows", "5", "-q", "--new-job"}); r.code != 0 {
				t.Errorf("%s: %s", version, told([]run{r}))
			}
		}
	}
	for i, s := range e.states(list[1:]) {
		if len(s.IDs) != 20 || len(s.Snapshots) != 4 {
			t.Errorf("%s holds %d rows in %d snapshots", list[i+1], len(s.IDs), len(s.Snapshots))
		}
	}
}

var password = regexp.MustCompile(`:[^/@]*@`)

// errors: what is wrong with a catalog on a server is told in one line, with the cure and without a secret.
func (e *everywhere) errors(t *testing.T) {
	src := place{Catalog: "sqlite", Identifier: []string{"e", "src"}, Rows: 5}
	list := []place{src}
	for _, kind := range kindsOfCatalogs[1:] {
		list = append(list, place{Catalog: kind, Identifier: []string{"e", "dst"}}, place{Catalog: kind, Identifier: []string{"e", "orders"}})
	}
	e.script("make", list)
	type wrong struct{ name, kind, uri, says string }
	var cases []wrong
	for _, kind := range []string{"postgres", "mariadb"} {
		odd := e.users[kind]["odd"]
		cases = append(cases,
			wrong{"password", kind, password.ReplaceAllString(odd, ":planted-wrong@"), `refuses the user's name or password \(.*\): see to the uri of catalog "` + kind + `" in PYICEBERG_CATALOG__` + strings.ToUpper(kind) + `__URI$`},
			wrong{"port", kind, regexp.MustCompile(`:\d+/`).ReplaceAllString(odd, ":1/"), `^Error: cannot connect to catalog "[a-z]+://127\.0\.0\.1:1/iceberg": .*connection refused; see to the uri of`},
			wrong{"host", kind, strings.Replace(odd, "127.0.0.1", "no-such-host.invalid", 1), `^Error: cannot connect to catalog "[a-z]+://no-such-host.*: lookup no-such-host.*; see to the uri of`},
			wrong{"database", kind, strings.Replace(odd, "/iceberg", "/nothere", 1), `(has no such database|forbids it) \(.*nothere.*\): see to `},
			wrong{"rights", kind, e.users[kind]["poor"], `forbids it \(.*denied.*\): see to the rights of the user in the uri of`},
			wrong{"rights to write", kind, e.users[kind]["reader"], `forbids it \(.*denied.*\): see to the rights of the user in the uri of`},
			wrong{"parameter", kind, odd + "?pool=planted", `^Error: the uri of catalog .*: parameter "pool" of the uri`},
		)
	}
	cases = append(cases, wrong{"no catalog", "postgres", strings.Replace(e.users["postgres"]["odd"], "/iceberg", "/postgres", 1), `has no table iceberg_tables \(.*\), so it is no Iceberg catalog: see to`})
	for _, c := range cases {
		t.Run(c.kind+" "+c.name, func(t *testing.T) {
			env := []string{"PYICEBERG_CATALOG__" + strings.ToUpper(c.kind) + "__URI=" + c.uri}
			r, _ := e.run(env, []string{"ice-migrate", "--src", src.String(), "--dst", c.kind + ".e.dst", "-q", "--checkpoint", "wrong.json"})
			first, _, _ := strings.Cut(r.stderr, "\n")
			if r.code == 0 || !regexp.MustCompile(c.says).MatchString(first) || strings.Count(r.stderr, "Error: ") != 1 {
				t.Errorf("want %q:\n%s", c.says, told([]run{r}))
			}
			os.Remove(filepath.Join(e.dir, "wrong.json"))
			e.run(append(env, "ICE_TRACEBACK=1"), []string{"ice-migrate", "--src", src.String(), "--dst", c.kind + ".e.dst", "-q"})
		})
	}
	for _, kind := range kindsOfCatalogs[1:] {
		r, _ := e.run(nil, []string{"ice-scan", kind + ".e.ordres", "-o", "never.arrows"})
		if r.code != 1 || !strings.Contains(r.stderr, "near are e.orders") {
			t.Error(told([]run{r}))
		}
	}
	e.cloudErrors(t)
	r, _ := e.run([]string{"PYICEBERG_CATALOG__REST__TOKEN=planted-wrong", "ICE_TRACEBACK=1"}, []string{"ice-scan", "rest.e.orders", "-o", "never.arrows"})
	if r.code != 1 || !strings.Contains(r.stderr, "refuses the token") {
		t.Error(told([]run{r}))
	}
	for i, s := range e.states(list) {
		if want := list[i].Rows; len(s.IDs) != want {
			t.Errorf("%s holds %d rows, want %d", list[i], len(s.IDs), want)
		}
	}
}

// programs: every program with the planted configuration, in success.
func (e *everywhere) programs(t *testing.T) {
	src := place{Catalog: "mariadb", Identifier: []string{"p", "src"}, Rows: 20}
	dst := place{Catalog: "postgres", Identifier: []string{"p", "dst"}}
	e.script("make", []place{src, dst})
	for _, stages := range [][][]string{
		{{"ice-scan", src.String(), "--batch-rows", "10"}, {"ice-reconcile", dst.String()}, {"ice-write", "--checkpoint", "piped.json", "-q"}},
		{{"ice-scan", dst.String(), "-o", "saved.arrows"}}, {{"ice-cat", "--format", "header", "saved.arrows"}},
		{{"ice-verify", "--src", src.String(), "--dst", dst.String()}},
		{{"ice-migrate", "status", "--checkpoint", "piped.json"}}, {{"ice-migrate", "undo", "--checkpoint", "piped.json"}},
		{{"ice-migrate", "redo", "--checkpoint", "piped.json"}}, {{"ice-migrate", "clean", "--checkpoint", "piped.json"}},
		{{"ice-migrate", "config", "--src", src.String(), "--dst", "rest"}},
		{{"ice-migrate", "config", "--src", "glue.p.t", "--dst", "glue_s3"}},
		{{"ice-migrate", "config", "--output", "json", "--src", "hive.p.t", "--dst", "hadoop"}},
		{{"ice-migrate", "config", "--output", "json", "--src", dst.String(), "--dst-property", "token=planted-token"}},
		{{"ice-migrate", "--src", src.String(), "--dst", dst.String(), "--dry-run"}},
		{{"ice-migrate", "recover", "--checkpoint", "again.json", "--src", src.String(), "--dst", dst.String(), "--batch-rows", "10"}},
	} {
		first := len(e.runs)
		if r, _ := e.run(nil, stages...); r.code != 0 && !slices.Contains(stages[0], "--dry-run") {
			t.Error(told(e.runs[first:]))
		}
	}
	// A source needs no right but to read.
	for _, from := range []place{src, dst} {
		env := []string{"PYICEBERG_CATALOG__" + strings.ToUpper(from.Catalog) + "__URI=" + e.users[from.Catalog]["reader"]}
		if r, _ := e.run(env, []string{"ice-scan", from.String(), "-o", from.Catalog + ".arrows"}); r.code != 0 {
			t.Error(told([]run{r}))
		}
	}
	// What is recorded of a server holds no password.
	for _, kind := range []string{"postgres", "mariadb"} {
		job := kind + "_uri.json"
		to := place{Catalog: kind, Identifier: []string{"p", "by_uri"}}
		e.script("make", []place{to})
		if r, _ := e.run(nil, []string{"ice-migrate", "--src", src.String(), "--dst-uri", e.users[kind]["odd"], "--dst-catalog-name", "x" + kind, "--dst-namespace", "p", "--dst-table", "by_uri", "-q", "--checkpoint", job}); r.code != 1 || !strings.Contains(r.stderr, "it is there under \""+kind) {
			t.Error(told([]run{r}))
		}
		if r, _ := e.run(nil, []string{"ice-migrate", "--src", src.String(), "--dst-uri", e.users[kind]["odd"], "--dst-namespace", "p", "--dst-table", "by_uri", "-q", "--checkpoint", job}); r.code != 0 {
			t.Error(told([]run{r}))
		}
		// The catalog's name was found, and with it the configured password.
		if r, out := e.run(nil, []string{"ice-migrate", "status", "--checkpoint", job}); r.code != 0 || strings.Contains(out, "not looked at") {
			t.Error(out, told([]run{r}))
		}
		// Elsewhere nothing is configured.
		r, out := e.run([]string{"PYICEBERG_CATALOG__" + strings.ToUpper(kind) + "__URI=sqlite:///x.db"}, []string{"ice-migrate", "status", "--checkpoint", job})
		if r.code != 0 || !regexp.MustCompile(`not looked at: catalog "[a-z]+://127\.0\.0\.1:\d+/iceberg" wants a user's name and password \(.*\), which are not recorded: give them in --uri, or configure the catalog`).MatchString(out) {
			t.Error(out, told([]run{r}))
		}
	}
	if s := e.states([]place{dst})[0]; len(s.IDs) != 20 {
		t.Errorf("%d rows", len(s.IDs))
	}
}

// secrets: none of those planted is in what the programs printed or in any file that they wrote: checkpoints,
// streams, tables' metadata, the SQLite database.
func (e *everywhere) secrets(t *testing.T) {
	holds := func(where string, text []byte) {
		for _, secret := range planted {
			if at := bytes.Index(text, []byte(secret)); at >= 0 {
				t.Errorf("%s holds %q: %q", where, secret, text[max(0, at-80):min(len(text), at+40)])
			}
		}
	}
	files := 0
	for _, root := range []string{e.dir, e.objects} {
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || entry.Name() == ".pyiceberg.yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			holds(path, text)
			files++
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	holds("stdout", e.printed.Bytes())
	for _, r := range e.runs {
		holds("stderr of "+r.program.name(), []byte(r.stderr))
	}
	say("catalogs: %d runs and %d files without a secret", len(e.runs), files)
	if files < 100 || len(e.runs) < 100 || e.printed.Len() == 0 {
		t.Errorf("%d files and %d runs, which cannot be all", files, len(e.runs))
	}
}
