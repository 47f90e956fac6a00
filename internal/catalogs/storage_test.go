package catalogs

import (
	"path/filepath"
	"slices"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
)

// All forms of a location of a table load, whatever the form in the catalog.
func TestTableLocations(t *testing.T) {
	cat, _ := temporary(t)
	bare := makeTable(t, cat, "a", "t").MetadataLocation()
	if !filepath.IsAbs(bare) {
		t.Fatalf("the metadata is at %q", bare)
	}
	for _, form := range []string{"", "file:", "file://", "file://localhost"} {
		path := handmade(t, layoutV1, row("x", "a", "t", "'"+form+bare+"'"))
		if o := mustOpen(t, at(path, "", "a", "t"), ReadOnly); o.Table.MetadataLocation() != form+bare {
			t.Errorf("loaded from %q", o.Table.MetadataLocation())
		}
	}
}

func TestSchemes(t *testing.T) {
	schemes := iceio.GetRegisteredSchemes()
	for _, want := range append([]string{"file", ""}, cloudSchemes...) {
		if !slices.Contains(schemes, want) {
			t.Errorf("no storage for %q in %q", want, schemes)
		}
	}
	if len(cloudSchemes) == 0 && slices.Contains(schemes, "s3") {
		t.Error("a build without clouds has S3")
	}
}
