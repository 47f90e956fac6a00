package catalogs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/apache/iceberg-go/catalog/rest"
)

// A refusedError is the answer of a server that asking again does not change.
type refusedError struct {
	text  string
	cause error
}

func (e *refusedError) Error() string { return e.text }
func (e *refusedError) Unwrap() error { return e.cause }

// Lasting tells the commit protocol not to ask again.
func (e *refusedError) Lasting() bool { return true }

// explain says what the user can do about an error of the server's; other errors stay.
func (c *restCatalog) explain(err error) error {
	refused := func(format string, args ...any) error {
		return &refusedError{fmt.Sprintf("catalog %q ", c.ref.Place.URI) + fmt.Sprintf(format, args...), err}
	}
	var elsewhere *redirected
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &elsewhere):
		return refused("%v; see to %s", elsewhere, c.ref.where())
	case errors.Is(err, rest.ErrOAuthError):
		// The library words an answer of the token endpoint without its own sentinel's text, and all else,
		// such as a server that is away, with it.
		if !strings.Contains(err.Error(), rest.ErrOAuthError.Error()) {
			return refused("refuses the credential (%s): give another by %s", withoutMethod(err), c.ref.property("credential"))
		}
		return fmt.Errorf("catalog %q: no token can be had: %w", c.ref.Place.URI, err)
	case ended(err) && c.ref.Properties["credential"] != "":
		return refused("refuses every token that it gives out for the credential (%s): see to %s and the scope", withoutMethod(err), c.ref.property("credential"))
	case ended(err) && c.ref.Properties["token"] != "":
		return refused("refuses the token (%s): it is wrong, or has ended; give another by %s and run again", withoutMethod(err), c.ref.property("token"))
	case ended(err):
		return refused("wants a token (%s): give %s, or %s for client credentials ID:SECRET", withoutMethod(err), c.ref.property("token"), c.ref.property("credential"))
	case errors.Is(err, rest.ErrForbidden):
		return refused("forbids it (%s): see to the rights of whoever the token or credential is given to", withoutMethod(err))
	case errors.As(err, &dns), errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("cannot connect to catalog %q: %w; see to %s", c.ref.Place.URI, withoutMethod(err), c.ref.where())
	case c.current() == nil && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("catalog %q: %w; see to %s", c.ref.Place.URI, withoutMethod(err), c.ref.where())
	case c.current() == nil && errors.Is(err, rest.ErrRESTError) && !errors.Is(err, rest.ErrServerError) && !errors.Is(err, rest.ErrServiceUnavailable):
		return fmt.Errorf("%q is not the address of a REST catalog, whose configuration lies at /v1/config below it: %w; see to %s", c.ref.Place.URI, withoutMethod(err), c.ref.where())
	}
	return fmt.Errorf("catalog %q: %w", c.ref.Place.URI, err)
}

// notThere says that the table does not exist, what is near, and the cure. What cannot be found out about
// what is near is left out.
func (c *restCatalog) notThere(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, nearTimeout)
	defer cancel()
	ref, server := c.ref, c.current()
	if view, err := server.CheckViewExists(ctx, ref.Identifier); err == nil && view {
		return fmt.Errorf("%s is a view, not a table: name the table that it reads", ref)
	}
	m := missing{ref, c.mode, fmt.Sprintf("table %s is not in catalog %q", ref, ref.Place.URI), "that namespace", ""}
	namespace := ref.Identifier[:len(ref.Identifier)-1]
	all, _ := c.ListNamespaces(ctx, nil)
	switch there, err := c.CheckNamespaceExists(ctx, namespace); {
	case err == nil && !there:
		m.text += without("namespace", namespace, all)
	case there:
		m.none = "that namespace lists no tables"
	}
	return m.among(ctx, c, all)
}
