package catalogs

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A server that sends requests on to another one gets an error, and the other one gets nothing: neither the token, nor
// the credential that a token is asked for with.
func TestRESTSentOn(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(other.Close)
	for _, path := range []string{"/v1/config", "/v1/oauth/tokens", "/v1/namespaces/a/tables/t"} {
		f := newFakeREST(t)
		f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				http.Redirect(w, r, other.URL+path, http.StatusTemporaryRedirect)
				return
			}
			f.serve(w, r)
		})
		_, err := Open(t.Context(), f.ref("credential=id:hunter2"), ReadOnly)
		if err == nil || !strings.Contains(err.Error(), "sends the request on from "+f.URL+" to "+other.URL) || path != "/v1/oauth/tokens" && !strings.Contains(err.Error(), "see to --dst-uri") { // of which the library keeps the text alone
			t.Errorf("%s: %v", path, err)
		}
	}
	if asked > 0 {
		t.Errorf("the other server was asked %d times", asked)
	}
}

// A redirect on the same server is followed.
func TestRESTSentWithin(t *testing.T) {
	f := newFakeREST(t)
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/below") {
			http.Redirect(w, r, "/below"+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		f.serve(w, r)
	})
	mustOpen(t, f.ref("credential=id:hunter2"), ReadOnly)
}

// zeros are without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// An answer without an end is an error before it takes all memory.
func TestRESTEndless(t *testing.T) {
	b := &body{ReadCloser: io.NopCloser(zeros{}), left: longestAnswer, cancel: func() {}, late: func(err error) error { return err }}
	n, err := io.Copy(io.Discard, b)
	if n < longestAnswer || n > longestAnswer+1<<20 || err == nil || !strings.Contains(err.Error(), "more than 1024 MiB") {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// An @ that was not encoded ends a password early, and the rest of it would be asked for as a host.
func TestUnencodedPassword(t *testing.T) {
	for _, f := range []TableFlags{
		{URI: "http://user:p@ss/hunter2@host/x"}, {URI: "http://user:p@ss?hunter2@host/x"},
		{URI: "https://user:8080/ss@hunter2/x"}, {URI: "https://dom/user:ss@hunter2/x"},
		{URI: "postgresql://user:p@ss/hunter2@host/db"}, {URI: "mysql://user:p@ss?hunter2@host/db"}, {URI: "mysql://user:p@ss/?a=hunter2@host/db"},
	} {
		f.Namespace, f.Table = "a", "t"
		_, err := f.Resolve(Env{Dir: "/"})
		if err == nil || !strings.Contains(err.Error(), "%40") || strings.Contains(err.Error(), "ss") && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", f.URI, err)
		}
	}
}

// An @ that can be no end of a password is left alone.
func TestOtherAts(t *testing.T) {
	for _, uri := range []string{"https://u:p@h/a%40b", "https://h/a@b", "postgresql://h/db?user=me@server", "postgresql://u:p%40@h/db"} {
		if _, err := (TableFlags{URI: uri, Namespace: "a", Table: "t"}).Resolve(Env{Dir: "/"}); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// What is secret goes to the address and below it, however that is written, and to no neighbour.
func TestBelow(t *testing.T) {
	for path, want := range map[string]bool{"/api/cat/v1/config": true, "/api/cat": true, "/api/cat2/v1/config": false, "/v1/config": false} {
		for _, address := range []string{"https://h/api/cat", "https://h/api//cat", "https://h/api/cat//", "https://h/api/./cat"} {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			if got := below(path, u); got != want {
				t.Errorf("%s below %s: %v", path, address, got)
			}
		}
	}
	if root := (&url.URL{Scheme: "https", Host: "h"}); !below("/v1/config", root) {
		t.Error("nothing is below a server")
	}
}

// A server is the same however its name and port are written.
func TestSentOn(t *testing.T) {
	for _, c := range []struct {
		from, to string
		same     bool
	}{
		{"https://h:443/a", "https://h/b", true}, {"https://H/a", "https://h/b", true}, {"http://h/a", "https://h/b", true},
		{"https://h/a", "http://h/b", false}, {"https://h/a", "https://h:8443/b", false}, {"https://h/a", "https://other/b", false},
	} {
		first, _ := http.NewRequest("GET", c.from, nil)
		next, _ := http.NewRequest("GET", c.to, nil)
		next.Response = &http.Response{Request: first}
		if err := sentOn(next); (err == nil) != c.same {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
}
