package catalogs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"icepipe/internal/spelling"
)

// A property is what is known of a key of a catalog's configuration.
type property struct {
	ignored string // why it does nothing here, for a warning; empty where it does what it says
	idle    bool   // it has no meaning for this program, and nobody misses it
	secret  bool
}

// Why a property that PyIceberg knows does nothing here.
const (
	notInLibrary = "the storage clients that are built in do not know it"
	inHDFS       = "HDFS cannot be reached"
	inPython     = "it names Python code"
	notSigned    = "requests are not signed by a server: let the catalog vend credentials, or give keys"
)

// known are the properties that PyIceberg, iceberg-go or this program know. A name that ends in a dot or a
// star stands for all that begin so.
var known = map[string]property{
	"type": {}, "uri": {}, "warehouse": {}, "prefix": {}, "sql.dialect": {}, "sql.driver": {idle: true},

	// rest
	"token": {secret: true}, "credential": {secret: true}, "scope": {}, "audience": {}, "resource": {},
	"oauth2-server-uri": {}, "rest.authorization-url": {}, "rest.sigv4-enabled": {}, "rest.signing-region": {},
	"rest.signing-name": {}, "rest.sigv4.max-retries": {idle: true}, "rest.tls.skip-verify": {},
	"ssl.cabundle": {}, "ssl.client.cert": {}, "ssl.client.key": {}, "header.": {secret: true},
	"header.x-iceberg-access-delegation": {}, "header.content-type": {}, "auth.type": {},
	"auth.": {secret: true}, "auth.oauth2.refresh_margin": {idle: true}, "auth.oauth2.expires_in": {idle: true}, "rest-page-size": {idle: true},
	"snapshot-loading-mode": {idle: true}, "scan-planning-mode": {idle: true}, "view-endpoints-supported": {idle: true},
	"namespace-separator": {}, timeoutKey: {}, "rest-metrics-reporting-enabled": {}, "rest.metrics-reporting-enabled": {},
	"rest-metrics-reporting-timeout-ms": {},

	// glue, of which client.* are fall-backs
	"glue.id": {}, "glue.endpoint": {}, "glue.region": {}, "glue.profile-name": {}, "glue.access-key-id": {secret: true},
	"glue.secret-access-key": {secret: true}, "glue.session-token": {secret: true}, "glue.max-retries": {}, "glue.retry-mode": {},
	"glue.skip-archive": {},

	// hive
	"ugi": {}, "hive.hive2-compatible": {}, "hive.kerberos-authentication": {}, "hive.kerberos-service-name": {},
	"lock-check-min-wait-time": {idle: true}, "lock-check-max-wait-time": {idle: true}, "lock-check-retries": {idle: true},

	// sql
	"echo": {idle: true}, "pool_pre_ping": {idle: true}, "init_catalog_tables": {idle: true}, "jdbc.schema-version": {idle: true},

	// storage
	"s3.endpoint": {}, "s3.region": {}, "s3.access-key-id": {secret: true}, "s3.secret-access-key": {secret: true},
	"s3.session-token": {secret: true}, "s3.proxy-uri": {secret: true}, "s3.connect-timeout": {},
	"s3.force-virtual-addressing": {}, "s3.compat-mode": {}, "s3.remote-signing-enabled": {}, "s3.signer.uri": {},
	"s3.signer":          {ignored: notSigned},
	"s3.signer.endpoint": {ignored: notSigned},
	"s3.profile-name":    {}, "client.profile-name": {}, "s3.anonymous": {}, "s3.request-timeout": {}, "s3.resolve-region": {ignored: "give s3.region"},
	"s3.role-arn": {}, "s3.role-session-name": {}, "client.role-arn": {}, "client.role-session-name": {},
	"s3.retry-strategy-impl": {ignored: inPython}, "s3.server-side-encryption": {}, "s3.sse-kms-key-id": {},
	"client.region": {}, "client.access-key-id": {secret: true}, "client.secret-access-key": {secret: true}, "client.session-token": {secret: true},

	"gcs.endpoint": {}, "gcs.service.host": {}, "gcs.keypath": {}, "gcs.jsonkey": {secret: true}, "gcs.credtype": {}, "gcs.usejsonapi": {},
	"gcs.no-auth": {}, "gcs.oauth2.token": {secret: true}, "gcs.oauth2.token-expires-at": {},
	"gcs.project-id": {idle: true}, "gcs.access": {idle: true}, "gcs.consistency": {idle: true}, "gcs.cache-timeout": {idle: true},
	"gcs.requester-pays": {ignored: notInLibrary}, "gcs.session-kwargs": {ignored: inPython}, "gcs.default-bucket-location": {idle: true},
	"gcs.version-aware": {ignored: notInLibrary},

	"adls.sas-token.": {secret: true}, "adls.connection-string.": {secret: true}, "adls.endpoint": {}, "adls.protocol": {},
	"adls.auth.shared-key.account.name": {}, "adls.auth.shared-key.account.key": {secret: true},
	"adls.auth.managed-identity.enabled": {}, "adls.client-id": {}, "adls.sas-token-expires-at-ms.": {},
	"adls.connection-string": {secret: true}, "adls.sas-token": {secret: true}, "adls.account-name": {}, "adls.account-key": {secret: true},
	"adls.credential": {secret: true, ignored: inPython}, "adls.tenant-id": {ignored: "set AZURE_TENANT_ID"},
	"adls.client-secret": {secret: true, ignored: "set AZURE_CLIENT_SECRET, AZURE_CLIENT_ID and AZURE_TENANT_ID"}, "adls.account-host": {},
	"adls.blob-storage-authority": {}, "adls.blob-storage-scheme": {},
	"adls.dfs-storage-authority": {idle: true}, "adls.dfs-storage-scheme": {idle: true},
	"adls.token": {secret: true, ignored: notInLibrary}, "adls.anon": {ignored: notInLibrary},

	"hdfs.host": {ignored: inHDFS}, "hdfs.port": {ignored: inHDFS}, "hdfs.user": {ignored: inHDFS}, "hdfs.kerberos_ticket": {ignored: inHDFS, secret: true},
	"hf.endpoint": {ignored: "hf:// cannot be reached"}, "hf.token": {ignored: "hf:// cannot be reached", secret: true},

	// Python's own
	"py-io-impl": {ignored: inPython}, "py-catalog-impl": {ignored: inPython}, "botocore_session": {ignored: inPython},
	"downcast-ns-timestamp-to-us-on-write": {idle: true}, "output": {idle: true},
}

