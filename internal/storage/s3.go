//go:build !noclouds && !nos3

package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go/io/gocloud/s3"
	"github.com/apache/iceberg-go/utils"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	awstypes "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"gocloud.dev/blob"
)

// configured is a context and properties by which the library's client of S3 minds what it does not know:
// anonymous access, another profile, a role to take on, the time that an answer may take. Other storages are left
// alone.
func configured(ctx context.Context, p map[string]string, place string) (context.Context, map[string]string, error) {
	if !strings.HasPrefix(place, "s3") {
		return ctx, p, nil
	}
	profile := cmp.Or(p["s3.profile-name"], p["client.profile-name"])
	role := cmp.Or(p["s3.role-arn"], p["client.role-arn"])
	anonymous, _ := strconv.ParseBool(p["s3.anonymous"])
	timeout := p["s3.request-timeout"]
	if profile == "" && role == "" && !anonymous && timeout == "" {
		return ctx, p, nil
	}
	p = maps.Clone(p)
	made, err := s3.ParseAWSConfig(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if profile != "" && p["s3.access-key-id"] == "" {
		of, err := config.LoadDefaultConfig(ctx, config.WithSharedConfigProfile(profile))
		if err != nil {
			return nil, nil, fmt.Errorf("profile %q: %w", profile, err)
		}
		made.Credentials, made.Region = of.Credentials, cmp.Or(made.Region, of.Region)
	}
	if timeout != "" {
		seconds, err := strconv.ParseFloat(timeout, 64)
		if err != nil || seconds <= 0 {
			return nil, nil, fmt.Errorf("s3.request-timeout %q: want seconds", timeout)
		}
		client, ok := made.HTTPClient.(*awshttp.BuildableClient)
		if !ok {
			client = awshttp.NewBuildableClient()
		}
		made.HTTPClient = client.WithTransportOptions(func(t *http.Transport) {
			t.ResponseHeaderTimeout = time.Duration(seconds * float64(time.Second))
		})
	}
	if role != "" {
		taken := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(*made), role, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = cmp.Or(p["s3.role-session-name"], p["client.role-session-name"], "icepipe")
		})
		made.Credentials = aws.NewCredentialsCache(taken)
	}
	if anonymous {
		made.Credentials = aws.AnonymousCredentials{}
	}
	if role != "" || anonymous { // the library would put the keys in the place of these
		for _, key := range []string{"s3.access-key-id", "s3.secret-access-key", "s3.session-token"} {
			delete(p, key)
		}
	}
	return utils.WithAwsConfig(ctx, made), p, nil
}

// encryption is how the properties want objects to be encrypted; zero values where they say nothing.
func encryption(p map[string]string) (how awstypes.ServerSideEncryption, key *string) {
	how = awstypes.ServerSideEncryption(p["s3.server-side-encryption"])
	if name := p["s3.sse-kms-key-id"]; name != "" {
		how, key = cmp.Or(how, awstypes.ServerSideEncryptionAwsKms), aws.String(name)
	}
	return how, key
}

// beforeWrite asks for objects to be encrypted as the properties want it; nil where they say nothing.
func beforeWrite(p map[string]string) func(func(any) bool) error {
	how, key := encryption(p)
	if how == "" {
		return nil
	}
	return func(as func(any) bool) error {
		var in *transfermanager.UploadObjectInput
		if !as(&in) {
			return nil // another storage
		}
		in.ServerSideEncryption, in.SSEKMSKeyID = types.ServerSideEncryption(how), key
		return nil
	}
}

// kept asks S3 whether an object is there that it says it has made, with so many bytes: there are servers that say so of
// what they do not keep. Where it cannot be asked, its word counts.
func (o objects) kept(name string, size int64) error {
	return o.request(func(b *blob.Bucket) error {
		var client *awss3.Client
		if !b.As(&client) {
			return nil // another storage
		}
		made, err := client.HeadObject(o.ctx, &awss3.HeadObjectInput{Bucket: o.bucketName(), Key: aws.String(keyOf(name))})
		switch {
		case codeOf(err) == "NotFound":
			return errors.New("the server says that it made this object, and has none of that name")
		case err == nil && made.ContentLength != nil && *made.ContentLength != size:
			return &shortened{*made.ContentLength, size}
		}
		return nil
	})
}

// A shortened object is not as long as what was written.
type shortened struct{ has, size int64 }

func (e *shortened) Error() string {
	return fmt.Sprintf("the server made %d bytes of it, not %d", e.has, e.size)
}

// s3IfMatch has a request to S3 refused if the object has changed.
func s3IfMatch(etag string, as func(any) bool) {
	var get *awss3.GetObjectInput
	if as(&get) {
		get.IfMatch = aws.String(etag)
	}
}

// s3Answer is what an answer of S3 says of itself: the object's ETag, and the range that it holds, "" for none; not ok
// for other storages.
func s3Answer(r *blob.Reader) (etag, held string, ok bool) {
	var out awss3.GetObjectOutput
	ok = r.As(&out)
	return aws.ToString(out.ETag), aws.ToString(out.ContentRange), ok
}

// s3Key has a request to S3 use a key as it is.
func s3Key(key string, as func(any) bool) bool {
	var get *awss3.GetObjectInput
	if as(&get) {
		get.Key = aws.String(key)
		return true
	}
	var put *transfermanager.UploadObjectInput
	if as(&put) {
		put.Key = aws.String(key)
		return true
	}
	return false
}
