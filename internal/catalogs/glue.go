//go:build !noclouds

package catalogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/catalog"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/glue"

	"icepipe/pkg/rows"
)

// cloudKinds are the kinds of catalogs that need a cloud's SDK.
func cloudKinds() map[string]kind {
	return map[string]kind{"glue": {settle: settleGlue, same: sameGlue, open: openGlue}}
}

// glueSetting is a setting of a Glue catalog, and the property that says it: PyIceberg reads its own property, and then the one that is
// common to all of AWS (pyiceberg/catalog/glue.py).
func glueSetting(properties map[string]string, name string) (key, value string) {
	for _, key := range []string{"glue." + name, "client." + name} {
		if properties[key] != "" {
			return key, properties[key]
		}
	}
	return "glue." + name, ""
}

// glueHost is the address of Glue in a region of AWS.
var glueHost = regexp.MustCompile(`^https://glue\.([a-z0-9-]+)\.amazonaws\.com$`)

// settleGlue finds the endpoint or the region. What is recorded of it is an address, and the ID of the
// catalog as the prefix.
func settleGlue(ref *Ref, f TableFlags, env Env) error {
	if f.DBPath != "" {
		return usage("%s is the database of a sqlite catalog; a glue catalog is reached by %s", ref.flag("db-path"), ref.property("glue.region"))
	}
	if f.URI != "" {
		ref.setProperty("glue.endpoint", f.URI, ref.flag("uri"))
		ref.origin = ref.flag("uri")
	}
	address, err := glueAddress(ref.Properties, env)
	if err != nil {
		return usage("%s: %v", ref.property("glue.endpoint"), err)
	}
	if _, region := glueSetting(ref.Properties, "region"); region+ref.Properties["glue.endpoint"] != "" || ref.Place.URI == "" {
		ref.Place.URI = address // else it is the recorded one, whatever the variables of today say
	}
	if f.URI == "" {
		ref.origin = ref.property("glue.region")
		if ref.Properties["glue.endpoint"] != "" {
			ref.origin = ref.property("glue.endpoint")
		}
	}
	ref.Place.Prefix = cmp.Or(ref.Properties["glue.id"], ref.Place.Prefix)
	ref.Place.Warehouse = cmp.Or(withoutUser(f.Warehouse), ref.Place.Warehouse)
	_, key := glueSetting(ref.Properties, "access-key-id")
	secretName, secret := glueSetting(ref.Properties, "secret-access-key")
	tokenName, token := glueSetting(ref.Properties, "session-token")
	switch {
	case (key == "") != (secret == ""):
		return usage("%s: glue.access-key-id and glue.secret-access-key are given together, or none of them", ref.property(secretName))
	case token != "" && key == "":
		return usage("%s: a session token goes with the keys that it was given out with: give glue.access-key-id and glue.secret-access-key", ref.property(tokenName))
	}
	if text := ref.Properties["glue.max-retries"]; text != "" {
		if n, err := strconv.Atoi(text); err != nil || n < 0 {
			return usage("%s: %q: want a number", ref.property("glue.max-retries"), text)
		}
	}
	return nil
}

// glueAddress is the address of what properties and variables say; empty where the region is only known to
// AWS's own files.
func glueAddress(properties map[string]string, env Env) (string, error) {
	if endpoint := properties["glue.endpoint"]; endpoint != "" {
		return addressOf(endpoint)
	}
	_, region := glueSetting(properties, "region")
	if region = cmp.Or(region, env.variable("AWS_REGION"), env.variable("AWS_DEFAULT_REGION")); region == "" {
		return "", nil
	}
	return "https://glue." + region + ".amazonaws.com", nil
}

// sameGlue tells whether configured properties are those of the catalog at place.
func sameGlue(properties map[string]string, place rows.Place, env Env) bool {
	address, err := glueAddress(properties, env)
	return err == nil && strings.EqualFold(properties["type"], "glue") && address == place.URI && properties["glue.id"] == place.Prefix
}

// openGlue loads the table that Glue knows.
func openGlue(ctx context.Context, ref Ref, mode Mode) (*Opened, error) {
	g := &glueStore{ref: ref}
	cfg, err := ref.glueConfig(ctx)
	if err != nil {
		return nil, g.explain(err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("a glue catalog is of a region, and none is given: see to %s, or set AWS_REGION", ref.property("glue.region"))
	}
	if ref.Place.URI == "" { // the region is of AWS's own files
		ref.Place.URI = "https://glue." + cfg.Region + ".amazonaws.com"
		g.ref = ref
	}
	g.glueCalls = callsOf(glue.NewFromConfig(cfg))
	if ref.Place.Prefix != "" {
		g.id = aws.String(ref.Place.Prefix)
	}
	return openMetastore(ctx, ref, mode, catalog.Glue, g)
}

// glueConfig is how Glue is reached: by the properties, and, for what they leave out, by AWS's own
// variables and files.
func (r Ref) glueConfig(ctx context.Context) (aws.Config, error) {
	p := r.Properties
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(defaultTimeout)), // the SDK has no deadline of its own
		config.WithRetryer(func() aws.Retryer { return glueRetryer(p) }),
	}
	if _, profile := glueSetting(p, "profile-name"); profile != "" {
		options = append(options, config.WithSharedConfigProfile(profile))
	}
	_, region := glueSetting(p, "region")
	endpoint := p["glue.endpoint"]
	if at := glueHost.FindStringSubmatch(r.Place.URI); at != nil && endpoint == "" {
		region = cmp.Or(region, at[1])
	} else {
		endpoint = cmp.Or(endpoint, r.Place.URI)
	}
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	if _, key := glueSetting(p, "access-key-id"); key != "" {
		_, secret := glueSetting(p, "secret-access-key")
		_, token := glueSetting(p, "session-token")
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(key, secret, token)))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err == nil && endpoint != "" {
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	return cfg, err
}

// glueRetryer says which calls are made again. Where no connection can be had none is: to tell the user takes
// no minutes, and a commit is tried again by its own rules.
func glueRetryer(p map[string]string) aws.Retryer {
	settle := func(o *retry.StandardOptions) {
		o.MaxAttempts = glueAttempts(p)
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			var op *net.OpError
			if errors.As(err, &op) && op.Op == "dial" {
				return aws.FalseTernary
			}
			return aws.UnknownTernary
		})}, o.Retryables...)
	}
	if strings.EqualFold(p["glue.retry-mode"], "adaptive") {
		return retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) { o.StandardOptions = append(o.StandardOptions, settle) })
	}
	return retry.NewStandard(settle) // as with PyIceberg, whose third mode, legacy, is like it
}

// glueAttempts is how often a call is made at most; PyIceberg's default.
func glueAttempts(p map[string]string) int {
	if n, err := strconv.Atoi(p["glue.max-retries"]); err == nil {
		return max(n, 1) // to the SDK 0 is without end
	}
	return 10
}
