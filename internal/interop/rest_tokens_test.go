//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// thirty is the source of these tests: three batches of ten rows.
var thirty = tableSpec{Catalog: "sqlite", Identifier: "s.src", Rows: 30, Files: 2}

// onceOnly is a destination whose owner allows no second try.
func onceOnly(name string) tableSpec {
	return tableSpec{Catalog: "rest", Identifier: "d." + name, Properties: map[string]string{"commit.retry.num-retries": "0"}}
}

// start runs the job in the background; the run is sent when it has ended.
func (j *job) start() <-chan run {
	ended := make(chan run, 1)
	go func() {
		var out bytes.Buffer
		ended <- pipe(j.s.t, []program{j.command()}, &out)[0]
	}()
	return ended
}

// next is the next commit at the gate; the test ends when the program does before it.
func (g *gate) next(t *testing.T, ended <-chan run) *heldCommit {
	t.Helper()
	select {
	case h := <-g.held:
		return h
	case r := <-ended:
		t.Fatalf("no commit came\n%s", told([]run{r}))
		return nil
	}
}

// issue gets a token of the server's.
func (s *stand) issue() string {
	s.t.Helper()
	answer, err := http.PostForm(s.endpoint+"/v1/oauth/tokens", url.Values{"grant_type": {"client_credentials"}, "client_id": {"id"}, "client_secret": {"hunter2"}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || got.Token == "" {
		s.t.Fatalf("token: %v", err)
	}
	return got.Token
}

// keepsSecret fails the test where a secret is in a file of the folder, or in what programs said.
func (s *stand) keepsSecret(secret string, runs ...run) {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(secret)) {
			s.t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
	for _, r := range runs {
		if strings.Contains(r.stderr, secret) {
			s.t.Errorf("the secret is in %q", r.stderr)
		}
	}
}

// TestTokenEnds: cases 86, 87. Tokens that end in mid-job: with a credential they are replaced, before a
// commit and before the look that settles one; a token that cannot be is told of, and a run with another
// goes on.
func TestTokenEnds(t *testing.T) {
	s := newStand(t, "--credential", "id:hunter2")
	s.client["credential"] = "id:hunter2"
	s.make(thirty, onceOnly("commit"), onceOnly("settle"), onceOnly("static"))
	var runs []run

	t.Run("before a commit", func(t *testing.T) {
		g := newGate(t, s.endpoint)
		j := &job{s: s, src: thirty, dst: onceOnly("commit"), batchRows: 10, endpoint: g.URL, more: []string{"--dst-property", "credential=id:hunter2"}}
		ended := j.start()
		for range 3 {
			h := g.next(t, ended)
			s.control("POST", "/_expire", "")
			h.pass()
			g.next(t, ended).pass() // with a fresh token
		}
		r := <-ended
		runs = append(runs, r)
		if r.code != 0 {
			t.Error(told([]run{r}))
		}
		if wrong := s.state(j.dst).once(30, 3); wrong != "" {
			t.Error(wrong)
		}
	})
	t.Run("before the look", func(t *testing.T) {
		g := newGate(t, s.endpoint)
		j := &job{s: s, src: thirty, dst: onceOnly("settle"), batchRows: 10, endpoint: g.URL, more: []string{"--dst-property", "credential=id:hunter2"}}
		s.control("POST", "/_faults", "commit-then-500 times=3 table=d.settle")
		ended := j.start()
		for range 3 {
			h := g.next(t, ended)
			h.land()
			s.control("POST", "/_expire", "")
			close(h.release)
		}
		r := <-ended
		runs = append(runs, r)
		if r.code != 0 {
			t.Error(told([]run{r}))
		}
		if wrong := s.state(j.dst).once(30, 3); wrong != "" {
			t.Error(wrong)
		}
	})
	t.Run("without a credential", func(t *testing.T) {
		g := newGate(t, s.endpoint)
		tokens := []string{s.issue()}
		j := &job{s: s, src: thirty, dst: onceOnly("static"), batchRows: 10, endpoint: g.URL, checkpoint: filepath.Join(s.dir, "static.json"), more: []string{"--dst-property", "token=" + tokens[0]}}
		ended := j.start()
		g.next(t, ended).pass()
		h := g.next(t, ended)
		s.control("POST", "/_expire", "")
		h.pass()
		r := <-ended
		runs = append(runs, r)
		lines := r.errorLines()
		if r.code != 1 || len(lines) != 1 || !strings.Contains(lines[0], "refuses the token (") || !strings.Contains(lines[0], "give another by --dst-property token=… and run again") || !strings.Contains(r.stderr, "run the same command again to resume") {
			t.Error(told([]run{r}))
		}
		tokens = append(tokens, s.issue())
		j.more[1] = "token=" + tokens[1]
		ended = j.start()
		for range 2 {
			g.next(t, ended).pass()
		}
		r = <-ended
		runs = append(runs, r)
		if r.code != 0 {
			t.Error(told([]run{r}))
		}
		if wrong := s.state(j.dst).once(30, 3); wrong != "" {
			t.Error(wrong)
		}
		for _, token := range tokens {
			s.keepsSecret(token)
		}
		for _, r := range runs {
			if strings.Contains(r.stderr, "issued-") {
				t.Errorf("a token is in %q", r.stderr)
			}
		}
	})
	s.keepsSecret("hunter2", runs...)
}
