//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A shed is what tests of storages work with: SQLite catalogs whose tables lie on the local disk and on an S3
// server, all in one .pyiceberg.yaml, and PyIceberg and Spark on the same.
type shed struct {
	*party
	root, armed string // ice-migrate that can be killed
	dir         string // home and working directory of the programs
	endpoint    string
	data        string // of the S3 server
	props       map[string]map[string]string
}

// keysOf are the storage properties of the S3 server.
func keysOf(endpoint string) map[string]string {
	return map[string]string{"s3.endpoint": endpoint, "s3.region": "us-east-1", "s3.access-key-id": "icepipe", "s3.secret-access-key": "icepipe-secret"}
}

// startS3 starts an S3 server; settings are those of versitygw.sh's environment.
func startS3(t *testing.T, deps, data string, settings ...string) string {
	t.Helper()
	script := filepath.Join(checkout(t), "testdata", "interop", "s3", "versitygw.sh")
	return serve(t, "env", append(settings, script, filepath.Join(deps, "versitygw"), data)...)
}

func newShed(t *testing.T) *shed {
	t.Helper()
	root := checkout(t)
	deps := dependencies(t, root)
	s := &shed{root: root, dir: t.TempDir(), data: t.TempDir()}
	s.endpoint = startS3(t, deps, s.data)
	s.props = map[string]map[string]string{}
	engines := map[string]any{}
	yaml := "catalog:\n"
	for name, warehouse := range map[string]string{"disk": "file://" + filepath.Join(s.dir, "wh"), "s3": "s3://warehouse/w"} {
		p := map[string]string{"type": "sql", "uri": "sqlite:///" + filepath.Join(s.dir, name+".db"), "warehouse": warehouse}
		settings := map[string]string{}
		if name == "s3" {
			for key, value := range keysOf(s.endpoint) {
				p[key] = value
			}
			settings = map[string]string{
				"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.endpoint": s.endpoint, "client.region": "us-east-1", "s3.path-style-access": "true",
				"s3.access-key-id": "icepipe", "s3.secret-access-key": "icepipe-secret",
			}
		}
		s.props[name] = p
		engines[name] = []any{filepath.Join(s.dir, name+".db"), warehouse, settings}
		yaml += "  " + name + ":\n"
		for key, value := range p {
			yaml += fmt.Sprintf("    %s: %s\n", key, value)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, ".pyiceberg.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"catalogs": s.props, "spark": engines})
	if err != nil {
		t.Fatal(err)
	}
	s.party = newPartyOf(t, "storage_party.py", string(config))
	return s
}

// A goods is a table of a shed.
type goods struct {
	Catalog     string            `json:"catalog"`
	Identifier  []string          `json:"identifier"`
	By          string            `json:"by,omitempty"`
	Location    string            `json:"location,omitempty"`
	Rows        int               `json:"rows,omitempty"`
	First       int               `json:"first,omitempty"`
	Shift       int               `json:"shift,omitempty"`
	Properties  map[string]string `json:"properties,omitempty"`
	Partitioned *bool             `json:"partitioned,omitempty"`
	Forms       []string          `json:"forms,omitempty"` // of old metadata
	File        string            `json:"file,omitempty"`  // of it
	Spark       *bool             `json:"spark,omitempty"`
}

// String is the table as a command line has it.
func (g goods) String() string { return place{Catalog: g.Catalog, Identifier: g.Identifier}.String() }

// A found is what PyIceberg and Spark see of a table.
type found struct {
	IDs        []int
	Snapshots  []struct{ ID, Operation string }
	Wrong      []string
	Files      []string
	Location   string
	Metadata   string
	Properties map[string]string
}

// make makes tables, and says which their engine could not make in such a place, by index.
func (s *shed) make(list []goods) map[int]string {
	s.t.Helper()
	failed := map[int]string{}
	answer, _ := s.do("make", "", "tables", list)["failed"].(map[string]any)
	for at, text := range answer {
		n, err := strconv.Atoi(at)
		if err != nil {
			s.t.Fatal(err)
		}
		failed[n] = text.(string)
	}
	return failed
}

// look is what is in tables; spark tells whether Spark shall see the same.
func (s *shed) look(spark bool, list ...goods) []found {
	s.t.Helper()
	text, err := json.Marshal(s.do("state", "", "tables", list, "spark", spark)["tables"])
	if err != nil {
		s.t.Fatal(err)
	}
	var out []found
	if err := json.Unmarshal(text, &out); err != nil || len(out) != len(list) {
		s.t.Fatalf("%d tables, %v", len(out), err)
	}
	return out
}

// run runs a pipe of programs where the configuration is.
func (s *shed) run(env []string, stages ...[]string) (run, string) {
	s.t.Helper()
	var out bytes.Buffer
	made := pipe(s.t, programsOf(s.bin, program{dir: s.dir, env: env}, stages), &out)
	for _, r := range made[:len(made)-1] {
		if r.code != 0 && made[len(made)-1].code == 0 {
			s.t.Error(told(made))
		}
	}
	return made[len(made)-1], out.String()
}

// pathNames are folders that want care somewhere. cut says that PyIceberg can only have a table there whose location
// is a bare path: of a URI it takes what stands before.
var pathNames = []struct {
	name string
	cut  bool
}{
	{"plain", false}, {"sp ace", false}, {"100%", false}, {"a%20b", false}, {"%41%zz", false}, {"a+b", false}, {"größe", false}, {"表", false},
	{"a&b=c;d,e", false}, {"co:lon", false}, {"q'uo\"te", false}, {"do..t", false}, {"ti~lde(){}", false}, {"ha#sh", true}, {"qu?estion", true},
}

// TestStorage moves tables whose files lie on the local disk and on S3, all of them found by one .pyiceberg.yaml, by
// PyIceberg too.
func TestStorage(t *testing.T) {
	s := newShed(t)
	t.Run("paths", s.paths)
	t.Run("names", s.names)
	t.Run("jobs", s.jobs)
	t.Run("forms", s.forms)
}

// paths: tables are moved from and to places of odd names (case 64), with partitions of odd names, on the local disk
// in every form of a location and on S3, made by PyIceberg and by Spark and read back by both.
func (s *shed) paths(t *testing.T) {
	prefixes := []string{filepath.Join(s.dir, "bare"), "file:" + filepath.Join(s.dir, "one"), "file://" + filepath.Join(s.dir, "three"), "s3://warehouse/p", "s3a://warehouse/q"}
	makers := []string{"pyiceberg", "spark"}
	var list []goods
	for i, prefix := range prefixes {
		catalog := "disk"
		if i > 2 {
			catalog = "s3"
		}
		for n, name := range pathNames {
			if !tortures() && (i+n)%2 == 1 && !name.cut { // every name is on the disk, and on S3
				continue
			}
			for m, maker := range makers {
				if !tortures() && (i+n)/2%2 != m {
					continue
				}
				from, to := maker, makers[1-m]
				if name.cut { // Spark makes a URI of a location, and PyIceberg cuts URIs
					if from, to = makers[0], makers[0]; i > 0 {
						continue
					}
				}
				id := fmt.Sprintf("%d_%d_%s", i, n, maker)
				list = append(list,
					goods{Catalog: catalog, Identifier: []string{"p", "s" + id}, By: from, Location: prefix + "/" + name.name + "/s", Rows: 16},
					goods{Catalog: catalog, Identifier: []string{"p", "d" + id}, By: to, Location: prefix + "/" + name.name + "/d"})
			}
		}
	}
	for at, text := range s.make(list) {
		t.Errorf("%s at %s: %s", list[at].By, list[at].Location, text)
	}
	if t.Failed() {
		return
	}
	var moved []goods
	for pair := range slices.Chunk(list, 2) {
		r, _ := s.run(nil, []string{"ice-migrate", "--src", pair[0].String(), "--dst", pair[1].String(), "--batch-rows", "9", "-q", "--verify", "partition_hash"})
		if r.code != 0 {
			t.Errorf("from %s: %s", pair[0].Location, told([]run{r}))
			continue
		}
		moved = append(moved, pair[1])
	}
	for i, f := range s.look(true, moved...) {
		if !slices.Equal(f.IDs, ids(0, 16)) || len(f.Snapshots) != 2 || len(f.Wrong) > 0 {
			t.Errorf("%s: ids %v in %d snapshots, %q", moved[i].Location, f.IDs, len(f.Snapshots), f.Wrong)
		}
	}
	say("paths: %d tables moved, from and to %d names in %d forms", len(moved), len(pathNames), len(prefixes))
}

// names: tables that lie where their odd names put them are moved between the disk and S3.
func (s *shed) names(t *testing.T) {
	var list []goods
	for i, identifier := range oddNames {
		joined := strings.Join(identifier, "")
		if strings.ContainsAny(joined, "#?") || strings.Contains(joined, "long") {
			continue // PyIceberg makes none of them where they would lie
		}
		from, to := "disk", "s3"
		if i%2 == 1 {
			from, to = to, from
		}
		off := false
		list = append(list, goods{Catalog: from, Identifier: identifier, Rows: 5, Partitioned: &off}, goods{Catalog: to, Identifier: identifier, Partitioned: &off})
	}
	for at, text := range s.make(list) {
		t.Errorf("%s: %s", list[at], text)
	}
	for pair := range slices.Chunk(list, 2) {
		if r, _ := s.run(nil, []string{"ice-migrate", "--src", pair[0].String(), "--dst-catalog-name", pair[1].Catalog, "-q", "--verify", "row_count"}); r.code != 0 {
			t.Error(told([]run{r}))
		}
	}
	for i, f := range s.look(false, list...) {
		if !slices.Equal(f.IDs, ids(0, 5)) || len(f.Wrong) > 0 {
			t.Errorf("%s at %s: ids %v, %q", list[i], f.Location, f.IDs, f.Wrong)
		}
	}
	say("paths: %d names between the disk and S3", len(list)/2)
}
