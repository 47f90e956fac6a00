package storage

import (
	"maps"
	"net/url"
	"strings"
)

// Settled are properties in the names that the library reads, from those of PyIceberg's that it does not know.
// place is the bucket, scheme://authority, that they are for; without it those of an account stay as they are. What is given in the library's own names counts.
func Settled(properties map[string]string, place string) map[string]string {
	p := maps.Clone(properties)
	if p == nil {
		p = map[string]string{}
	}
	take := func(to, from string) {
		if p[to] == "" && p[from] != "" {
			p[to] = p[from]
		}
	}
	if p["s3.access-key-id"] == "" && p["s3.secret-access-key"] == "" { // a pair is of one source
		take("s3.access-key-id", "client.access-key-id")
		take("s3.secret-access-key", "client.secret-access-key")
		take("s3.session-token", "client.session-token")
	}
	// A server of GCS is known by its root to Java and PyIceberg; the library wants to know where its JSON API is.
	for _, key := range []string{"gcs.service.host", "gcs.endpoint"} {
		if u, err := url.Parse(p[key]); err == nil && u.Host != "" && strings.Trim(u.Path, "/") == "" {
			p[key] = strings.TrimRight(p[key], "/") + "/storage/v1/"
		}
	}
	_, authority, _ := strings.Cut(place, "://")
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	account, _, _ := strings.Cut(host, ".")
	take("adls.auth.shared-key.account.name", "adls.account-name")
	take("adls.auth.shared-key.account.key", "adls.account-key")
	if p["adls.auth.shared-key.account.key"] == "" {
		delete(p, "adls.auth.shared-key.account.name") // PyIceberg names an account beside a token too
	}
	if host != "" {
		take("adls.sas-token."+host, "adls.sas-token."+account)
		take("adls.sas-token."+host, "adls.sas-token")
		take("adls.connection-string."+account, "adls.connection-string")
	}
	if p["adls.endpoint"] == "" {
		if authority := strings.TrimPrefix(p["adls.blob-storage-authority"], "."); authority != "" {
			p["adls.endpoint"] = authority
		} else if domain, ok := strings.CutPrefix(p["adls.account-host"], account+"."); ok {
			p["adls.endpoint"] = domain
		}
	}
	take("adls.protocol", "adls.blob-storage-scheme")
	return p
}
