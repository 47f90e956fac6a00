//go:build noclouds

package catalogs

import (
	"strings"
	"testing"
)

var cloudSchemes []string

// Such a build says why it has no Glue.
func TestNoGlue(t *testing.T) {
	if err := checkKind("glue", ""); err == nil || !strings.Contains(err.Error(), "this build leaves the clouds out") {
		t.Error(err)
	}
}
