//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// placesOfCatalogs are the catalogs between which tables are moved: a kind on the local disk, and, with _s3 behind
// it, on S3. A hadoop catalog on S3 can be read alone.
var placesOfCatalogs = []string{
	"sqlite", "postgres", "mariadb", "rest", "glue", "hive", "hadoop", "sqlite_s3", "postgres_s3", "rest_s3", "glue_s3", "hadoop_s3",
}

// startClouds starts S3, Glue and a REST catalog over S3, and returns what the configuration says of the catalogs
// that need them. What is given of keys is by PyIceberg's own names, once by those that are common to all of AWS.
func (e *everywhere) startClouds(deps, data string, uris map[string]string) string {
	t, fixtures := e.t, filepath.Join(e.root, "testdata", "interop")
	e.objects = filepath.Join(data, "s3", "buckets")
	s3 := serve(t, filepath.Join(fixtures, "s3", "versitygw.sh"), filepath.Join(deps, "versitygw"), filepath.Join(data, "s3"))
	glue := serve(t, e.python, filepath.Join(fixtures, "s3", "moto-server.py"))
	keys := []string{"s3.endpoint", s3, "s3.region", "us-east-1", "s3.access-key-id", "icepipe", "s3.secret-access-key", "icepipe-secret"}
	rest := []string{filepath.Join(deps, "jars"), filepath.Join(e.root, ".cache", "rest"), "--db", filepath.Join(data, "rest_s3.db"),
		"--warehouse", "s3://warehouse/rest", "--token", "planted-token", "--io-impl", "org.apache.iceberg.aws.s3.S3FileIO",
		"--io", "client.region=us-east-1", "--io", "s3.path-style-access=true"}
	for i := 0; i < len(keys); i += 2 {
		rest = append(rest, "--io", keys[i]+"="+keys[i+1])
	}
	uris["rest_s3"] = serve(t, filepath.Join(fixtures, "rest", "run.sh"), rest...)
	uris["sqlite_s3"] = uris["sqlite"]
	uris["postgres_s3"] = uris["postgres"]

	var b strings.Builder
	for _, name := range placesOfCatalogs {
		kind, onS3 := strings.CutSuffix(name, "_s3")
		if slices.Contains(kindsOfCatalogs, name) {
			continue // it is configured
		}
		fmt.Fprintf(&b, "  %s:\n", name)
		say := func(pairs ...string) {
			for i := 0; i < len(pairs); i += 2 {
				fmt.Fprintf(&b, "    %s: %s\n", pairs[i], pairs[i+1])
			}
		}
		if onS3 {
			say(append(keys, "warehouse", "s3://warehouse/"+kind)...)
		} else {
			say("warehouse", "file://"+filepath.Join(e.dir, name))
		}
		switch {
		case kind == "hadoop":
			say("type", "hadoop")
		case name == "glue_s3":
			say("type", "glue", "glue.endpoint", glue, "glue.region", "us-east-1", "glue.access-key-id", "planted-glue-id",
				"glue.secret-access-key", "planted-glue-key", "glue.session-token", "planted-glue-token")
		case kind == "glue":
			say("type", "glue", "glue.endpoint", glue, "client.region", "us-east-1", "client.access-key-id", "planted-client-id",
				"client.secret-access-key", "planted-client-key", "client.session-token", "planted-client-token")
		case kind == "rest":
			say("uri", uris[name], "token", "planted-token")
		case kind == "hive":
			say("uri", uris[name], "hive.hive2-compatible", "true")
		default:
			say("uri", uris[name])
		}
	}
	return b.String()
}

// storage is that of a catalog: _s3, or nothing. Of one server the namespaces are told apart by it.
func storage(catalog string) string {
	if strings.HasSuffix(catalog, "_s3") {
		return "_s3"
	}
	return ""
}

// pairs: a migration between each ordered pair dies in its second batch, before or behind the commit, is
// resumed, and verified. Without ICEPIPE_TORTURE a sample is tried: each catalog as a source and as a destination.
func (e *everywhere) pairs(t *testing.T) {
	type pair struct {
		src, dst place
		n        int
	}
	var made []place
	var all []pair
	for i, from := range placesOfCatalogs {
		src := place{Catalog: from, Identifier: []string{"s" + storage(from), "src"}, Rows: 30, Files: 3}
		made = append(made, src)
		for j, to := range placesOfCatalogs {
			dst := place{Catalog: to, Identifier: []string{"d" + storage(to), "from_" + from}}
			every := 3
			if strings.Contains(from+to, "_s3") {
				every = 5
			}
			if to == "hadoop_s3" || !tortures() && (i+j)%every != 0 {
				continue
			}
			made = append(made, dst)
			all = append(all, pair{src, dst, len(all)})
		}
	}
	e.script("make", made)
	inPairs(all, func(p pair) {
		name := p.src.Catalog + "_to_" + p.dst.Catalog
		args := []string{"--src", p.src.String(), "--dst", p.dst.String(), "--batch-rows", "10", "--checkpoint", name + ".json", "--output", "json", "-q", "--verify", "partition_hash"}
		point := []string{"lake.sent:2", "migrate.pending-noted:2"}[p.n%2]
		if r, _ := e.run([]string{"ICEPIPE_CRASH=" + point}, append([]string{e.armed}, args...)); r.code != -1 {
			t.Errorf("%s: %s is not passed\n%s", name, point, told([]run{r}))
			return
		}
		r, out := e.run(nil, append([]string{"ice-migrate"}, args...))
		var receipt struct {
			Complete, Resumed bool
			Verification      struct {
				Matches bool
				Rows    int `json:"dest_count"`
			}
		}
		if err := json.Unmarshal([]byte(out), &receipt); r.code != 0 || err != nil || !receipt.Complete || !receipt.Resumed || !receipt.Verification.Matches || receipt.Verification.Rows != 30 {
			t.Errorf("%s: %s, %v\n%s", name, out, err, told([]run{r}))
		}
	})
	var moved []place
	for _, p := range all {
		moved = append(moved, p.dst)
	}
	for i, s := range e.states(moved) {
		if wrong := s.once(30, 3); wrong != "" {
			t.Errorf("%s from %s: %s", moved[i].Catalog, moved[i].Identifier[1], wrong)
		}
	}
	say("catalogs: %d pairs", len(all))
}
