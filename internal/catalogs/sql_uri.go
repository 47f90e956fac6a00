package catalogs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// A sqlURI is a uri as SQLAlchemy, and so PyIceberg, takes it apart. It holds secrets: no error about it
// holds more than the names in it.
type sqlURI struct {
	dialect, driver string
	user            string
	password        *string // nil where there is none; it may be empty
	host            string
	port            int // 0 where there is none
	database        string
	query           url.Values

	rawUser, rest string // as they are written; rest is what stands behind the @, without the query
}

// sqlalchemy is the grammar of sqlalchemy.engine.url, in which a user's name ends before a colon or a slash
// and a password before an @: such letters are percent-encoded in them.
var sqlalchemy = regexp.MustCompile(`^([\pL\pN_+]+)://(?:([^:/]*)(?::([^@]*))?@)?((?:(?:\[([^/?]+)\]|([^/:?]+))?(?::([^/?]*))?)?(?:/([^?]*))?)(?:\?(.*))?`)

// errEncoded says what is wrong with a uri whose parts are not where they should be.
var errEncoded = errors.New("the host or the port in the uri cannot be read; in a user's name, a password, and all else, an @ is written %40, a colon %3A and a slash %2F")

// parseSQLAlchemy takes a uri apart.
func parseSQLAlchemy(uri string) (*sqlURI, error) {
	at := sqlalchemy.FindStringSubmatchIndex(uri)
	if at == nil {
		return nil, errors.New("want a uri DIALECT://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	part := func(i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return uri[at[2*i]:at[2*i+1]]
	}
	u := &sqlURI{rawUser: part(2), user: unquote(part(2)), rest: part(4), host: part(5) + part(6), database: unquote(part(8))}
	u.dialect, u.driver, _ = strings.Cut(strings.ToLower(part(1)), "+")
	if behind := part(8) + part(9); strings.Contains(u.host, "@") || strings.Contains(behind, "@") && (u.rawUser != "" || part(7) != "") { // which may be the end of a password
		return nil, errEncoded
	}
	if at[2*3] >= 0 {
		password := unquote(part(3))
		u.password = &password
	}
	if port := part(7); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, errEncoded
		}
		u.port = int(n)
	}
	u.query = url.Values{}
	for _, pair := range strings.Split(part(9), "&") {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" { // as parse_qsl has it
			name, value = unquote(strings.ReplaceAll(name, "+", " ")), unquote(strings.ReplaceAll(value, "+", " "))
			u.query[name] = append(u.query[name], value)
		}
	}
	return u, nil
}

// unquote decodes %XX as Python's urllib does: what is no such code stays as it is, and what is no UTF-8
// is replaced.
func unquote(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b.WriteByte(c[0])
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// address is a server's database without user, password and query: what is recorded of it.
func (u *sqlURI) address() string {
	host := u.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.port > 0 {
		host += ":" + strconv.Itoa(u.port)
	}
	return fmt.Sprintf("%s://%s/%s", u.dialect, host, url.PathEscape(u.database))
}

// dialectNames gives the schemes of uris for servers one name each.
var dialectNames = map[string]string{
	"postgresql": "postgresql", "postgres": "postgresql", "mysql": "mysql", "mariadb": "mysql",
}

// isServer tells of a uri's scheme whether it is that of a database server.
func isServer(scheme string) bool { return dialectNames[scheme] != "" }

// serverOf takes the uri of a database server apart. what iceberg-go's own configuration adds in front,
// sql://, does not count.
func serverOf(uri string) (*sqlURI, error) {
	u, err := parseSQLAlchemy(strings.TrimPrefix(uri, "sql://"))
	if err != nil {
		return nil, err
	}
	name, ok := dialectNames[u.dialect]
	if !ok {
		return nil, fmt.Errorf("databases of the dialect %q are not supported: want a uri postgresql://…, mysql://… or sqlite:///…", u.dialect)
	}
	u.dialect = name
	return u, nil
}
