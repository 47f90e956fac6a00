package catalogs

import (
	"io"
	"net/http"
	"net/http/httptest"
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
		{URI: "postgresql://user:p@ss/hunter2@host/db"}, {URI: "mysql://user:p@ss?hunter2@host/db"}, {URI: "mysql://user:p@ss/?a=hunter2@host/db"},
	} {
		f.Namespace, f.Table = "a", "t"
		_, err := f.Resolve(Env{Dir: "/"})
		if err == nil || !strings.Contains(err.Error(), "%40") || strings.Contains(err.Error(), "ss") && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", f.URI, err)
		}
	}
}
