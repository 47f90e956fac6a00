package catalogs

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	icesql "github.com/apache/iceberg-go/catalog/sql"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"icepipe/pkg/rows"
)

// connectTimeout is how long a connection to a database server may take to be made, where its uri does not
// say so.
const connectTimeout = 30 * time.Second

// settleServer finds the database: that of the flag, of base, or of the configured uri. User, password and
// query in it stay in the Properties, which are not recorded.
func settleServer(ref *Ref, f TableFlags, _ Env) error {
	if f.DBPath != "" {
		return usage("%s is the file of a sqlite catalog; a sql catalog on a server is reached at an address: give %s", ref.flag("db-path"), ref.flag("uri"))
	}
	full, from := ref.address(f, sameServerAddress)
	if full == "" {
		return usage("%s is missing: a sql catalog is reached at an address, such as postgresql://USER@HOST/DATABASE", ref.flag("uri"))
	}
	u, err := serverOf(full)
	if err == nil {
		_, err = u.connector()
	}
	if err != nil {
		return usage("%s: %v", ref.where(), err)
	}
	ref.setProperty("uri", full, from)
	ref.Place.URI = u.address()
	ref.Place.Warehouse = cmp.Or(withoutUser(f.Warehouse), ref.Place.Warehouse)
	return nil
}

// sameServer tells whether configured properties are those of the database at place.
func sameServer(properties map[string]string, place rows.Place, _ Env) bool {
	return sameServerAddress(properties["uri"], place.URI)
}

func sameServerAddress(full, address string) bool {
	u, err := serverOf(full)
	return err == nil && u.address() == address
}

// openServer connects to the database, finds the name under which it lists the table, and loads it.
func openServer(ctx context.Context, ref Ref, mode Mode) (*Opened, error) {
	u, err := serverOf(cmp.Or(ref.Properties["uri"], ref.Place.URI))
	if err != nil {
		return nil, usage("%s: %v", ref.where(), err)
	}
	db, err := u.connector()
	if err != nil {
		return nil, usage("%s: %v", ref.where(), err)
	}
	d := database{db: db, dialect: icesql.Postgres, done: db.Close}
	if u.dialect == "mysql" {
		d.dialect = icesql.MySQL
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		d.done()
		return nil, ref.databaseError(err)
	}
	return openIn(ctx, ref, mode, d)
}

// connector prepares connections to the database that u names; none is made yet. Its errors hold no secrets:
// they are not the drivers'. Nothing is said of reading alone: a pooler between would refuse it, or let
// others have it.
func (u *sqlURI) connector() (*sql.DB, error) {
	if u.dialect == "mysql" {
		config, err := u.mysql()
		if err != nil {
			return nil, err
		}
		made, err := mysql.NewConnector(config)
		if err != nil {
			return nil, errors.New("the driver of MySQL does not take the uri: see to its parameters")
		}
		return sql.OpenDB(made), nil
	}
	config, err := u.postgres()
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*config), nil
}

// postgresParameters are those of a uri that libpq, on which Python's drivers stand, and pgx both know.
var postgresParameters = []string{
	"host", "port", "user", "password", "dbname", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslpassword", "sslsni",
	"sslnegotiation", "connect_timeout", "application_name", "options", "service", "servicefile", "passfile",
	"target_session_attrs", "krbsrvname", "channel_binding", "client_encoding",
}

func (u *sqlURI) postgres() (*pgx.ConnConfig, error) {
	dsn := url.URL{Scheme: "postgres", Path: "/" + u.database, Host: u.host}
	if strings.Contains(u.host, ":") {
		dsn.Host = "[" + u.host + "]"
	}
	if u.port > 0 {
		dsn.Host += ":" + strconv.Itoa(u.port)
	}
	switch {
	case u.password != nil:
		dsn.User = url.UserPassword(u.user, *u.password)
	case u.user != "":
		dsn.User = url.User(u.user)
	}
	query := url.Values{}
	for _, key := range slices.Sorted(maps.Keys(u.query)) {
		if !slices.Contains(postgresParameters, key) {
			return nil, fmt.Errorf("parameter %q of the uri is not supported: leave it out", key)
		}
		if key != "client_encoding" { // which is UTF-8
			query.Set(key, strings.Join(u.query[key], ","))
		}
	}
	dsn.RawQuery = query.Encode()
	config, err := pgx.ParseConfig(dsn.String())
	if err != nil {
		var parse *pgconn.ParseConfigError
		var whole *url.Error
		if errors.As(err, &parse) && errors.Unwrap(parse) != nil && !errors.As(err, &whole) { // what is around it holds the uri
			return nil, fmt.Errorf("the driver of PostgreSQL does not take the uri: %w", errors.Unwrap(parse))
		}
		return nil, errors.New("the driver of PostgreSQL does not take the uri: see to its parameters")
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout && u.query.Get("connect_timeout") == "" {
		config.ConnectTimeout = connectTimeout
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // keeps no statements, which a pool in between would lose
	return config, nil
}

// mysql translates the parameters that PyMySQL and mysqlclient know.
func (u *sqlURI) mysql() (*mysql.Config, error) {
	c := mysql.NewConfig()
	c.User, c.DBName, c.Net = u.user, u.database, "tcp"
	if u.password != nil {
		c.Passwd = *u.password
	}
	c.Addr = net.JoinHostPort(cmp.Or(u.host, "127.0.0.1"), strconv.Itoa(cmp.Or(u.port, 3306)))
	c.Timeout = connectTimeout
	c.Logger = &mysql.NopLogger{}
	secure := &tls.Config{ServerName: u.host}
	encrypted := false
	for _, key := range slices.Sorted(maps.Keys(u.query)) {
		value := u.query.Get(key)
		var err error
		switch key {
		case "charset": // what is sent is UTF-8
		case "unix_socket":
			c.Net, c.Addr = "unix", value
		case "connect_timeout":
			c.Timeout, err = seconds(value)
		case "read_timeout":
			c.ReadTimeout, err = seconds(value)
		case "write_timeout":
			c.WriteTimeout, err = seconds(value)
		case "ssl_ca":
			var text []byte
			if text, err = os.ReadFile(value); err == nil {
				secure.RootCAs, encrypted = x509.NewCertPool(), true
				if !secure.RootCAs.AppendCertsFromPEM(text) {
					err = fmt.Errorf("%q holds no certificate in PEM", value)
				}
			}
		default:
			err = errors.New("it is not supported: leave it out")
		}
		if err != nil {
			return nil, fmt.Errorf("parameter %q of the uri: %w", key, err)
		}
	}
	if encrypted {
		c.TLS = secure
	}
	return c, nil
}

func seconds(text string) (time.Duration, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, errors.New("want a number of seconds")
	}
	return time.Duration(n) * time.Second, nil
}
