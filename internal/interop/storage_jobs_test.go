//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// jobs: what is done to tables on the disk is done to tables on S3: jobs of each mode die and are resumed, are undone
// and redone, and what they left behind is found.
func (s *shed) jobs(t *testing.T) {
	s.armed = filepath.Join(t.TempDir(), "ice-migrate")
	call(t, exec.Command("go", "build", "-C", s.root, "-tags", "crash", "-ldflags", "-s -w", "-o", s.armed, "./cmd/ice-migrate"))
	src := goods{Catalog: "s3", Identifier: []string{"j", "src"}, Rows: 20}
	list := []goods{src}
	type deed struct {
		name, point string
		args        []string
		dst         goods
	}
	var deeds []deed
	points := []string{"lake.sent:2", "datafile.written:3", "lake.staged:2", "migrate.pending-noted:1", "datafile.created:2", "migrate.landed-noted:1"}
	for m, mode := range []struct {
		name string
		args []string
		dst  goods
	}{
		{"append", nil, goods{}},
		{"once", []string{"--commit", "once"}, goods{}},
		{"upsert", []string{"--write-mode", "upsert", "--upsert-keys", "id"}, goods{First: 5, Rows: 10, Shift: 1}},
		{"upsert_copies", []string{"--write-mode", "upsert", "--upsert-keys", "id", "--delete-mode", "copy-on-write"}, goods{First: 5, Rows: 10, Shift: 1}},
		{"overwrite", []string{"--write-mode", "overwrite_partition"}, goods{First: 100, Rows: 16}},
	} {
		for n, point := range points {
			if !tortures() && n%len(points) != m {
				continue
			}
			if mode.name == "once" || mode.name == "overwrite" {
				point, _, _ = strings.Cut(point, ":") // there is one commit
			}
			d := deed{name: fmt.Sprintf("%s_%d", mode.name, n), point: point, args: mode.args, dst: mode.dst}
			d.dst.Catalog, d.dst.Identifier = "s3", []string{"j", d.name}
			deeds = append(deeds, d)
			list = append(list, d.dst)
		}
	}
	for at, text := range s.make(list) {
		t.Fatalf("%s: %s", list[at], text)
	}
	var done []goods
	for _, d := range deeds {
		checkpoint := d.name + ".json"
		args := append([]string{"--src", src.String(), "--dst", d.dst.String(), "--batch-rows", "7", "--checkpoint", checkpoint, "-q"}, d.args...)
		if r, _ := s.run([]string{"ICEPIPE_CRASH=" + d.point}, append([]string{s.armed}, args...)); r.code != -1 {
			t.Errorf("%s: %s is not passed\n%s", d.name, d.point, told([]run{r}))
			continue
		}
		r, _ := s.run(nil, append([]string{"ice-migrate"}, args...))
		undone, _ := s.run(nil, []string{"ice-migrate", "undo", "--checkpoint", checkpoint})
		was := s.look(false, d.dst)[0]
		redone, _ := s.run(nil, []string{"ice-migrate", "redo", "--checkpoint", checkpoint})
		verified, _ := s.run(nil, []string{"ice-verify", "--checkpoint", checkpoint, "--src", src.String(), "--dst", d.dst.String(), "--method", "partition_hash", "--scope", "table"})
		for _, r := range []run{r, undone, redone, verified} {
			if r.code != 0 {
				t.Errorf("%s: %s", d.name, told([]run{r}))
			}
		}
		if !slices.Equal(was.IDs, ids(d.dst.First, d.dst.Rows)) {
			t.Errorf("%s: undone it has %v", d.name, was.IDs)
		}
		done = append(done, d.dst)
	}
	for i, f := range s.look(true, done...) {
		if !slices.Equal(f.IDs, ids(0, 20)) || len(f.Wrong) > 0 {
			t.Errorf("%s: ids %v, %q", done[i], f.IDs, f.Wrong)
		}
	}
	s.leftovers(t, src)
	say("storage: %d jobs on S3 died, were resumed, undone and redone", len(done))
}

