package catalogs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// TestOpenREST: what the properties say reaches the server, and all snapshots are asked for although the
// server's configuration says otherwise.
func TestOpenREST(t *testing.T) {
	f := newFakeREST(t)
	f.answers["GET /config"] = answer{200, `{"defaults": {}, "overrides": {"snapshot-loading-mode": "refs"}}`}
	env := Env{Dir: "/"}
	uri := strings.Replace(f.URL, "http://", "http://user:hunter2@", 1) + "/below/?key=hunter2"
	ref, err := TableFlags{URI: uri, Namespace: "a", Table: "t", Warehouse: "main", Property: []string{"prefix=p", "header.X-Test=yes"}}.Resolve(env)
	if err != nil {
		t.Fatal(err)
	}
	o := mustOpen(t, ref, ReadOnly)
	if got := o.Table.Identifier(); !slices.Equal(got, []string{"a", "t"}) {
		t.Errorf("table %s", got)
	}
	want := []string{"GET /config?key=hunter2&warehouse=main", "GET /namespaces/a/tables/t?key=hunter2&snapshots=all"}
	if !slices.Equal(f.requests, want) {
		t.Errorf("requests %q, want %q", f.requests, want)
	}
	for _, h := range f.headers {
		if h.Get("X-Test") != "yes" || h.Get("Authorization") != "Basic dXNlcjpodW50ZXIy" || h.Get("X-Iceberg-Access-Delegation") != "vended-credentials" {
			t.Errorf("headers %v", h)
		}
	}
	f.Close()
	_, err = o.Catalog.LoadTable(t.Context(), ref.Identifier)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "see to --uri") {
		t.Errorf("a server that went away: %v", err)
	}
}

// A table whose name looks like an encoded one is not taken for the one that it looks like.
func TestRESTPercent(t *testing.T) {
	f := newFakeREST(t)
	for _, method := range []string{"GET", "POST"} {
		f.answers[method+" /namespaces/a/tables/%74"] = f.answers[method+" /namespaces/a/tables/t"]
	}
	ref := f.ref()
	ref.Identifier = []string{"a", "%74"}
	o := mustOpen(t, ref, ReadWrite)
	if _, _, err := o.Catalog.CommitTable(t.Context(), ref.Identifier, nil, nil); !errors.Is(err, table.ErrCommitFailed) {
		t.Error(err)
	}
	for _, r := range f.requests {
		if strings.Contains(r, "/tables/t") {
			t.Errorf("%s was asked for", r)
		}
	}
	ref.Identifier = []string{"a", "%75"}
	if _, err := Open(t.Context(), ref, ReadOnly); !errors.Is(err, catalog.ErrNoSuchTable) {
		t.Error(err)
	}
}

// A namespace with a lone percent sign is asked for as it is.
func TestRESTPercentOfNamespace(t *testing.T) {
	f := newFakeREST(t)
	f.answers["GET /namespaces/100%/tables/t"] = f.answers["GET /namespaces/a/tables/t"]
	ref := f.ref()
	ref.Identifier = []string{"100%", "t"}
	mustOpen(t, ref, ReadOnly)
}

// TestRESTReadOnly: nothing is written by a catalog that is opened to read.
func TestRESTReadOnly(t *testing.T) {
	f := newFakeREST(t)
	source, destination := mustOpen(t, f.ref(), ReadOnly), mustOpen(t, f.ref(), ReadWrite)
	if _, _, err := source.Catalog.CommitTable(t.Context(), source.Table.Identifier(), nil, nil); err == nil || !strings.Contains(err.Error(), "not for this program") {
		t.Errorf("a commit to a source: %v", err)
	}
	if _, _, err := destination.Catalog.CommitTable(t.Context(), source.Table.Identifier(), nil, nil); !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("a commit to a destination: %v", err)
	}
	for _, c := range []catalog.Catalog{source.Catalog, destination.Catalog} {
		_, create := c.CreateTable(t.Context(), []string{"a", "u"}, source.Table.Schema())
		_, rename := c.RenameTable(t.Context(), []string{"a", "t"}, []string{"a", "u"})
		_, change := c.UpdateNamespaceProperties(t.Context(), []string{"a"}, nil, nil)
		for _, err := range []error{create, rename, change, c.DropTable(t.Context(), []string{"a", "t"}), c.CreateNamespace(t.Context(), []string{"c"}, nil), c.DropNamespace(t.Context(), []string{"a"})} {
			if err == nil {
				t.Error("nothing of the kind is refused")
			}
		}
	}
	if n := slices.IndexFunc(f.requests, func(r string) bool {
		return !strings.HasPrefix(r, "GET ") && !strings.HasPrefix(r, "POST /namespaces/a/tables/t?")
	}); n >= 0 {
		t.Errorf("the server was asked %s", f.requests[n])
	}
}

