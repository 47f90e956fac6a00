//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// cloudErrors: what is wrong with a catalog in a cloud, or with one that is a folder, is told in one line.
func (e *everywhere) cloudErrors(t *testing.T) {
	src := place{Catalog: "sqlite", Identifier: []string{"e", "src"}}
	var list []place
	for _, kind := range []string{"glue", "hive", "hadoop"} {
		list = append(list, place{Catalog: kind, Identifier: []string{"e", "dst"}}, place{Catalog: kind, Identifier: []string{"e", "orders"}})
	}
	e.script("make", append(list, place{Catalog: "hadoop_s3", Identifier: []string{"e", "dst"}, Rows: 5}))
	for _, c := range []struct{ name, dst, variable, says string }{
		{"no table", "glue.e.ordres", "", `^Error: table glue\.e\.ordres is not in catalog "http://127\.0\.0\.1:\d+": near are e\.orders`},
		{"no table", "hive.e.ordres", "", `^Error: table hive\.e\.ordres is not in catalog "thrift://127\.0\.0\.1:\d+": near are e\.orders`},
		{"no table", "hadoop.e.ordres", "", `^Error: table hadoop\.e\.ordres is not in warehouse "file:///.*/hadoop": near are e\.orders`},
		{"no database", "glue.nope.dst", "", `it has no database nope.* in that region: see to glue\.region, or PYICEBERG_CATALOG__GLUE__GLUE__REGION|see to glue\.region of catalog "glue" in`},
		{"port", "glue.e.dst", "GLUE__GLUE__ENDPOINT=http://127.0.0.1:1", `cannot connect to catalog "http://127\.0\.0\.1:1": .*connection refused; see to `},
		{"port", "hive.e.dst", "HIVE__URI=thrift://127.0.0.1:1", `cannot connect to catalog "thrift://127\.0\.0\.1:1": .*connection refused; see to the uri of catalog "hive" in PYICEBERG_CATALOG__HIVE__URI$`},
		{"half of the keys", "glue.e.dst", "GLUE__GLUE__ACCESS_KEY_ID=planted-half", ``}, // the other half is the common one: as with PyIceberg it is signed
		{"no warehouse", "hadoop.e.dst", "HADOOP__WAREHOUSE=/no/such/folder", `is not in warehouse "/no/such/folder", which is not there: see to warehouse of catalog "hadoop"`},
		{"S3", "hadoop_s3.e.dst", "", `a hadoop catalog can be written on the local disk alone: .*: register the table in a catalog of another kind, and name that one \(warehouse "s3://warehouse/hadoop", see to warehouse of catalog "hadoop_s3" in`},
		{"kind", "sqlite.e.dst", "SQLITE__TYPE=dynamodb", `catalog kind "dynamodb" is not supported in this version, which has: glue, hadoop, hive, rest, sql, sqlite: register its tables in a catalog of another type`},
	} {
		t.Run(c.name+" "+c.dst, func(t *testing.T) {
			var env []string
			if c.variable != "" {
				env = append(env, "PYICEBERG_CATALOG__"+c.variable)
			}
			line := []string{"ice-migrate", "--src", src.String(), "--dst", c.dst, "-q"}
			if c.name == "kind" {
				line[2] = "glue.e.orders"
			}
			r, _ := e.run(env, line)
			first := "" // behind the warnings
			if at := strings.Index(r.stderr, "Error: "); at >= 0 {
				first, _, _ = strings.Cut(r.stderr[at:], "\n")
			}
			if (r.code == 0) != (c.says == "") || !regexp.MustCompile(c.says).MatchString(first) || strings.Count(r.stderr, "Error: ") > 1 {
				t.Errorf("want %q:\n%s", c.says, told([]run{r}))
			}
			if c.says != "" {
				e.run(append(env, "ICE_TRACEBACK=1"), line)
			}
		})
	}
}

// A sparkFolder is Spark with its HadoopCatalog over the folder of the catalog hadoop.
type sparkFolder struct {
	t *testing.T
	*conversation
}

// startSpark starts it; it ends with the test.
func (e *everywhere) startSpark(t *testing.T) *sparkFolder {
	t.Helper()
	cmd := exec.Command(e.python, filepath.Join(e.root, "testdata", "interop", "hadoop_spark.py"), filepath.Join(e.dir, "hadoop"))
	cmd.Dir, cmd.Env = e.dir, environment(program{dir: e.dir})
	return &sparkFolder{t, converse(t, cmd, func(err error, said string) {
		if err != nil || t.Failed() {
			t.Logf("Spark: %v\n%s", err, said)
		}
	})}
}

// ask gives a command.
func (s *sparkFolder) ask(command string) {
	if _, err := io.WriteString(s.in, command+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// answer reads one.
func (s *sparkFolder) answer(into any) {
	s.t.Helper()
	line, err := s.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, into)
	}
	if err != nil {
		s.t.Fatalf("Spark answers %q: %v", line, err)
	}
}

// hadoop: tables that Spark's HadoopCatalog has made, in all the forms that it writes, are read and written, and
// read by Spark; Spark and programs append to one table at once, and none of their commits is lost.
func (e *everywhere) hadoop(t *testing.T) {
	const programs, each, theirs = 4, 3, 12
	spark := e.startSpark(t)
	spark.ask("make")
	src := place{Catalog: "sqlite", Identifier: []string{"hs", "src"}, First: 100, Rows: 6}
	list := []place{src}
	for i := range programs {
		list = append(list, place{Catalog: "sqlite", Identifier: []string{"hs", string(rune('a' + i))}, First: 200 + i*each, Rows: each})
	}
	forms := []string{"plain", "gzip", "nohint", "stale", "v1"}
	var back []place
	for _, form := range forms {
		back = append(back, place{Catalog: "sqlite", Identifier: []string{"hs", "back_" + form}})
	}
	e.script("make", append(list, back...))
	spark.answer(&struct{}{})
	for i, form := range forms {
		table := "hadoop.spark." + form
		for _, args := range [][]string{{"--src", src.String(), "--dst", table, "--batch-rows", "2"}, {"--src", table, "--dst", back[i].String()}} {
			if r, _ := e.run(nil, append([]string{"ice-migrate", "-q"}, args...)); r.code != 0 {
				t.Error(told([]run{r}))
			}
		}
	}
	for i, s := range e.states(back) {
		if fmt.Sprint(s.IDs) != "[0 1 2 3 100 101 102 103 104 105]" {
			t.Errorf("%s holds %v", forms[i], s.IDs)
		}
	}

	spark.ask(fmt.Sprintf("race %d %d", 300, theirs))
	spark.answer(&struct{}{}) // it has begun
	var wait sync.WaitGroup
	for _, p := range list[1:] {
		wait.Go(func() {
			if r, _ := e.run(nil, []string{"ice-migrate", "--src", p.String(), "--dst", "hadoop.spark.raced", "--batch-rows", "1", "-q"}); r.code != 0 {
				t.Error(told([]run{r}))
			}
		})
	}
	wait.Wait()
	var raced struct{ Lost int }
	spark.answer(&raced)
	spark.ask("read")
	found := map[string][]int{}
	spark.answer(&found)
	for _, form := range forms {
		if ids := found[form]; len(ids) != 10 {
			t.Errorf("%s: Spark reads %v", form, ids)
		}
	}
	if ids := found["raced"]; len(ids) != programs*each+theirs {
		t.Errorf("%d rows of %d are there: %v", len(ids), programs*each+theirs, ids)
	}
	say("catalogs: %d tables of Spark's in a folder; Spark lost %d races", len(found), raced.Lost)
}
