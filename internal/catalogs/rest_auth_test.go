package catalogs

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Auth blocks of PyIceberg's configuration come to the properties that do the same here, or are refused by name.
func TestAuthenticated(t *testing.T) {
	for _, c := range []struct {
		name  string
		given map[string]string
		want  map[string]string
		err   string
	}{
		{name: "none", given: map[string]string{"token": "t"}, want: map[string]string{"token": "t"}},
		{name: "noop", given: map[string]string{"auth.type": "noop", "uri": "u"}, want: map[string]string{"uri": "u"}},
		{name: "basic", given: map[string]string{"auth.type": "basic", "auth.basic.username": "me", "auth.basic.password": "s:t", "header.Authorization": "x"},
			want: map[string]string{"header.authorization": "Basic bWU6czp0"}},
		{name: "oauth2", given: map[string]string{"auth.type": "OAuth2", "auth.oauth2.client_id": "i", "auth.oauth2.client_secret": "s", "auth.oauth2.token_url": "https://a/t", "auth.oauth2.scope": "z", "auth.oauth2.refresh_margin": "3"},
			want: map[string]string{"credential": "i:s", "oauth2-server-uri": "https://a/t", "scope": "z"}},
		{name: "oauth2 by variables", given: map[string]string{"auth.type": "oauth2", "auth.oauth2.client-id": "i", "auth.oauth2.client-secret": "s", "auth.oauth2.token-url": "https://a/t", "token": "old"},
			want: map[string]string{"credential": "i:s", "oauth2-server-uri": "https://a/t"}},
		{name: "legacy", given: map[string]string{"auth.type": "legacyoauth2", "auth.legacyoauth2.credential": "i:s", "auth.legacyoauth2.auth_url": "https://a/t"},
			want: map[string]string{"credential": "i:s", "oauth2-server-uri": "https://a/t"}},
		{name: "no type", given: map[string]string{"auth.basic.username": "me"}, err: "needs a type"},
		{name: "half a block", given: map[string]string{"auth.type": "basic", "auth.basic.username": "me"}, err: "auth.basic.password is missing"},
		{name: "google", given: map[string]string{"auth.type": "google"}, err: `"google" is not supported: get a token by gcloud`},
		{name: "custom", given: map[string]string{"auth.type": "custom", "auth.impl": "a.B"}, err: "names Python code"},
		{name: "another", given: map[string]string{"auth.type": "kerberos"}, err: `"kerberos" is not known: want one of "basic", "legacyoauth2", "noop", "oauth2"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := authenticated(c.given)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || !maps.Equal(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}

// What an auth block says reaches the server, with each request.
func TestAuthBlockIsSent(t *testing.T) {
	var mu sync.Mutex
	sent := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/token" {
			r.ParseForm()
			sent[r.Form.Get("client_id")+" "+r.Form.Get("client_secret")]++
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"access_token": "fresh", "token_type": "bearer", "expires_in": 3600}`))
			return
		}
		sent[r.Header.Get("Authorization")]++
		http.Error(w, `{"error": {"message": "no", "code": 404, "type": "NoSuchTableException"}}`, http.StatusNotFound)
	}))
	defer server.Close()
	for want, given := range map[string][]string{
		"Basic bWU6c2VjcmV0": {"auth.type=basic", "auth.basic.username=me", "auth.basic.password=secret"},
		"Bearer fresh":       {"auth.type=oauth2", "auth.oauth2.client_id=i", "auth.oauth2.client_secret=s", "auth.oauth2.token_url=" + server.URL + "/token"},
	} {
		clear(sent)
		ref, err := TableFlags{URI: server.URL, Namespace: "n", Table: "t", Property: given}.Resolve(Env{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), ref, ReadOnly); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("opened: %v", err)
		}
		if sent[want] == 0 || sent[""] > 0 {
			t.Errorf("sent %v, want %q alone", sent, want)
		}
		if strings.HasPrefix(want, "Bearer") && sent["i s"] != 1 {
			t.Errorf("the token was asked for with %v", sent)
		}
	}
}
