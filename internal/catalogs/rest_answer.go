package catalogs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// longestAnswer bounds what is read of an answer, so that one without an end does not take all memory. A table's
// metadata has some kilobytes for each of its snapshots.
const longestAnswer = 1 << 30

// A redirected request is sent on by its server to another one.
type redirected struct{ from, to string }

func (e *redirected) Error() string {
	return fmt.Sprintf("sends the request on from %s to %s, which would get what is secret in it: give that address if it is the catalog's", e.from, e.to)
}

// sentOn refuses a request that a redirect brings to another server than it was made to, or to one in the clear.
func sentOn(r *http.Request) error {
	if r.Response == nil || r.Response.Request == nil {
		return nil
	}
	from, to := r.Response.Request.URL, r.URL
	sameHost := strings.EqualFold(from.Hostname(), to.Hostname())
	same := sameHost && from.Scheme == to.Scheme && portOf(from) == portOf(to)
	safer := sameHost && from.Scheme == "http" && to.Scheme == "https"
	if same || safer {
		return nil
	}
	return &redirected{from.Scheme + "://" + from.Host, to.Scheme + "://" + to.Host}
}

// portOf is the port that an address means.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// mostWords is how much is read of an answer that is none of a catalog's.
const mostWords = 64 << 10

// worded is an answer whose error the library can read: what is no JSON with a message, as the page of a proxy or an
// empty body, is put in the place of one that tells its status.
func worded(answer *http.Response) (*http.Response, error) {
	if answer.StatusCode == http.StatusOK || answer.Request.Method == http.MethodHead || answer.StatusCode/100 == 3 {
		return answer, nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostWords))
	if err != nil {
		text = nil
	}
	if token := answer.StatusCode/100 == 2 && len(text) > 0; !token && !hasMessage(text) {
		text = messageOf(answer.StatusCode, text)
	}
	_, _ = io.CopyN(io.Discard, answer.Body, mostWords) // so that the connection can be used again
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// hasMessage tells whether an answer is JSON that says something: an error of the catalog's, or of the token endpoint's.
func hasMessage(text []byte) bool {
	var said map[string]json.RawMessage
	if json.Unmarshal(text, &said) != nil {
		return false
	}
	var inner struct{ Message, Type string }
	if json.Unmarshal(said["error"], &inner) == nil && inner.Message+inner.Type != "" {
		return true
	}
	return len(said["message"]) > 2 || len(said["type"]) > 2 || len(said["error"]) > 2 && said["error"][0] == '"'
}

// messageOf is an answer that tells a status, and the first words of what came with it.
func messageOf(status int, text []byte) []byte {
	words := fmt.Sprintf("HTTP status %d %s", status, http.StatusText(status))
	if first := strings.Join(strings.Fields(string(text)), " "); first != "" {
		if len(first) > 200 {
			first = strings.ToValidUTF8(first[:200], "") + " …"
		}
		words += ": " + first
	}
	out, err := json.Marshal(map[string]any{"error": map[string]any{"message": words, "code": status}})
	if err != nil {
		panic(err) // text always encodes
	}
	return out
}
