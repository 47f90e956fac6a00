package catalogs_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/iceberg-go"

	"icepipe/internal/lake"
)

// ignoredValues are what properties are set to that change nothing.
var ignoredValues = map[string]string{
	"write.format.default": "avro", "write.delete.format.default": "avro", "write.parquet.bloom-filter-enabled.column.NAME": "true",
	"write.distribution-mode": "range", "write.fanout.enabled": "true", "write.metadata.metrics.max-inferred-column-defaults": "1",
	"write.delete.mode": "merge-on-read", "write.merge.isolation-level": "snapshot", "write.object-storage.path": "/nowhere",
	"write.folder-storage.path": "/nowhere", "write.location-provider.impl": "com.example.Places", "write.summary.partition-limit": "5",
	"commit.status-check.num-retries": "1", "history.expire.max-snapshot-age-ms": "1", "history.expire.min-snapshots-to-keep": "1",
	"history.expire.max-ref-age-ms": "1", "read.split.target-size": "1000",
}

// looks tell, by property, whether it does what the document says.
var looks = map[string]func(*testing.T, *bench){
	"write.target-file-size-bytes": func(t *testing.T, b *bench) {
		one := b.with(t, order{})
		many := b.with(t, order{}, "write.target-file-size-bytes", "100000", "write.parquet.row-group-size-bytes", "50000", "write.parquet.compression-codec", "none")
		if len(one.entries) != 1 || len(many.entries) < 3 {
			t.Errorf("%d files without, %d with", len(one.entries), len(many.entries))
		}
	},
	"write.parquet.row-group-size-bytes": func(t *testing.T, b *bench) {
		r := b.with(t, order{}, "write.parquet.row-group-size-bytes", "100000")
		f := r.open(t, r.entries[0])
		defer f.Close()
		if n := f.NumRowGroups(); n < 4 {
			t.Errorf("%d row groups", n)
		}
	},
	"write.parquet.page-size-bytes": func(t *testing.T, b *bench) {
		few, _ := b.with(t, order{}, "parquet.enable.dictionary", "false").pages(t, 0)
		many, _ := b.with(t, order{}, "parquet.enable.dictionary", "false", "write.parquet.page-size-bytes", "4096").pages(t, 0)
		if few != 1 || many < 10 {
			t.Errorf("%d pages without, %d with", few, many)
		}
	},
	"write.parquet.page-row-limit": func(t *testing.T, b *bench) {
		if n, _ := b.with(t, order{}, "write.parquet.page-row-limit", "1000").pages(t, 0); n < 20 {
			t.Errorf("%d pages", n)
		}
	},
	"write.parquet.dict-size-bytes": func(t *testing.T, b *bench) {
		all, by := b.with(t, order{}).pages(t, 2)
		some, few := b.with(t, order{}, "write.parquet.dict-size-bytes", "1").pages(t, 2)
		if by != all || few == some {
			t.Errorf("of %d pages %d have a dictionary without, %d of %d with", all, by, few, some)
		}
	},
	"write.parquet.dict-encoding-enabled.column.NAME": func(t *testing.T, b *bench) {
		_, other := b.with(t, order{}, "write.parquet.dict-encoding-enabled.column.id", "false").pages(t, 2)
		_, part := b.with(t, order{}, "write.parquet.dict-encoding-enabled.column.part", "false").pages(t, 2)
		if part != 0 || other == 0 {
			t.Errorf("%d pages have a dictionary, %d where another column has none", part, other)
		}
	},
	"parquet.enable.dictionary": func(t *testing.T, b *bench) {
		m := b.with(t, order{}, "parquet.enable.dictionary", "false")
		if _, n := m.pages(t, 2); n != 0 {
			t.Errorf("%d pages have a dictionary", n)
		}
	},
	"write.parquet.compression-codec": func(t *testing.T, b *bench) {
		for name, want := range map[string]compress.Compression{
			"": compress.Codecs.Zstd, "gzip": compress.Codecs.Gzip, "snappy": compress.Codecs.Snappy, "brotli": compress.Codecs.Brotli,
			"lz4": compress.Codecs.Lz4Raw, "uncompressed": compress.Codecs.Uncompressed,
		} {
			props := []string{"write.parquet.compression-codec", name}
			if name == "" {
				props = nil
			}
			m := b.with(t, order{}, props...)
			f := m.open(t, m.entries[0])
			chunk, err := f.MetaData().RowGroup(0).ColumnChunk(0)
			if err != nil || chunk.Compression() != want {
				t.Errorf("%q: %s, %v", name, chunk.Compression(), err)
			}
			f.Close()
		}
	},
	"write.parquet.compression-level": func(t *testing.T, b *bench) {
		low := b.with(t, order{}, "write.parquet.compression-codec", "gzip", "write.parquet.compression-level", "1").entries[0].FileSizeBytes()
		high := b.with(t, order{}, "write.parquet.compression-codec", "gzip", "write.parquet.compression-level", "9").entries[0].FileSizeBytes()
		if high == low {
			t.Errorf("%d bytes at 9, as at 1", high)
		}
	},
	"write.data.path": func(t *testing.T, b *bench) {
		dir := t.TempDir()
		m := b.with(t, order{partitioned: true}, "write.data.path", "file://"+dir+"/da ta")
		if n := len(names(t, dir+"/da ta", ".parquet")); n != 2 || len(names(t, m.dir, ".parquet")) != 0 {
			t.Errorf("%d files", n)
		}
	},
	"write.object-storage.enabled": func(t *testing.T, b *bench) {
		m := b.with(t, order{partitioned: true}, "write.object-storage.enabled", "true")
		want := regexp.MustCompile(`/data/[01]{4}/[01]{4}/[01]{4}/[01]{8}/part=(eu|us)/[^/]+\.parquet$`)
		if path := m.entries[0].FilePath(); !want.MatchString(path) {
			t.Error(path)
		}
	},
	"write.object-storage.partitioned-paths": func(t *testing.T, b *bench) {
		m := b.with(t, order{partitioned: true}, "write.object-storage.enabled", "true", "write.object-storage.partitioned-paths", "false")
		want := regexp.MustCompile(`/data/[01]{4}/[01]{4}/[01]{4}/[01]{8}-[^/]+\.parquet$`)
		if path := m.entries[0].FilePath(); !want.MatchString(path) {
			t.Error(path)
		}
	},
	"write.metadata.path": func(t *testing.T, b *bench) {
		dir := t.TempDir()
		m := b.with(t, order{batches: 2}, "write.metadata.path", "file://"+dir+"/größe 100/")
		for end, least := range map[string]int{".avro": 4, ".metadata.json": 2} {
			if n := len(names(t, dir+"/größe 100", end)); n < least {
				t.Errorf("%d files %s", n, end)
			}
		}
		if n := len(names(t, m.dir, ".avro")); n != 0 {
			t.Errorf("%d manifests beside the table", n)
		}
	},
	"write.metadata.compression-codec": func(t *testing.T, b *bench) {
		m := b.with(t, order{batches: 2}, "write.metadata.compression-codec", "gzip")
		if !strings.HasSuffix(m.table.MetadataLocation(), ".gz.metadata.json") {
			t.Error(m.table.MetadataLocation())
		}
	},
	"write.metadata.previous-versions-max": func(t *testing.T, b *bench) {
		m := b.with(t, order{batches: 5}, "write.metadata.previous-versions-max", "2")
		if n := logged(m); n != 2 {
			t.Errorf("%d former files are in the log", n)
		}
	},
	"write.metadata.delete-after-commit.enabled": func(t *testing.T, b *bench) {
		stay := b.with(t, order{batches: 5}, "write.metadata.previous-versions-max", "2")
		gone := b.with(t, order{batches: 5}, "write.metadata.previous-versions-max", "2", "write.metadata.delete-after-commit.enabled", "true")
		if all, few := len(names(t, stay.dir, ".metadata.json")), len(names(t, gone.dir, ".metadata.json")); all != 6 || few != 3 {
			t.Errorf("%d metadata files without, %d with", all, few)
		}
	},
	"write.metadata.metrics.default": func(t *testing.T, b *bench) {
		e := b.with(t, order{}, "write.metadata.metrics.default", "counts").entries[0]
		if len(e.LowerBoundValues()) != 0 || len(e.ValueCounts()) != 3 {
			t.Errorf("%d bounds, %d counts", len(e.LowerBoundValues()), len(e.ValueCounts()))
		}
	},
	"write.metadata.metrics.column.NAME": func(t *testing.T, b *bench) {
		e := b.with(t, order{}, "write.metadata.metrics.column.text", "none", "write.metadata.metrics.column.part", "truncate(1)").entries[0]
		if _, text := e.LowerBoundValues()[2]; text || len(e.ValueCounts()) != 2 || string(e.LowerBoundValues()[3]) != "e" {
			t.Errorf("bounds %v, counts %v", e.LowerBoundValues(), e.ValueCounts())
		}
	},
	"commit.manifest-merge.enabled": func(t *testing.T, b *bench) {
		merged := len(b.with(t, order{batches: 5}, "commit.manifest.min-count-to-merge", "2").manifests(t))
		apart := len(b.with(t, order{batches: 5}, "commit.manifest.min-count-to-merge", "2", "commit.manifest-merge.enabled", "false").manifests(t))
		if merged >= 4 || apart != 5 {
			t.Errorf("%d manifests with, %d without", merged, apart)
		}
	},
	"commit.manifest.min-count-to-merge": func(t *testing.T, b *bench) {
		two := len(b.with(t, order{batches: 5}, "commit.manifest.min-count-to-merge", "2").manifests(t))
		unset := len(b.with(t, order{batches: 5}).manifests(t))
		if two >= 4 || unset != 5 {
			t.Errorf("%d manifests with, %d without", two, unset)
		}
	},
	"commit.manifest.target-size-bytes": func(t *testing.T, b *bench) {
		if n := len(b.with(t, order{batches: 5}, "commit.manifest.min-count-to-merge", "2", "commit.manifest.target-size-bytes", "1").manifests(t)); n != 5 {
			t.Errorf("%d manifests", n)
		}
	},
	"commit.retry.num-retries": func(t *testing.T, b *bench) {
		for retries, want := range map[string]int{"0": 1, "2": 3} {
			m, err := b.move(t, order{fail: 100, props: iceberg.Properties{"commit.retry.num-retries": retries, "commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "1"}})
			if err == nil || m.commits != want {
				t.Errorf("%s: %d commits, %v", retries, m.commits, err)
			}
		}
	},
	"commit.retry.min-wait-ms": func(t *testing.T, b *bench) {
		hour := []string{"commit.retry.max-wait-ms", "3600000", "commit.retry.total-timeout-ms", "60000"}
		b.retried(t, true, hour...)
		b.retried(t, false, append(hour, "commit.retry.min-wait-ms", "3600000")...)
	},
	"commit.retry.max-wait-ms": func(t *testing.T, b *bench) {
		hour := []string{"commit.retry.min-wait-ms", "3600000", "commit.retry.total-timeout-ms", "20000"}
		b.retried(t, false, hour...)
		b.retried(t, true, append(hour, "commit.retry.max-wait-ms", "1")...)
	},
	"commit.retry.total-timeout-ms": func(t *testing.T, b *bench) {
		b.retried(t, true)
		b.retried(t, false, "commit.retry.total-timeout-ms", "1")
	},
	"write.merge.mode": func(t *testing.T, b *bench) {
		for value, want := range map[string]lake.DeleteMode{"copy-on-write": lake.CopyOnWrite, "merge-on-read": lake.MergeOnRead} {
			b.mode(t, want, "write.merge.mode", value, "write.update.mode", "copy-on-write")
		}
	},
	"write.update.mode": func(t *testing.T, b *bench) {
		for value, want := range map[string]lake.DeleteMode{"copy-on-write": lake.CopyOnWrite, "merge-on-read": lake.MergeOnRead} {
			b.mode(t, want, "write.update.mode", value)
		}
	},
	"write.wap.enabled": func(t *testing.T, b *bench) {
		b.refused(t, "write.wap.enabled=true", "write.wap.enabled", "true")
	},
	"gc.enabled": func(t *testing.T, b *bench) {
		o, _ := b.make(t, order{props: iceberg.Properties{"gc.enabled": "false"}})
		_, err := (&lake.Table{Catalog: o.Catalog, Table: o.Table}).Orphans(t.Context(), time.Time{})
		if err == nil || !strings.Contains(err.Error(), "gc.enabled=false") {
			t.Error(err)
		}
	},
	"encryption.key-id": func(t *testing.T, b *bench) {
		b.refused(t, `"encryption.key-id" asks for encrypted data files`, "encryption.key-id", "k")
	},
}

// logged counts the former metadata files that a table knows of.
func logged(m moved) (n int) {
	for range m.table.Metadata().PreviousFiles() {
		n++
	}
	return n
}

// retried tells whether a commit that failed once is tried again.
func (b *bench) retried(t *testing.T, want bool, props ...string) {
	t.Helper()
	p := iceberg.Properties{}
	for i := 0; i < len(props); i += 2 {
		p[props[i]] = props[i+1]
	}
	m, err := b.move(t, order{fail: 1, props: p})
	if got := m.commits > 1; got != want || (err == nil) != want {
		t.Errorf("%v: %d commits, %v", props, m.commits, err)
	}
}

// mode holds the way in which an upsert takes rows out.
func (b *bench) mode(t *testing.T, want lake.DeleteMode, props ...string) {
	t.Helper()
	p := iceberg.Properties{}
	for i := 0; i < len(props); i += 2 {
		p[props[i]] = props[i+1]
	}
	o, _ := b.make(t, order{props: p})
	got, why, err := (&lake.Table{Catalog: o.Catalog, Table: o.Table}).DeleteModeWhy("auto")
	if err != nil || got != want || !strings.HasPrefix(why, props[0]) {
		t.Errorf("%v: %s, %q, %v", props, got, why, err)
	}
}

// refused holds a refusal, and that nothing was written.
func (b *bench) refused(t *testing.T, says string, key, value string) {
	t.Helper()
	m, err := b.move(t, order{props: iceberg.Properties{key: value}})
	if err == nil || m.commits != 0 || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%d commits, %v", m.commits, err)
	}
}
