package catalogs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/rows"
)

// A warehouse is a folder in which the table a.t is, made by the library's hadoop catalog.
type warehouse struct {
	t      *testing.T
	folder string // of the metadata
	ref    Ref
}

func newWarehouse(t *testing.T) warehouse {
	t.Helper()
	dir := t.TempDir()
	c, err := hadoop.NewCatalog("h", dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	if err := c.CreateNamespace(t.Context(), table.Identifier{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateTable(t.Context(), table.Identifier{"a", "t"}, schema); err != nil {
		t.Fatal(err)
	}
	return warehouse{t: t, folder: filepath.Join(dir, "a", "t", "metadata"), ref: Ref{Place: rows.Place{Kind: "hadoop", Warehouse: dir}, Identifier: []string{"a", "t"}, prefix: "dst-"}}
}

func (w warehouse) write(name string, text []byte) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.folder, name), text, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w warehouse) read(name string) []byte {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.folder, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// names are those in the folder.
func (w warehouse) names() (names []string) {
	entries, err := os.ReadDir(w.folder)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func zipped(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(text)
	w.Close()
	return b.Bytes()
}

// version is the table's first metadata as that of another version, by its property v.
func (w warehouse) version(n int) []byte {
	text := w.read("v1.metadata.json")
	return bytes.Replace(text, []byte(`"table-uuid"`), fmt.Appendf(nil, `"properties":{"v":"%d"},"table-uuid"`, n), 1)
}

// The newest version is found as Java finds it, whatever else lies there.
func TestHadoopNewest(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hint  string // "" for none
		files string // versions and what they are
		found string
	}{
		{"one", "1", "", "v1.metadata.json"},
		{"no hint", "", "2 3", "v3.metadata.json"},
		{"an old hint", "1", "2 3", "v3.metadata.json"},
		{"a hint that is no number", "x", "2", "v2.metadata.json"},
		{"a hint with a new line", "2\n", "2 3", "v3.metadata.json"},
		{"a hint whose version is gone", "2", "3 4", "v4.metadata.json"},
		{"a gap", "2", "2 5", "v2.metadata.json"},
		{"a gap without a hint", "", "2 5", "v5.metadata.json"},
		{"compressed", "2", "2.gz", "v2.gz.metadata.json"},
		{"compressed, the old name", "1", "2.gz 3.json.gz", "v3.metadata.json.gz"},
		{"ten", "9", "9 10 11.gz", "v11.gz.metadata.json"},
		{"both forms", "2", "2 2.gz", "v2.metadata.json"},
		{"other catalogs' files", "2", "2 00007-11111111-1111-4111-8111-111111111111 11111111-1111-4111-8111-111111111111", "v2.metadata.json"},
		{"other catalogs' files, no hint", "", "2 00007-11111111-1111-4111-8111-111111111111", "v2.metadata.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWarehouse(t)
			for _, f := range strings.Fields(tt.files) {
				number, form, _ := strings.Cut(f, ".")
				n, _ := strconv.Atoi(number)
				switch text := w.version(n); {
				case strings.Contains(f, "-"):
					w.write(f+".metadata.json", text)
				case form == "gz":
					w.write("v"+number+".gz.metadata.json", zipped(text))
				case form == "json.gz":
					w.write("v"+number+".metadata.json.gz", zipped(text))
				default:
					w.write("v"+number+".metadata.json", text)
				}
			}
			os.Remove(filepath.Join(w.folder, hintName))
			if tt.hint != "" {
				w.write(hintName, []byte(tt.hint))
			}
			o := mustOpen(t, w.ref, ReadOnly)
			if got := filepath.Base(o.Table.MetadataLocation()); got != tt.found {
				t.Errorf("loaded %q, want %q", got, tt.found)
			}
			if want := strings.Trim(regexp.MustCompile(`\D`).ReplaceAllString(tt.found, ""), " "); want != "1" && o.Table.Properties()["v"] != want {
				t.Errorf("it holds %v", o.Table.Properties())
			}
		})
	}
}

// A commit is the next version, and leaves nothing else behind; the hint follows, without Hadoop's checksum of
// the one before.
func TestHadoopCommit(t *testing.T) {
	w := newWarehouse(t)
	w.write("."+hintName+".crc", []byte("stale"))
	w.write(".v2.metadata.json.crc", []byte("stale"))
	w.write("11111111-1111-4111-8111-111111111111.metadata.json", []byte("of a writer that died"))
	long := filepath.Join(w.folder, "11111111-1111-4111-8111-111111111111.metadata.json")
	if err := os.Chtimes(long, w.ago(), w.ago()); err != nil {
		t.Fatal(err)
	}
	o := mustOpen(t, w.ref, ReadWrite)
	for i, codec := range []string{"none", "gzip", "GZIP", "none"} {
		if err := set(t, o, "write.metadata.compression-codec", codec); err != nil {
			t.Fatal(err)
		}
		if err := set(t, o, "n", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	want := "11111111-1111-4111-8111-111111111111.metadata.json v1.metadata.json v2.metadata.json v3.metadata.json v4.gz.metadata.json v5.gz.metadata.json " +
		"v6.gz.metadata.json v7.gz.metadata.json v8.metadata.json v9.metadata.json " + hintName
	if got := strings.Join(w.names(), " "); got != want || string(w.read(hintName)) != "9" {
		t.Errorf("the folder holds %s\nthe hint %q", got, w.read(hintName))
	}
	again := mustOpen(t, w.ref, ReadOnly).Table
	if again.Properties()["n"] != "3" || !strings.HasSuffix(again.MetadataLocation(), "/v9.metadata.json") {
		t.Errorf("loaded %q, %v", again.MetadataLocation(), again.Properties())
	}
	lib, err := hadoop.NewCatalog("h", w.ref.Place.Warehouse, nil)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := lib.LoadTable(t.Context(), table.Identifier{"a", "t"}); err != nil || read.Properties()["n"] != "3" {
		t.Errorf("the library reads %v", err)
	}
}

// Eight writers, each of which tries again after a conflict: each version is one writer's, and none is lost.
func TestHadoopWriters(t *testing.T) {
	w := newWarehouse(t)
	all := eightWriters(t, w.ref, 6)
	o := mustOpen(t, w.ref, ReadOnly)
	if n := len(o.Table.Properties()); n != all || !strings.HasSuffix(o.Table.MetadataLocation(), fmt.Sprintf("/v%d.metadata.json", all+1)) {
		t.Errorf("%d properties in %q", n, o.Table.MetadataLocation())
	}
	if n := len(w.names()); n != all+2 {
		t.Errorf("the folder holds %q", w.names())
	}
}

// What is wrong is said in one line, with the cure.
func TestHadoopErrors(t *testing.T) {
	w := newWarehouse(t)
	at := func(edit func(*Ref)) Ref {
		r := w.ref
		edit(&r)
		return r
	}
	for _, tt := range []struct {
		name string
		ref  Ref
		says string
		gone bool
	}{
		{"no table", at(func(r *Ref) { r.Identifier = []string{"a", "tt"} }), `^table a\.tt is not in warehouse ".*": near are a\.t \(a destination is never created: make the table first\)$`, true},
		{"another namespace", at(func(r *Ref) { r.Identifier = []string{"b", "t"} }), `near are a\.t`, true},
		{"nothing near", at(func(r *Ref) { r.Identifier = []string{"zzz", "yyyyyyy"} }), `: want v….metadata\.json in ".*/zzz/yyyyyyy/metadata"`, true},
		{"no warehouse", at(func(r *Ref) { r.Place.Warehouse += "/nothere" }), `is not in warehouse ".*/nothere", which is not there: see to --dst-warehouse$`, true},
		{"on S3", at(func(r *Ref) { r.Place.Warehouse = "s3://bucket/w" }), `^destination a\.t: a hadoop catalog can be written on the local disk alone: .*: register the table in a catalog of another kind, and name that one \(warehouse "s3://bucket/w", see to --dst-warehouse\)$`, false},
		{"on another machine", at(func(r *Ref) { r.Place.Warehouse = "file://other/w" }), `can be written on the local disk alone`, false},
		{"a name that is none", at(func(r *Ref) { r.Identifier = []string{"..", "t"} }), `"\.\.": the tables of a hadoop catalog are folders, and this is no name of one`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open(t.Context(), tt.ref, ReadWrite)
			if err == nil || !regexp.MustCompile(tt.says).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") || errors.Is(err, catalog.ErrNoSuchTable) != tt.gone {
				t.Errorf("got %v\nwant %s", err, tt.says)
			}
		})
	}
	if err := set(t, mustOpen(t, w.ref, ReadOnly), "k", "v"); err == nil || !strings.Contains(err.Error(), "a commit is not for this program") {
		t.Errorf("a catalog that is open for reading: %v", err)
	}
	var refused *refusedError
	for key, value := range map[string]string{"write.metadata.path": "/elsewhere", "write.metadata.compression-codec": "zstd"} {
		if err := set(t, mustOpen(t, w.ref, ReadWrite), key, value); !errors.As(err, &refused) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if n := len(w.names()); n != 2 {
		t.Errorf("the folder holds %q", w.names())
	}
}

// A hadoop catalog is named by its folder.
func TestHadoopResolve(t *testing.T) {
	env := Env{Home: t.TempDir(), Dir: "/w", Environ: []string{"PYICEBERG_CATALOG__H__TYPE=hadoop", "PYICEBERG_CATALOG__H__WAREHOUSE=file:///data/wh/"}}
	for _, tt := range []struct {
		flags TableFlags
		want  rows.Place
		says  string
	}{
		{TableFlags{Short: "h.a.t"}, rows.Place{Kind: "hadoop", Name: "h", Warehouse: "file:///data/wh"}, ""},
		{TableFlags{Catalog: "hadoop", Warehouse: "wh", Namespace: "a", Table: "t"}, rows.Place{Kind: "hadoop", Warehouse: "/w/wh"}, ""},
		{TableFlags{Catalog: "hadoop", Warehouse: "s3://b/wh", Namespace: "a", Table: "t"}, rows.Place{Kind: "hadoop", Warehouse: "s3://b/wh"}, ""},
		{TableFlags{Catalog: "hadoop", Namespace: "a", Table: "t"}, rows.Place{}, "--warehouse is missing: a hadoop catalog is the folder that its tables are in"},
		{TableFlags{Catalog: "hadoop", URI: "http://x", Namespace: "a", Table: "t"}, rows.Place{}, "give --warehouse"},
	} {
		ref, err := tt.flags.Resolve(env)
		if tt.says != "" {
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%+v: %v", tt.flags, err)
			}
			continue
		}
		if err != nil || ref.Place != tt.want {
			t.Errorf("%+v: %+v, %v", tt.flags, ref.Place, err)
		}
	}
	if back, err := FromPlace(rows.Place{Kind: "hadoop", Name: "h", Warehouse: "file:///data/wh"}, []string{"a", "t"}, env); err != nil || back.Properties["type"] != "hadoop" {
		t.Errorf("it is not found again: %v, %v", back, err)
	}
}
