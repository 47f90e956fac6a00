package catalogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/apache/iceberg-go/catalog"

	"icepipe/pkg/rows"
)

// settleHive finds the addresses of the metastore: that of the flag, of base, or the configured uri.
func settleHive(ref *Ref, f TableFlags, env Env) error {
	if f.DBPath != "" {
		return usage("%s is the database of a sqlite catalog; a hive catalog is reached at an address: give %s", ref.flag("db-path"), ref.flag("uri"))
	}
	full, from := ref.address(f, sameThrift)
	if full == "" {
		return usage("%s is missing: a hive catalog is reached at an address", ref.flag("uri"))
	}
	address, err := thriftAddress(full)
	if err != nil {
		return usage("%s: %v", ref.where(), err)
	}
	if strings.EqualFold(ref.Properties["hive.kerberos-authentication"], "true") {
		return usage("%s: Kerberos is not supported: reach the metastore without it, or a REST catalog before it", ref.property("hive.kerberos-authentication"))
	}
	ref.setProperty("uri", full, from)
	ref.Place.URI = address
	ref.Place.Warehouse = cmp.Or(withoutUser(f.Warehouse), ref.Place.Warehouse)
	return nil
}

// sameHive tells whether configured properties are those of the catalog at place.
func sameHive(properties map[string]string, place rows.Place, _ Env) bool {
	return sameThrift(properties["uri"], place.URI)
}

func sameThrift(full, address string) bool {
	a, err := thriftAddress(full)
	return err == nil && a == address
}

// thriftAddress is a list of addresses of one metastore, the first of which that answers is taken, in one form.
func thriftAddress(full string) (string, error) {
	var out []string
	for _, text := range strings.Split(full, ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil || u.Scheme != "thrift" || u.Hostname() == "" {
			return "", errors.New("want a uri thrift://HOST:9083, or several with commas between them")
		}
		out = append(out, "thrift://"+net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "9083")))
	}
	return strings.Join(out, ","), nil
}

// openHive loads the table that a Hive Metastore knows.
func openHive(ctx context.Context, ref Ref, mode Mode) (*Opened, error) {
	return openMetastore(ctx, ref, mode, catalog.Hive, &hiveStore{ref: ref})
}

// hosts are the metastore's, in the order in which they are tried.
func (r Ref) hosts() (out []string) {
	for _, text := range strings.Split(r.Place.URI, ",") {
		out = append(out, strings.TrimPrefix(text, "thrift://"))
	}
	return out
}

// unreachable says that no metastore answers.
func (r Ref) unreachable(err error) error {
	return fmt.Errorf("cannot connect to catalog %q: %w; see to %s", r.Place.URI, err, r.where())
}
