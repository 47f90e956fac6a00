package catalogs

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"icepipe/pkg/rows"
)

// A fakeREST answers as a REST catalog with one table, a.t, would; answers holds what is otherwise.
type fakeREST struct {
	*httptest.Server
	answers map[string]answer // by method and path without /v1

	mu       sync.Mutex
	requests []string // method, path and query
	headers  []http.Header
	tokens   int // given out
	spent    int // of them, refused from now on
	secured  bool
}

type answer struct {
	status int
	body   string
}

func newFakeREST(t *testing.T) *fakeREST {
	t.Helper()
	cat, _ := temporary(t)
	made := makeTable(t, cat, "a", "t")
	metadata, err := os.ReadFile(strings.TrimPrefix(made.MetadataLocation(), "file://"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeREST{answers: map[string]answer{
		"GET /config":                 {200, `{"defaults": {}, "overrides": {}}`},
		"GET /namespaces/a/tables/t":  {200, fmt.Sprintf(`{"metadata-location": %q, "metadata": %s, "config": {}}`, made.MetadataLocation(), metadata)},
		"POST /namespaces/a/tables/t": {409, `{"error": {"message": "moved on", "type": "CommitFailedException", "code": 409}}`},
		"GET /namespaces":             {200, `{"namespaces": [["a"], ["b"]]}`},
		"GET /namespaces/a":           {200, `{"namespace": ["a"], "properties": {}}`},
		"GET /namespaces/a/tables":    {200, `{"identifiers": [{"namespace": ["a"], "name": "t"}, {"namespace": ["a"], "name": "orders"}]}`},
		"GET /namespaces/b/tables":    {200, `{"identifiers": [{"namespace": ["b"], "name": "customers"}]}`},
		"GET /namespaces/a/views/v":   {200, `{"metadata-location": "x", "metadata": {}, "config": {}}`},
		"HEAD /namespaces/a/views/v":  {204, ""},
	}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeREST) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/below"), "/v1")
	path = strings.TrimPrefix(path, "/p")
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+path+"?"+r.URL.RawQuery)
	f.headers = append(f.headers, r.Header.Clone())
	tokens, spent := f.tokens, f.spent
	if path == "/oauth/tokens" {
		f.tokens++
	}
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if path == "/oauth/tokens" {
		r.ParseForm()
		if r.Form.Get("client_id") != "id" || r.Form.Get("client_secret") != "hunter2" {
			w.WriteHeader(401)
			io.WriteString(w, `{"error": "invalid_client", "error_description": "credential refused"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token": "token%d", "token_type": "bearer", "expires_in": 3600}`, tokens+1)
		return
	}
	if n := 0; f.secured {
		if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer token%d", &n); err != nil || n <= spent {
			w.WriteHeader(map[bool]int{true: 401, false: 419}[err != nil])
			io.WriteString(w, `{"error": {"message": "token expired", "type": "AuthenticationTimeoutException", "code": 419}}`)
			return
		}
	}
	a, ok := f.answers[r.Method+" "+path]
	if !ok {
		a = answer{404, `{"error": {"message": "not there", "type": "NoSuchTableException", "code": 404}}`}
	}
	w.WriteHeader(a.status)
	io.WriteString(w, a.body)
}

// ref is the table's Ref with these properties.
func (f *fakeREST) ref(properties ...string) Ref {
	r := Ref{Place: rows.Place{Kind: "rest", URI: f.URL}, Identifier: []string{"a", "t"}, prefix: "dst-", Properties: map[string]string{"uri": f.URL}}
	for _, p := range properties {
		key, value, _ := strings.Cut(p, "=")
		r.Properties[key] = value
	}
	return r
}
