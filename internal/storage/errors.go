package storage

import (
	"errors"
	"fmt"
	"strings"
)

// A refusal is what a storage says, in one line, with what to do about it.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }

// codeOf is the code of a storage's refusal, as S3 and its kin have it; "" for none.
func codeOf(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return ""
}

// cures are what to do about refusals, by their codes.
var cures = map[string]string{
	"InvalidAccessKeyId":           keysEnded,
	"InvalidToken":                 keysEnded,
	"ExpiredToken":                 keysEnded,
	"ExpiredTokenException":        keysEnded,
	"TokenRefreshRequired":         keysEnded,
	"RequestExpired":               keysEnded,
	"SignatureDoesNotMatch":        "see to s3.secret-access-key",
	"AccessDenied":                 notAllowed,
	"Forbidden":                    notAllowed,
	"AuthorizationHeaderMalformed": wrongRegion,
	"PermanentRedirect":            wrongRegion,
	"MovedPermanently":             wrongRegion,
	"IllegalLocationConstraint":    wrongRegion,
	"RequestTimeTooSkewed":         "see to this machine's clock",
	"NoSuchBucket":                 "see to the table's location, and to s3.endpoint",
	"PreconditionFailed":           "it has changed since it was opened: run it again",
	"BadRequest":                   "see to s3.region and to the keys",
}

const (
	keysEnded   = "the keys are not known, or not any more: see to s3.access-key-id and s3.session-token; where the catalog vends keys, run it again for new ones"
	notAllowed  = "the keys do not allow it, or not any more; where the catalog vends keys, run it again for new ones"
	wrongRegion = "the bucket is in another region: see to s3.region"
)

// refusesKeys tells whether other keys may be of use. The answer to a question about an object has no body that says
// more than that it is forbidden.
func refusesKeys(err error) bool {
	code := codeOf(err)
	return cures[code] == keysEnded || code == "Forbidden"
}

// explain is an error of a storage in one line. Clients of storages say much, over many lines.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var done *refusal
	if errors.As(err, &done) {
		return err
	}
	var coded interface {
		ErrorCode() string
		ErrorMessage() string
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if errors.As(err, &coded) && coded.ErrorCode() != "" {
		text = coded.ErrorCode()
		if said := strings.Join(strings.Fields(coded.ErrorMessage()), " "); said != "" && said != text {
			text += ": " + said
		}
		if cure := cures[coded.ErrorCode()]; cure != "" {
			text += "; " + cure
		}
		return &refusal{text, err}
	}
	switch {
	case strings.Contains(text, "region must be set"), strings.Contains(text, "Invalid region"), strings.Contains(text, "Missing Region"):
		return &refusal{"no region is known: give s3.region", err}
	case strings.Contains(text, "get credentials") || strings.Contains(text, "refresh cached credentials"):
		return &refusal{"no keys for S3 were found: give s3.access-key-id and s3.secret-access-key, or set AWS_PROFILE or AWS_ACCESS_KEY_ID", err}
	case strings.Contains(text, "remote S3 request signing is not supported"):
		return &refusal{"requests cannot be signed by a server: let the catalog vend credentials, or give keys, with s3.remote-signing-enabled=false", err}
	case len(text) > longest:
		text = fmt.Sprintf("%s … (ICE_TRACEBACK=1 shows all)", text[:longest])
	}
	if text == err.Error() {
		return err
	}
	return &refusal{text, err}
}

// longest is how much of a storage's words is shown.
const longest = 400
