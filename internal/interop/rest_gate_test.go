//go:build interop

package interop

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// A gate stands between a program and the server, and holds each commit until the test decides.
type gate struct {
	*httptest.Server
	held chan *heldCommit
}

// A heldCommit waits at the gate. Exactly one of pass, land and drop is called.
type heldCommit struct {
	decide  chan string
	landed  chan struct{} // closed when the server has answered
	release chan struct{} // closed when the answer may go
}

func newGate(t *testing.T, endpoint string) *gate {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{held: make(chan *heldCommit)}
	proxy := httputil.NewSingleHostReverseProxy(target)
	ended := make(chan struct{})
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.Contains(r.URL.Path, "/tables/") {
			proxy.ServeHTTP(w, r)
			return
		}
		h := &heldCommit{decide: make(chan string, 1), landed: make(chan struct{}), release: make(chan struct{})}
		select {
		case g.held <- h:
		case <-ended:
			return
		}
		if <-h.decide == "drop" {
			panic(http.ErrAbortHandler)
		}
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r.WithContext(t.Context())) // lands although the program may be gone
		close(h.landed)
		<-h.release
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(func() {
		close(ended)
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

// pass lets the server have the commit and the program the answer.
func (h *heldCommit) pass() {
	h.land()
	close(h.release)
}

// land lets the server have the commit, and keeps the answer; close(h.release) lets it go.
func (h *heldCommit) land() {
	h.decide <- "land"
	<-h.landed
}

// drop closes the connection; the server never hears of the commit.
func (h *heldCommit) drop() { h.decide <- "drop" }
