//go:build interop

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	iceio "github.com/apache/iceberg-go/io"

	files "icepipe/internal/storage"
)

// TestStoreCopy: of a table whose columns are renamed alone, from S3 to S3, the bytes stay in the store.
func TestStoreCopy(t *testing.T) {
	c := &copier{shed: newShed(t), src: []string{"c", "src"}}
	c.toll = newToll(t, c.endpoint)
	c.do("wide", "", "catalog", "s3", "identifier", c.src, "names", wideNames, "files", []int{480_000, 470_000}, "group", 120_000)
	t.Run("bytes", c.stays)
	t.Run("refused", c.refused)
	t.Run("failed", c.failed)
	t.Run("keys", c.keys)
	t.Run("objects", c.odd)
}

// stays: what passes through the process is a small part, by the receipt and by what is seen on the way; the files are
// byte for byte those that are made where all passes through it.
func (c *copier) stays(t *testing.T) {
	dst, plain := c.empty("dst", ""), c.empty("plain", "")
	_, size := c.data(t, "src")
	r, got := c.migrate(t, c.src, dst, "--property", "s3.endpoint="+c.toll.URL)
	if r.code != 0 {
		t.Fatal(told([]run{r}))
	}
	passed := c.toll.bytes.Load()
	say("storecopy: of %d bytes %d passed through the process, %.2f %%; by the receipt %d were copied, %d of them by the store, %d read; %d copies",
		size, passed, 100*float64(passed)/float64(size), got.BytesCopied, got.ByStore, got.BytesRead, c.toll.copies.Load())
	if size < 60e6 || passed > size/20 || int64(got.BytesCopied-got.ByStore) > size/20 || int64(got.BytesRead) > size/20 || c.toll.copies.Load() == 0 {
		t.Errorf("%d of %d bytes passed through the process; %+v", passed, size, got)
	}
	// The server's log has no sizes of bodies, but for those of single puts.
	copied, put := c.logged(t, "s3_UploadPartCopy", "w/c/dst/data/"), c.logged(t, "s3_UploadPart", "w/c/dst/data/")
	if int64(copied) != c.toll.copies.Load() || put > 1 || c.logged(t, "s3_PutObject", "w/c/dst/data/") > 0 {
		t.Errorf("the server logs %d copies and %d other parts of data files", copied, put)
	}
	if n := c.same(t, c.src, dst); n != 950_000 {
		t.Errorf("%d rows", n)
	}
	verify := []string{"ice-verify", "--src", goods{Catalog: "s3", Identifier: c.src}.String(), "--dst", goods{Catalog: "s3", Identifier: dst}.String(), "--method", "partition_hash"}
	if r, _ := c.run(nil, append(verify, renamed...)); r.code != 0 {
		t.Error(told([]run{r}))
	}

	// Where the two ends have other names for the server, nothing is copied by it.
	elsewhere := strings.Replace(c.toll.URL, "127.0.0.1", "localhost", 1)
	r, got = c.migrate(t, c.src, plain, "--src-property", "s3.endpoint="+elsewhere, "--dst-property", "s3.endpoint="+c.toll.URL)
	if r.code != 0 || got.ByStore != 0 || int64(got.BytesRead) < size*9/10 {
		t.Errorf("%+v\n%s", got, told([]run{r}))
	}
	a, _ := c.data(t, "dst")
	if b, _ := c.data(t, "plain"); !slices.Equal(a, b) || len(a) == 0 {
		t.Errorf("%d files that the store copied are not the %d that are made otherwise", len(a), len(b))
	}
}

// refused: a store that copies nothing is asked once, and all goes through the process.
func (c *copier) refused(t *testing.T) {
	dst := c.empty("refused", "")
	c.toll.copies.Store(0)
	c.toll.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if isCopy(r) {
			w.WriteHeader(http.StatusNotImplemented)
			io.WriteString(w, "<Error><Code>NotImplemented</Code><Message>none</Message></Error>")
		}
		return isCopy(r)
	}
	defer func() { c.toll.fault = nil }()
	r, got := c.migrate(t, c.src, dst, "--property", "s3.endpoint="+c.toll.URL)
	if n := c.toll.copies.Load(); r.code != 0 || got.ByStore != 0 || n != 1 {
		t.Errorf("%d copies were asked for, %+v\n%s", n, got, told([]run{r}))
	}
	c.same(t, c.src, dst)
}