// leftovers: files of a job that died without a checkpoint are found, and gone when they are to go; a file that was
// not finished is none.
func (s *shed) leftovers(t *testing.T, src goods) {
	dst := goods{Catalog: "s3", Identifier: []string{"j", "left"}, Rows: 3}
	if failed := s.make([]goods{dst}); len(failed) > 0 {
		t.Fatal(failed)
	}
	before := s.objects(t, "w/j/left/")
	for _, point := range []string{"datafile.created", "lake.staged"} {
		if r, _ := s.run([]string{"ICEPIPE_CRASH=" + point}, []string{s.armed, "--src", src.String(), "--dst", dst.String(), "-q"}); r.code != -1 {
			t.Fatalf("%s is not passed\n%s", point, told([]run{r}))
		}
	}
	left := s.objects(t, "w/j/left/")
	if len(left) < len(before)+3 { // data files, a manifest and a manifest list
		t.Errorf("%d objects, %d before", len(left), len(before))
	}
	for _, args := range [][]string{{}, {"--yes"}} {
		r, out := s.run(nil, append([]string{"ice-migrate", "clean", "--dst", dst.String(), "--older-than", "0s", "--output", "json"}, args...))
		var got struct {
			Orphans []struct{ Path string } `json:"orphans"`
			Files   []struct{ Path string } `json:"files"`
		}
		if err := json.Unmarshal([]byte(out), &got); r.code != 0 || err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, told([]run{r}))
		}
		if n := len(got.Orphans) + len(got.Files); n != len(left)-len(before) {
			t.Errorf("clean %v finds %d files, want %d\n%s", args, n, len(left)-len(before), out)
		}
	}
	if now := s.objects(t, "w/j/left/"); !slices.Equal(now, before) {
		t.Errorf("objects after clean: %q, before: %q", now, before)
	}
	if f := s.look(false, dst)[0]; !slices.Equal(f.IDs, ids(0, 3)) || len(f.Wrong) > 0 {
		t.Errorf("ids %v, %q", f.IDs, f.Wrong)
	}
}

