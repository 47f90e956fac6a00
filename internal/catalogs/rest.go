package catalogs

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"

	"icepipe/internal/storage"
	"icepipe/pkg/rows"
)

// settleREST finds the address: that of the flag, of base, or the configured uri. A user and a query in
// it stay in the Properties, which are not recorded.
func settleREST(ref *Ref, f TableFlags, env Env) error {
	if f.DBPath != "" {
		return usage("%s is the database of a sqlite catalog; a rest catalog is reached at an address: give %s", ref.flag("db-path"), ref.flag("uri"))
	}
	full, from := ref.address(f, sameAddress)
	if full == "" {
		return usage("%s is missing: a rest catalog is reached at an address", ref.flag("uri"))
	}
	address, err := addressOf(full)
	if err != nil {
		return usage("%s: %v", ref.where(), err)
	}
	if _, err := authenticated(ref.Properties); err != nil {
		return usage("%s: %v", ref.catalog(), err)
	}
	if _, err := callTimeout(ref.Properties); err != nil {
		return usage("%s: %v", ref.property(timeoutKey), err)
	}
	ref.setProperty("uri", full, from)
	ref.Place.URI = address
	ref.Place.Prefix = cmp.Or(ref.Properties["prefix"], ref.Place.Prefix)
	ref.Place.Warehouse = cmp.Or(withoutUser(f.Warehouse), ref.Place.Warehouse)
	return nil
}

// sameREST tells whether configured properties are those of the catalog at place.
func sameREST(properties map[string]string, place rows.Place, _ Env) bool {
	return sameAddress(properties["uri"], place.URI)
}

func sameAddress(full, address string) bool {
	a, err := addressOf(full)
	return err == nil && a == address
}

// addressOf is a uri without what may be secret in it: user, query and fragment.
func addressOf(full string) (string, error) {
	u, err := url.Parse(full)
	if err != nil {
		return "", errors.New("want a uri such as https://HOST/PATH (what was given cannot be read as one)")
	}
	behind := u.EscapedPath() + "?" + u.RawQuery
	if before, _, ok := strings.Cut(behind, "@"); ok && (u.User != nil || u.Port() != "" || strings.Contains(before, ":")) { // which may be the end of a password
		return "", errors.New("an @ in a user's name or password, and behind the host, is written %40, and a slash in a password %2F")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("want a uri such as https://HOST/PATH, not one of scheme %q", u.Scheme)
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}).String(), nil
}

// openREST asks the server for its configuration and loads the table.
func openREST(ctx context.Context, ref Ref, mode Mode) (*Opened, error) {
	name := ref.Identifier[len(ref.Identifier)-1]
	if _, err := url.PathUnescape(name); err != nil { // of namespaces the library minds percent signs
		return nil, fmt.Errorf("table %s: the client of REST catalogs cannot ask for %q, whose percent sign is not followed by two hexadecimal digits: give the table another name in the catalog", ref, name)
	}
	cat := &restCatalog{refusing: refusing{ref.Place.URI}, ref: ref, mode: mode}
	inner, err := cat.connect(ctx)
	if err != nil {
		return nil, cat.explain(err)
	}
	cat.inner = inner
	tbl, err := cat.LoadTable(ctx, ref.Identifier)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		err = cat.notThere(ctx)
	} else if err != nil {
		err = fmt.Errorf("load table %s: %w", ref, err)
	}
	if err != nil {
		return nil, errors.Join(err, cat.Close())
	}
	return &Opened{Catalog: cat, Table: tbl, Ref: ref, close: cat.Close}, nil
}

