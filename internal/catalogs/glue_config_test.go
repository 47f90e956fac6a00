//go:build !noclouds

package catalogs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/catalog"

	"icepipe/pkg/rows"
)

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
			mustOpen(t, ref, ReadOnly)
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
	if err := set(t, mustOpen(t, f.ref("t"), ReadOnly), "k", "v"); err == nil || !strings.Contains(err.Error(), "a commit is not for this program") {
		t.Errorf("a catalog that is open for reading: %v", err)
	}
	f.spoil("UpdateTable", fault{status: 400, code: "AccessDeniedException", text: "not authorized to perform: glue:UpdateTable"})
	var refused *refusedError
	if err := set(t, mustOpen(t, f.ref("t"), ReadWrite), "k", "v"); !errors.As(err, &refused) {
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
