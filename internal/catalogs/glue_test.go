//go:build !noclouds

package catalogs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

// A commit changes where the metadata is, and leaves what others have noted.
func TestGlueCommit(t *testing.T) {
	f := newFakeGlue(t)
	o := opened(t, f.ref("t"), ReadWrite)
	before := o.Table.MetadataLocation()
	if err := set(t, o, "k", "1"); err != nil {
		t.Fatal(err)
	}
	entry := f.tables["a.t"]
	p := f.parameters("a.t")
	if p["metadata_location"] == before || p["previous_metadata_location"] != before || p["noted"] != "by another" || p["table_type"] != "ICEBERG" {
		t.Errorf("parameters %v", p)
	}
	storage := entry["StorageDescriptor"].(map[string]any)
	if entry["Owner"] != "somebody" || entry["Retention"] != 7.0 || entry["Description"] != "told" || storage["SerdeInfo"].(map[string]any)["Name"] != "kept" {
		t.Errorf("entry %v", entry)
	}
	if c := storage["Columns"].([]any)[0].(map[string]any); c["Name"] != "id" || c["Type"] != "bigint" {
		t.Errorf("columns %v", c)
	}
	again, err := o.Catalog.LoadTable(t.Context(), o.Table.Identifier())
	if err != nil || again.Properties()["k"] != "1" || again.MetadataLocation() != p["metadata_location"] {
		t.Errorf("loaded %v, %v", again, err)
	}
	// A second one, on what is known; and one on the other's.
	other := opened(t, f.ref("t"), ReadWrite)
	if err := errors.Join(set(t, o, "k", "2"), set(t, other, "l", "3"), set(t, o, "k", "4")); err != nil {
		t.Fatal(err)
	}
	if again, err = o.Catalog.LoadTable(t.Context(), o.Table.Identifier()); err != nil || again.Properties()["k"] != "4" || again.Properties()["l"] != "3" {
		t.Errorf("loaded %v, %v", again.Properties(), err)
	}
	if strings.Contains(before, "00005") || !strings.Contains(again.MetadataLocation(), "/00004-") {
		t.Errorf("the metadata is at %q", again.MetadataLocation())
	}
}

// A table in one gzip-compressed file stays readable.
func TestGlueCompressed(t *testing.T) {
	f := newFakeGlue(t)
	o := opened(t, f.ref("t"), ReadWrite)
	for _, codec := range []string{"gzip", "zstd", "none"} {
		if err := set(t, o, "write.metadata.compression-codec", codec); err != nil {
			t.Fatal(err)
		}
		at := f.parameters("a.t")["metadata_location"].(string)
		if mark := map[string]string{"gzip": ".gz.", "zstd": ".zstd.", "none": "-"}[codec]; !strings.Contains(at, mark) {
			t.Errorf("%s: metadata at %q", codec, at)
		}
		if again, err := o.Catalog.LoadTable(t.Context(), o.Table.Identifier()); err != nil || again.Properties()["write.metadata.compression-codec"] != codec {
			t.Errorf("%s: %v", codec, err)
		}
	}
}

// Glue's own check of the version decides a race: the loser is told so, and what the winner did stays.
func TestGlueConflict(t *testing.T) {
	f := newFakeGlue(t)
	o := opened(t, f.ref("t"), ReadWrite)
	f.spoil("UpdateTable", fault{status: 400, code: "ConcurrentModificationException", text: "moved on"})
	if err := set(t, o, "k", "1"); !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("got %v, want a conflict", err)
	}
	stale := newStaleStore(t, f)
	if err := set(t, o, "k", "2"); err != nil {
		t.Fatal(err)
	}
	was := f.parameters("a.t")["metadata_location"]
	if err := stale(); !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("got %v, want a conflict", err)
	}
	if is := f.parameters("a.t")["metadata_location"]; is != was {
		t.Errorf("the loser took %q to %q", was, is)
	}
}

// newStaleStore returns a change of the entry as it is now.
func newStaleStore(t *testing.T, f *fakeGlue) func() error {
	c := opened(t, f.ref("t"), ReadWrite).Catalog.(*metastoreCatalog)
	old, location, err := c.find(t.Context(), table.Identifier{"a", "t"})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := c.load(t.Context(), table.Identifier{"a", "t"}, location)
	if err != nil {
		t.Fatal(err)
	}
	return func() error { return c.swap(t.Context(), old, loaded.Metadata(), "/stale.metadata.json") }
}