// TestRESTToken: case 87. A token that ends before its time is replaced where there is a credential, also
// in place of a token that was given; else the error says what to do, and is not asked about again.
func TestRESTToken(t *testing.T) {
	for _, c := range []struct {
		name       string
		properties []string
		tokens     int // in the end
		fail       string
	}{
		{"credential", []string{"credential=id:hunter2"}, 3, ""},
		{"credential beside a token", []string{"token=token0", "credential=id:hunter2"}, 2, ""},
		{"token", []string{"token=token0"}, 0, `refuses the token (AuthenticationTimeoutException: token expired): it is wrong, or has ended; give another by --dst-property token=… and run again`},
		{"nothing", nil, 0, `wants a token (AuthenticationTimeoutException: token expired): give --dst-property token=…, or --dst-property credential=… for client credentials ID:SECRET`},
		{"wrong credential", []string{"credential=id:wrong"}, 1, "refuses the credential (invalid_client: credential refused)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeREST(t)
			f.secured, f.spent = true, -1
			ref := f.ref(c.properties...)
			o, err := Open(t.Context(), ref, ReadWrite)
			if err == nil {
				defer o.Close()
				f.mu.Lock()
				f.spent = f.tokens
				f.mu.Unlock()
				_, err = o.Catalog.LoadTable(t.Context(), ref.Identifier)
			}
			if err == nil {
				_, _, err = o.Catalog.CommitTable(t.Context(), ref.Identifier, nil, nil)
				if !errors.Is(err, table.ErrCommitFailed) {
					t.Errorf("commit: %v", err)
				}
				err = nil
			}
			if f.tokens != c.tokens && c.name != "credential" { // the library asks for one more in between
				t.Errorf("%d tokens, want %d", f.tokens, c.tokens)
			}
			if c.fail == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var lasting interface{ Lasting() bool }
			if err == nil || !strings.Contains(err.Error(), c.fail) || !errors.As(err, &lasting) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want a lasting one with %q", err, c.fail)
			}
		})
	}
}

