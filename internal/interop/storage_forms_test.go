//go:build interop

package interop

import (
	"slices"
	"strings"
	"testing"
)

// forms: tables whose metadata has old forms, or is compressed, are moved from and to (case 82), and can be read by
// PyIceberg and Spark afterwards.
func (s *shed) forms(t *testing.T) {
	zipped := map[string]string{"write.metadata.compression-codec": "gzip"}
	v1 := map[string]string{"format-version": "1"}
	var srcs, dsts, aged []goods
	for i, form := range []struct {
		name  string
		by    string
		props map[string]string
		forms []string
		file  string
		empty bool // as a source
		gz    bool // what is written is compressed
	}{
		{name: "gzip", by: "spark", props: zipped, gz: true},
		{name: "v3_gz", file: "v3.gz.metadata.json", forms: []string{}},
		{name: "no_name", file: "current.metadata.json", forms: []string{}},
		{name: "minus_one", forms: []string{"no snapshot"}, empty: true},
		{name: "minus_one_v1", props: v1, forms: []string{"no snapshot", "no uuid"}, empty: true},
		{name: "no_uuid", props: v1, forms: []string{"no uuid"}},
		{name: "plain_v1", props: v1, forms: []string{"plain v1"}},
		{name: "plain_v1_gz", props: v1, forms: []string{"plain v1"}, file: "v5.gz.metadata.json"},
	} {
		catalog := []string{"disk", "s3"}[i%2]
		src := goods{Catalog: catalog, Identifier: []string{"f", "s_" + form.name}, By: form.by, Properties: form.props, Forms: form.forms, File: form.file, Rows: 16}
		if form.empty {
			src.Rows = 0
		}
		dst := src
		dst.Identifier, dst.Rows = []string{"f", "d_" + form.name}, 0
		dst.Forms = slices.DeleteFunc(slices.Clone(form.forms), func(f string) bool { return f == "" })
		srcs, dsts = append(srcs, src), append(dsts, dst)
	}
	if failed := s.make(append(slices.Clone(srcs), dsts...)); len(failed) > 0 {
		t.Fatal(failed)
	}
	for _, g := range append(slices.Clone(srcs), dsts...) {
		if g.Forms != nil {
			aged = append(aged, g)
		}
	}
	s.do("age", "", "tables", aged)
	full := goods{Catalog: "disk", Identifier: []string{"f", "full"}, Rows: 16}
	var copies []goods // what came of the sources
	for _, src := range srcs {
		copies = append(copies, goods{Catalog: src.Catalog, Identifier: []string{"f", "c" + src.Identifier[1]}})
	}
	if failed := s.make(append(copies, full)); len(failed) > 0 {
		t.Fatal(failed)
	}
	for i := range srcs {
		for _, pair := range [][2]goods{{srcs[i], copies[i]}, {full, dsts[i]}} {
			name := pair[1].Identifier[1]
			args := []string{"--src", pair[0].String(), "--dst", pair[1].String(), "--batch-rows", "9", "-q", "--checkpoint", name + ".json"}
			if r, _ := s.run(nil, append([]string{"ice-migrate"}, append(args, "--verify", "partition_hash")...)); r.code != 0 {
				t.Errorf("%s: %s", name, told([]run{r}))
			}
		}
	}
	all := append(slices.Clone(copies), dsts...)
	for i, f := range s.look(true, all...) {
		want, snapshots := ids(0, 16), 2
		if i < len(srcs) && srcs[i].Rows == 0 {
			want, snapshots = nil, 0
		}
		if !slices.Equal(f.IDs, want) || len(f.Snapshots) != snapshots || len(f.Wrong) > 0 {
			t.Errorf("%s: ids %v in %d snapshots, %q", all[i], f.IDs, len(f.Snapshots), f.Wrong)
		}
		if zipped := all[i].Properties["write.metadata.compression-codec"] == "gzip"; strings.Contains(f.Metadata, ".gz.") != zipped {
			t.Errorf("%s: metadata %s", all[i], f.Metadata)
		}
	}
	say("storage: %d old forms of metadata, as source and as destination", len(srcs))
}
