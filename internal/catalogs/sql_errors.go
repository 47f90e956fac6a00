package catalogs

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// isServerError tells of an error whether a database server made it. An error of the network alone may be
// of the storage too.
func isServerError(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	var connect *pgconn.ConnectError
	return errors.As(err, &pg) || errors.As(err, &my) || errors.As(err, &connect)
}

// serverError says what the user can do about an error of a database server's. What the drivers say of a
// connection names user and host, and is left out.
func (r Ref) serverError(err error) error {
	refused := func(format string, args ...any) error {
		return &refusedError{fmt.Sprintf("catalog %q ", r.Place.URI) + fmt.Sprintf(format, args...), err}
	}
	code, said := serverAnswer(err)
	switch code {
	case "28P01", "28000", "1045", "1698":
		if r.Properties["uri"] == "" {
			return refused("wants a user's name and password (%s), which are not recorded: give them in %s, or configure the catalog", said, r.flag("uri"))
		}
		return refused("refuses the user's name or password (%s): see to %s", said, r.where())
	case "3D000", "1049":
		return refused("has no such database (%s): see to %s", said, r.where())
	case "42501", "1142", "1143", "1044":
		return refused("forbids it (%s): see to the rights of the user in %s", said, r.where())
	case "25006":
		return refused("is open for reading alone (%s)", said)
	case "42P01", "1146":
		return refused("has no table iceberg_tables (%s), so it is no Iceberg catalog: see to %s", said, r.where())
	case "":
	default:
		return fmt.Errorf("catalog %q: %w", r.Place.URI, err)
	}
	var op *net.OpError
	var dns *net.DNSError
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("cannot connect to catalog %q: %w; see to %s", r.Place.URI, dns, r.where())
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("cannot connect to catalog %q: %w; see to %s", r.Place.URI, op, r.where())
	case errors.As(err, &connect):
		cause := errors.Unwrap(connect)
		if errors.Is(cause, context.DeadlineExceeded) {
			return fmt.Errorf("cannot connect to catalog %q: no answer in time; see to %s", r.Place.URI, r.where())
		}
		return fmt.Errorf("cannot connect to catalog %q: %w; see to %s", r.Place.URI, cause, r.where())
	}
	return fmt.Errorf("catalog %q: %w", r.Place.URI, err)
}

// serverAnswer is the code and the text of what a server answered.
func serverAnswer(err error) (code, said string) {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	switch {
	case errors.As(err, &pg):
		return pg.Code, pg.Message
	case errors.As(err, &my):
		return fmt.Sprint(my.Number), my.Message
	}
	return "", ""
}
