package datafile

import (
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

func TestCheckRefuses(t *testing.T) {
	plain := iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "p", prim.String))
	for _, tc := range []struct {
		name string
		edit func(*Config)
		want string // of the error; "" for none
	}{
		{"plain", func(c *Config) {}, ""},
		{"codec", func(c *Config) { c.Properties = iceberg.Properties{propCodec: "lzo"} }, `table property "write.parquet.compression-codec" is "lzo"`},
		{"level", func(c *Config) { c.Properties = iceberg.Properties{propLevel: "40"} }, `"write.parquet.compression-level" is 40: want 1 to 22`},
		{"level, not a number", func(c *Config) { c.Properties = iceberg.Properties{propLevel: "fast"} }, `is "fast"`},
		{"level of a codec without", func(c *Config) { c.Properties = iceberg.Properties{propCodec: "snappy", propLevel: "3"} }, ""},
		{"page size", func(c *Config) { c.Properties = iceberg.Properties{propPageSize: "0"} }, `"write.parquet.page-size-bytes" is "0"`},
		{"target", func(c *Config) { c.Properties = iceberg.Properties{propTargetSize: "1GB"} }, `"write.target-file-size-bytes" is "1GB"`},
		{"metrics", func(c *Config) { c.Properties = iceberg.Properties{propMetricsCol + "p": "all"} }, `"write.metadata.metrics.column.p" is "all"`},
		{"metrics, right", func(c *Config) { c.Properties = iceberg.Properties{propMetrics: " Truncate(8)"} }, ""},
		{"encryption", func(c *Config) { c.Properties = iceberg.Properties{"encryption.key-id": "k"} }, `"encryption.key-id" asks for encrypted`},
		{"version", func(c *Config) { c.Version = 4 }, "format version 4"},
		{"a hash in the data path", func(c *Config) { c.Properties = iceberg.Properties{propDataPath: "file:///tmp/my#table"} }, `holds '#'`},
		{"percent in a path", func(c *Config) { c.Location = "/tmp/my%20table" }, ""},
		{"type", func(c *Config) {
			c.Schema = iceberg.NewSchema(0, opt(1, "a", &iceberg.ListType{ElementID: 2, Element: iceberg.VariantType{}}))
		}, `column "a.element" has type variant`},
		{"geometry", func(c *Config) {
			c.Schema = iceberg.NewSchema(0, opt(1, "g", prim.Int32), opt(2, "geo", iceberg.GeometryType{}))
		}, `column "geo" has type geometry`},
		{"nothing stored", func(c *Config) { c.Schema = iceberg.NewSchema(0, opt(1, "u", iceberg.UnknownType{})) }, "no column that a Parquet file can hold"},
		{"struct of unknown", func(c *Config) {
			c.Schema = iceberg.NewSchema(0, opt(3, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(1, "u", iceberg.UnknownType{})}}))
		}, `column "st" is a struct without`},
		{"missing source", func(c *Config) { c.Spec = spec(by(9, 1000, "x", iceberg.IdentityTransform{})) }, `partition field "x": its source column (field ID 9)`},
		{"transform and type", func(c *Config) { c.Spec = spec(by(2, 1000, "x", iceberg.HourTransform{})) }, `partition field "x": transform hour does not take string`},
		{"unknown transform", func(c *Config) {
			tr, err := iceberg.ParseTransform("zorder[3]")
			if err != nil {
				t.Fatal(err)
			}
			c.Spec = spec(by(2, 1000, "x", tr))
		}, `partition field "x" has transform "zorder[3]"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := config(t, plain, nil)
			tc.edit(&cfg)
			err := Check(cfg)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("got %v, want one line with %s", err, tc.want)
			}
		})
	}
}

// Case 54: iceberg-go cannot write these names into a manifest.
func TestCheckRefusesPartitionNames(t *testing.T) {
	for name, ok := range map[string]bool{"p": true, "_p9": true, "a#b": false, "a.b": false, "a b": false, "a-b": false, "1a": false, "größe": false, "": false} {
		cfg := config(t, iceberg.NewSchema(0, opt(2, "p", prim.String)), nil)
		cfg.Spec = spec(by(2, 1000, name, iceberg.IdentityTransform{}))
		err := Check(cfg)
		if ok != (err == nil) {
			t.Errorf("%q: %v", name, err)
		}
		if !ok && !strings.Contains(err.Error(), "rename the partition field") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
