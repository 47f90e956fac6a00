package datafile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

// TestNotCopied: what must not be copied as it is, is refused where copying is required, with column and reason,
// and goes another way where it is not.
func TestNotCopied(t *testing.T) {
	sorted, err := table.NewSortOrder(1, []table.SortField{{SourceIDs: []int{1}, Transform: iceberg.IdentityTransform{}, Direction: table.SortASC, NullOrder: table.NullsFirst}})
	if err != nil {
		t.Fatal(err)
	}
	one := iceberg.NewSchema(0, opt(1, "c", prim.Int32))
	for _, tt := range []struct {
		name  string
		from  iceberg.Type
		to    iceberg.NestedField
		rows  string
		props []parquet.WriterProperty
		with  func(*Config, *rows.Part)
		want  string
	}{
		{"promoted", prim.Int32, opt(1, "c", prim.Int64), `[{"c":1}]`, nil, nil, `column "c": it is promoted from INT32 to long; --copy-promoted`},
		{"brotli", prim.Int32, opt(1, "c", prim.Int32), `[{"c":1}]`, []parquet.WriterProperty{parquet.WithCompression(compress.Codecs.Brotli)}, nil, `column "c": codec BROTLI is not known to every reader`},
		{"delta", prim.Int32, opt(1, "c", prim.Int32), `[{"c":1}]`, []parquet.WriterProperty{parquet.WithDictionaryDefault(false), parquet.WithEncoding(parquet.Encodings.DeltaBinaryPacked)}, nil, `column "c": encoding DELTA_BINARY_PACKED is not known`},
		{"another zone", prim.Timestamp, opt(1, "c", prim.TimestampTz), `[{"c":"2024-01-01T00:00:00"}]`, nil, nil, `column "c": INT64 of the file`},
		{"null into required", prim.Int32, req(1, "c", prim.Int32), `[{"c":null}]`, nil, nil, `column "c": it is required, and the file does not say that there are no nulls`},
		{"a part", prim.Int32, opt(1, "c", prim.Int32), `[{"c":1},{"c":2}]`, nil, func(_ *Config, p *rows.Part) { p.From = 1 }, "its rows go into more than one batch"},
		{"masked", prim.Int32, opt(1, "c", prim.Int32), `[{"c":1},{"c":2}]`, nil, func(_ *Config, p *rows.Part) { p.Mask = rows.Mask{2} }, "some of its rows are deleted, or do not pass the filter"},
		{"sorted", prim.Int32, opt(1, "c", prim.Int32), `[{"c":1}]`, nil, func(c *Config, _ *rows.Part) { c.SortOrder = sorted }, "the destination has a sort order"},
		{"two partitions", prim.Int32, opt(1, "c", prim.Int32), `[{"c":1},{"c":2}]`, nil, func(c *Config, _ *rows.Part) { c.Spec = spec(by(1, 1000, "p", iceberg.IdentityTransform{})) }, `more than one value of partition field "p"`},
		{"made", prim.Int32, opt(1, "c", prim.Int32), `[{"c":1}]`, nil, func(_ *Config, p *rows.Part) { p.Leaves[0] = rows.Opaque }, `column "c": its values are made`},
		{"missing", prim.Int32, req(1, "c", prim.Int32), `[{"c":1}]`, nil, func(_ *Config, p *rows.Part) { p.Leaves[0] = rows.Nulls }, `column "c": it is required, and the source has no such column`},
		{"nested otherwise", &iceberg.ListType{ElementID: 2, Element: prim.Int32}, opt(1, "c", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(2, "x", prim.Int32)}}), `[{"c":[1]}]`, nil, nil, `column "c": it is nested otherwise`},
		{"elements may be null", &iceberg.ListType{ElementID: 2, Element: prim.Int32}, opt(1, "c", &iceberg.ListType{ElementID: 2, Element: prim.Int32, ElementRequired: true}), `[{"c":[1]}]`, nil, nil, `column "c": it is required, and optional in the file`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from := iceberg.NewSchema(0, opt(1, "c", tt.from))
			rb := batchOf(t, memory.DefaultAllocator, from, tt.rows)
			defer rb.Release()
			source := localSource(t, rb, 10, tt.props...)
			p := partOf(source, from, 0)
			cfg := copyConfig(t, iceberg.NewSchema(0, tt.to), nil)
			if tt.with != nil {
				tt.with(&cfg, p)
			}
			_, err := newWriter(t, cfg).Takes(p)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), fmt.Sprintf("file %q, row group 0", source.Path)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := newWriter(t, config(t, one, nil)).Takes(&rows.Part{}); err != nil {
		t.Errorf("refused where copying is not asked for: %v", err)
	}
}
