package catalogs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A transport carries the library's requests to a REST catalog. It does what the library does not:
//
//   - each request has a deadline, the reading of its answer included: the library has none, and a server
//     that stalls would hold a commit for ever;
//   - a user and a query in an address are added here, so that no error of the library can name them;
//   - an answer that sends a request on to another server is an error: the library would send the token, or the
//     credential itself, along;
//   - an answer has an end, and what is no answer of a catalog's, such as the page of a proxy, says with which status
//     it came;
//   - a table's name that holds a percent sign is encoded as it should be: the library asks for the table A
//     where "%41" is meant;
//   - a load asks for all snapshots, whatever the server's configuration says: where snapshot-loading-mode
//     is refs the library asks for the heads alone, and the marks in all others would not be found.
type transport struct {
	next    http.RoundTripper
	secrets []*url.URL // addresses with user and query
	timeout time.Duration
}

// newTransport returns a transport of its own, and what gives its connections back.
func newTransport(config *tls.Config, secrets []*url.URL, timeout time.Duration) (http.RoundTripper, func()) {
	next := http.DefaultTransport.(*http.Transport).Clone()
	if config != nil {
		next.TLSClientConfig = config
	}
	return &transport{next: next, secrets: secrets, timeout: timeout}, next.CloseIdleConnections
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := sentOn(r); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), t.timeout)
	sent := r.Clone(ctx)
	t.complete(sent)
	answer, err := t.next.RoundTrip(sent)
	if err != nil {
		cancel()
		return nil, t.late(r.Context(), err)
	}
	answer.Body = &body{ReadCloser: answer.Body, cancel: cancel, left: longestAnswer, late: func(err error) error { return t.late(r.Context(), err) }}
	return worded(answer)
}

// tableName is the key by which a context holds the name of the table that a call is for.
type tableName struct{}

// about returns a context for calls about a table.
func about(ctx context.Context, identifier []string) context.Context {
	if name := identifier[len(identifier)-1]; strings.Contains(name, "%") {
		return context.WithValue(ctx, tableName{}, name)
	}
	return ctx
}

// encodeName puts the name of the table that a call is for into the address.
func encodeName(r *http.Request) {
	const route = "/tables/"
	path := r.URL.EscapedPath()
	name, ok := r.Context().Value(tableName{}).(string)
	at := strings.LastIndex(path, route)
	if !ok || at < 0 {
		return
	}
	at += len(route)
	end := len(path)
	if more := strings.IndexByte(path[at:], '/'); more >= 0 {
		end = at + more
	}
	fixed := path[:at] + url.PathEscape(name) + path[end:]
	if plain, err := url.PathUnescape(fixed); err == nil {
		r.URL.Path, r.URL.RawPath = plain, fixed
	}
}

// complete adds what the library does not know or gets wrong.
func (t *transport) complete(r *http.Request) {
	encodeName(r)
	query := r.URL.Query()
	if query.Get("snapshots") == "refs" {
		query.Set("snapshots", "all")
		r.URL.RawQuery = query.Encode() // only where it changes, since a request may be signed
	}
	for _, secret := range t.secrets {
		if r.URL.Host != secret.Host || !below(r.URL.Path, secret) {
			continue // nothing of it goes to another server
		}
		if own := secret.Query(); len(own) > 0 {
			maps.Copy(query, own)
			r.URL.RawQuery = query.Encode()
		}
		if user := secret.User; user != nil && r.Header.Get("Authorization") == "" {
			password, _ := user.Password()
			r.SetBasicAuth(user.Username(), password)
		}
	}
}

// below tells whether a path is that of an address, or one below it. The library cleans the paths that it makes.
func below(path string, address *url.URL) bool {
	folder := strings.TrimRight(address.JoinPath().Path, "/")
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// late says of an error whether it is that the server took too long.
func (t *transport) late(asked context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && asked.Err() == nil {
		return fmt.Errorf("no answer within %s (%s): %w", t.timeout, timeoutKey, context.DeadlineExceeded)
	}
	return err
}

// A body gives the deadline back once it is read or closed, and ends with an error where there is no end of it.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
	left   int64 // bytes that may come
	late   func(error) error
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d MiB", longestAnswer>>20)
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		err = b.late(err)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// withoutMethod is an error of an HTTP client without the method and address that stand before its cause.
func withoutMethod(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) && strings.HasPrefix(err.Error(), wrapped.Op) {
		return wrapped.Err
	}
	return err
}