// failed: a run that fails, or is interrupted, while the store copies leaves no upload behind; another one goes on.
func (c *copier) failed(t *testing.T) {
	dst := c.empty("failed", "")
	defer func() { c.toll.fault = nil }()
	line := c.line(c.src, dst, "--property", "s3.endpoint="+c.toll.URL, "--checkpoint", "failed.json")
	c.toll.fault = func(w http.ResponseWriter, r *http.Request) bool {
		refuse := r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
		if refuse {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
		}
		return refuse
	}
	r, _ := c.run(nil, line)
	if lines := r.errorLines(); r.code != 1 || len(lines) != 1 || !strings.Contains(lines[0], "AccessDenied") {
		t.Error(told([]run{r}))
	}
	if left := c.uploads(t); len(left) > 0 {
		t.Errorf("uploads %q are left", left)
	}

	copying, ended := make(chan struct{}, 100), make(chan struct{})
	c.toll.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if isCopy(r) {
			copying <- struct{}{}
			<-ended
		}
		return false
	}
	ctx, cancel := context.WithTimeout(t.Context(), moveTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, line[0]), line[1:]...)
	var said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = c.dir, environment(program{dir: c.dir}), &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-copying
	if len(c.uploads(t)) == 0 {
		t.Error("no upload is to be seen while the store copies")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	close(ended)
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("%v\n%s", err, said.String())
	}
	if left := c.uploads(t); len(left) > 0 {
		t.Errorf("uploads %q are left", left)
	}
	c.toll.fault = nil
	if r, _ := c.run(nil, line); r.code != 0 {
		t.Error(told([]run{r}))
	}
	c.same(t, c.src, dst)
}

// keys: tables whose keys have what is to be encoded in a header.
func (c *copier) keys(t *testing.T) {
	for i, name := range []string{"sp ace", "a%20b", "a+b", "größe 表", "100%", "a&b=c;d,e'"} {
		src := []string{"c", fmt.Sprint("odd", i)}
		c.do("wide", "", "catalog", "s3", "identifier", src, "names", wideNames, "files", []int{100_000}, "location", "s3://warehouse/k/"+name+"/src")
		dst := c.empty(fmt.Sprint("odd_to", i), "s3://warehouse/k/"+name+"/dst")
		r, got := c.migrate(t, src, dst)
		if r.code != 0 || got.ByStore != got.BytesCopied || got.BytesCopied == 0 {
			t.Errorf("%q: %+v\n%s", name, got, told([]run{r}))
			continue
		}
		c.same(t, src, dst)
	}
}

// odd: keys that PyIceberg cannot have.
func (c *copier) odd(t *testing.T) {
	fs, err := files.New(keysOf(c.endpoint)).FS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := fs.(iceio.WriteFileIO)
	text := bytes.Repeat([]byte("0123456789abcdef"), 6<<16)
	for _, key := range []string{"h#y/a.parquet", "q?u=x&y/a.parquet", "all %20+#é表~!'()*/a.parquet", "co:lon/a.parquet"} {
		from, to := "s3://warehouse/o/"+key, "s3a://warehouse/p/"+key
		if err := all.WriteFile(from, text); err != nil {
			t.Error(err)
			continue
		}
		source, err := all.Open(from)
		if err != nil {
			t.Error(err)
			continue
		}
		w, err := all.Create(to)
		if err != nil {
			t.Fatal(err)
		}
		done, err := w.(interface {
			CopyRange(from any, off, n int64) (bool, error)
		}).CopyRange(source, 1, int64(len(text)-2))
		if err == nil {
			err = w.Close()
		}
		got, failed := fs.(iceio.ReadFileIO).ReadFile(to)
		if !done || err != nil || failed != nil || !bytes.Equal(got, text[1:len(text)-1]) {
			t.Errorf("%q: %v, %v, %v, %d bytes", key, done, err, failed, len(got))
		}
		if n := w.(interface{ CopiedByStore() int64 }).CopiedByStore(); int(n) != len(text)-2 {
			t.Errorf("%q: the store copied %d bytes", key, n)
		}
	}
}
