package datafile

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"icepipe/internal/localdisk"
)

// Cases 54 and 55: odd column names become what Java and PyIceberg write, and metrics stay theirs.
func TestOddColumnNames(t *testing.T) {
	names := []string{"a b", "a.b", "a#b", "9x", "größe", "日本", "x-y", "😀", "a_x20b", ""}
	want := []string{"a_x20b_1", "a_x2Eb", "a_x23b", "_9x", "größe", "日本", "x_x2Dy", "_x1F600", "a_x20b", "_"}
	var fields []iceberg.NestedField
	var row []string
	for i, n := range names {
		fields = append(fields, opt(i+1, n, prim.Int32))
		row = append(row, fmt.Sprintf("%q:%d", n, i+1))
	}
	s := iceberg.NewSchema(0, fields...)
	f := write(t, config(t, s, nil), batchOf(t, memory.DefaultAllocator, s, "[{"+strings.Join(row, ",")+"}]"))[0]
	got := readColumns(t, f)
	for i, n := range want {
		if len(got[n]) != 1 || string(got[n][0]) != fmt.Sprint(i+1) {
			t.Errorf("column %q is %s in the file as %q", names[i], got[n], n)
		}
		if low := f.LowerBoundValues()[i+1]; !slices.Equal(low, []byte{byte(i + 1), 0, 0, 0}) {
			t.Errorf("column %q: lower bound %v", names[i], low)
		}
	}
}

func TestPlaces(t *testing.T) {
	cfg := Config{Location: "s3://b/t/", Properties: iceberg.Properties{}}
	place := func() string { return fileLocation(cfg, dataLocation(cfg), "p=a", "n") }
	if got := place(); got != "s3://b/t/data/p=a/n.parquet" {
		t.Error(got)
	}
	cfg.Properties[propDataPath] = "file:/else where/"
	if got := place(); got != "file:/else where/p=a/n.parquet" {
		t.Error(got)
	}
	cfg.Properties[propObjectStore] = "true"
	if got := strings.Split(strings.TrimPrefix(place(), "file:/else where/"), "/"); len(got) != 6 || len(got[0]+got[1]+got[2]+got[3]) != 20 || got[4] != "p=a" {
		t.Error(got)
	}
	cfg.Properties[propObjectPaths] = "false"
	if got := strings.TrimPrefix(place(), "file:/else where/"); len(got) != len("0000/0000/0000/00000000-n.parquet") {
		t.Error(got)
	}
	for location, want := range map[string]string{
		"/a b/c%20": "/a b/c%20", "file:/a": "/a", "file:///a%2Fb": "/a%2Fb", "FILE://localhost/a": "/a", "rel/x": "rel/x", "/p=1:2//x": "/p=1:2//x",
	} {
		if got, ok := localdisk.Path(location); got != want || !ok {
			t.Errorf("localdisk.Path(%q) = %q, %v", location, got, ok)
		}
	}
	for _, location := range []string{"s3://b/k", "file://host/a", "hdfs://n/x"} {
		if got, ok := localdisk.Path(location); ok {
			t.Errorf("localdisk.Path(%q) = %q", location, got)
		}
	}
}

// Case 64: folders have no character that a library resolves differently, and no excessive length.
func TestFolders(t *testing.T) {
	seen := map[string]string{}
	for _, v := range []string{"plain", "a b", "a/b", "a%b", "a%2Fb", "..", "", "null", "größe", "a+b", "a=b", "a&b#c?d", "tab\t", strings.Repeat("x", 300), strings.Repeat("x", 301), strings.Repeat("ß", 200)} {
		f := folder("p", v)
		if other, twice := seen[f]; twice {
			t.Errorf("%.10q and %.10q share folder %s", v, other, f)
		}
		seen[f] = v
		if len(f) > maxFolder || strings.ContainsAny(f, "/%#?&+ \t") || strings.ContainsFunc(f, func(r rune) bool { return r > 126 }) {
			t.Errorf("%.10q: folder %s", v, f)
		}
	}
	if folder("p", "2024-01-05") != "p=2024-01-05" {
		t.Error("plain values keep their folder")
	}
	cfg := config(t, idText, nil)
	cfg.Spec = spec(by(2, 1000, "p", iceberg.IdentityTransform{}))
	long := strings.Repeat("ß%/", 200)
	files := write(t, cfg, batchOf(t, memory.DefaultAllocator, idText, fmt.Sprintf(`[{"id":1,"p":%q}]`, long)))
	if files[0].Partition()[1000] != long || filepath.Ext(files[0].FilePath()) != ".parquet" {
		t.Errorf("%v", files[0].Partition())
	}
}

func TestSink(t *testing.T) {
	for _, n := range []int{0, 1, firstBlock - 1, firstBlock, firstBlock + 1, firstBlock + blockSize, firstBlock + 3*blockSize + 7} {
		s := &Sink{}
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i * 31)
		}
		for at := 0; at < n; at += 1000 {
			s.Write(data[at:min(n, at+1000)])
		}
		s.shut = true
		s.Write([]byte("behind the last page"))
		var b bytes.Buffer
		if k, err := s.WriteTo(&b); err != nil || k != int64(n) || s.Size() != int64(n) || s.Tell() != int64(n)+4 || !bytes.Equal(b.Bytes(), data) {
			t.Errorf("%d bytes: %d, %v", n, k, err)
		}
		s.Release()
	}
}
