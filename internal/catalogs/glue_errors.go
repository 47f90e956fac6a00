//go:build !noclouds

package catalogs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"

	"icepipe/pkg/plan"
)

// explain says what the user can do about an error of AWS. What a service says of a signature holds the request
// with its session token, from the second line on: no more than the first line is told, or kept.
func (g *glueStore) explain(err error) error {
	if err == nil {
		return nil
	}
	r := g.ref
	var op *net.OpError
	var dns *net.DNSError
	var profile config.SharedConfigProfileNotExistError
	var api smithy.APIError
	switch {
	case errors.As(err, &api):
		return g.answered(api)
	case errors.As(err, &profile):
		key, _ := glueSetting(r.Properties, "profile-name")
		return fmt.Errorf("profile %q is in none of AWS's files (~/.aws/config, ~/.aws/credentials): see to %s", profile.Profile, r.property(key))
	case errors.As(err, &dns):
		return fmt.Errorf("cannot connect to catalog %q: %w; see to %s", r.Place.URI, dns, r.where())
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("cannot connect to catalog %q: %w; see to %s", r.Place.URI, op, r.where())
	case strings.Contains(err.Error(), "get identity:"), strings.Contains(err.Error(), "failed to refresh cached credentials"):
		return fmt.Errorf("catalog %q: no keys of AWS are found: give glue.access-key-id and glue.secret-access-key (%s), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %w",
			r.Place.URI, r.property("glue.access-key-id"), withoutOperation(err))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("catalog %q: no answer in time: %w; see to %s", r.Place.URI, context.DeadlineExceeded, r.where())
	}
	return fmt.Errorf("catalog %q: %w", r.Place.URI, withoutOperation(err))
}

// answered says what the user can do about an answer of AWS that is an error.
func (g *glueStore) answered(api smithy.APIError) error {
	r := g.ref
	said, _, _ := strings.Cut(api.ErrorMessage(), "\n")
	cause := &smithy.GenericAPIError{Code: api.ErrorCode(), Message: said, Fault: api.ErrorFault()}
	if said == "" {
		said = api.ErrorCode()
	}
	refused := func(format string, args ...any) error {
		return &refusedError{fmt.Sprintf("catalog %q ", r.Place.URI) + fmt.Sprintf(format, args...), cause}
	}
	_, key := glueSetting(r.Properties, "access-key-id")
	keys := r.property("glue.access-key-id") + " and glue.secret-access-key"
	if key == "" {
		keys = "the keys in AWS's own variables and files"
	}
	switch api.ErrorCode() {
	case "ConcurrentModificationException":
		return fmt.Errorf("%w: another writer has committed to table %s meanwhile: %w", table.ErrCommitFailed, r, cause)
	case "AccessDeniedException", "AccessDenied":
		return refused("forbids it (%s): see to the rights of whoever %s belong to, glue:GetTable and, for a destination, glue:UpdateTable among them", said, keys)
	case "ExpiredTokenException", "ExpiredToken", "TokenRefreshRequired":
		return refused("refuses the session token, which has ended (%s): get fresh keys, give them by %s, and run again", said, keys)
	case "UnrecognizedClientException", "InvalidClientTokenId", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "IncompleteSignature", "IncompleteSignatureException":
		return refused("does not know the keys (%s): see to %s, which may be of another account or end", said, keys)
	case "InvalidSignatureException", "SignatureDoesNotMatch":
		if strings.Contains(said, "valid region") || strings.Contains(said, "scoped to") {
			return refused("is of another region (%s): see to %s", said, r.property("glue.region"))
		}
		return refused("refuses the signature (%s): see to %s", said, keys)
	case "EntityNotFoundException":
		return &notThereError{fmt.Sprintf("catalog %q has no table %s (%s)", r.Place.URI, plan.FormatPath(r.Identifier), said)}
	case "ResourceNumberLimitExceededException":
		return refused("takes no more versions of the table (%s): see to %s, which is to be true, or delete old versions", said, r.property("glue.skip-archive"))
	case "InvalidInputException", "ValidationException", "GlueEncryptionException":
		return refused("refuses the request (%s)", said)
	}
	return fmt.Errorf("catalog %q: %w", r.Place.URI, cause)
}

// withoutOperation is an error of the SDK without the operation that stands before its cause.
func withoutOperation(err error) error {
	var op *smithy.OperationError
	if errors.As(err, &op) && op.Err != nil {
		return withoutMethod(op.Err)
	}
	return err
}