// connect makes a catalog of the library's: it asks for the server's configuration, and, where there is a
// credential, for a token.
func (c *restCatalog) connect(ctx context.Context) (*rest.Catalog, error) {
	block, err := authenticated(c.ref.Properties)
	if err != nil {
		return nil, err
	}
	p := iceberg.Properties(storage.Settled(block, ""))
	if c.spent {
		delete(p, "token")
	}
	options, err := authentication(p)
	if err != nil {
		return nil, err
	}
	timeout, err := callTimeout(p)
	if err != nil {
		return nil, err
	}
	secrets, err := secretsOf(p)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := tlsOf(p)
	if err != nil {
		return nil, err
	}
	if tlsConfig != nil {
		options = append(options, rest.WithTLSConfig(tlsConfig))
	}
	options = append(options,
		rest.WithTransportFactory(func(config *tls.Config) (http.RoundTripper, func()) {
			return newTransport(config, secrets, timeout)
		}),
		rest.WithPrefix(c.ref.Place.Prefix))
	if w := cmp.Or(p["warehouse"], c.ref.Place.Warehouse); w != "" {
		options = append(options, rest.WithWarehouseLocation(w))
	}
	for _, own := range []string{"type", "uri", "warehouse", "prefix", "token", "credential", "scope", "audience", "resource", "rest.tls.skip-verify"} {
		delete(p, own)
	}
	options = append(options, rest.WithAdditionalProps(p)) // headers, and what the storage wants
	return rest.NewCatalog(ctx, c.ref.Place.Name, c.ref.Place.URI, options...)
}

// authentication are the options that let the first call pass already, which asks for the configuration.
func authentication(p iceberg.Properties) ([]rest.Option, error) {
	var out []rest.Option
	for key, option := range map[string]func(string) rest.Option{
		"token": rest.WithOAuthToken, "credential": rest.WithCredential, "scope": rest.WithScope,
		"audience": rest.WithAudience, "resource": rest.WithResource,
	} {
		if p[key] != "" {
			out = append(out, option(p[key]))
		}
	}
	u, err := tokenServer(p)
	if err != nil {
		return nil, err
	}
	if u != nil {
		out = append(out, rest.WithAuthURI(&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}))
	}
	if strings.EqualFold(p["rest.sigv4-enabled"], "true") {
		out = append(out, rest.WithSigV4RegionSvc(p["rest.signing-region"], p["rest.signing-name"]))
	}
	return out, nil
}

// tokenServer is where tokens are got, nil where properties do not say it.
func tokenServer(p iceberg.Properties) (*url.URL, error) {
	server := cmp.Or(p["oauth2-server-uri"], p["rest.authorization-url"])
	if server == "" {
		return nil, nil
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil, errors.New("property oauth2-server-uri: want a uri such as https://HOST/PATH")
	}
	return u, nil
}

// secretsOf are the addresses that properties name, with what may be secret in them.
func secretsOf(p iceberg.Properties) ([]*url.URL, error) {
	own, err := url.Parse(p["uri"])
	if err != nil {
		return nil, err
	}
	tokens, err := tokenServer(p)
	if tokens == nil {
		return []*url.URL{own}, err
	}
	return []*url.URL{own, tokens}, nil
}

// tlsOf are the certificates that properties name, as PyIceberg calls them; nil for those of the system.
func tlsOf(p iceberg.Properties) (*tls.Config, error) {
	bundle, cert, key := p["ssl.cabundle"], p["ssl.client.cert"], p["ssl.client.key"]
	skip := strings.EqualFold(p["rest.tls.skip-verify"], "true")
	if bundle == "" && cert == "" && !skip {
		return nil, nil
	}
	config := &tls.Config{InsecureSkipVerify: skip} // only where the user asks for it
	if bundle != "" {
		text, err := os.ReadFile(bundle)
		if err != nil {
			return nil, fmt.Errorf("property ssl.cabundle: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("property ssl.cabundle: %q holds no certificate in PEM", bundle)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, cmp.Or(key, cert))
		if err != nil {
			return nil, fmt.Errorf("property ssl.client.cert: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// timeoutKey is Java's name of the property that bounds one call.
const timeoutKey = "rest.client.socket-timeout-ms"

const defaultTimeout = 2 * time.Minute

// callTimeout is how long one call to the server may take.
func callTimeout(p map[string]string) (time.Duration, error) {
	text := p[timeoutKey]
	if text == "" {
		return defaultTimeout, nil
	}
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil || ms < 1 {
		return 0, fmt.Errorf("%q: want milliseconds", text)
	}
	return time.Duration(ms) * time.Millisecond, nil
}