// propertyOf tells what is known of a key, and whether anything is.
func propertyOf(key string) (property, bool) {
	if p, ok := known[key]; ok {
		return p, true
	}
	for cut := strings.LastIndexByte(key, '.'); cut >= 0; cut = strings.LastIndexByte(key[:cut], '.') {
		if p, ok := known[key[:cut+1]]; ok {
			return p, true
		}
	}
	return property{}, false
}

// leftOut says which of a catalog's properties do nothing, by key.
func leftOut(properties map[string]string) (texts []string) {
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if p, ok := propertyOf(key); ok && p.ignored != "" {
			texts = append(texts, fmt.Sprintf("%s does nothing: %s", key, p.ignored))
		}
	}
	return texts
}

// unknown says which of a catalog's properties nobody knows, and what may be meant.
func unknown(properties map[string]string) (texts []string) {
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if _, ok := propertyOf(key); ok {
			continue
		}
		text := key + " is not known, and is handed to the catalog's and the storage's client as it is"
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if !strings.HasSuffix(name, ".") && spelling.Distance(key, name) <= max(1, len(key)/6) {
				text += fmt.Sprintf(": %s is known", name)
				break
			}
		}
		texts = append(texts, text)
	}
	return texts
}

// shown is a property's value for people: hidden where it is secret, or may be since nobody knows it.
func shown(key, value string) (text string, hidden bool) {
	p, ok := propertyOf(key)
	switch {
	case value == "":
		return "", false
	case p.secret || !ok:
		return "***", true
	case strings.Contains(value, "://"):
		text = withoutSecrets(value)
		return text, text != value
	}
	return value, false
}

// withoutSecrets is a uri whose password is hidden, and of whose parameters the harmless alone are shown.
func withoutSecrets(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	from := 0 // a password may hold a question mark
	if q := strings.IndexByte(rest, '?'); q >= 0 && !strings.Contains(rest[:q], "@") {
		from = strings.LastIndexByte(rest, '@') + 1
	}
	behind, query, asks := strings.Cut(rest[from:], "?")
	behind, _, _ = strings.Cut(behind, "#")
	rest = rest[:from] + behind
	u, err := parseSQLAlchemy(scheme + "://" + rest)
	at := strings.LastIndexByte(rest, '@')
	switch {
	case isServer(schemeOf(uri)) && err == nil && u.password == nil: // a user's name is no secret
	case isServer(schemeOf(uri)) && err == nil:
		rest = u.rawUser + ":***@" + u.rest
	case at >= 0 && (strings.HasPrefix(scheme, "http") || strings.Contains(rest[:at], ":")):
		rest = "***@" + rest[at+1:]
	}
	if !asks {
		return scheme + "://" + rest
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		if name, _, _ := strings.Cut(p, "="); !harmless[strings.ToLower(name)] {
			parameters[i] = name + "=***"
		}
	}
	return scheme + "://" + rest + "?" + strings.Join(parameters, "&")
}

// harmless are parameters of database uris that are no secrets.
var harmless = map[string]bool{
	"sslmode": true, "connect_timeout": true, "application_name": true, "charset": true, "timeout": true,
	"check_same_thread": true, "uri": true, "mode": true, "host": true, "port": true, "target_session_attrs": true,
	"unix_socket": true, "sslrootcert": true, "ssl_ca": true,
}