// TestOpenRESTRefuses: one line that says what is wrong and what to do.
func TestOpenRESTRefuses(t *testing.T) {
	stopped := httptest.NewServer(http.NotFoundHandler())
	stopped.Close()
	ended := make(chan struct{})
	stalled := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	t.Cleanup(func() { close(ended); stalled.Close() })
	elsewhere := func(uri string) func(*fakeREST, *Ref) {
		return func(_ *fakeREST, r *Ref) { r.Place.URI, r.Properties["uri"] = uri, uri }
	}
	asks := func(request string, a answer) func(*fakeREST, *Ref) {
		return func(f *fakeREST, _ *Ref) { f.answers[request] = a }
	}
	named := func(parts ...string) func(*fakeREST, *Ref) { return func(_ *fakeREST, r *Ref) { r.Identifier = parts } }
	for _, c := range []struct {
		name   string
		change func(*fakeREST, *Ref)
		says   []string
	}{
		{"no server", elsewhere(stopped.URL), []string{"cannot connect to catalog", stopped.URL, "connection refused", "see to --dst-uri"}},
		{"no such host", elsewhere("http://nowhere.invalid"), []string{"cannot connect to catalog", "see to --dst-uri"}},
		{"a server that stalls", func(f *fakeREST, r *Ref) { elsewhere(stalled.URL)(f, r); r.Properties[timeoutKey] = "20" }, []string{"no answer within 20ms (rest.client.socket-timeout-ms)", "see to --dst-uri"}},
		{"not a catalog", asks("GET /config", answer{404, "<html>"}), []string{"is not the address of a REST catalog", "see to --dst-uri"}},
		{"a web page", asks("GET /config", answer{200, "<html>"}), []string{"is not the address of a REST catalog"}},
		{"a server that fails", asks("GET /config", answer{500, `{"error": {"message": "out of order", "code": 500}}`}), []string{"out of order"}},
		{"forbidden", asks("GET /namespaces/a/tables/t", answer{403, `{"error": {"message": "no rights", "code": 403}}`}), []string{"load table a.t", "forbids it (no rights)", "see to the rights"}},
		{"a slip of the pen", named("a", "ordres"), []string{"table a.ordres is not in catalog", "near are a.orders", "a destination is never created"}},
		{"another namespace", named("a", "customers"), []string{"near are b.customers"}},
		{"no such namespace", named("c", "nothing"), []string{"it has no namespace c, near are a, b"}},
		{"nothing near", named("a", "zzzzzzzz"), []string{"that namespace has 2 others, such as a.t"}},
		{"a percent sign", named("a", "50%"), []string{"a.50%", `cannot ask for "50%"`, "another name"}},
		{"a view", func(f *fakeREST, r *Ref) {
			named("a", "v")(f, r)
			f.answers["GET /config"] = answer{200, `{"endpoints": ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}", "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}"]}`}
		}, []string{"a.v is a view, not a table"}},
		{"a proxy whose server is away", asks("GET /namespaces/a/tables/t", answer{503, "<html>\nbusy</html>"}), []string{"load table a.t", "HTTP status 503 Service Unavailable: <html> busy</html>"}},
		{"a proxy that has had enough", asks("GET /namespaces/a/tables/t", answer{429, ""}), []string{"HTTP status 429 Too Many Requests"}},
		{"an answer without words", asks("GET /namespaces/a/tables/t", answer{500, `{"error": {}}`}), []string{"HTTP status 500 Internal Server Error"}},
		{"no answer", asks("GET /namespaces/a/tables/t", answer{204, ""}), []string{"HTTP status 204 No Content"}},
		{"secrets of a token server", func(_ *fakeREST, r *Ref) {
			r.Properties["credential"], r.Properties["oauth2-server-uri"] = "id:secret", strings.Replace(stopped.URL, "//", "//user:hunter2@", 1)+"/token?key=hunter2"
		}, []string{"no token can be had", stopped.URL + "/token", "connection refused"}},
		{"no certificate", func(_ *fakeREST, r *Ref) { r.Properties["ssl.cabundle"] = "/nowhere.pem" }, []string{"ssl.cabundle", "/nowhere.pem"}},
		{"a token server that is no address", func(_ *fakeREST, r *Ref) { r.Properties["oauth2-server-uri"] = "nope" }, []string{"oauth2-server-uri: want a uri"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeREST(t)
			ref := f.ref()
			c.change(f, &ref)
			o, err := Open(t.Context(), ref, ReadWrite)
			if err == nil {
				o.Close()
				t.Fatal("no error")
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// TestRESTFiles: case 86. A file system outlives the call that asked for it, and one that cannot be had
// any more is had by loading the table anew.
func TestRESTFiles(t *testing.T) {
	f := newFakeREST(t)
	var loaded struct {
		Location string          `json:"metadata-location"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(f.answers["GET /namespaces/a/tables/t"].body), &loaded); err != nil {
		t.Fatal(err)
	}
	// Credentials that have ended already, so that they are renewed each time; their endpoint is not there.
	vended := fmt.Sprintf(`{"metadata-location": %q, "metadata": %s, "config": {}, "storage-credentials": [{"prefix": "/", "config": {"s3.session-token-expires-at-ms": "1"}}]}`, loaded.Location, loaded.Metadata)
	f.answers["GET /namespaces/a/tables/t"] = answer{200, vended}
	o := mustOpen(t, f.ref(), ReadOnly)
	loads := func() (n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, r := range f.requests {
			if strings.HasPrefix(r, "GET /namespaces/a/tables/t?") {
				n++
			}
		}
		return n
	}
	cat := o.Catalog.(*restCatalog)
	table, err := cat.load(t.Context(), o.Ref.Identifier)
	if err != nil {
		t.Fatal(err)
	}
	began := loads()
	vendor := &restFiles{catalog: cat, identifier: o.Ref.Identifier, open: table.FS}
	for try := 1; try <= 3; try++ {
		fs, err := vendor.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		file, err := fs.Open(loaded.Location)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		if n := loads() - began; n != try-1 {
			t.Errorf("after %d file systems the table was loaded %d times more", try, n)
		}
	}
	f.answers["GET /namespaces/a/tables/t"] = answer{403, `{"error": {"message": "no rights", "code": 403}}`}
	if _, err := vendor.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be loaded anew") || !strings.Contains(err.Error(), "no rights") {
		t.Errorf("no credentials any more: %v", err)
	}
}
