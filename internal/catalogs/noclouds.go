//go:build noclouds

package catalogs

// cloudKinds are the kinds of catalogs that need a cloud's SDK, which this build leaves out.
func cloudKinds() map[string]kind {
	refused["glue"] = "this build leaves the clouds out: build it without the tag noclouds"
	return nil
}
