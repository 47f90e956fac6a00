//go:build interop

package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// A toll stands between a program and an S3 server, and counts what passes.
type toll struct {
	*httptest.Server
	bytes  atomic.Int64                                      // of bodies, both ways
	copies atomic.Int64                                      // that were asked for
	fault  func(w http.ResponseWriter, r *http.Request) bool // nil, or whether it has answered in the server's place
}

func isCopy(r *http.Request) bool { return r.Header.Get("X-Amz-Copy-Source") != "" }

func newToll(t *testing.T, endpoint string) *toll {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	l := &toll{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Body = metered{r.Body, &l.bytes}
		return nil
	}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isCopy(r) {
			l.copies.Add(1)
		}
		if l.fault != nil && l.fault(w, r) {
			return
		}
		r.Body = metered{r.Body, &l.bytes}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

type metered struct {
	io.ReadCloser
	n *atomic.Int64
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.n.Add(int64(n))
	return n, err
}

// A copier is what the tests of copies within a store work with: a shed, and the server behind a toll.
type copier struct {
	*shed
	toll *toll
	src  []string // of more than 60 MB, in two files of several row groups
}

var (
	wideNames  = []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	otherNames = []string{"one", "two", "three", "four", "five", "six", "seven", "eight"}
	renamed    = mapping(wideNames, otherNames)
)

// mapping are the flags that rename columns.
func mapping(from, to []string) (flags []string) {
	for i, name := range from {
		flags = append(flags, "--column-mapping", name+":"+to[i])
	}
	return flags
}

// empty makes a destination.
func (c *copier) empty(name, location string) []string {
	c.t.Helper()
	more := []any{"catalog", "s3", "identifier", []string{"c", name}, "names", otherNames}
	if location != "" {
		more = append(more, "location", location)
	}
	c.do("wide", "", more...)
	return []string{"c", name}
}

// line is a command line that copies everything.
func (c *copier) line(src, dst []string, more ...string) []string {
	args := []string{"ice-migrate", "--src", goods{Catalog: "s3", Identifier: src}.String(), "--dst", goods{Catalog: "s3", Identifier: dst}.String(),
		"--batch-rows", "auto", "--copy", "require", "--output", "json", "-q"}
	return slices.Concat(args, renamed, more)
}

// migrate runs it, and gives the receipt.
func (c *copier) migrate(t *testing.T, src, dst []string, more ...string) (run, receipt) {
	t.Helper()
	r, out := c.run(nil, c.line(src, dst, more...))
	var got receipt
	if err := json.Unmarshal([]byte(out), &got); r.code == 0 && err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r, got
}

// same holds that PyIceberg reads the same rows from two tables, and gives their number.
func (c *copier) same(t *testing.T, src, dst []string) int {
	t.Helper()
	answer := c.do("same", "", "catalog", "s3", "source", src, "destination", dst)
	if answer["same"] != true {
		t.Errorf("PyIceberg reads other rows from %s", dst)
	}
	return int(answer["rows"].(float64))
}

// data are the digests of a table's data files, and their size.
func (c *copier) data(t *testing.T, name string) (digests []string, size int64) {
	t.Helper()
	for _, key := range c.objects(t, "w/c/"+name+"/data") {
		text, err := os.ReadFile(filepath.Join(c.shed.data, "buckets", "warehouse", key))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, fmt.Sprintf("%x", sha256.Sum256(text)))
		size += int64(len(text))
	}
	slices.Sort(digests)
	return digests, size
}

// logged counts the requests of a kind for keys below a prefix in the server's log.
func (c *copier) logged(t *testing.T, what, prefix string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.shed.data, "access.log"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte(" "+what+" "+prefix))
}

// uploads are the keys of uploads that are neither complete nor given up.
func (c *copier) uploads(t *testing.T) (keys []string) {
	t.Helper()
	client := awss3.New(awss3.Options{
		BaseEndpoint: &c.endpoint, Region: "us-east-1", UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider("icepipe", "icepipe-secret", ""),
	})
	out, err := client.ListMultipartUploads(t.Context(), &awss3.ListMultipartUploadsInput{Bucket: aws.String("warehouse")})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range out.Uploads {
		keys = append(keys, *u.Key)
	}
	return keys
}