// objects are the keys in the bucket below a prefix, by the folder that the server keeps.
func (s *shed) objects(t *testing.T, prefix string) (keys []string) {
	t.Helper()
	bucket := filepath.Join(s.data, "buckets", "warehouse")
	err := filepath.WalkDir(filepath.Join(bucket, prefix), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			keys = append(keys, strings.TrimPrefix(path, bucket+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// A vault is an S3 server whose users come and go, and a REST catalog that gives their keys out.
type vault struct {
	*stand
	gw, s3 string // versitygw, and where it is reached
}

func newVault(t *testing.T, options ...string) *vault {
	t.Helper()
	root := checkout(t)
	deps := dependencies(t, root)
	v := &vault{
		stand: &stand{t: t, root: root, dir: t.TempDir(), python: filepath.Join(deps, "venv", "bin", "python"), bin: build(t, root)},
		s3:    startS3(t, deps, t.TempDir(), "VERSITYGW_OPTIONS=--iam-dir "+t.TempDir()+" --iam-cache-disable"),
	}
	found, err := filepath.Glob(filepath.Join(deps, "versitygw", "versitygw-v*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	v.gw = found[0]
	v.user("create-user", "one")
	args := []string{filepath.Join(deps, "jars"), filepath.Join(root, ".cache", "rest"), "--db", filepath.Join(v.dir, "rest.db"), "--warehouse", "s3://warehouse/v",
		"--io-impl", "org.apache.iceberg.aws.s3.S3FileIO", "--io", "client.region=us-east-1", "--io", "s3.path-style-access=true", "--io", "s3.endpoint=" + v.s3,
		"--io", "s3.access-key-id=icepipe", "--io", "s3.secret-access-key=icepipe-secret"}
	for _, line := range v.keys("one") {
		args = append(args, "--vend", line)
	}
	v.endpoint = serve(t, filepath.Join(root, "testdata", "interop", "rest", "run.sh"), append(args, options...)...)
	v.client = map[string]string{"type": "rest", "uri": v.endpoint}
	return v
}

// user makes or removes a user of the S3 server.
func (v *vault) user(what, name string) {
	v.t.Helper()
	args := []string{"admin", "-a", "icepipe", "-s", "icepipe-secret", "-er", v.s3, what, "-a", name}
	if what == "create-user" {
		args = append(args, "-s", "hunter2-"+name, "-r", "admin")
	}
	if out, err := exec.Command(v.gw, args...).CombinedOutput(); err != nil {
		v.t.Fatalf("%s: %v\n%s", what, err, out)
	}
}

// keys are what the catalog vends for a user.
func (v *vault) keys(name string) []string {
	return []string{"s3.endpoint=" + v.s3, "s3.region=us-east-1", "s3.access-key-id=" + name, "s3.secret-access-key=hunter2-" + name}
}

// vend has the catalog give out another user's keys.
func (v *vault) vend(name string, more ...string) {
	v.t.Helper()
	v.user("create-user", name)
	v.control("POST", "/_vend", strings.Join(append(v.keys(name), more...), "\n"))
}

// TestVendedKeys: case 86. Keys of S3 that the catalog vends end in mid-job: at their time, before it, and for good.
func TestVendedKeys(t *testing.T) {
	v := newVault(t)
	src, announced, early, dead := thirty, onceOnly("announced"), onceOnly("early"), onceOnly("dead")
	src.Catalog = "rest"
	v.make(src, announced, early, dead)
	at := func(name string) *job {
		return &job{s: v.stand, src: src, dst: tableSpec{Catalog: "rest", Identifier: "d." + name}, batchRows: 10, checkpoint: filepath.Join(v.dir, name+".json")}
	}
	right := func(t *testing.T, dst tableSpec) {
		t.Helper()
		if wrong := v.state(dst).once(30, 3); wrong != "" {
			t.Error(wrong)
		}
	}

	// The user before the last is removed at each commit: from the commit before on its keys are not used.
	t.Run("announced", func(t *testing.T) {
		g := newGate(t, v.endpoint)
		v.vend("two", "s3.session-token-expires-at-ms=1") // renewed each time
		v.user("delete-user", "one")
		j := at("announced")
		j.endpoint = g.URL
		ended := j.start()
		users := []string{"two", "three", "four", "five"}
		for i := range 3 {
			h := g.next(t, ended)
			v.vend(users[i+1], "s3.session-token-expires-at-ms=1")
			if i > 0 {
				v.user("delete-user", users[i-1])
			}
			h.pass()
		}
		if r := <-ended; r.code != 0 {
			t.Error(told([]run{r}))
		}
		right(t, announced)
	})
	// Nothing tells that keys end, and they are refused: the catalog is asked for others.
	t.Run("early", func(t *testing.T) {
		g := newGate(t, v.endpoint)
		v.vend("six")
		j := at("early")
		j.endpoint, j.more = g.URL, []string{"--write-mode", "upsert", "--upsert-keys", "id"} // one batch at a time
		ended := j.start()
		for i, user := range []string{"six", "seven", "eight"} {
			h := g.next(t, ended)
			if i < 2 {
				v.vend([]string{"seven", "eight"}[i])
				v.user("delete-user", user)
			}
			h.pass()
		}
		if r := <-ended; r.code != 0 {
			t.Error(told([]run{r}))
		}
		right(t, early)
	})
	// No other keys are to be had: the run ends after a commit, and another one with keys goes on.
	t.Run("dead", func(t *testing.T) {
		g := newGate(t, v.endpoint)
		j := at("dead")
		j.endpoint, j.more = g.URL, []string{"--write-mode", "upsert", "--upsert-keys", "id"}
		ended := j.start()
		h := g.next(t, ended)
		v.user("delete-user", "eight")
		h.pass()
		r := <-ended
		lines := r.errorLines()
		if r.code != 1 || len(lines) != 1 || !strings.Contains(lines[0], "the keys") || !strings.Contains(r.stderr, "run the same command again to resume") {
			t.Error(told([]run{r}))
		}
		v.vend("nine")
		if n := len(v.state(dead).IDs); n != 10 {
			t.Errorf("%d rows before the resume, want those of the batch that was committed", n)
		}
		ended = j.start()
		for range 2 {
			g.next(t, ended).pass()
		}
		again := <-ended
		if again.code != 0 {
			t.Error(told([]run{again}))
		}
		right(t, dead)
		v.keepsSecret("hunter2", r, again)
	})
}