// Eight writers, each of which tries again after a conflict: no commit is lost.
func TestGlueWriters(t *testing.T) {
	const writers, each = 8, 5
	f := newFakeGlue(t)
	var wait sync.WaitGroup
	for w := range writers {
		o := opened(t, f.ref("t"), ReadWrite)
		wait.Go(func() {
			for i := range each {
				for {
					err := set(t, o, fmt.Sprint("k", w, ".", i), "v")
					if err == nil {
						break
					}
					if !errors.Is(err, table.ErrCommitFailed) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wait.Wait()
	found := 0
	for key := range opened(t, f.ref("t"), ReadOnly).Table.Properties() {
		if strings.HasPrefix(key, "k") {
			found++
		}
	}
	if found != writers*each || f.version["a.t"] != writers*each {
		t.Errorf("%d of %d commits, version %d", found, writers*each, f.version["a.t"])
	}
}

// What may have landed is neither a conflict nor a refusal, and is asked for once; what was not done is asked for
// again.
func TestGlueOutcome(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  fault
		lands  bool
		calls  int
		wanted bool // the commit is a success
	}{
		{"500 behind it", fault{land: true, status: 500, code: "InternalServiceException"}, true, 1, false},
		{"503 before it", fault{status: 503, code: "ServiceUnavailable"}, false, 1, false},
		{"closed behind it", fault{land: true}, true, 1, false},
		{"closed before it", fault{}, false, 1, false},
		{"timeout of Glue's", fault{land: true, status: 400, code: "OperationTimeoutException"}, true, 1, false},
		{"throttled", fault{status: 400, code: "ThrottlingException", text: "Rate exceeded"}, true, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeGlue(t)
			o := opened(t, f.ref("t"), ReadWrite)
			f.spoil("UpdateTable", tt.fault)
			err := set(t, o, "k", "1")
			var lasting interface{ Lasting() bool }
			switch {
			case tt.wanted:
				if err != nil {
					t.Error(err)
				}
			case err == nil, errors.Is(err, table.ErrCommitFailed), errors.As(err, &lasting):
				t.Errorf("got %v, want an outcome that is unknown", err)
			}
			if n := f.count("UpdateTable"); n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
			if again := opened(t, f.ref("t"), ReadOnly).Table; (again.Properties()["k"] == "1") != tt.lands {
				t.Errorf("properties %v", again.Properties())
			}
		})
	}
}

// Each setting is PyIceberg's own for Glue, else the one that is common to all of AWS.
func TestGlueSettings(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"config":      "[profile work]\nregion = eu-west-3\n[profile other]\nregion = eu-west-2\n",
		"credentials": "[work]\naws_access_key_id = WORK\naws_secret_access_key = s\n[other]\naws_access_key_id = OTHER\naws_secret_access_key = s\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, name := range []string{"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
	f := newFakeGlue(t)
	for _, tt := range []struct {
		name        string
		properties  []string
		environment []string
		scope       string // access key and region, as they are signed
		token       string
	}{
		{"its own", []string{"glue.region=r1", "client.region=r2", "glue.access-key-id=K1", "client.access-key-id=K2", "glue.secret-access-key=s", "glue.session-token=T1"}, nil, "K1 r1", "T1"},
		{"the common ones", []string{"client.region=r2", "client.access-key-id=K2", "client.secret-access-key=s", "client.session-token=T2"}, nil, "K2 r2", "T2"},
		{"some of each", []string{"client.region=r2", "glue.access-key-id=K1", "client.secret-access-key=s"}, nil, "K1 r2", ""},
		{"an empty one", []string{"glue.region=", "client.region=r2", "glue.access-key-id=K1", "glue.secret-access-key=s"}, nil, "K1 r2", ""},
		{"its own profile", []string{"glue.profile-name=work", "client.profile-name=other"}, nil, "WORK eu-west-3", ""},
		{"the common profile", []string{"client.profile-name=other"}, nil, "OTHER eu-west-2", ""},
		{"keys before a profile", []string{"glue.profile-name=work", "glue.access-key-id=K1", "glue.secret-access-key=s"}, nil, "K1 eu-west-3", ""},
		{"the region before a profile's", []string{"glue.profile-name=work", "glue.region=r1"}, nil, "WORK r1", ""},
		{"not s3's", []string{"s3.region=r3", "s3.access-key-id=K3", "s3.secret-access-key=s", "glue.profile-name=work"}, nil, "WORK eu-west-3", ""},
		{"variables", nil, []string{"AWS_REGION=r4", "AWS_ACCESS_KEY_ID=K4", "AWS_SECRET_ACCESS_KEY=s", "AWS_SESSION_TOKEN=T4"}, "K4 r4", "T4"},
		{"AWS_PROFILE", nil, []string{"AWS_PROFILE=work"}, "WORK eu-west-3", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, v := range tt.environment {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			ref := f.ref("t")
			ref.Properties = map[string]string{"type": "glue", "glue.endpoint": f.URL, "glue.id": "123456789012"}
			ref.Place.Prefix = "123456789012"
			for _, p := range tt.properties {
				key, value, _ := strings.Cut(p, "=")
				ref.Properties[key] = value
			}
			opened(t, ref, ReadOnly)
			h := f.headers[len(f.headers)-1]
			signed := regexp.MustCompile(`Credential=([^/]*)/\d+/([^/]*)/glue/`).FindStringSubmatch(h.Get("Authorization"))
			if len(signed) != 3 || signed[1]+" "+signed[2] != tt.scope || h.Get("X-Amz-Security-Token") != tt.token {
				t.Errorf("signed %q, token %q; want %q, %q", signed, h.Get("X-Amz-Security-Token"), tt.scope, tt.token)
			}
		})
	}
}

// What is wrong is said in one line, with the cure, and without what is secret.
func TestGlueErrors(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	for _, name := range []string{"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	f := newFakeGlue(t)
	with := func(edit func(r *Ref), name string, properties ...string) Ref {
		r := f.ref(name, properties...)
		if edit != nil {
			edit(&r)
		}
		return r
	}
	without := func(keys ...string) func(*Ref) {
		return func(r *Ref) {
			for _, key := range keys {
				delete(r.Properties, key)
			}
		}
	}
	for _, tt := range []struct {
		name  string
		ref   Ref
		fault fault
		says  string
	}{
		{"no table", f.ref("ordres"), fault{}, `^table a\.ordres is not in catalog "http://.*": near are a\.orders \(a destination is never created`},
		{"no database", with(func(r *Ref) { r.Identifier = []string{"c", "t"} }, "t"), fault{}, `it has no database c, near are a, b in that region: see to --dst-property glue\.region=…: near are a\.t`},
		{"another kind of table", f.ref("plain"), fault{}, `^load table a\.plain: a\.plain is not a table of Iceberg: its table_type is "hudi"$`},
		{"levels", with(func(r *Ref) { r.Identifier = []string{"a", "b", "t"} }, "t"), fault{}, `a glue catalog has one level of namespaces: want DATABASE\.table`},
		{"rights", f.ref("t"), fault{status: 400, code: "AccessDeniedException", text: "User: arn:x is not authorized to perform: glue:GetTable"},
			`forbids it \(User: arn:x is not authorized to perform: glue:GetTable\): see to the rights of whoever --dst-property glue\.access-key-id=… and glue\.secret-access-key belong to, glue:GetTable and`},
		{"expired", f.ref("t", "glue.session-token=T"), fault{status: 400, code: "ExpiredTokenException", text: "The security token included in the request is expired"},
			`refuses the session token, which has ended \(.*expired\): get fresh keys, give them by --dst-property glue\.access-key-id=… and glue\.secret-access-key, and run again$`},
		{"unknown keys", f.ref("t"), fault{status: 400, code: "UnrecognizedClientException", text: "The security token included in the request is invalid."},
			`does not know the keys \(.*\): see to --dst-property glue\.access-key-id`},
		{"signature", f.ref("t"), fault{status: 403, code: "InvalidSignatureException", text: "The request signature we calculated does not match.\n\nThe Canonical String was\n'x-amz-security-token:hunter2'"},
			`refuses the signature \(The request signature we calculated does not match\.\): see to`},
		{"region", f.ref("t"), fault{status: 403, code: "InvalidSignatureException", text: "Credential should be scoped to a valid region."},
			`is of another region \(.*\): see to --dst-property glue\.region=…$`},
		{"no region", with(without("glue.region"), "t"), fault{}, `a glue catalog is of a region, and none is given: see to --dst-property glue\.region=…, or set AWS_REGION`},
		{"no keys", with(without("glue.access-key-id", "glue.secret-access-key"), "t"), fault{}, `no keys of AWS are found: give glue\.access-key-id and glue\.secret-access-key \(.*\), or set AWS_PROFILE`},
		{"no profile", f.ref("t", "client.profile-name=nope"), fault{}, `^profile "nope" is in none of AWS's files .*: see to --dst-property client\.profile-name=…$`},
		{"port", with(func(r *Ref) { r.Place.URI = "http://127.0.0.1:1" }, "t", "glue.endpoint=http://127.0.0.1:1"), fault{}, `^load table a\.t: cannot connect to catalog "http://127\.0\.0\.1:1": .*connection refused; see to --dst-uri`},
		{"host", with(func(r *Ref) { r.Place.URI = "http://no-such-host.invalid" }, "t", "glue.endpoint=http://no-such-host.invalid"), fault{}, `^load table a\.t: cannot connect to catalog "http://no-such-host\.invalid": lookup no-such-host\.invalid.*; see to`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.fault.status > 0 {
				f.spoil("GetTable", tt.fault)
			}
			o, err := Open(t.Context(), tt.ref, ReadWrite)
			if err == nil {
				o.Close()
				t.Fatal("it was opened")
			}
			if !regexp.MustCompile(tt.says).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") || strings.Contains(fmt.Sprintf("%+v", err), "hunter2") {
				t.Errorf("got %q\nwant %q", err, tt.says)
			}
			for cause := err; cause != nil; cause = errors.Unwrap(cause) { // as a traceback prints it
				if strings.Contains(cause.Error(), "hunter2") {
					t.Errorf("a cause holds a secret: %q", cause)
				}
			}
			if wants := strings.HasPrefix(tt.name, "no table") || tt.name == "no database"; errors.Is(err, catalog.ErrNoSuchTable) != wants {
				t.Errorf("is it that there is no table: %v", !wants)
			}
		})
	}
	if err := set(t, opened(t, f.ref("t"), ReadOnly), "k", "v"); err == nil || !strings.Contains(err.Error(), "a commit is not for this program") {
		t.Errorf("a catalog that is open for reading: %v", err)
	}
	f.spoil("UpdateTable", fault{status: 400, code: "AccessDeniedException", text: "not authorized to perform: glue:UpdateTable"})
	var refused *refusedError
	if err := set(t, opened(t, f.ref("t"), ReadWrite), "k", "v"); !errors.As(err, &refused) {
		t.Errorf("rights to write: %v", err)
	}
}

// A Glue catalog is named by its endpoint or its region, and found again by what is recorded of it.
func TestGlueResolve(t *testing.T) {
	env := Env{Home: t.TempDir(), Dir: "/w", Environ: []string{
		"PYICEBERG_CATALOG__G__TYPE=glue", "PYICEBERG_CATALOG__G__GLUE__REGION=eu-north-1", "PYICEBERG_CATALOG__G__GLUE__ID=42", "PYICEBERG_CATALOG__G__GLUE__ACCESS_KEY_ID=K",
		"PYICEBERG_CATALOG__G__GLUE__SECRET_ACCESS_KEY=hunter2", "PYICEBERG_CATALOG__E__TYPE=glue", "PYICEBERG_CATALOG__E__GLUE__ENDPOINT=https://u:hunter2@h:1/x", "PYICEBERG_CATALOG__E__CLIENT__REGION=r",
	}}
	for name, want := range map[string]rows.Place{
		"g": {Kind: "glue", Name: "g", URI: "https://glue.eu-north-1.amazonaws.com", Prefix: "42"},
		"e": {Kind: "glue", Name: "e", URI: "https://h:1/x"},
	} {
		ref, err := TableFlags{Short: name + ".a.t"}.Resolve(env)
		if err != nil || ref.Place != want {
			t.Errorf("%s: %+v, %v", name, ref.Place, err)
		}
		back, err := FromPlace(ref.Place, ref.Identifier, env)
		if err != nil || back.Properties["type"] != "glue" {
			t.Errorf("%s is not found again: %v", name, err)
		}
	}
	if back, err := FromPlace(rows.Place{Kind: "glue", Name: "g", URI: "https://glue.eu-north-1.amazonaws.com", Prefix: "43"}, []string{"a", "t"}, env); err != nil || back.Properties != nil {
		t.Errorf("another catalog's properties: %v, %v", back.Properties, err)
	}
	for _, tt := range []struct{ flags, says string }{
		{"glue.access-key-id=K", "glue.access-key-id and glue.secret-access-key are given together"},
		{"glue.session-token=T", "a session token goes with the keys"},
		{"glue.max-retries=x", `--property glue.max-retries=…: "x": want a number`},
		{"glue.endpoint=nowhere", "--property glue.endpoint=…: want a uri such as https://HOST/PATH"},
	} {
		_, err := TableFlags{Catalog: "glue", Namespace: "a", Table: "t", Property: []string{tt.flags}}.Resolve(env)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.flags, err)
		}
	}
	ref, err := TableFlags{Catalog: "glue", URI: "http://h:2", Namespace: "a", Table: "t"}.Resolve(env)
	if err != nil || ref.Place.URI != "http://h:2" || ref.Properties["glue.endpoint"] != "http://h:2" {
		t.Errorf("%+v, %v", ref, err)
	}
}
